"""From sketches to pairs of near-duplicates. Pure: imports only `nddup.arrays` and `nddup.errors`.

`threshold` is the rule for a near-duplicate pair, compared in integers; `prefix_filter` finds every such pair.
"""
