"""The steps of a run on Spark: `nddup.stages.run` has their order. `Job` in `state` makes every table.

Imports everything else of `nddup.spark`. Calls Spark actions.
"""
