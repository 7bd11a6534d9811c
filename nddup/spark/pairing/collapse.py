"""Number the records, refuse repeated ids, and collapse equal sketches to one before anything is paired.

records  --number-->    documents and rejects     one shuffle on doc_id, one on the sketch fingerprint
documents --name-->     nodes                     two shuffles on group, of narrow rows

Most records may have the same text, or the same id (an empty page, `null`). So groups are counted before the shuffle,
and joined back in parts (`heavy_keys`). `is_large` says that there are enough rows for such a group.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nddup.matching.preference import Order, order_key, values_of
from nddup.spark.heavy_keys import beside, join_found
from nddup.spark.schemas import DOCUMENTS, NODES, OFFSETS, RECORDS, REJECTS, SKETCHES, require


def number(records: DataFrame, offsets: DataFrame, splits: int = 0) -> DataFrame:
    """Give each record its ordinal in its file and its rank in the collection, and each document its id.

    The rank `doc_key` counts all records in the order (source, record) from 0. Rejects are counted too, so the keys of
    documents have gaps. Ranks are sums of counts per split, so they do not depend on how files were split.

    Args:
        records: all records.
        offsets: what is before each split.
        splits: rows of the offsets.

    Schema in:   RECORDS; OFFSETS of the same
    Schema out:  RECORDS, doc_key long, record long; doc_id not null where reason is null
    Shuffles:  none; the offsets, a row a split, are broadcast. The records, where splits are very many (`heavy_keys`).
    Actions:   none.
    """
    require(records, RECORDS, stage="read")
    require(offsets, OFFSETS, stage="read")
    numbered = (
        records.join(beside(offsets, splits), ["source", "split"])
        .withColumn("doc_key", F.col("before") + F.col("seq"))
        .withColumn("record", F.col("before_in_file") + F.col("seq") + 1)
    )

    named = F.coalesce("doc_id", F.concat_ws("#", "source", "record"))
    return numbered.withColumn("doc_id", F.when(F.col("reason").isNull(), named).otherwise(F.col("doc_id")))


def split_offsets(records: DataFrame) -> DataFrame:
    """How many records stand before each split, in its file and in the collection.

    Schema in:   RECORDS
    Schema out:  OFFSETS
    Shuffles:  one, of a row a split and task; then all splits in one task.    Actions:  none.
    """
    splits = records.groupBy("source", "split").agg(F.count("*").alias("n"))
    in_file = Window.partitionBy("source").orderBy("split").rowsBetween(Window.unboundedPreceding, -1)
    one_part = F.col("n") < 0  # the same in every row: of a window without a partition Spark warns at each use
    in_collection = Window.partitionBy(one_part).orderBy("source", "split").rowsBetween(Window.unboundedPreceding, -1)
    return splits.select(
        "source",
        "split",
        F.coalesce(F.sum("n").over(in_file), F.lit(0)).alias("before_in_file"),
        F.coalesce(F.sum("n").over(in_collection), F.lit(0)).alias("before"),
    )


def find_repeats(numbered: DataFrame) -> DataFrame:
    """The ids that occur more than once, with the first document that has each.

    Schema out:  doc_id string, n long, first_key long, first_source string, first_record long
    Shuffles:  one, of ids.    Actions:  none.
    """
    place = F.struct("doc_key", "source", "record")
    return (
        numbered.where(F.col("reason").isNull())
        .groupBy("doc_id")
        .agg(F.min(place).alias("first"), F.count("*").alias("n"))
        .where(F.col("n") > 1)
        .select(
            "doc_id",
            "n",
            F.col("first.doc_key").alias("first_key"),
            F.col("first.source").alias("first_source"),
            F.col("first.record").alias("first_record"),
        )
    )


def collapse(numbered: DataFrame, repeats: DataFrame, *, is_large: bool = True) -> DataFrame:
    """The documents: records that are no rejects, with the smallest id of their equal sketches as `group`.

    An empty sketch equals nothing: such a document is its own group.

    Schema out:  DOCUMENTS
    Shuffles:  two of narrow rows (ids, fingerprints); documents move only where a join side is too large to broadcast.
    Actions:   none.
    """
    named = numbered.where(F.col("reason").isNull())
    met = join_found(named, repeats, "doc_id", by="doc_key", is_large=is_large, how="left")
    documents = met.where(F.col("first_key").isNull() | (F.col("first_key") == F.col("doc_key")))

    # All empty sketches have one fingerprint. They get no common group, so no id is gathered of them.
    filled = F.when(F.size("sketch") > 0, F.col("doc_id"))
    groups = (
        documents.groupBy("sketch_fingerprint")
        .agg(F.min(filled).alias("smallest"), F.count("*").alias("n"))
        .where(F.col("n") > 1)
    )

    grouped = join_found(documents, groups, "sketch_fingerprint", by="doc_key", is_large=is_large, how="left")
    return grouped.withColumn("group", F.coalesce("smallest", "doc_id")).select(*DOCUMENTS.fieldNames())


def gather_rejects(numbered: DataFrame, repeats: DataFrame, unread: DataFrame, *, is_large: bool = True) -> DataFrame:
    """Every record that became no document: bad records, later records of a repeated id, and files without records.

    Schema in:   as `number` gives; as `find_repeats` gives; REJECTS of whole files
    Schema out:  REJECTS
    Shuffles:  the ids, where the repeated ones are too many to broadcast.    Actions:  none.
    """
    bad = numbered.where(F.col("reason").isNotNull()).select(*REJECTS.fieldNames())

    first = F.concat(F.lit("first seen as record "), F.col("first_record"), F.lit(" of "), F.col("first_source"))
    named = numbered.where(F.col("reason").isNull()).select("source", "record", "doc_id", "doc_key")
    repeated = (
        join_found(named, repeats, "doc_id", by="doc_key", is_large=is_large)
        .where(F.col("doc_key") != F.col("first_key"))
        .select(
            "source",
            "record",
            "doc_id",
            F.lit("repeated id").alias("reason"),
            first.alias("detail"),
            F.lit("").alias("excerpt"),
        )
    )
    return bad.unionByName(repeated).unionByName(unread)


def level(size: int) -> Column:
    """Exponent i of the modulus 2**i, long: the least i with n_features / 2**i <= size; 0 where `size` is 0."""
    if size == 0:
        return F.lit(0).cast("long")

    # The least i is the number of bits of (n_features - 1) // size.
    rest = F.floor((F.greatest("n_features", F.lit(1)) - 1) / size).cast("long")
    return F.when(rest == 0, 0).otherwise(F.length(F.bin(rest))).cast("long")


def name_nodes(documents: DataFrame, *, order: Order, levels: int = 0, is_large: bool = True) -> DataFrame:
    """One narrow row a document, with the node (distinct sketch) it belongs to and its place in the keep policy.

    Args:
        documents: all documents.
        order: which document comes first.
        levels: s of sketches whose modulus varies with the document's length, else 0.
        is_large: whether there are enough documents for one group to be heavy (`heavy_keys`).

    Schema in:   DOCUMENTS
    Schema out:  NODES; `policy` is smaller for a document that is preferred, ties by doc_id
    Shuffles:  two, on group: of counts, and of the rows where the groups of several are too many to broadcast; by
        columns or preferred sources one more, of narrow rows, by range.
    Actions:   none; Spark samples the range.
    """
    require(documents, DOCUMENTS, stage="pairs")
    turns = _preference(order.policy)
    if order.columns or order.prefer:
        documents, turns = _number_in_order(documents, order), F.col("turn")
    own_key = F.when(F.col("doc_id") == F.col("group"), F.col("doc_key"))
    groups = (
        documents.groupBy("group")
        .agg(F.min(own_key).alias("first_key"), F.count("*").alias("n"))
        .where(F.col("n") > 1)
        .withColumn("equals", F.col("n"))
    )

    narrow = documents.select(
        "doc_key",
        "doc_id",
        "group",
        F.size("sketch").alias("size"),
        (F.size("sketch") * F.pow(F.lit(2.0), level(levels))).cast("long").alias("weight"),
        turns.alias("policy"),
        "content_fingerprint",
    )

    # A group of one document was not listed: the document is its own node.
    found = join_found(narrow, groups, "group", by="doc_id", is_large=is_large, how="left")
    alone = F.lit(1).cast("long")
    named = {"node": F.coalesce("first_key", "doc_key"), "n": F.coalesce("equals", alone)}
    return found.withColumns(named).select(*NODES.fieldNames())


def distinct_sketches(documents: DataFrame, *, levels: int = 0) -> DataFrame:
    """The non-empty sketches, each once, under the key of its `group` document.

    Schema in:   DOCUMENTS
    Schema out:  SKETCHES; with `levels`, s of sketches whose modulus varies, also level long
    """
    return (
        documents.where((F.col("doc_id") == F.col("group")) & (F.size("sketch") > 0))
        .select(F.col("doc_key").alias("node"), "sketch", level(levels).alias("level"))
        .select(*SKETCHES.fieldNames(), *(["level"] if levels else []))
    )


def count_shingles(records: DataFrame) -> DataFrame:
    """In how many documents' sketches each shingle is.

    Schema in:   RECORDS
    Schema out:  id long, documents long
    Shuffles:  one, of counted ids.    Actions:  none.
    """
    ids = records.where(F.col("reason").isNull()).select(F.explode("sketch").alias("id"))
    return ids.groupBy("id").agg(F.count("*").alias("documents"))


def count_records() -> dict[str, Column]:
    """What is counted of RECORDS in passing: undecodable bytes, the records that hold them, documents without an id."""
    return {
        "undecodable_records": F.count_if(F.col("n_replaced") > 0),
        "undecodable_places": F.sum("n_replaced"),
        "made_up_ids": F.count_if(F.col("reason").isNull() & F.col("doc_id").isNull()),
    }


def count_sketches() -> dict[str, Column]:
    """What is counted of DOCUMENTS in passing: the distinct sketches to pair, and the postings they make."""
    is_distinct = (F.col("doc_id") == F.col("group")) & (F.size("sketch") > 0)
    return {
        "distinct_sketches": F.count_if(is_distinct),
        "most_features": F.max("n_features"),
        "postings": F.sum(F.when(is_distinct, F.size("sketch").cast("long"))),
    }


def count_short(least_size: int) -> dict[str, Column]:
    """What is counted of NODES in passing: documents that can be in no pair, and those with another's sketch.

    In no pair are documents without a feature, and those with fewer features than a count asks for.
    """
    size = F.col("size")
    return {
        "empty_sketches": F.count_if(size == 0),
        "below_count": F.count_if((size > 0) & (size < least_size)),
        "equal_sketches": F.count_if(F.col("doc_id") != F.col("group")),
    }


def _preference(policy: str) -> Column:
    """Smaller for a document that comes first."""
    no_url = F.lit((1 << 63) - 1)
    by_policy = {
        "longest": -F.col("n_tokens").cast("long"),
        "first-id": F.lit(0).cast("long"),
        "first": F.col("doc_key"),
        "shortest-url": F.coalesce(F.length("url").cast("long"), no_url),
    }
    return by_policy.get(policy, F.lit(0).cast("long"))


def _number_in_order(documents: DataFrame, order: Order) -> DataFrame:
    """The columns that nodes are made of, and `turn`, which ascends in an order of columns or preferred sources."""
    narrow = ["doc_key", "doc_id", "group", "sketch", "n_features", "content_fingerprint"]
    source = F.lit(len(order.prefer))
    for place, glob in reversed(list(enumerate(order.prefer))):
        source = F.when(F.col("source").rlike(glob), place).otherwise(source)
    keyed = documents.withColumn("from", source)
    if order.columns:
        derived = [F.col("n_tokens"), F.length("url"), F.col("doc_id"), F.col("doc_key")]
        values = F.array(*(column.cast("string") for column in derived))
        keyed = keyed.withColumn("key", _key_of(order)(values, "policy"))
    else:
        keyed = keyed.withColumn("key", _preference(order.policy))
    return (
        keyed.select(*narrow, "from", "key")
        .sort("from", "key", "doc_id")
        .withColumn("turn", F.monotonically_increasing_id())
    )


def _key_of(order: Order) -> Callable[..., Column]:
    """The key of a document by the columns of the policy, from its derived values and those that were read."""

    def keys(derived: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        for own, read in derived:
            rows = zip(own.to_pylist(), read.to_pylist(), strict=True)
            found = [order_key(values_of(order.columns, a, b or ()), order.columns) for a, b in rows]
            yield pa.array(found, pa.binary())

    made: Callable[..., Column] = F.arrow_udf(keys, "binary")  # type: ignore[attr-defined]
    return made
