"""From RECORDS to PAIRS on Spark. Start with `collapse`, `match` and `expand`.

`plan` lists what `match` moves between tasks, and `homes` and `meet` are those tasks. `modulus_levels` compares
sketches with different moduli; `large_components` handles components with too many pairs. May import sketching,
matching, mining and `nddup.spark`. All steps are lazy: no Spark action runs here.
"""
