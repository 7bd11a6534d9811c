"""The tables that commands over finished runs write, declared once: those of `nddup split`."""

from nddup.tables import Column, Table

SPLIT = Table(
    "split",
    "One row for each document of the run, with its part.",
    (
        Column("doc_id", "string", "the document"),
        Column("part", "string", "its part; null where it is left out: --fixed gives its unit another part"),
        Column("unit", "string", "smallest id of the documents that must go to one part with it"),
        Column("documents", "long", "number of these documents"),
        Column(
            "decided_by",
            "string",
            "what gave the unit its part: `fixed` (--fixed), `earlier` (--from), `size`, or `largest`: it has more"
            " documents than the whole share of any part",
        ),
        Column("given", "string", "the part that --fixed names for the document, else that of --from; else null"),
    ),
)

SHARES = Table(
    "shares",
    "What each part has and should have: of all documents, and of those with each value of the columns of --by.",
    (
        Column("name", "string", "a column of --by; null for all documents"),
        Column("value", "string", "its value, which may be null"),
        Column("part", "string", "a part"),
        Column("documents", "long", "documents of the part with this value"),
        Column("asked", "double", "the part's share of all documents with this value"),
    ),
)

SPLIT_TABLES = {table.name: table for table in (SPLIT, SHARES)}
"""The tables of a split, by name."""
