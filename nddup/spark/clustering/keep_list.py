"""The keep-list: every document once, kept or a duplicate of a kept one.

The choice was made on distinct sketches (`nddup.mining.independent_set`). It is exact for documents: equal sketches
have the same neighbours, so of a kept sketch the first document by policy stays, and of a removed one none does.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import GRAPH, KEEP, NODES, require


def list_kept(nodes: DataFrame, graph: DataFrame, *, least_size: int) -> DataFrame:
    """Say of each document whether it stays, and if not, for which kept near-duplicate and why.

    Schema in:   NODES, GRAPH
    Schema out:  KEEP

    Args:
        nodes: one row a document.
        graph: one row a node with neighbours.
        least_size: features from which two equal sketches are near-duplicates (a count k, else 1); in a smaller group
            every document stays.

    Shuffles:  the nodes once on node, and the removed documents' heads once.    Actions:  none.
    """
    require(nodes, NODES, stage="keep")
    require(graph, GRAPH, stage="keep")
    first = F.min(F.struct("policy", "doc_id", "content_fingerprint")).alias("first")
    heads = (
        nodes.groupBy("node")
        .agg(first)
        .select(
            F.col("node").alias("head"),
            F.col("first.doc_id").alias("duplicate_of"),
            F.col("first.content_fingerprint").alias("kept_content"),
        )
    )
    own = heads.select(F.col("head").alias("node"), F.col("duplicate_of").alias("first_id"))
    chosen = graph.select("node", F.col("duplicate_of").alias("near"))
    is_equal = (F.col("size") >= least_size) & (F.col("doc_id") != F.col("first_id"))
    placed = (
        nodes.join(own, "node")
        .join(chosen, "node", "left")
        .withColumn("head", F.coalesce("near", F.when(is_equal, F.col("node"))))
    )
    reason = (
        F.when(F.col("duplicate_of").isNull(), F.lit(None))
        .when(F.col("content_fingerprint") == F.col("kept_content"), F.lit("exact"))
        .when(F.col("head") == F.col("node"), F.lit("equal"))
        .otherwise(F.lit("near"))
    )
    return (
        placed.join(heads, "head", "left")
        .select("doc_id", F.col("duplicate_of").isNull().alias("kept"), "duplicate_of", reason.alias("reason"))
        .select(*KEEP.fieldNames())
    )
