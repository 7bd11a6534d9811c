"""Which items of one collection stand in another: shingles, the table of them, what is shared, the verdicts.

    items      --shingle_table-->   the distinct shingles of B, as a table in memory
    records    --share_records-->   SHARED: of each document of A, where a shingle of B stands in it
    SHARED     --settle_possible--> where a filter was asked alone: what it let pass is compared
    SHARED     --join_parts-->      of B in parts: a row a document
    SHARED     --judge-->           a verdict and the best document of each item
    SHARED     --spans-->           the common runs of tokens of an item and its best document

It may import reading, scanning, sketching, and what lies below them. There is no Spark here.
"""
