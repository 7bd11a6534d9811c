"""From sketches to pairs of near-duplicates. Pure: imports the ground alone, touches no file.

Start with `threshold`, the rule for a near-duplicate pair. `sift` passes over the sketches that can be in no pair, and
`prune` drops the ids that can be in no overlap; `overlap_join` finds every pair that meets the rule, on ids;
`element_join` finds it among tasks. `confirm_texts` lets the texts decide.
"""
