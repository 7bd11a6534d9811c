"""The proofs of `nddup check` on Spark, by `nddup.verifying` alone: a module for each table that is proved."""
