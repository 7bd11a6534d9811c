"""From pairs to clusters and the keep-list, in memory: `graph`, `keep_list`, `problems`, `mine_components`, names."""
