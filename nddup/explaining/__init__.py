"""`nddup explain`: what a choice of settings means before a run. Imports the pure packages and `settings`.

`curves` explains bands and overlaps, `effects` the settings of a run, and `figures` draws what either gives.
"""
