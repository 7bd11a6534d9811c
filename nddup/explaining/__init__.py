"""The texts and curves of `nddup explain`: the effect of settings before a run. Touches no data and no Spark.

May import the pure rooms and `settings`. `curves` explains bands, overlaps and the size of the pairs stage, and draws
figures; `effects` explains the settings of a run by kind of sketch. A new kind gets its explanation in
`effects.explain_settings`.
"""
