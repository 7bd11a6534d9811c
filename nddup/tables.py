"""The tables of a finished run, declared once: name, columns, types and meanings. Other programs rely on them.

Spark has no unsigned integers: a feature id is stored as the `long` of the same 64 bits, and `sketch` is
ascending as UNSIGNED numbers. The working tables are in `nddup.working_tables`.
"""

from nddup.table_types import Column, Table
from nddup.working_tables import WORKING

# The tables of a run ------------------------------------------------------------------------------------------------

DOCUMENTS = Table(
    "documents",
    "One row for each document, in collection order.",
    doing="number the documents and collapse equal sketches",
    columns=(
        Column(
            "doc_key",
            "long",
            "rank of the record in the collection, in the order (source, record), from 0; rejects leave gaps",
        ),
        Column(
            "doc_id",
            "string",
            "the id in the record; `source#record` where it has none, or where an earlier one of other content has it",
        ),
        Column("url", "string", "the address in the record, or null"),
        Column(
            "source",
            "string",
            "path of the file relative to its INPUT, extended by parent folders where two would be equal",
        ),
        Column("record", "long", "ordinal of the record in its file, from 1"),
        Column("n_tokens", "int", "number of tokens of the text"),
        Column("n_features", "int", "number of distinct shingles, before any are selected"),
        Column("content_fingerprint", "binary", "BLAKE2b-128 of the raw bytes of the content"),
        Column(
            "token_fingerprint",
            "binary",
            "BLAKE2b-128 of the token hashes of the text, in order; null without `pairs.confirm`",
        ),
        Column("group", "string", "smallest id of the documents with the same sketch; with `pairs.confirm`, and text"),
        Column("sketch", "array<long>", "ids of the features kept, 64 bits each, ascending as unsigned numbers"),
        Column("signature", "array<long>", "ids in the order of their slots, for kinds that have slots; else null"),
        Column(
            "policy",
            "array<string>",
            "the values, in order, of those columns of `keep.policy` that are read from the record; else null",
        ),
    ),
)

REJECTS = Table(
    "rejects",
    "One row for each record, or file, that did not become a document.",
    doing="gather the records that became no document",
    columns=(
        Column("source", "string", "as in `documents`"),
        Column("record", "long", "as in `documents`; 1 for a whole file"),
        Column("doc_id", "string", "the id, where it could be read; else null"),
        Column(
            "reason",
            "string",
            "one or two words: `malformed`, `truncated`, `repeated id`, `too large`, `damaged`, `short`, …",
        ),
        Column("detail", "string", "what was wrong"),
        Column("excerpt", "string", "the first characters of the record"),
    ),
)

PAIRS = Table(
    "pairs",
    "One row for each pair of near-duplicate documents.",
    doing="expand the matches to pairs of documents",
    columns=(
        Column("doc_a", "string", "the smaller id, compared as bytes"),
        Column("doc_b", "string", "the larger id"),
        Column("overlap", "int", "number of features common to both sketches"),
        Column(
            "resemblance",
            "double",
            "estimate of the common shingles as a share of all shingles of both; null where the kind gives none",
        ),
        Column("containment_a", "double", "estimate of the share of a that is in b; null where the kind gives none"),
        Column("containment_b", "double", "estimate of the share of b that is in a; null where the kind gives none"),
        Column(
            "star",
            "boolean",
            "whether the row stands for all pairs of two groups of equal sketches (`pairs.expand_limit`)",
        ),
        Column(
            "edit",
            "double",
            "token edit similarity 2 LCS / (a + b) of the two texts, which confirmed the pair; null without"
            " `pairs.confirm`",
        ),
    ),
)

CLUSTERS = Table(
    "clusters",
    "One row for each cluster: a maximal set of near-duplicates, or what `clusters.mode` makes instead.",
    doing="name the clusters by their members",
    columns=(
        Column("cluster_id", "string", "16 hex digits of SHA-256 over the sorted ids, each followed by a zero byte"),
        Column("support", "int", "number of features common to all members; may be 0 in `partition` and `components`"),
        Column("size", "int", "number of members, at least 2"),
        Column(
            "members",
            "array<string>",
            "their ids, sorted, at most `clusters.max_listed`; where `size` is more, the table `members` has them all",
        ),
        Column("component", "string", "smallest id of the connected component of the pairs that holds the cluster"),
        Column(
            "coverage",
            "string",
            "`all`: every maximal set of the component is listed; `pairs`: every pair is in a maximal set;"
            " `documents`: every document with a near-duplicate is in a set; or the name of the mode",
        ),
    ),
)

MEMBERS = Table(
    "members",
    "One row for each member of each cluster.",
    doing="list the members of the clusters",
    columns=(
        Column("cluster_id", "string", "as in `clusters`"),
        Column("doc_id", "string", "a member"),
        Column(
            "representative",
            "boolean",
            "whether the keep policy prefers it to all other members; in `partition`, whether it is the kept document",
        ),
    ),
)

KEEP = Table(
    "keep",
    "Every document once: kept, or removed as a duplicate of a kept one.",
    doing="choose the documents that stay",
    columns=(
        Column("doc_id", "string", "every document, once"),
        Column("kept", "boolean", "whether it is kept"),
        Column("duplicate_of", "string", "the kept near-duplicate of highest resemblance; null where it is kept"),
        Column(
            "reason", "string", "`exact`: the same content; `equal`: the same sketch; `near`; null where it is kept"
        ),
    ),
)

FALSE_COMPONENTS = Table(
    "false_components",
    "One row for each connected component of the pairs in which not every two documents are near-duplicates.",
    doing="list the components that are no cluster",
    columns=(
        Column("component", "string", "smallest id of the component"),
        Column("size", "long", "number of its documents"),
        Column("pairs", "long", "number of their pairs that are near-duplicates"),
        Column("invented", "long", "number of their pairs that are not: transitive closure would add them"),
        Column(
            "exact",
            "boolean",
            "false where `invented` is an upper bound: bands or runs find the pairs, or leaders give the component",
        ),
    ),
)

STORED_TEXTS = Table(
    "texts",
    "Texts of the documents that the report shows, bounded in number and length.",
    doing="store the texts that the report shows",
    columns=(
        Column("doc_id", "string", "a document of a cluster that the report shows"),
        Column("text", "string", "its text, markup removed, at most 20,000 characters"),
    ),
)

RESULTS = {
    table.name: table for table in (DOCUMENTS, REJECTS, PAIRS, CLUSTERS, MEMBERS, KEEP, FALSE_COMPONENTS, STORED_TEXTS)
}
"""The tables that a finished run holds, by name."""

ID_COLUMNS = frozenset({"doc_id", "group", "doc_a", "doc_b", "members", "component", "duplicate_of"})
"""The columns of these tables that hold ids of documents."""


def table_called(name: str) -> Table:
    """Return the declaration of a table that a run keeps, or of one made in rounds (`removed-3`).

    Raises:
        KeyError: for a name that is not declared.
    """
    return RESULTS.get(name) or WORKING[name.partition("-")[0]]
