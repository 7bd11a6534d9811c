"""The proofs of `nddup check`, one module for each table that is proved: SELECT texts that DuckDB and Spark both
understand, and kernels over record batches. `nddup.results.check` asks them of a run, whichever engine reads it.

May import `verifying` and the declarations of tables, never `matching`, `mining` or the other stages: a proof that
shared code with what it proves would share its faults.
"""
