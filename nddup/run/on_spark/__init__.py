"""The stages of a run on Spark: `pipeline` shows their order. Every table is made by `Job` in `state`.

Imports the rooms of `nddup.spark`, `storage` and the modules of `run` that both engines share. Calls Spark actions.
"""
