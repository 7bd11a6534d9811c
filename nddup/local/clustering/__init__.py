"""From pairs to clusters and the keep-list, in memory: `graph`, `keep_list`, `mine_components`, `cluster_names`."""
