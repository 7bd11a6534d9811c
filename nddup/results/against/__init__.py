"""One collection against another, as `nddup against` does it: `compare_collections` tells the order of the steps.

`against_on_spark` has the passes that Spark makes; it is loaded where Spark is asked for or needed.
"""
