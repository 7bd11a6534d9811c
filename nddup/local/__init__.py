"""The steps of a run in memory on one machine, without a JVM; they make the same tables as those of `nddup.spark`.

May import the pure rooms, `tables` and `settings`; never pyspark. `engine` joins them to the steps of a run. As in
`nddup.spark`, they are in `reading`, `pairing` and `clustering`; each step is named like its counterpart there, and
tests/local/test_engines.py compares the two. `nddup.run.local_job` gives `engine` to `nddup.stages.run`.
"""
