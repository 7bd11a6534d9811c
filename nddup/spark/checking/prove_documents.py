"""Proof of what needs no comparison of sketches: accounting, equal sketches, members, and the order of the policy.

Each function returns its violations as one column, `problem`: the ids first, then what is wrong with them. No row means
that the promise holds. The functions are lazy; `nddup.results.check` counts the rows.
"""

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_ as either

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nddup.spark.heavy_keys import join_found
from nddup.verifying.estimates import sketch_rows as sketch_rows  # noqa: PLC0414 - the other proofs take it from here
from nddup.verifying.sketch_forms import Form, damaged_sketches

Batches = Iterator[pa.RecordBatch]
Tables = Mapping[str, DataFrame]
PROBLEM = "problem string"


def problem(*parts: Column | str) -> Column:
    """The text of a violation, from names of columns and from texts as `text` makes them. A null is written `null`."""
    columns = [F.col(part) if isinstance(part, str) else part for part in parts]
    return F.concat(*[F.coalesce(column.cast("string"), F.lit("null")) for column in columns]).alias("problem")


def text(value: str) -> Column:
    """A literal part of a `problem`."""
    return F.lit(value)


def prefer(policy: str, weight: Column | None = None) -> Column:
    """(weight, rank, doc_id) of a document under the keep policy: the smaller is preferred.

    `weight` is what comes before the policy: the largest sketch where one is to contain the other, else nothing.
    """
    rank = {
        "longest": F.lit(0) - F.col("n_tokens"),
        "first-id": F.lit(0),
        "first": F.col("doc_key"),
        "shortest-url": F.coalesce(F.length("url"), F.lit(2**62)),
    }[policy]
    first = F.lit(0) if weight is None else -weight
    return F.struct(first.cast("long").alias("weight"), rank.cast("long").alias("rank"), F.col("doc_id").alias("id"))


def level(size: int) -> Column:
    """The least i with n_features / 2**i <= size: the number of binary digits of (n - 1) div size."""
    above = F.floor((F.col("n_features") - 1) / F.lit(size)).cast("long")
    return F.when(above > 0, F.length(F.bin(above))).otherwise(F.lit(0)).cast("long")


def regroup(
    documents: DataFrame, *, policy: str, levels: int = 0, is_contained: bool = False, is_large: bool = True
) -> DataFrame:
    """Every document with the node it belongs to: the smallest doc_id of the documents with the same sketch.

    Equal sketches are found by SHA-256 over all their ids; an empty sketch is its own. `group` is not looked at.

    Args:
        documents: what was made of them is looked at.
        policy: the keep policy.
        levels: s, where the modulus follows the number of features and is part of what an equal sketch is; else 0.
        is_contained: who contains more comes first, then the policy.
        is_large: whether there are enough equal sketches for one to be that of most documents.

    Schema in:   DOCUMENTS
    Schema out:  DOCUMENTS, node string, n long (documents of the node), size int (features), level long,
        preference struct
    Shuffles:  one of counts, one of whole documents.    Actions:  none.
    """
    at_level = level(levels) if levels else F.lit(0).cast("long")
    weight = F.size("sketch") * F.pow(F.lit(2.0), at_level).cast("long") if is_contained else None

    # An empty sketch is equal to none: its digest is replaced by its own id, which no digest can be.
    ids = F.concat_ws(",", at_level.cast("string"), F.col("sketch").cast("array<string>"))
    same = F.when(F.size("sketch") > 0, F.sha2(ids.cast("binary"), 256)).otherwise(F.concat(F.lit("="), "doc_id"))
    named = documents.withColumn("same", same)

    groups = named.groupBy("same").agg(F.min("doc_id").alias("node"), F.count("*").alias("n"))
    found = join_found(named, groups.withColumn("held", F.col("n")), "same", by="doc_id", is_large=is_large)
    return (
        found.withColumnRenamed("held", "n")
        .withColumn("size", F.size("sketch"))
        .withColumn("level", at_level)
        .withColumn("preference", prefer(policy, weight))
        .drop("same")
    )


def misnumbered_records(tables: Tables) -> DataFrame:
    """Sources whose record ordinals, of documents and rejects together, are not exactly 1 to n.

    Schema in:   DOCUMENTS and REJECTS among the tables
    Schema out:  problem string
    Shuffles:  one on source.    Actions:  none.
    """
    records = [tables[name].select("source", "record") for name in ("documents", "rejects")]
    counted = records[0].unionAll(records[1]).groupBy("source").agg(
        F.count("*").alias("n"),
        F.count_distinct("record").alias("distinct"),
        F.min("record").alias("low"),
        F.max("record").alias("high"),
    )  # fmt: skip
    is_right = (F.col("low") == 1) & (F.col("high") == F.col("n")) & (F.col("distinct") == F.col("n"))
    return counted.where(~F.coalesce(is_right, F.lit(False))).select(
        problem(
            "source", text(": "), "n", text(" records, "), "distinct", text(" ordinals, "), "low", text(" to "), "high"
        )
    )


def repeated_ids(documents: DataFrame) -> DataFrame:
    """Ids that are null, or of more than one document. One shuffle on doc_id."""
    counted = documents.groupBy("doc_id").count().where(F.col("doc_id").isNull() | (F.col("count") > 1))
    return counted.select(problem("doc_id", text(": of "), "count", text(" documents")))


def misplaced_keys(documents: DataFrame) -> DataFrame:
    """Documents whose doc_key does not rise with (source, record).

    Schema in:   DOCUMENTS
    Schema out:  problem string
    Shuffles:  one on source; one row a source to one task.    Actions:  none.
    """
    # Keys must rise inside each source; the first of a source must follow the last of the source before.
    inside = Window.partitionBy("source").orderBy("record")
    files = documents.groupBy("source").agg(F.min("doc_key").alias("low"), F.max("doc_key").alias("doc_key"))
    steps = documents.select("source", "doc_key", F.lag("doc_key").over(inside).alias("before")).unionAll(
        files.select("source", "low", F.lag("doc_key").over(Window.orderBy("source")).alias("before"))
    )
    is_wrong = F.col("doc_key").isNull() | (F.col("doc_key") <= F.col("before"))
    return steps.where(is_wrong).select(problem("source", text(": doc_key "), "doc_key", text(" after "), "before"))


def unaccounted_documents(tables: Tables) -> DataFrame:
    """Documents that are not in `keep` exactly once, and ids of `keep` that are no document. One shuffle on doc_id."""
    documents = tables["documents"].select("doc_id", F.lit(1).alias("is_document"), F.lit(0).alias("in_keep"))
    kept = tables["keep"].select("doc_id", F.lit(0), F.lit(1))
    counted = documents.unionAll(kept).groupBy("doc_id").agg(
        F.sum("is_document").alias("documents"), F.sum("in_keep").alias("rows")
    )  # fmt: skip
    return counted.where("documents <> 1 or rows <> 1").select(
        problem("doc_id", text(": "), "documents", text(" documents, "), "rows", text(" rows of keep"))
    )


def wrong_sketches(documents: DataFrame, *, form: Form) -> DataFrame:
    """Documents whose sketch is not of the form that the kind calls for, see `sketch_forms`. No shuffle."""

    def judge(batches: Batches) -> Batches:
        for batch in batches:
            counts = batch.column("n_features").fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            wrong = damaged_sketches(sketch_rows(batch.column("sketch")), counts, form)
            named = pc.binary_join_element_wise(
                batch.column("doc_id").filter(pa.array(wrong)), "not the ids its n_features call for, ascending", ": "
            )
            yield pa.RecordBatch.from_arrays([named], names=["problem"])

    return documents.select("doc_id", "n_features", "sketch").mapInArrow(judge, PROBLEM)


def wrong_groups(docs: DataFrame) -> DataFrame:
    """Documents whose group is not the smallest id with the same sketch."""
    return docs.where(~F.col("group").eqNullSafe(F.col("node"))).select(
        problem("doc_id", text(": group "), "group", text(", recounted "), "node")
    )


def wrong_members(tables: Tables) -> DataFrame:
    """Clusters whose rows in `members` are not their size, are repeated, or lack an id that the cluster lists.

    Schema in:   CLUSTERS and MEMBERS among the tables
    Schema out:  problem string
    Shuffles:  the members on cluster_id, and twice on (cluster_id, doc_id).    Actions:  none.
    """
    clusters, members = tables["clusters"], tables["members"]
    counted = members.groupBy("cluster_id").agg(F.count("*").alias("rows"))
    met = clusters.select("cluster_id", "size").join(counted, "cluster_id", "full")
    uneven = met.where(~F.col("size").eqNullSafe(F.col("rows"))).select(
        problem("cluster_id", text(": size "), "size", text(", "), "rows", text(" rows in members"))
    )

    twice = members.groupBy("cluster_id", "doc_id").agg(F.count("*").alias("n")).where("n > 1")
    listed = clusters.select("cluster_id", F.explode("members").alias("doc_id"))
    lost = listed.join(members.select("cluster_id", "doc_id"), ["cluster_id", "doc_id"], "left_anti")
    return uneven.unionAll(
        twice.select(problem("cluster_id", text(" "), "doc_id", text(": "), "n", text(" times in members")))
    ).unionAll(lost.select(problem("cluster_id", text(" "), "doc_id", text(": listed, not in members"))))


def wrong_representatives(tables: Tables, docs: DataFrame) -> DataFrame:
    """Clusters that do not have exactly one representative, the first of its members by policy.

    Schema in:   MEMBERS among the tables; doc_id, preference
    Schema out:  problem string
    Shuffles:  the members on doc_id and on cluster_id.    Actions:  none.
    """
    chosen = F.when(F.col("representative"), F.col("doc_id"))
    found = (
        tables["members"].join(docs.select("doc_id", "preference"), "doc_id", "left")
        .groupBy("cluster_id")
        .agg(F.count(chosen).alias("n"), F.min(chosen).alias("chosen"), F.min("preference")["id"].alias("first"))
    )  # fmt: skip
    is_right = (F.col("n") == 1) & (F.col("chosen") == F.col("first"))
    return found.where(~F.coalesce(is_right, F.lit(False))).select(
        problem("cluster_id", text(": "), "n", text(" representatives, "), "chosen", text("; first is "), "first")
    )


def any_of(*conditions: Column) -> Column:
    """Whether one of the conditions holds; null counts as holding."""
    return reduce(either, [F.coalesce(condition, F.lit(True)) for condition in conditions])
