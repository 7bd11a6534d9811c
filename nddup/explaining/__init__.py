"""The texts and curves of `nddup explain`: the effect of settings before a run. Touches no data and no Spark.

May import the pure rooms and `settings`. `curves` explains bands and overlaps, `effects` explains the settings of a
run by kind of sketch, and `figures` draws both. A new kind gets its explanation in `effects.explain_settings`.
"""
