"""All that only the embedded engine does: a run in memory on one machine, without a JVM.

`run` gives `nddup.stages.run` what it asks of an engine; `steps` joins the modules of its steps: files are read here
(`workers` hands tasks to processes, each of which runs `worker`); `collapse`, `match` and `confirm` go from sketches to
pairs, `mine_components` on to the graph and the sets of clusters. `one_task` runs them in a task of Spark. May import
the pure rooms, `tables` and `settings`; never pyspark. tests/embedded/test_engines.py compares both engines.
"""
