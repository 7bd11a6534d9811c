"""The proofs of `nddup check` on Spark, one module for each table that is proved. Lazy: `nddup.results.check` acts.

May import `verifying` and `spark`, never `matching`, `mining` or the other stages: a proof that shared code with what
it proves would share its faults.
"""
