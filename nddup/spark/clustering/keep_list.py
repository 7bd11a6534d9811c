"""The keep-list: every document once, kept or a duplicate of a kept one.

The choice was made on distinct sketches (`nddup.mining.pair_graph`). It is exact for documents: equal sketches
have the same neighbours, so a kept sketch keeps its first document by policy, and a removed sketch keeps none.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup import tables
from nddup.mining.keep_verdicts import (
    ALONE,
    FORCED_WEIGHT,
    FREE,
    KEPT,
    REASONS,
    REMOVED,
    Loss,
    Placed,
    decide,
    direct_edges,
)
from nddup.spark.heavy_keys import join_parted
from nddup.spark.schemas import GRAPH, KEEP, MATCHES, NODES, require


def list_kept(
    nodes: DataFrame, graph: DataFrame, matches: DataFrame, *, least_size: int, by_sets: bool = False
) -> DataFrame:
    """Decide for each document whether it stays; if not, why, and which kept near-duplicate stands for it.

    Schema in:   NODES, GRAPH, MATCHES; where shingles were counted, also common, shingles_a and shingles_b, int
    Schema out:  KEEP

    Args:
        nodes: one row per document.
        graph: one row per node with neighbours.
        matches: the edges of the graph.
        least_size: fewest features for which equal sketches are near-duplicates (a count k, else 1); with fewer
            features, every document of a group stays. Documents of an empty sketch have one node if their contents are
            equal: one of them stays.
        by_sets: whether documents of one node have equal sets of shingles.

    Shuffles:  the nodes twice on node, to find their first documents and to join the choice; removed sketches twice,
        and once with the matches.
    Actions:   none.
    """
    require(nodes, NODES, stage="keep")
    require(graph, GRAPH, stage="keep")
    require(matches, MATCHES, stage="keep")

    # The first document of each sketch by policy; for a removed sketch also the first document of the kept one.
    first = F.min(F.struct("policy", "doc_id", "content_fingerprint", "weight")).alias("first")
    heads = (
        nodes.groupBy("node")
        .agg(first, F.max("n").alias("n"))
        .select(
            "node",
            "n",
            F.col("first.doc_id").alias("own_id"),
            F.col("first.content_fingerprint").alias("own"),
            class_of("first.weight").alias("head_class"),
        )
    )
    near = heads.select(F.col("node").alias("near"), F.col("own_id").alias("near_id"), F.col("own").alias("near_own"))
    chosen = graph.where("duplicate_of is not null").select("node", F.col("duplicate_of").alias("near"))
    nearest = _measure(chosen.join(near, "near"), matches)
    verdicts = heads.join(nearest, "node", "left")

    # Join the choice for each sketch to its documents; there may be any number of them.
    placed = join_parted(nodes, verdicts, "node", by="doc_id")
    kept_content = F.when(F.col("near_id").isNotNull(), F.col("near_own")).otherwise(F.col("own"))
    rows = placed.select(
        "doc_id",
        "own_id",
        "near_id",
        ((F.col("size") >= least_size) | (F.col("size") == 0)).alias("is_alike"),
        class_of("weight").alias("class"),
        "head_class",
        (F.col("content_fingerprint") == kept_content).alias("is_exact"),
        "resemblance",
        "common",
        "shingles",
    )
    return rows.mapInArrow(partial(decide_task, by_sets=by_sets), KEEP)


def class_of(weight: str) -> Column:
    """Return the class (`keep_verdicts`) of a document, or of the first one of a node, by its weight: int."""
    half = FORCED_WEIGHT // 2
    return F.when(F.col(weight) >= half, KEPT).when(F.col(weight) <= -half, REMOVED).otherwise(FREE).cast("int")


def _measure(chosen: DataFrame, matches: DataFrame) -> DataFrame:
    """Add to removed nodes what is known of the pair with their kept one: node, near_id, near_own and three values."""
    edges = matches if "common" in matches.columns else matches.withColumns(
        {name: F.lit(None).cast("int") for name in ("common", "shingles_a", "shingles_b")}
    )  # fmt: skip
    ends = chosen.withColumns({"node_a": F.least("node", "near"), "node_b": F.greatest("node", "near")})
    about = edges.select("node_a", "node_b", "resemblance", "common", "shingles_a", "shingles_b")
    shingles = F.when(F.col("node") == F.col("node_a"), F.col("shingles_a")).otherwise(F.col("shingles_b"))
    return ends.join(about, ["node_a", "node_b"], "left").select(
        "node", "near_id", "near_own", "resemblance", "common", shingles.alias("shingles")
    )


def decide_task(batches: Iterator[pa.RecordBatch], *, by_sets: bool) -> Iterator[pa.RecordBatch]:
    """Yield KEEP of documents with the heads of their sketches: `keep_verdicts.decide`."""
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}

        def numbers(name: str, missing: float, kind: type[np.generic], of: dict[str, pa.Array] = columns) -> Any:  # noqa: ANN401
            return np.asarray(pc.fill_null(of[name], missing)).astype(kind)

        is_near = np.asarray(pc.is_valid(columns["near_id"]))
        found = decide(
            Placed(
                is_head=np.asarray(pc.equal(columns["doc_id"], columns["own_id"])),
                is_alike=np.asarray(columns["is_alike"]),
                classes=numbers("class", FREE, np.int8),
                head_classes=numbers("head_class", FREE, np.int8),
                is_near=is_near,
                is_exact=np.asarray(columns["is_exact"]),
                resemblance=numbers("resemblance", float("nan"), np.float64),
                common=numbers("common", -1, np.int64),
                sizes=numbers("shingles", 0, np.int64),
            ),
            by_sets=by_sets,
        )
        stands = pc.if_else(pa.array(is_near), columns["near_id"], columns["own_id"])
        yield tables.KEEP.batch(
            [
                columns["doc_id"],
                pa.array(found.kept),
                pc.if_else(pa.array(found.removed_for == ALONE), pa.scalar(None, pa.string()), stands),
                pa.array(REASONS, pa.string()).take(pa.array(found.reasons, mask=found.kept)),
                pa.array(found.resemblance, from_pandas=True),
                pa.array(found.lost, from_pandas=True),
            ]
        )


def direct_matches(matches: DataFrame, nodes: DataFrame, *, is_contained: bool, max_lost: Fraction | None) -> DataFrame:
    """Return the edges with the likeness of each end to the other, or `NEVER` where the other must not remove it.

    Schema in:   MATCHES, NODES; with `max_lost` also common, shingles_a and shingles_b, int
    Schema out:  MATCHES; `containment_a` and `containment_b` are the likeness of a and of b
    Shuffles:  the nodes on node; the matches on either end.    Actions:  none.
    """
    classes = (
        nodes.groupBy("node").agg(F.max("weight").alias("weight")).select("node", class_of("weight").alias("class"))
    )
    placed = matches.join(classes.toDF("node_a", "class_a"), "node_a").join(classes.toDF("node_b", "class_b"), "node_b")
    counted = ["common", "shingles_a", "shingles_b"] if max_lost is not None else []
    rows = placed.select(*MATCHES.fieldNames(), "class_a", "class_b", *counted)
    return rows.mapInArrow(partial(direct_task, is_contained=is_contained, max_lost=max_lost), MATCHES)


def direct_task(
    batches: Iterator[pa.RecordBatch], *, is_contained: bool, max_lost: Fraction | None
) -> Iterator[pa.RecordBatch]:
    """Yield MATCHES with directed likeness: `keep_verdicts.direct_edges`."""

    def both(batch: pa.RecordBatch, name: str) -> NDArray[Any]:
        return np.stack([np.asarray(batch.column(f"{name}_{end}")) for end in "ab"])

    for batch in batches:
        likeness = both(batch, "containment") if is_contained else np.asarray(batch.column("resemblance"))
        loss = None
        if max_lost is not None:
            loss = Loss(np.asarray(batch.column("common")), both(batch, "shingles").astype(np.int64), max_lost)
        directed = direct_edges(likeness, both(batch, "class").astype(np.int8), loss)
        yield tables.MATCHES.batch([*batch.columns[:4], *map(pa.array, directed)])


def count_false_components() -> dict[str, Column]:
    """Return the counts taken while FALSE_COMPONENTS is written: invented pairs, most in one, bounded components."""
    return {
        "invented_pairs": F.sum("invented"),
        "most_invented": F.max("invented"),
        "bounded_components": F.count_if(~F.col("exact")),
    }
