"""From pairs to clusters and the keep-list, in memory: `graph`, `mine_components`, `cluster_names`."""
