"""The keep-list: every document once, kept or a duplicate of a kept one.

The choice was made on distinct sketches (`nddup.mining.pair_graph`). It is exact for documents: equal sketches
have the same neighbours, so a kept sketch keeps its first document by policy, and a removed sketch keeps none.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.spark.heavy_keys import join_parted
from nddup.spark.schemas import GRAPH, KEEP, NODES, require


def list_kept(nodes: DataFrame, graph: DataFrame, *, least_size: int) -> DataFrame:
    """Decide for each document whether it stays; if not, why, and which kept near-duplicate stands for it.

    Schema in:   NODES, GRAPH
    Schema out:  KEEP

    Args:
        nodes: one row per document.
        graph: one row per node with neighbours.
        least_size: fewest features for which equal sketches are near-duplicates (a count k, else 1); with fewer
            features, every document of a group stays.

    Shuffles:  the nodes twice on node, to find their first documents and to join the choice; removed sketches twice.
    Actions:   none.
    """
    require(nodes, NODES, stage="keep")
    require(graph, GRAPH, stage="keep")

    # The first document of each sketch by policy; for a removed sketch also the first document of the kept one.
    first = F.min(F.struct("policy", "doc_id", "content_fingerprint")).alias("first")
    heads = (
        nodes.groupBy("node")
        .agg(first, F.max("n").alias("n"))
        .select("node", "n", F.col("first.doc_id").alias("own_id"), F.col("first.content_fingerprint").alias("own"))
    )
    near = heads.select(F.col("node").alias("near"), F.col("own_id").alias("near_id"), F.col("own").alias("near_own"))
    chosen = graph.where("duplicate_of is not null").select("node", F.col("duplicate_of").alias("near"))
    verdicts = heads.join(chosen.join(near, "near").drop("near"), "node", "left")

    # Join the choice for each sketch to its documents; there may be any number of them.
    is_equal = (F.col("size") >= least_size) & (F.col("doc_id") != F.col("own_id"))
    placed = join_parted(nodes, verdicts, "node", by="doc_id").withColumns(
        {
            "duplicate_of": F.coalesce("near_id", F.when(is_equal, F.col("own_id"))),
            "kept_content": F.when(F.col("near_id").isNotNull(), F.col("near_own")).otherwise(F.col("own")),
        }
    )

    reason = (
        F.when(F.col("duplicate_of").isNull(), F.lit(None))
        .when(F.col("content_fingerprint") == F.col("kept_content"), F.lit("exact"))
        .when(F.col("near_id").isNull(), F.lit("equal"))
        .otherwise(F.lit("near"))
    )
    return placed.select(
        "doc_id", F.col("duplicate_of").isNull().alias("kept"), "duplicate_of", reason.alias("reason")
    ).select(*KEEP.fieldNames())


def count_false_components() -> dict[str, Column]:
    """Return the counts taken while FALSE_COMPONENTS is written: invented pairs, most in one, bounded components."""
    return {
        "invented_pairs": F.sum("invented"),
        "most_invented": F.max("invented"),
        "bounded_components": F.count_if(~F.col("exact")),
    }
