"""The stages of a run on Spark: `nddup.stages.run` has their order. `Job` in `state` makes every table.

Imports the rooms of `nddup.spark`, `storage` and the modules of `run` that both engines share. Calls Spark actions.
"""
