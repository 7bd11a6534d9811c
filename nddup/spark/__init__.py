"""The stages over DataFrames: lazy, without settings, and without mathematics of their own.

A stage takes DataFrames and plain arguments and gives DataFrames; the pure packages do the work inside `mapInArrow`.
Only `nddup.run` and `nddup.results` act on what a stage gives. `schemas` has the tables, `blocks` the shuffle.
"""
