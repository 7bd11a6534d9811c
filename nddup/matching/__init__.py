"""From sketches to pairs of near-duplicates. Pure: imports `nddup.arrays` and `nddup.errors` only, touches no file.

Start with `threshold`, the rule for a near-duplicate pair. `compare` applies it to two sketches; `prefix_filter` and
`overlap_join` find every pair that meets it.
"""
