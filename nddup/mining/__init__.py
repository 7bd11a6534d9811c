"""From pairs to clusters and the keep-list. Pure: imports `nddup.arrays`, `nddup.errors` and `nddup.matching` only.

Start with `itemsets`, which mines one component by the search of `maximal_sets`; `cluster_modes` decides what is made
of a component, `independent_set` which documents are kept. `family_pairs` finds the pairs where they may be too many.
Only `fimi` touches a file, the one it is given.
"""
