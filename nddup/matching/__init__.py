"""From sketches to pairs of near-duplicates. Pure: imports `nddup.ground.arrays` and `nddup.errors` only, touches no
file.

Start with `threshold`, the rule for a near-duplicate pair. `overlap_join` finds every pair that
meets it, on ids; `element_join` finds it among tasks. `confirm_texts` lets the texts decide.
"""
