"""From RECORDS to PAIRS on Spark: `collapse`, `prune`, `match`, `expand`; other finders and families beside them."""
