"""The tables of a repository, declared once. They are stored in `segments/NAME/`; `commits` describes the folders.

A document has a number, `doc_key`, in the order of arrival: (version, source, record). A node is a distinct sketch,
named by the number of the first document that had it. Components are numbered too. No number is used twice.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from nddup.tables import CLUSTERS, FALSE_COMPONENTS, MEMBERS, OF_TEXTS, PAIRS, Column, Table

LAYOUT, EXACT_LAYOUT = 2, 3
"""Versions of the tables and of the commit files: where sketches decide, and where shingles are stored that decide; a
repository with another one is refused."""

_KEY = Column("doc_key", "long", "number of the document, in the order of arrival")
_COMPONENT = Column("component_key", "long", "number of the component whose rows these are")

DOCUMENTS = Table(
    "documents",
    "One row per document that was added.",
    (
        _KEY,
        Column("doc_id", "string", "its id"),
        Column("url", "string", "the address in the record, or null"),
        Column("source", "string", "path of the file relative to its INPUT"),
        Column("record", "long", "ordinal of the record in its file, from 1"),
        Column("n_tokens", "int", "tokens of the text"),
        Column("n_features", "int", "distinct shingles, before any is selected"),
        Column("content_fingerprint", "binary", "BLAKE2b-128 of the raw bytes of the content"),
        Column("signature", "array<long>", "ids in the order of their slots, for kinds that have slots; else null"),
        Column("node", "long", "its distinct sketch"),
        Column("version", "long", "the version that added it"),
    ),
)

TEXTS = Table(
    "texts",
    "One row per document whose text is kept for reports.",
    (_KEY, Column("text", "string", "the first characters of its text, markup removed")),
)

SKETCHES = Table(
    "sketches",
    "One row per distinct sketch that was new in the segment, ascending by node.",
    (
        Column("node", "long", "number of the first document that had it"),
        Column("n_features", "int", "of that document; decides the modulus of `mod-pow2`"),
        Column("sketch_fingerprint", "binary", "BLAKE2b-128 of what tells nodes apart: the sketch, or all shingle ids"),
        Column("sketch", "array<long>", "ids, ascending as unsigned numbers"),
    ),
)

SHINGLES = Table(
    "shingles",
    "One row per distinct sketch that does not hold all shingles of its documents, by node. An Arrow file, only where"
    " all shingles decide.",
    (
        Column("node", "long", "as in `sketches`"),
        Column("shingles", "array<long>", "the distinct shingle ids of its documents, ascending as unsigned numbers"),
    ),
)

EDGES = Table(
    "edges",
    "One row per near-duplicate or candidate pair of distinct sketches, written when the later one was added.",
    (
        Column("node_a", "long", "a node"),
        Column("node_b", "long", "another"),
        Column("overlap", "int", "features common to both"),
        Column("resemblance", "double", "as in `pairs`"),
        Column("containment_a", "double", "share of a that is in b; null where the kind gives none"),
        Column("containment_b", "double", "share of b that is in a"),
        Column(
            "common",
            "int",
            "number of distinct shingles that both have; 0: a candidate that all shingles did not confirm; null where"
            " sketches decide",
        ),
    ),
)

POSTINGS = Table(
    "postings",
    "The prefix features of the segment's sketches, sorted by feature.",
    (
        Column("feature", "long", "hash of an id, 32 bits"),
        Column("row", "int", "ordinal of the sketch in the segment; for `mod-pow2`, of its row at one level"),
        Column("place", "int", "position of the feature in the order of its sketch, from 0"),
    ),
)

COMMON = Table(
    "common",
    "The features that four or more sketches of the segment hold: with the hash they define its order of features.",
    (Column("feature", "long", "hash of an id"), Column("holders", "int", "how many sketches hold it")),
)

GONE = Table("gone", "One row per document that was removed.", (_KEY, Column("doc_id", "string", "its id")))

REPLACED = Table("replaced", "The components whose rows no longer count.", (_COMPONENT,))

STATE = Table(
    "state",
    "One row per document of each component made: whether it is kept, and why.",
    (
        _KEY,
        _COMPONENT,
        Column("group", "string", "smallest id of the documents with the same sketch"),
        Column("kept", "boolean", "whether it is kept"),
        Column("duplicate_of", "string", "its kept near-duplicate; null where it is kept itself"),
        Column("duplicate_key", "long", "number of that document; null where it is kept itself"),
        Column("reason", "string", "as in `keep`"),
    ),
)


NOT_STORED = tuple(column.name for column in OF_TEXTS if column.name == "edit")
"""The columns of `pairs` that are not stored: only `pairs.confirm: edit` fills them, which a repository refuses."""


def _by_component(table: Table, name: str) -> Table:
    return Table(name, table.meaning, (_COMPONENT, *(one for one in table.columns if one.name not in NOT_STORED)))


RESULTS = {
    "pairs": _by_component(PAIRS, "pairs"),
    "clusters": _by_component(CLUSTERS, "clusters"),
    "members": _by_component(MEMBERS, "members"),
    "false_components": _by_component(FALSE_COMPONENTS, "false_components"),
}
"""The tables of a run that are stored whole, with the component of each row."""

DIGESTS = Table(
    "digests",
    "Order-free digest of the rows of each component of two documents or more, by table.",
    (
        _COMPONENT,
        Column("name", "string", "name of the table"),
        Column("rows", "long", "its rows in this component"),
        Column("digest", "binary", "sum of BLAKE2b-128 of its rows, 16 bytes"),
    ),
)

CHANGES = Table(
    "changes",
    "What a version changed: one row per document that was added, removed, replaced, promoted or demoted.",
    (
        Column("doc_id", "string", "the document"),
        Column("was", "string", "`kept`, `removed` or `absent`"),
        Column("is", "string", "the same, afterwards"),
        Column("duplicate_of", "string", "its kept near-duplicate, where it is removed"),
        Column("cause", "string", "`added`, `removed`, `replaced`, `promoted` or `demoted`"),
    ),
)

MATCHES = Table(
    "matches",
    "One row per stored document that is like a query; a query without any has one row with `doc_id` null.",
    (
        Column("query_id", "string", "the query"),
        Column("doc_id", "string", "a live document of the repository"),
        Column("version", "long", "the version that added it"),
        Column("source", "string", "the file it came from"),
        Column("overlap", "int", "features common to both sketches"),
        Column("resemblance", "double", "as in `pairs`"),
        Column("score", "double", "100 x resemblance"),
        Column("band", "string", "`>=80`, `70-80`, …: the lower bound belongs to it; null without bands"),
        Column("kept", "boolean", "whether the repository keeps it"),
        Column("repository", "string", "where it is stored"),
        Column("note", "string", "`nothing to compare`: the query has no feature to be found by; else null"),
        Column("common", "int", "number of distinct shingles that both have; null where sketches decide"),
        Column("shingles_a", "int", "number of distinct shingles of the query; null likewise"),
        Column("shingles_b", "int", "number of distinct shingles of the document; null likewise"),
    ),
)

SEGMENT = {
    table.name: table
    for table in (
        DOCUMENTS, TEXTS, SKETCHES, SHINGLES, EDGES, POSTINGS, COMMON, GONE, REPLACED, STATE, *RESULTS.values(),
        DIGESTS, CHANGES,
    )
}  # fmt: skip
"""The tables of a segment, by name."""


def table_of(table: Table, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Return a few rows as an Arrow table; the values of a row are in the order of the columns."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, table.arrow, strict=True)]
    return pa.Table.from_arrays(arrays, schema=table.arrow)
