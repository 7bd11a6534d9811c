"""The keep-list: every document once, kept or a duplicate of a kept one.

The choice was made on distinct sketches (`nddup.mining.pair_graph`). It is exact for documents: equal sketches
have the same neighbours, so a kept sketch keeps its first document by policy, and a removed sketch keeps none.

The errors of transitive closure: connected components whose documents are not all near-duplicates of each other.

To take a component for a cluster is to claim that all its documents are near-duplicates. `invented` counts the pairs
of its documents that are not: all pairs of documents minus the pairs found.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.spark.heavy_keys import join_parted
from nddup.spark.schemas import FALSE_COMPONENTS, GRAPH, KEEP, MATCHES, NODES, require


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


def list_false_components(graph: DataFrame, matches: DataFrame, nodes: DataFrame, *, is_exact: bool) -> DataFrame:
    """List the components with documents that are not near-duplicates of each other, and count these pairs.

    Schema in:   GRAPH, MATCHES, NODES
    Schema out:  FALSE_COMPONENTS

    Args:
        graph: one row per node that has a neighbour.
        matches: the edges of the graph.
        nodes: one row per document.
        is_exact: whether every near-duplicate pair outside components represented by leaders was found; else `invented`
            is an upper bound. In components represented by leaders it always is.

    Shuffles:  of narrow rows: the nodes on node, the edges on either end, both on component.    Actions:  none.
    """
    require(graph, GRAPH, stage="clusters")
    require(matches, MATCHES, stage="clusters")
    require(nodes, NODES, stage="clusters")
    counted = nodes.groupBy("node").agg(F.count("*").alias("n"))
    placed = graph.select("node", "component", "by_leaders").join(counted, "node")

    # A node adds its documents and the pairs among them, an edge the product of the documents of its ends.
    first = placed.select(F.col("node").alias("node_a"), "component", F.col("n").alias("n_a"))
    second = placed.select(F.col("node").alias("node_b"), F.col("n").alias("n_b"))
    edges = matches.select("node_a", "node_b").join(first, "node_a").join(second, "node_b")
    of_nodes = placed.select("component", "by_leaders", F.col("n").alias("size"), _pairs_of("n").alias("pairs"))
    of_edges = edges.select(
        "component",
        F.lit(False).alias("by_leaders"),
        F.lit(0).cast("long").alias("size"),
        (F.col("n_a") * F.col("n_b")).alias("pairs"),
    )

    summed = (
        of_nodes.unionByName(of_edges)
        .groupBy("component")
        .agg(F.sum("size").alias("size"), F.sum("pairs").alias("pairs"), F.bool_or("by_leaders").alias("by_leaders"))
    )
    whole = summed.withColumn("invented", _pairs_of("size") - F.col("pairs")).where("invented > 0")
    exact = F.lit(is_exact) & ~F.col("by_leaders")
    return whole.withColumn("exact", exact).select(*FALSE_COMPONENTS.fieldNames())


def _pairs_of(count: str) -> Column:
    """Return the number of all pairs of `count` documents, as an integer."""
    return F.shiftright(F.col(count) * (F.col(count) - 1), 1)


def count_false_components() -> dict[str, Column]:
    """Return the counts taken while FALSE_COMPONENTS is written: invented pairs, most in one, bounded components."""
    return {
        "invented_pairs": F.sum("invented"),
        "most_invented": F.max("invented"),
        "bounded_components": F.count_if(~F.col("exact")),
    }
