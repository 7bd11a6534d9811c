"""From sketches to pairs, in memory: equal sketches collapse, rare features are pruned, the rest are joined.

The order is that of `nddup.spark.pairing`: `collapse`, `prune`, `match`, `large_components` (too many pairs, or a
posting list that is too long), `confirm` (where texts confirm pairs), `expand`.
"""
