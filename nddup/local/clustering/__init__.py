"""From pairs to the sets of clusters and the choice of the keep-list, in memory: `graph`, `mine_components`."""
