"""All that only Spark does. With `api`, the one room that imports pyspark.

`run` gives `nddup.stages.run` what it asks of an engine, by `steps`; `engine` has the ten verbs; `session`, `java` and
`daemon` start Spark. Below them, lazy and without algorithms of their own, are functions of DataFrames that call no
action: `scan` is the one pass over the files, `blocks` the shuffle, `schemas` the tables; `pairing`, `clustering` run
the pure rooms inside `mapInArrow`. `session_files` and `session_tables` store, `hadoop_files` cuts files.
`inputs_given` and `runs_given` are what `against`, `passages`, `split` and `diff` do on Spark alone.
"""
