"""Reference lists on one machine: `list_tables` reads them, `edit_pairs` makes them.

The counterpart of `nddup.spark.evaluating`. May import what `nddup.local` may.
"""
