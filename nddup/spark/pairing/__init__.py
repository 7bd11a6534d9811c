"""From RECORDS to PAIRS on Spark. Start with `collapse`, `prune`, `match` and `expand`.

`key_match` finds candidates by keys, `modulus_levels` compares sketches of different rates, `large_components` is for
components of too many pairs. May import sketching, matching, mining and `nddup.spark`; only lazy
steps are here, so nothing acts.
"""
