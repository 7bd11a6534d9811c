"""The tables of `nddup passages`: those it writes, and the one between reading and searching."""

from nddup.tables import REJECTS, Column, Table, working

PASSAGES = Table(
    "passages",
    "One row per passage: a run of at least `passages.min_tokens` tokens whose windows all stand at the same places. A"
    " longer run that fewer documents share is divided where another document joins. Most occurrences first.",
    (
        Column("passage_id", "string", "BLAKE2b of the hashes of its tokens, 32 hex digits: equal for equal tokens"),
        Column("tokens", "int", "its tokens"),
        Column("documents", "int", "documents in which it occurs"),
        Column("occurrences", "long", "places at which it occurs; they may overlap within a document"),
        Column("text", "string", "its text at the first place, the first 1,000 characters"),
    ),
)

OCCURRENCES = Table(
    "occurrences",
    "One row per occurrence of a passage. Tokens and characters are counted from 0, characters in the text without"
    " markup. Ends are exclusive.",
    (
        Column("passage_id", "string", "as in `passages`"),
        Column("doc_id", "string", "id of the document; `source#record` where it has none or an earlier one has it"),
        Column("token", "int", "its tokens"),
        Column("token_end", "int", "its tokens"),
        Column("char", "int", "its characters"),
        Column("char_end", "int", "its characters"),
        Column("first", "boolean", "whether this place is the first by the order of `keep.policy`"),
        Column("cut", "int", "its tokens that may be cut"),
    ),
)

CUTS = Table(
    "cuts",
    "One row per run of tokens that may be cut: repeated windows cover it, and none of them is at its first place.",
    OCCURRENCES.columns[1:-2],
)

REPEATING = Table(
    "repeating",
    "One row per document in which a repeated window stands.",
    (
        OCCURRENCES.columns[1],
        Column("source", "string", "path of its file, as in `documents` of a run"),
        Column("record", "long", "ordinal of the record in the file, from 1"),
        Column("tokens", "int", "its tokens"),
        Column("repeated", "int", "tokens that a repeated window covers"),
        Column("cut", "int", "tokens that may be cut"),
        Column("dropped", "boolean", "whether fewer than `passages.min_left` tokens are left: it is not written"),
    ),
)

PASSAGE_TABLES = {table.name: table for table in (PASSAGES, OCCURRENCES, CUTS, REPEATING, REJECTS)}
"""The tables that are written, by name."""

HASHED = working(
    "hashed",
    "source string, split long, seq long, doc_id string, url string, reason string, detail string, excerpt string,"
    " text string, n_tokens int, hashes array<long>",
    "One row per record: its text and the hashes of its tokens, or the reason why there is none. On Spark `hashes` is"
    " empty: texts travel, and are hashed where they arrive.",
)
