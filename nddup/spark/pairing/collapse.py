"""Number the records, and name the nodes of the documents before pairing. `nddup.stages.settle` is between.

records    --number-->            numbered records         none
documents  --name_nodes-->        nodes                    two shuffles on group, of narrow rows

Most records may have the same text, or the same id (an empty page, `null`). So groups are counted before the shuffle,
and joined back in parts (`heavy_keys`) where there are so `many` rows that a group can be so large.
"""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nddup.matching.preference import LAST, NO_LENGTH, NO_MOMENT, Order, order_key, values_of, word_key
from nddup.mining.keep_verdicts import FORCED_WEIGHT, FREE, KEPT, REMOVED, Forced
from nddup.spark.heavy_keys import HEAVY, WORTH, beside, join_found
from nddup.spark.schemas import local_table, require, table
from nddup.tables import DOCUMENTS, NODES, OFFSETS, SKETCHES

SKETCH_COUNTS = {
    "distinct_sketches": "count_if(doc_id = group AND size(sketch) > 0)",
    "most_features": "max(n_features)",
    "postings": "sum(CASE WHEN doc_id = group THEN size(sketch) END)",
    "median_tokens": "percentile_approx(n_tokens, 0.5)",
    "addresses": "count(url)",
}
"""Counts of DOCUMENTS, as aggregates: distinct sketches to pair, their postings, most features, median tokens, and how
many have an address."""


def number(records: DataFrame, offsets: DataFrame, splits: int = 0, many: int = WORTH) -> DataFrame:
    """Give each record its ordinal in its file and its rank in the collection, and a name to those without an id.

    The rank `doc_key` counts all records in the order (source, record) from 0. Rejects are counted too, so the keys of
    documents have gaps. Ranks are sums of counts per split, so they do not depend on how files were split.

    Args:
        records: all records, as any consumer gives them that makes a row of each.
        offsets: how many records precede each split.
        splits: number of rows of the offsets.

    Schema in:   source string, split long, seq long, doc_id string, reason string, …; OFFSETS of the same
    Schema out:  the same, doc_key long, record long, is_made boolean (the record has no id); doc_id not null where
        reason is null
    Shuffles:  none, because the offsets, one row per split, are broadcast; but both tables if there are fewer than
        `heavy_keys.WORTH` records or more than `MOST_BROADCAST` splits.
    Actions:   none.
    """
    require(offsets, OFFSETS, stage="read")
    numbered = (
        records.join(beside(offsets, splits, many), ["source", "split"])
        .withColumn("doc_key", F.col("before") + F.col("seq"))
        .withColumn("record", F.col("before_in_file") + F.col("seq") + 1)
    )

    is_made = F.col("reason").isNull() & F.col("doc_id").isNull()
    named = F.when(is_made, F.concat_ws("#", "source", "record")).otherwise(F.col("doc_id"))
    return numbered.withColumns({"is_made": is_made, "doc_id": named})


def copy_revisits(numbered: DataFrame, pairs: DataFrame, copied: Sequence[str]) -> DataFrame:
    """Make the revisits of documents copies of them.

    Args:
        pairs: the revisits, each with the record it repeats (`stages.settle.find_revisited`).
        copied: the columns that are copied.

    Schema in:   as `number` gives; revisit long, original long
    Schema out:  as `number` gives
    Shuffles:  the records that are repeated, and for the rows that are none of these revisits one more by key, unless
        the revisits are few.
    Actions:   none.
    """
    rest = numbered.join(pairs.select(F.col("revisit").alias("doc_key")), "doc_key", "left_anti")
    originals = numbered.select(F.col("doc_key").alias("original"), *copied)
    revisits = numbered.drop(*copied).join(pairs, F.col("doc_key") == F.col("revisit")).join(originals, "original")
    named = F.coalesce("doc_id", F.concat_ws("#", "source", "record"))
    made = {"is_made": F.col("doc_id").isNull(), "doc_id": named, "reason": F.lit(None).cast("string")}
    return rest.unionByName(revisits.withColumns(made).drop("revisit", "original"))


def split_offsets(records: DataFrame) -> DataFrame:
    """Count the records before each split, in its file and in the collection.

    Schema in:   RECORDS
    Schema out:  OFFSETS
    Shuffles:  one, of a row per split and task; then all splits to one task.    Actions:  none.
    """
    splits = records.groupBy("source", "split").agg(F.count("*").alias("n"))
    in_file = Window.partitionBy("source").orderBy("split").rowsBetween(Window.unboundedPreceding, -1)
    one_part = F.col("n") < 0  # false in every row: Spark warns of a window without a partition
    in_collection = Window.partitionBy(one_part).orderBy("source", "split").rowsBetween(Window.unboundedPreceding, -1)
    return splits.select(
        "source",
        "split",
        F.coalesce(F.sum("n").over(in_file), F.lit(0)).alias("before_in_file"),
        F.coalesce(F.sum("n").over(in_collection), F.lit(0)).alias("before"),
    )


def level(size: int) -> Column:
    """Return the exponent i of the modulus 2**i, long: the least i with n_features / 2**i <= size; 0 if `size` is 0."""
    if size == 0:
        return F.lit(0).cast("long")

    # The least i is the number of bits of (n_features - 1) // size.
    rest = F.floor((F.greatest("n_features", F.lit(1)) - 1) / size).cast("long")
    return F.when(rest == 0, 0).otherwise(F.length(F.bin(rest))).cast("long")


def name_nodes(  # noqa: PLR0913 - as the embedded engine's
    documents: DataFrame,
    *,
    order: Order,
    levels: int = 0,
    many: int = HEAVY,
    forced: Forced | None = None,
    same: Sequence[int | None] = (),
) -> DataFrame:
    """Return one narrow row per document, with its node (distinct sketch) and its place in the keep policy.

    Args:
        levels: size s of sketches whose modulus varies with the document's length, else 0.
        many: the number of documents (`heavy_keys.join_found`).
        forced: the documents that come first, or last, in every order; `FORCED_WEIGHT` tells them in `weight`.
        same: the columns of `keep.same`: places in `policy`, None for the source.

    Schema in:   DOCUMENTS
    Schema out:  NODES; `policy` is smaller for a preferred document, ties by doc_id
    Shuffles:  two, on group: of counts, and of the rows if too many groups have several documents to broadcast them;
        for an order by columns or preferred sources one more, of narrow rows, by range; for `same` one of counts and,
        unless its values are few enough to be broadcast, the rows.
    Actions:   none; Spark samples the range.
    """
    require(documents, DOCUMENTS, stage="pairs")
    turns = F.when(_is_revisit(), F.lit(LAST)).otherwise(preference(order.policy))
    weight = (F.size("sketch") * F.pow(F.lit(2.0), level(levels))).cast("long")
    documents = documents.withColumn("class", F.lit(FREE))
    documents = _with_guards(documents, same, many)
    if forced is not None:
        documents = _with_classes(documents, forced)
        weight -= F.col("class").cast("long") * FORCED_WEIGHT
    if order.columns or order.prefer or forced is not None:
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
        weight.alias("weight"),
        turns.alias("policy"),
        "content_fingerprint",
        "n_features",
        "guard",
    )

    # Groups of one document are not listed: such a document is its own node.
    joined = join_found(narrow, groups, "group", by="doc_id", many=many, how="left")
    alone = F.lit(1).cast("long")
    named = {"node": F.coalesce("first_key", "doc_key"), "n": F.coalesce("equals", alone)}
    return joined.withColumns(named).withColumnRenamed("group", "first_id").select(*NODES.names)


def _with_guards(documents: DataFrame, same: Sequence[int | None], many: int) -> DataFrame:
    """Add `guard`, which documents of equal values share: the least `doc_key` of these; 0 without columns."""
    if not same:
        return documents.withColumn("guard", F.lit(0).cast("long"))
    values = [F.col("source") if place is None else F.col("policy")[place] for place in same]
    parts = [F.coalesce(F.concat(F.length(value), F.lit(":"), value), F.lit("-")) for value in values]
    keyed = documents.withColumn("values", F.concat(*parts))
    guards = keyed.groupBy("values").agg(F.min("doc_key").alias("guard"), F.count("*").alias("n")).where("n > 1")
    joined = join_found(keyed, guards, "values", by="doc_id", many=many, how="left")
    return joined.withColumn("guard", F.coalesce("guard", "doc_key")).drop("values")


def distinct_sketches(documents: DataFrame, *, levels: int = 0) -> DataFrame:
    """Return the distinct non-empty sketches, each under the key of its `group` document.

    Schema in:   DOCUMENTS
    Schema out:  SKETCHES; with `levels`, the size s of sketches whose modulus varies, also level long
    Shuffles:  none.    Actions:  none.
    """
    return (
        documents.where((F.col("doc_id") == F.col("group")) & (F.size("sketch") > 0))
        .select(F.col("doc_key").alias("node"), "sketch", "n_features", level(levels).alias("level"))
        .select(*SKETCHES.names, *(["level"] if levels else []))
    )


def count_by_file(records: DataFrame, name: str) -> DataFrame:
    """Count the records with a positive `n_{name}`, by file, in the order of names.

    Schema in:   RECORDS
    Schema out:  source string, count long
    Shuffles:  one, of a row per file and task, and a sort.    Actions:  none.
    """
    return records.where(F.col(f"n_{name}") > 0).groupBy("source").count().orderBy("source")


def preference(policy: str) -> Column:
    """Return the sort key of a policy, smaller for a document that comes first."""
    values: dict[str, Callable[[], Column]] = {
        "doc_key": lambda: F.col("doc_key"),
        "length": lambda: F.col("n_tokens").cast("long"),
        "url_length": lambda: F.coalesce(F.length("url").cast("long"), F.lit(NO_LENGTH)),
        "moment": _moment,
    }
    key: Column = word_key(policy, lambda name: values[name]())
    return key


def _moment() -> Column:
    second = F.unix_timestamp(F.col("date").cast("timestamp"))
    within = F.least(F.greatest(second, F.lit(0)), F.lit(NO_MOMENT - 1))  # both skip nulls
    return F.when(second.isNull(), F.lit(NO_MOMENT)).otherwise(within).cast("long")


def _is_revisit() -> Column:
    return F.coalesce(F.col("record_type") == "revisit", F.lit(False))


def prefer_sources(order: Order) -> Column:
    """Return the place of the first pattern of `keep.prefer` that a `source` matches; if none, how many there are."""
    source = F.lit(len(order.prefer))
    for place, glob in reversed(list(enumerate(order.prefer))):
        source = F.when(F.col("source").rlike(glob), place).otherwise(source)
    return source


def _with_classes(documents: DataFrame, forced: Forced) -> DataFrame:
    """Set the column `class` of the documents that are forced: `keep_verdicts.KEPT` or `REMOVED`."""
    rows = [*((doc_id, KEPT) for doc_id in forced.kept), *((doc_id, REMOVED) for doc_id in forced.removed)]
    named = local_table(documents.sparkSession, table("doc_id string, named int"), rows)
    joined = documents.join(named, "doc_id", "left")
    return joined.withColumn("class", F.coalesce("named", F.lit(FREE))).drop("named")


def _number_in_order(documents: DataFrame, order: Order) -> DataFrame:
    """Return the columns that `name_nodes` reads, with `turn`: it ascends by class, then by sources and columns."""
    narrow = ["doc_key", "doc_id", "group", "sketch", "n_features", "content_fingerprint", "class", "guard"]
    keyed = documents.withColumns({"from": prefer_sources(order), "moment": F.lit(0), "is_last": _is_revisit()})
    if order.columns:
        derived = [F.col("n_tokens"), F.length("url"), F.col("doc_id"), F.col("doc_key")]
        values = F.array(*(column.cast("string") for column in derived))
        keyed = keyed.withColumns({"key": _key_of(order)(values, "policy"), "moment": _moment()})
    else:
        keyed = keyed.withColumn("key", preference(order.policy))
    return (
        keyed.select(*narrow, "from", "is_last", "key", "moment")
        .sort("class", "is_last", "from", "key", "moment", "doc_id")
        .withColumn("turn", F.monotonically_increasing_id())
    )


def _key_of(order: Order) -> Callable[..., Column]:
    """Return a function from a document's derived and read values to its sort key by the columns of the policy."""

    def keys(derived: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        for values, read in derived:
            rows = zip(values.to_pylist(), read.to_pylist(), strict=True)
            encoded = [order_key(values_of(order.columns, a, b or ()), order.columns) for a, b in rows]
            yield pa.array(encoded, pa.binary())

    made: Callable[..., Column] = F.arrow_udf(keys, "binary")  # type: ignore[attr-defined]
    return made
