"""The errors of transitive closure: connected components whose documents are not all near-duplicates of each other.

To take a component for a cluster is to claim that all its documents are near-duplicates. `invented` counts the pairs
of its documents that are not: all pairs of documents minus the pairs found.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import FALSE_COMPONENTS, GRAPH, MATCHES, NODES, require


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
