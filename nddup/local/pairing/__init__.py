"""From sketches to pairs, in memory: equal sketches collapse, rare features are pruned, the rest are joined.

The order of `nddup.spark.pairing`: `collapse`, `prune`, `match` (`heavy_families` where a posting list is too long),
`expand`.
"""
