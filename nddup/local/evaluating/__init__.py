"""Reference lists on one machine: `list_tables` reads one, `edit_pairs` makes one.

The counterpart of `nddup.spark.evaluating`. May import what `nddup.local` may.
"""
