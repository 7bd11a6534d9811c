"""From MATCHES to CLUSTERS and KEEP on Spark: `graph`, then `problems` and `mine_components`, then `cluster_names`."""
