"""From pairs to clusters and the keep-list. Pure: imports `nddup.arrays`, `nddup.errors` and `nddup.matching`.

`itemsets` mines one component, by the search of `maximal_sets`; `cluster_modes` decides what is made of a component;
`independent_set` chooses which documents are kept.
"""
