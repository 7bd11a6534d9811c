"""Reference lists on Spark: `list_tables` reads one, `edit_pairs` makes one.

The stages are lazy; `nddup.results` runs the actions. May import `reading`, `verifying`, `spark` and `spark.reading`.
"""
