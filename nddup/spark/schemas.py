"""Every table of a run: its name, its columns, and the check at the door of each stage.

The tables of a finished run are other programs' contract; the working tables (`RECORDS` to `SETS`) live under the
run's `_stages` folder, or only in memory, and may change.

Spark has no unsigned integer: a feature id is stored as the `long` of the same 64 bits, and `sketch` is ascending as
UNSIGNED numbers.
"""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from nddup.errors import SchemaError

_TYPES: dict[str, T.DataType] = {
    "long": T.LongType(),
    "int": T.IntegerType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "binary": T.BinaryType(),
    "boolean": T.BooleanType(),
    "array<long>": T.ArrayType(T.LongType()),
    "array<int>": T.ArrayType(T.IntegerType()),
    "array<string>": T.ArrayType(T.StringType()),
}


def table(text: str) -> T.StructType:
    """A schema from `name type` pairs separated by commas, as in SQL. (Spark's own parser needs a session.)"""
    pairs = (column.split() for column in text.split(","))
    return T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in pairs])


# The tables of a run ------------------------------------------------------------------------------------------------

DOCUMENTS = table(
    "doc_key long, doc_id string, url string, source string, record long, n_tokens int, n_features int,"
    " content_fingerprint binary, group string, sketch array<long>, signature array<long>"
)
REJECTS = table("source string, record long, doc_id string, reason string, detail string, excerpt string")
PAIRS = table(
    "doc_a string, doc_b string, overlap int, resemblance double, containment_a double, containment_b double,"
    " star boolean"
)
CLUSTERS = table("cluster_id string, support int, size int, members array<string>, component string, coverage string")
MEMBERS = table("cluster_id string, doc_id string, representative boolean")
FALSE_COMPONENTS = table("component string, size long, pairs long, invented long, exact boolean")
"""The connected components that are no cluster: `invented` pairs of their `size` documents are no near-duplicates."""

KEEP = table("doc_id string, kept boolean, duplicate_of string, reason string")
STORED_TEXTS = table("doc_id string, text string")
"""Of the documents that the report shows, bounded in number and length."""

TABLES: dict[str, T.StructType] = {
    "documents": DOCUMENTS,
    "rejects": REJECTS,
    "pairs": PAIRS,
    "clusters": CLUSTERS,
    "members": MEMBERS,
    "keep": KEEP,
    "false_components": FALSE_COMPONENTS,
    "texts": STORED_TEXTS,
}

# Working tables -----------------------------------------------------------------------------------------------------

CHUNKS = table("value binary, source string, split long, split_end long, file_size long")
"""Bytes between two record ends, in file order within a split; `split` is the offset where the split starts."""

FILES = table("path string, source string, compression string, most long, task int, content binary")
"""Files that are read from their start, each by one task; `most` bytes it may expand to; `content` where Spark read it
already, null where the worker is to open it."""

CONTENTS = table("source string, split long, seq long, content string, line string")
"""The content of a record as text, its markup kept; `line` is the line of JSON lines it came in."""

SHOWN = table(
    "turn int, cluster_id string, size int, place int, doc_id string, source string, content_fingerprint binary"
)
"""A document of a cluster that the report may show: clusters of a lower turn come first, `place` is from 1."""

FOUND_TEXTS = table("source string, content_fingerprint binary, text string")
"""The text of a record read again."""

TEXTS = table("doc_id string, url string, text string, source string, split long, seq long")
"""Documents given as a DataFrame: text already decoded, numbered within their partition."""

RECORDS = table(
    "source string, split long, seq long, doc_id string, url string, n_tokens int, n_features int,"
    " n_replaced int, content_fingerprint binary, sketch_fingerprint binary, sketch array<long>,"
    " signature array<long>, reason string, detail string, excerpt string"
)
"""One row a record, document or reject (`reason` not null); `seq` counts the records of a split from 0,
`n_replaced` the undecodable places of its text."""

OFFSETS = table("source string, split long, before_in_file long, before long")
"""How many records stand before each split, in its file and in the collection."""

NODES = table(
    "doc_key long, doc_id string, group string, node long, size int, weight long, policy long,"
    " content_fingerprint binary"
)
"""One narrow row a document. `node` is the `doc_key` of its `group` document: the name of its distinct sketch.
`weight` is the size of the sketch times what one id stands for: who can contain whom."""

TERMS = table("term string, feature long, occurrences long, documents long")
"""The terms of a collection: id, how often each occurs, and in how many documents."""

LEXICON = TERMS
"""Those whose frequency lies in the interval; saved with the run, for other runs to take."""

SKETCHES = table("node long, sketch array<long>")
"""The distinct, non-empty sketches."""

POSTINGS = table("target int, node binary, feature binary, holders binary, bound binary")
"""Blocks of columns (int64, uint64, int32, int32): the features that pruning left, grouped by node."""

MATCHES = table(
    "node_a long, node_b long, overlap int, resemblance double, candidates long, cut_features long, cut_postings long,"
    " link_a long, link_b long, containment_a double, containment_b double"
)
"""Near-duplicate distinct sketches, node_a < node_b. The containments, of each in the other, are null where the kind
shows none. Where node_a is null: a row of counters a task, or a link of the
crowd, two sketches that were not compared and may belong to one family."""

CROWD = table("node long")
"""Sketches with a feature in their prefix that more sketches have there than are compared with each other."""

FAMILIES = table("node long, family long")
"""The sketches of families with a crowd: closed under near-duplicates."""

GRAPH = table(
    "node long, component string, ordinal long, position int, component_size int, batch int, kept boolean,"
    " duplicate_of long, resemblance double, best string, leader int, rank int, led boolean,"
    " share int"
)
"""One row a node that has a neighbour. `position` is its place in its component (by `group`), `ordinal` numbers the
components, `batch` is its FP-Growth fit (null: the pivot miner's), `best` its first document by the keep policy,
`rank` its place in the order of the policy, `leader` the position of its `duplicate_of`, or its own; `led`: its family
has a crowd; `share`: of a large component, the part whose task has it as a pivot."""

TURNS = table("turn long, node long, group string, best string, led boolean")
"""Of a graph too large for one task: nodes in the order of the keep policy, `best` being the first document."""

PAIR_EDGES = table("first long, second long, resemblance double")
"""Its edges, between turns, first < second."""

STARS = table("first long, second long")
"""Edges on the way to one star a component, its least node the first of each."""

REMOVED = table("turn long")
"""Nodes removed in a round of the keep-list."""

SETS = table("ordinal long, positions array<int>, support int, coverage string")
"""A cluster as positions of nodes in component `ordinal`."""


WORKING: dict[str, T.StructType] = {
    "terms": TERMS,
    "lexicon": LEXICON,
    "records": RECORDS,
    "offsets": OFFSETS,
    "nodes": NODES,
    "crowd": CROWD,
    "matches": MATCHES,
    "families": FAMILIES,
    "led": MATCHES,
    "graph": GRAPH,
    "turns": TURNS,
    "edges": PAIR_EDGES,
    "stars": STARS,
    "links": STARS,
    "removed": REMOVED,
    "undecided": PAIR_EDGES,
    "listed": SETS,
    "covered": SETS,
    "sets": SETS,
}
"""Of tables made in rounds, the name before the number of the round."""


def local_table(spark: SparkSession, schema: T.StructType, rows: Sequence[Sequence[object]] = ()) -> DataFrame:
    """A small table of the driver's own rows. It goes to the JVM as one Arrow batch: no Python worker is started."""
    arrow = to_arrow_schema(schema)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, arrow, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=arrow))


def require(table: DataFrame, schema: T.StructType, *, stage: str) -> None:
    """Check that `table` has the columns of `schema`, by name and type; others are allowed.

    Args:
        table: any DataFrame; only its schema is looked at, nothing runs.
        schema: the columns that the stage reads.
        stage: the stage's name, for the message.

    Raises:
        SchemaError: naming the stage, the column, what was expected and what came.
    """
    came = {field.name: field.dataType for field in table.schema.fields}
    for field in schema.fields:
        if field.name not in came:
            raise SchemaError(f"{stage}: expected a column {field.name!r}, got {sorted(came)}")
        if came[field.name].simpleString() != field.dataType.simpleString():
            raise SchemaError(
                f"{stage}: column {field.name!r} should be {field.dataType.simpleString()},"
                f" got {came[field.name].simpleString()}"
            )
