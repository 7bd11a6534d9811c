"""What transitive closure would invent: connected components that are not one family.

Whoever takes a component for a cluster says that all its documents are alike. `invented` counts the pairs of documents
in it that are not near-duplicates: all pairs of its documents but those found.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import FALSE_COMPONENTS, GRAPH, MATCHES, NODES, require


def list_false_components(graph: DataFrame, matches: DataFrame, nodes: DataFrame, *, is_exact: bool) -> DataFrame:
    """The components that hold documents which are no near-duplicates of each other, with the pairs they would invent.

    Counted by nodes: an edge stands for the product of the documents of its ends, a node for all pairs of its own.

    Schema in:   GRAPH, MATCHES, NODES
    Schema out:  FALSE_COMPONENTS

    Args:
        graph: one row a node that has a neighbour.
        matches: its edges.
        nodes: one row a document.
        is_exact: whether every near-duplicate pair outside led families was found; else `invented` is an upper bound.

    Shuffles:  of narrow rows: the nodes on node, the edges on either end, both on component.    Actions:  none.
    """
    require(graph, GRAPH, stage="clusters")
    require(matches, MATCHES, stage="clusters")
    require(nodes, NODES, stage="clusters")
    counted = nodes.groupBy("node").agg(F.count("*").alias("n"))
    placed = graph.select("node", "component", "led").join(counted, "node")
    first = placed.select(F.col("node").alias("node_a"), "component", F.col("n").alias("n_a"))
    second = placed.select(F.col("node").alias("node_b"), F.col("n").alias("n_b"))
    edges = matches.select("node_a", "node_b").join(first, "node_a").join(second, "node_b")
    nothing, within = F.lit(0).cast("long"), F.shiftright(F.col("n") * (F.col("n") - 1), 1)
    parts = placed.select("component", "led", F.col("n").alias("size"), within.alias("pairs")).unionByName(
        edges.select(
            "component", F.lit(False).alias("led"), nothing.alias("size"), (F.col("n_a") * F.col("n_b")).alias("pairs")
        )
    )
    size = F.col("size")
    summed = parts.groupBy("component").agg(
        F.sum("size").alias("size"), F.sum("pairs").alias("pairs"), F.bool_or("led").alias("led")
    )
    whole = summed.withColumn("invented", F.shiftright(size * (size - 1), 1) - F.col("pairs")).where("invented > 0")
    exact = F.lit(is_exact) & ~F.col("led")
    return whole.withColumn("exact", exact).select(*FALSE_COMPONENTS.fieldNames())


def count_false_components() -> dict[str, Column]:
    """What is counted of FALSE_COMPONENTS in passing: the pairs invented, the most in one, and bounded components."""
    return {
        "invented_pairs": F.sum("invented"),
        "most_invented": F.max("invented"),
        "bounded_components": F.count_if(~F.col("exact")),
    }
