"""Make clusters and the keep-list from pairs. Pure: imports `nddup.matching` and the ground rooms only.

Start with `itemsets`, which mines one component with the search of `maximal_sets`. `cluster_modes` decides which sets
are made of a component, `pair_graph` which documents are kept, and `keep_verdicts` why. `family_pairs` finds the
sketches that may have too many pairs, and their pairs. Only `fimi` reads a file, the one whose path it is
given.
"""
