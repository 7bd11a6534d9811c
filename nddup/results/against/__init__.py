"""`nddup against`, the comparison of one collection with another: `compare_collections` has the order of its steps.

`against_on_spark` has the passes that Spark makes; it is loaded only where Spark is requested or needed.
"""
