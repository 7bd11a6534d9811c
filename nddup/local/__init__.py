"""The steps of a run in memory on one machine, without a JVM: the same tables as those of `nddup.spark`.

May import the pure rooms, `tables` and `settings`; never pyspark. `engine` tells the order of the steps. They lie in
`reading`, `pairing` and `clustering`, as those of `nddup.spark` do; a step has the name of its counterpart there, and
tests/local/test_engines.py compares them. `nddup.run.local_job` calls the stages of `nddup.run.local_stages`, and these
call `engine`.
"""
