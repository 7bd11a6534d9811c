"""The tables that commands over finished runs write, declared once: those of `nddup split` and `nddup diff`."""

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

CHANGES = Table(
    "changes",
    "One row for each document that differs between two runs.",
    (
        Column("doc_id", "string", "the document"),
        Column(
            "change",
            "string",
            "`added` or `gone`; `text`: its content is another; `verdict`: only what became of it; `row`: only other"
            " columns, such as its place in a file",
        ),
        Column("kept_before", "boolean", "whether the earlier run kept it; null where it was not there"),
        Column("kept_after", "boolean", "whether the later run keeps it; null where it is gone"),
        Column("duplicate_of_before", "string", "the document that stood for it in the earlier run"),
        Column("duplicate_of_after", "string", "the document that stands for it in the later run"),
        Column(
            "cause",
            "string",
            "why a document of both runs has another verdict, the first of these that holds: `text`: its own;"
            " `values`: of columns that decide, or keep.force; `settings`; `neighbours`: one of these changed, came or"
            " went in its component; `order` of the documents in the collection; `version` of nddup or a library;"
            " `other`: nothing of these, such as the lexicon of the collection; null where the verdict is the same",
        ),
    ),
)

PAIR_CHANGES = Table(
    "pair_changes",
    "One row for each pair of near-duplicates that only one of two runs has.",
    (
        Column("doc_a", "string", "as in `pairs`"),
        Column("doc_b", "string", "as in `pairs`"),
        Column("change", "string", "`won`: only the later run has it; `lost`: only the earlier one"),
        Column("overlap", "int", "as in `pairs`"),
        Column("resemblance", "double", "as in `pairs`"),
    ),
)

_GROUP_COLUMNS = (
    Column(
        "change",
        "string",
        "`born`, `gone`; `split`: two later ones take from it; `merged`: it takes from two earlier ones; `grown`,"
        " `shrunk`; `changed`: as many documents, but others",
    ),
    Column("before", "long", "documents in the earlier run, 0 where it was not there"),
    Column("after", "long", "documents in the later run, 0 where it is gone"),
    Column("came", "long", "documents that were not in it before"),
    Column("went", "long", "documents that are no longer in it"),
    Column("takes_from", "long", "number of earlier ones that had documents of it"),
    Column("gives_to", "long", "number of later ones that have documents of it"),
)

FAMILY_CHANGES = Table(
    "family_changes",
    "One row for each family, a kept document and what it stands for, that differs between two runs.",
    (
        Column("name", "string", "its name, which lasts from run to run"),
        *_GROUP_COLUMNS,
        Column("doc_id", "string", "its kept document in the later run; null where it is gone"),
    ),
)

SET_CHANGES = Table(
    "set_changes",
    "One row for each cluster that differs between two runs; one that shares most documents with an earlier one is it.",
    (
        Column("name", "string", "the id of the cluster in the earlier run; of one that is born, in the later run"),
        *_GROUP_COLUMNS,
        Column("cluster_id", "string", "its id in the later run; null where it is gone"),
    ),
)

DIFF_TABLES = {table.name: table for table in (CHANGES, PAIR_CHANGES, FAMILY_CHANGES, SET_CHANGES)}
"""The tables of a diff, by name; beside them `documents` and `keep` hold the later rows that the earlier run lacks."""
