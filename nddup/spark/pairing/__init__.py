"""From RECORDS to PAIRS on Spark. Start with `collapse`, `match` and `expand`.

`plan` lists what `match` moves between tasks, and `homes` and `meet` are those tasks; `modulus_levels` compares
sketches of different rates, `large_components` is for components of too many pairs. May import sketching, matching,
mining and `nddup.spark`; only lazy steps are here, so nothing acts.
"""
