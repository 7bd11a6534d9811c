"""A run compared with a reference list: which pairs both have, each counted once, whatever the size of the groups.

    pairs, docs                 --fold_edges-->      edges     near-duplicate groups of equal sketches, with their pairs
    reference, docs, edges, …   --judge-->           judged    each pair of the list: known, found, in a cluster
    groups, docs, edges         --count_common-->    counts    the same for groups, without listing their pairs
    memberships                 --count_covered-->   a count   pairs that lie in a common set

Documents with equal sketches have the same near-duplicates. So the pairs of a run are *edges* between its groups of
equal sketches, and a star stands for all pairs of its groups. `docs` is doc_id, doc_key, node: the node of a document
is its `group`.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.spark.checking.prove_documents import level, sketch_rows
from nddup.spark.evaluating.list_tables import GROUPS, REFERENCE
from nddup.spark.schemas import DOCUMENTS, MEMBERS, PAIRS, require
from nddup.verifying.definitions import Sample, compare_all
from nddup.verifying.pair_counts import count_pairs

Batches = Iterator[pa.RecordBatch]

STEP = 100
"""The curve over our own resemblance has a point every 1/100."""


def list_documents(documents: DataFrame) -> DataFrame:
    """The documents with the node each belongs to.

    Schema in:   DOCUMENTS
    Schema out:  doc_id string, doc_key long, node string
    Shuffles:  none.    Actions:  none.
    """
    require(documents, DOCUMENTS, stage="evaluate")
    return documents.select("doc_id", "doc_key", F.col("group").alias("node"))


def fold_edges(pairs: DataFrame, docs: DataFrame) -> DataFrame:
    """What a run found, by pairs of nodes: each edge once, with the pairs of documents it stands for.

    Schema in:   PAIRS; doc_id, node
    Schema out:  node_a string, node_b string (node_a <= node_b; equal: within a node), resemblance double, pairs long
    Shuffles:  the pairs on either id and on their nodes; the documents on their node.    Actions:  none.
    """
    require(pairs, PAIRS, stage="evaluate")
    first, second = (docs.select(F.col("doc_id").alias(f"doc_{end}"), F.col("node").alias(end)) for end in "ab")
    edges = (
        pairs.join(first, "doc_a")
        .join(second, "doc_b")
        .groupBy(F.least("a", "b").alias("node_a"), F.greatest("a", "b").alias("node_b"))
        .agg(F.max("resemblance").alias("resemblance"))
    )

    # An edge stands for all pairs of documents of its two nodes; one within a node for the pairs of its documents.
    sizes = docs.groupBy("node").agg(F.count("*").alias("n"))
    left, right = (sizes.select(F.col("node").alias(f"node_{end}"), F.col("n").alias(f"n_{end}")) for end in "ab")
    n_a, n_b = F.col("n_a"), F.col("n_b")
    product = F.when(F.col("node_a") == F.col("node_b"), _halved(n_a * (n_a - 1))).otherwise(n_a * n_b)
    return edges.join(left, "node_a").join(right, "node_b").select("node_a", "node_b", "resemblance",
                                                                  product.alias("pairs"))  # fmt: skip


def find_unlisted(docs: DataFrame, keep: DataFrame, clusters: DataFrame, members: DataFrame) -> DataFrame:
    """The removed nodes of led families: pairs of two such nodes of one family need not be in `pairs`.

    Schema in:   doc_id, node; KEEP; CLUSTERS; MEMBERS
    Schema out:  node string, family string (the component)
    Shuffles:  the members on cluster_id and doc_id, the nodes twice.    Actions:  none.
    """
    led = clusters.where("coverage = 'documents'").select("cluster_id", F.col("component").alias("family"))
    placed = members.join(led, "cluster_id").join(docs, "doc_id").select("node", "family").distinct()
    kept = keep.where("kept").join(docs, "doc_id").select("node").distinct()
    return placed.join(kept, "node", "left_anti")


def judge(
    reference: DataFrame, docs: DataFrame, edges: DataFrame, members: DataFrame, unlisted: DataFrame
) -> DataFrame:
    """What the run says of each pair of the list.

    Schema in:   REFERENCE; doc_id, node; as `fold_edges`; MEMBERS; as `find_unlisted`
    Schema out:  doc_a, doc_b, score, times, known (both are documents), found (in `pairs`, or a star stands for it),
        together (in a common cluster), unlisted (both removed, in a family that was led), resemblance (of found ones)
    Shuffles:  the list on either id, on its nodes; the members of its documents.    Actions:  none.
    """
    require(reference, REFERENCE, stage="evaluate")
    require(members, MEMBERS, stage="evaluate")

    # What is known of each document of the list; only these are looked up.
    ends = reference.select(F.explode(F.array("doc_a", "doc_b")).alias("doc_id")).distinct()
    clusters = members.join(ends, "doc_id").groupBy("doc_id").agg(F.collect_list("cluster_id").alias("clusters"))
    about = docs.join(ends, "doc_id").join(clusters, "doc_id", "left").join(unlisted, "node", "left")
    for end in "ab":
        named = [F.col(name).alias(f"{name}_{end}") for name in ("node", "clusters", "family")]
        reference = reference.join(about.select(F.col("doc_id").alias(f"doc_{end}"), *named), f"doc_{end}", "left")

    # A pair of documents is found if its pair of nodes is an edge.
    low, high = F.least("node_a", "node_b"), F.greatest("node_a", "node_b")
    is_known = F.col("node_a").isNotNull() & F.col("node_b").isNotNull()
    known = reference.withColumns(
        {
            "known": is_known,
            "together": F.coalesce(F.arrays_overlap("clusters_a", "clusters_b"), F.lit(False)),
            "unlisted": F.coalesce(F.col("family_a") == F.col("family_b"), F.lit(False)),
            "low": F.when(is_known, low),
            "high": F.when(is_known, high),
        }
    ).drop("node_a", "node_b")
    found = edges.select(F.col("node_a").alias("low"), F.col("node_b").alias("high"), "resemblance",
                         F.lit(True).alias("found"))  # fmt: skip
    return known.join(found, ["low", "high"], "left").select(
        "doc_a",
        "doc_b",
        "score",
        "times",
        "known",
        F.coalesce("found", F.lit(False)).alias("found"),
        "together",
        (F.col("unlisted") & F.col("found").isNull()).alias("unlisted"),
        "resemblance",
    )


def count_judged() -> list[Column]:
    """The aggregates of the judged pairs that `evaluation.json` needs, named."""
    return [
        F.count("*").alias("reference"),
        F.coalesce(F.sum("times"), F.lit(0)).alias("times"),
        F.count_if("known").alias("known"),
        F.count_if("found").alias("found"),
        F.count_if("together").alias("together"),
        F.count_if("unlisted").alias("unlisted"),
        F.min("score").alias("low"),
        F.max("score").alias("high"),
    ]


def band(value: str, width: float) -> Column:
    """The number of the band of this width that holds a value. A value on an edge is in the upper band."""
    return F.floor(F.col(value) / width + 1e-9).cast("long")


def count_common(groups: DataFrame, docs: DataFrame, edges: DataFrame, unlisted: DataFrame) -> DataFrame:
    """How many pairs of documents lie in a common group and in the run's pairs, without listing them.

    The documents of one node that are in the same groups are a *cell*. Two cells whose nodes have an edge and that have
    a group in common give the product of their sizes.

    Schema in:   GROUPS; doc_id, node; as `fold_edges`; as `find_unlisted`
    Schema out:  common long, removed long (of these, pairs of two nodes that `find_unlisted` names), one row
    Shuffles:  the groups on doc_id, the cells on node.    Actions:  none.
    """
    require(groups, GROUPS, stage="evaluate")
    held = groups.groupBy("doc_id").agg(F.sort_array(F.collect_set("set_id")).alias("sets"))
    cells = held.join(docs, "doc_id").groupBy("node", "sets").agg(F.count("*").alias("n"))
    marked = cells.join(unlisted, "node", "left")

    left, right = (marked.select(*[F.col(name).alias(f"{name}_{end}") for name in ("node", "sets", "n", "family")])
                   for end in "ab")  # fmt: skip
    met = edges.join(left, "node_a").join(right, "node_b").where(F.arrays_overlap("sets_a", "sets_b"))

    # Within one node both sides are the same cells: a cell with itself gives its own pairs, two cells count once.
    n_a, n_b = F.col("n_a"), F.col("n_b")
    is_within = F.col("node_a") == F.col("node_b")
    counted = (
        F.when(~is_within, n_a * n_b)
        .when(F.col("sets_a") == F.col("sets_b"), _halved(n_a * (n_a - 1)))
        .otherwise(F.when(_text("sets_a") < _text("sets_b"), n_a * n_b).otherwise(F.lit(0)))
    )
    removed = F.when(F.col("family_a") == F.col("family_b"), counted)
    return met.agg(F.coalesce(F.sum(counted), F.lit(0)).alias("common"),
                   F.coalesce(F.sum(removed), F.lit(0)).alias("removed"))  # fmt: skip


def count_covered(memberships: DataFrame) -> DataFrame:
    """How many pairs of items lie in a common set, each counted once; see `nddup.verifying.pair_counts`.

    Schema in:   set_id long, item long, and maybe part long: sets of one number and different parts are different sets
    Schema out:  pairs long, one row, or none where there is no membership
    Shuffles:  all memberships to one task, 60 bytes each there.    Actions:  none.
    """
    names = ["set_id", "part", "item"]
    if "part" not in memberships.columns:
        memberships = memberships.withColumn("part", F.lit(0).cast("long"))
    return memberships.select(*names).repartition(1).mapInArrow(_count_task, "pairs long")


def number_clusters(members: DataFrame, docs: DataFrame) -> DataFrame:
    """The clusters as sets of numbers: the 16 hex digits of a cluster's id are read as a number.

    Schema in:   MEMBERS; doc_id, doc_key
    Schema out:  set_id long, item long
    Shuffles:  the members on doc_id.    Actions:  none.
    """
    number = F.conv("cluster_id", 16, -10).cast("long")
    return members.join(docs.select("doc_id", "doc_key"), "doc_id").select(
        number.alias("set_id"), F.col("doc_key").alias("item")
    )


def number_groups(groups: DataFrame, docs: DataFrame) -> DataFrame:
    """The groups of a list as sets of numbers. An id that is no document of the run has a number below 0.

    Schema in:   GROUPS; doc_id, doc_key
    Schema out:  set_id long, item long
    Shuffles:  one on doc_id, and one of the ids that are no documents to one task.    Actions:  none.
    """
    known = groups.join(docs.select("doc_id", "doc_key"), "doc_id", "left")
    ids = known.where("doc_key is null").select("doc_id").distinct()
    numbered = ids.withColumn("other", -1 - F.monotonically_increasing_id())
    return known.join(numbered, "doc_id", "left").select("set_id", F.coalesce("doc_key", "other").alias("item"))


def estimate(pairs: DataFrame, documents: DataFrame, *, sample: Sample, levels: int) -> DataFrame:
    """Pairs with the urls of both documents and the resemblance of their sketches, null if one is no document.

    Args:
        pairs: pairs of ids.
        documents: with their sketches.
        sample: how a resemblance is estimated.
        levels: s, where the modulus of a sketch follows the document's length; else 0.

    Schema in:   doc_a, doc_b, …; DOCUMENTS
    Schema out:  the same, url_a string, url_b string, estimate double
    Shuffles:  the pairs on either id.    Actions:  none.
    """
    for end in "ab":
        own = documents.select(
            F.col("doc_id").alias(f"doc_{end}"),
            F.col("url").alias(f"url_{end}"),
            F.col("sketch").alias(f"sketch_{end}"),
            (level(levels) if levels else F.lit(0).cast("long")).alias(f"level_{end}"),
        )
        pairs = pairs.join(own, f"doc_{end}", "left")
    used = ["sketch_a", "sketch_b", "level_a", "level_b"]
    schema = pairs.drop(*used).withColumn("estimate", F.lit(None).cast("double")).schema

    def compare(batches: Batches) -> Batches:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            first, second = (table[f"sketch_{end}"].combine_chunks() for end in "ab")
            a, b = sketch_rows(first), sketch_rows(second)

            # Sketches of two moduli are compared at the larger one: ids that it does not divide are masked out.
            high = np.maximum(*(table[f"level_{end}"].fill_null(0).to_numpy() for end in "ab")).astype(np.uint64)
            places, masks = np.arange(len(first)), (np.uint64(1) << high) - np.uint64(1)
            measured = compare_all(a.offsets, a.ids, places, b.offsets, b.ids, places, sample, masks)

            is_unknown = ~(first.is_valid().to_numpy(False) & second.is_valid().to_numpy(False))  # noqa: FBT003
            shares = pa.array(measured[:, 1] / np.maximum(measured[:, 2], 1), mask=is_unknown)
            yield from table.drop(used).append_column("estimate", shares).to_batches()

    return pairs.mapInArrow(compare, schema)


def _count_task(batches: Batches) -> Batches:
    held = list(batches)
    if not held:
        return

    # A set is told by its number and its part: both are renumbered into one.
    sets, parts, items = (column.to_numpy() for column in pa.Table.from_batches(held).columns)
    parts = np.unique(parts, return_inverse=True)[1]
    numbers = np.unique(sets, return_inverse=True)[1].astype(np.int64) * (int(parts.max(initial=0)) + 1) + parts
    yield pa.RecordBatch.from_pydict({"pairs": [count_pairs(numbers, items)]})


def _halved(product: Column) -> Column:
    """Half of an even number, as a whole number."""
    return F.shiftright(product, 1)


def _text(name: str) -> Column:
    return F.concat_ws(",", F.col(name).cast("array<string>"))
