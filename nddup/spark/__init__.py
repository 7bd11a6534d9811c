"""The stages of a run on Spark: lazy, independent of the settings, and without algorithms of their own.

A stage takes DataFrames and plain arguments and returns DataFrames; pure packages do the work inside `mapInArrow`. Only
`nddup.run` and `nddup.results` run Spark actions. `schemas` declares the tables, `blocks` is the shuffle; `scan` is the
one pass over the files, for any consumer of `nddup.scanning`, and `hadoop_files` cuts files, and opens those that are
read whole.
"""
