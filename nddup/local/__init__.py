"""The steps of a run in memory on one machine, without a JVM; they make the same tables as those of `nddup.spark`.

May import the pure rooms, `tables` and `settings`; never pyspark. `engine` joins them to the steps of a run: files are
read here (`workers` hands tasks to processes, each of which runs `worker`); `collapse`, `match` and `confirm` go from
sketches to pairs, `mine_components` on to the graph and the sets of clusters. Each step is named like its counterpart
in `nddup.spark`, and tests/local/test_engines.py compares the two. `nddup.run.local_job` gives `engine` to
`nddup.stages.run`; `one_task` runs it in a task of Spark.
"""
