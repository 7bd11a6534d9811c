"""The proofs of `nddup check`, a module for each table proved: SELECT statements that both DuckDB and Spark
understand, and kernels over record batches. `check_run` runs them on a run's tables, whichever engine
reads.

May import `verifying` and the declarations of tables, never `matching`, `mining` or the other stages: a proof that
shared code with the stage it proves would share its faults.
"""
