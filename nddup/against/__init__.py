"""Find which items of a collection B occur in a collection A, and where.

    items of B     --shingle_table-->     their distinct shingles, as a table in memory
    records of A   --share_records-->     SHARED: where shingles of B occur in each document of A
    SHARED         --verify_filter_hits-->   SHARED without false hits, after a search by a filter alone
    SHARED         --join_parts-->        SHARED with one row per document, where B is in parts
    SHARED         --judge-->             a verdict and the best document of each item
    SHARED         --spans-->             the runs of tokens that an item and its best document have in common

These import reading, scanning, sketching. `compare_collections` has the order of the steps of `nddup against`, with
`against_inputs` and `against_output`; what Spark does is `nddup.spark.inputs_given`.
"""
