"""Every table of a run, declared once: its name, its columns, their types and meanings.

The tables of a finished run (`RESULTS`) are other programs' contract. The working tables (`WORKING`) live under the
run's `_stages` folder, or only in memory, and may change.

Types are Arrow's; `nddup.spark.schemas` derives Spark's from them. There is no unsigned integer in Spark: a feature id
is stored as the `long` of the same 64 bits, and `sketch` is ascending as UNSIGNED numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

TYPES: dict[str, pa.DataType] = {
    "long": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "array<long>": pa.list_(pa.int64()),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
}
"""The types a column may have, under the names that Spark's SQL gives them."""


class Column(NamedTuple):
    """A column: its name, its type (a key of `TYPES`), and what its values mean."""

    name: str
    type: str
    meaning: str = ""


@dataclass(frozen=True)
class Table:
    """A table: what a row is, its columns in order, and what is being done while it is made (for progress)."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    doing: str = ""

    @property
    def names(self) -> list[str]:
        """The columns' names, in order."""
        return [column.name for column in self.columns]

    @property
    def arrow(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema([(column.name, TYPES[column.type]) for column in self.columns])

    def batch(self, values: Sequence[pa.Array]) -> pa.RecordBatch:
        """A batch of this table from its columns in order."""
        return pa.RecordBatch.from_arrays(list(values), names=self.names)


def _working(name: str, columns: str, meaning: str, doing: str = "") -> Table:
    """A working table from `name type` pairs separated by commas; its meaning covers the columns."""
    pairs = (column.split() for column in columns.split(","))
    return Table(name, meaning, tuple(Column(name, kind) for name, kind in pairs), doing)


# The tables of a run ------------------------------------------------------------------------------------------------

DOCUMENTS = Table(
    "documents",
    "One row a document, in collection order.",
    doing="number the documents and collapse equal sketches",
    columns=(
        Column(
            "doc_key",
            "long",
            "rank of the record in the collection, in the order (source, record), from 0; rejects leave gaps",
        ),
        Column("doc_id", "string", "the id in the record; where it has none `source#record`"),
        Column("url", "string", "the address in the record, or null"),
        Column(
            "source",
            "string",
            "path of the file relative to its INPUT, lengthened by parent folders where two would be equal",
        ),
        Column("record", "long", "ordinal of the record in its file, from 1"),
        Column("n_tokens", "int", "tokens of the text"),
        Column("n_features", "int", "distinct shingles, before any is selected"),
        Column("content_fingerprint", "binary", "BLAKE2b-128 of the raw bytes of the content"),
        Column("group", "string", "smallest id of the documents with the same sketch"),
        Column("sketch", "array<long>", "ids of the features kept, 64 bits each, ascending as unsigned numbers"),
        Column("signature", "array<long>", "ids in the order of their slots, for kinds that have slots; else null"),
    ),
)

REJECTS = Table(
    "rejects",
    "One row a record, or a file, that became no document.",
    doing="gather the records that became no document",
    columns=(
        Column("source", "string", "as in `documents`"),
        Column("record", "long", "as in `documents`; of a whole file 1"),
        Column("doc_id", "string", "the id, where it could be read"),
        Column(
            "reason",
            "string",
            "one or two words: `malformed`, `truncated`, `repeated id`, `too large`, `damaged`, `short`, …",
        ),
        Column("detail", "string", "what exactly was wrong"),
        Column("excerpt", "string", "the first characters of the record"),
    ),
)

PAIRS = Table(
    "pairs",
    "One row a pair of near-duplicate documents.",
    doing="expand the matches to pairs of documents",
    columns=(
        Column("doc_a", "string", "the smaller id, compared as bytes"),
        Column("doc_b", "string", "the larger id"),
        Column("overlap", "int", "features common to both sketches"),
        Column(
            "resemblance",
            "double",
            "estimate of the share of common shingles in all of both; null where the kind gives none",
        ),
        Column("containment_a", "double", "estimate of the share of a that is in b; null where the kind gives none"),
        Column("containment_b", "double", "estimate of the share of b that is in a; null where the kind gives none"),
        Column(
            "star",
            "boolean",
            "whether the row stands for all pairs of two groups of equal sketches (`pairs.expand_limit`)",
        ),
    ),
)

CLUSTERS = Table(
    "clusters",
    "One row a maximal set of near-duplicates.",
    doing="name the clusters by their members",
    columns=(
        Column("cluster_id", "string", "16 hex digits of SHA-256 over the sorted ids, each followed by a zero byte"),
        Column("support", "int", "features common to all members; may be 0 in the modes `partition` and `components`"),
        Column("size", "int", "members, at least 2"),
        Column(
            "members",
            "array<string>",
            "their ids, sorted, at most `clusters.max_listed`: where `size` is more, the table `members` has the rest",
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
    "One row a member of a cluster.",
    doing="list the members of the clusters",
    columns=(
        Column("cluster_id", "string", "as in `clusters`"),
        Column("doc_id", "string", "a member"),
        Column(
            "representative",
            "boolean",
            "whether the keep policy prefers it to the other members; in `partition` the kept document",
        ),
    ),
)

KEEP = Table(
    "keep",
    "Every document once: kept, or removed as a duplicate of a kept one.",
    doing="choose the documents that stay",
    columns=(
        Column("doc_id", "string", "every document, once"),
        Column("kept", "boolean", "whether it stays"),
        Column("duplicate_of", "string", "the kept near-duplicate of highest resemblance; null where it stays"),
        Column("reason", "string", "`exact`: the same content; `equal`: the same sketch; `near`; null where it stays"),
    ),
)

FALSE_COMPONENTS = Table(
    "false_components",
    "Connected components of the pairs that are not one family.",
    doing="list the components that are no cluster",
    columns=(
        Column("component", "string", "smallest id of a connected component that is not one family"),
        Column("size", "long", "its documents"),
        Column("pairs", "long", "pairs of them that are near-duplicates"),
        Column("invented", "long", "pairs of them that are not: what transitive closure would add"),
        Column(
            "exact",
            "boolean",
            "false where postings were cut or a family was clustered around leaders: then `invented` is an upper bound",
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

# Working tables -----------------------------------------------------------------------------------------------------

CHUNKS = _working(
    "chunks",
    "value binary, source string, split long, ends_open boolean",
    "Bytes between two record ends, in file order within a split; `split` is the offset where the split starts. In a"
    " split that `ends_open` the last chunk is the last of its file, with no separator behind it.",
)
FILES = _working(
    "files",
    "path string, source string, compression string, most long, size long, task int, content binary",
    "Files that are read from their start, each by one task. `most` is how many bytes it may expand to, `size` how many"
    " it has as stored. `content` is null where the worker is to open the file; else the rows of a file, in order, hold"
    " its bytes between line ends.",
)
CONTENTS = _working(
    "contents",
    "source string, split long, seq long, content string, line string",
    "The content of a record as text, its markup kept; `line` is the line of JSON lines it came in.",
)
SHOWN = _working(
    "shown",
    "turn int, cluster_id string, size int, place int, doc_id string, source string, content_fingerprint binary",
    "A document of a cluster that the report may show: clusters of a lower turn come first, `place` is from 1.",
)
FOUND_TEXTS = _working(
    "found_texts", "source string, content_fingerprint binary, text string", "The text of a record, read again."
)
TEXTS = _working(
    "given_texts",
    "doc_id string, url string, text string, source string, split long, seq long",
    "Documents given as a DataFrame: text already decoded, numbered within their partition.",
)
RECORDS = _working(
    "records",
    "source string, split long, seq long, doc_id string, url string, n_tokens int, n_features int,"
    " n_replaced int, content_fingerprint binary, sketch_fingerprint binary, sketch array<long>,"
    " signature array<long>, reason string, detail string, excerpt string",
    "One row a record: a document, or a reject (`reason` not null). `seq` counts the records of a split from 0,"
    " `n_replaced` the undecodable places of its text.",
    "read, parse, strip and sketch every record",
)
OFFSETS = _working(
    "offsets",
    "source string, split long, before_in_file long, before long",
    "How many records stand before each split, in its file and in the collection.",
    "count the records before each part of a file",
)
PARTS = _working(
    "parts",
    "source string, split long, before long",
    "How many records of the collection stand before each part of a file that the embedded engine read.",
)
NODES = _working(
    "nodes",
    "doc_key long, doc_id string, group string, node long, size int, weight long, policy long,"
    " content_fingerprint binary, n long",
    "One narrow row a document. `node` is the `doc_key` of its `group` document: the name of its distinct sketch."
    " `weight` is the size of the sketch times what one id stands for: who can contain whom. `n` documents"
    " have the sketch.",
    "order the documents by the keep policy",
)
TERMS = _working(
    "terms",
    "term string, feature long, occurrences long, documents long",
    "The terms of a collection: id, how often each occurs, and in how many documents.",
    "count the terms of the collection",
)
LEXICON = _working(
    "lexicon",
    "term string, feature long, occurrences long, documents long",
    "The terms whose frequency lies in the interval; saved with the run, for other runs to take.",
    "choose the terms that describe documents",
)
SKETCHES = _working("sketches", "node long, sketch array<long>", "The distinct, non-empty sketches.")
POSTINGS = _working(
    "postings",
    "target int, node binary, feature binary, holders binary, bound binary",
    "Blocks of columns (int64, uint64, int32, int32): the features that pruning left, grouped by node.",
    "prune features that can be in no pair",
)
COMPARED = _working(
    "compared",
    "what string, node_a long, node_b long, overlap int, resemblance double, containment_a double,"
    " containment_b double, candidates long, cut_features long, cut_postings long",
    "All that one pass over the candidates leaves. `what` says what a row is. `pair`: a row of MATCHES. `link`: two"
    " heavy sketches, node_a < node_b, that were not compared and may belong to one family. `count`: the counters of"
    " one task, which are 0 in the other rows. Columns that a kind of row does not have are null.",
    "compare sketches that share a rare feature",
)
MATCHES = _working(
    "matches",
    "node_a long, node_b long, overlap int, resemblance double, containment_a double, containment_b double",
    "Near-duplicate distinct sketches, node_a < node_b. The containments, of each in the other, are null where the kind"
    " shows none.",
    "compare heavy families with their kept documents",
)
CONNECTIONS = _working(
    "connections",
    "node_a long, node_b long, is_link boolean",
    "What joins sketches to families: matches, and links between heavy sketches.",
)
HEAVY = _working(
    "heavy",
    "node long",
    "Heavy sketches: more than `pairs.max_postings` sketches have one of their prefix features, or one of their keys.",
    "find the sketches with too many likely pairs",
)
FAMILIES = _working(
    "families",
    "node long, family long",
    "The sketches of heavy families, which are those that hold a heavy sketch. No near-duplicate pair leaves a family.",
    "connect the heavy sketches to families",
)
GRAPH = _working(
    "graph",
    "node long, component string, ordinal long, position int, component_size int, batch int, kept boolean,"
    " duplicate_of long, resemblance double, best string, leader int, rank int, by_leaders boolean,"
    " share int",
    "One row a node that has a neighbour. `position` is its place in its component (by `group`), `ordinal` numbers the"
    " components, `batch` is its FP-Growth fit (null: the pivot miner's), `best` its first document by the keep"
    " policy, `rank` its place in the order of the policy, `leader` the position of its `duplicate_of`, or its own."
    " `by_leaders`: its family is heavy, so it is clustered around leaders. `share`: of a large component, the part"
    " whose task has it as a pivot.",
    "components of the pair graph, and who is kept",
)
ORDERED = _working(
    "ordered",
    "order_key long, node long, group string, best string, by_leaders boolean",
    "Of a graph too large for one task: its nodes in the order of the keep policy, which is that of `order_key`."
    " `best` is the first document of a node; `by_leaders` as in GRAPH.",
)
PAIR_EDGES = _working(
    "edges", "first long, second long, resemblance double", "Its edges, between order keys, first < second."
)
STARS = _working(
    "stars",
    "first long, second long",
    "A graph contracted in rounds until each component is a star: its least node is the first end of each edge.",
)
REMOVED = _working("removed", "order_key long", "Nodes removed in a round of the keep-list.")
SETS = _working(
    "sets",
    "ordinal long, positions array<int>, support int, coverage string",
    "A cluster as positions of nodes in component `ordinal`.",
    "mine maximal sets of each component",
)
NAMED = _working(
    "named",
    "what string, set_id binary, doc_id string, cluster_id string, first_id string, support int, size int,"
    " members array<string>, component string, coverage string",
    "All that one pass over the members in order leaves. `what` says what a row is. `member`: a document `doc_id` of"
    " the set. `cluster`: a row of CLUSTERS, with the document that the policy prefers as `first_id`. A set of one"
    " document has no cluster. Columns that a kind of row does not have are null.",
    "name the clusters by their members",
)

WORKING = {
    "compared": COMPARED,
    "covered": SETS,
    "edges": PAIR_EDGES,
    "families": FAMILIES,
    "family_stars": STARS,
    "graph": GRAPH,
    "heavy": HEAVY,
    "lexicon": LEXICON,
    "listed": SETS,
    "matches": MATCHES,
    "named": NAMED,
    "nodes": NODES,
    "offsets": OFFSETS,
    "ordered": ORDERED,
    "parts": PARTS,
    "records": RECORDS,
    "removed": REMOVED,
    "sets": SETS,
    "stars": STARS,
    "terms": TERMS,
    "undecided": PAIR_EDGES,
}
"""The working tables that a run keeps, by name; of tables made in rounds, the name before the number of the round."""


def table_called(name: str) -> Table:
    """The declaration of a table that a run keeps, also of one made in rounds (`removed-3`).

    Raises:
        KeyError: for a name that is not declared.
    """
    return RESULTS.get(name) or WORKING[name.partition("-")[0]]
