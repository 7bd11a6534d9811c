"""Reference lists on Spark: `list_tables` reads one, `edit_pairs` makes one.

Lazy stages: `nddup.results` acts. May import `reading`, `verifying`, `spark` and `spark.reading`.
"""
