"""Proof of components and of `false_components`: who is connected, how components are named, what they would invent.

    placed                 --straying_components-->       problems   nodes of two components, wrong names of components
    placed (driver)        --split_components-->          problems   components that clusters do not connect
    pairs (driver)         --misnamed_parts-->            problems   the same from pairs
    placed, folded, docs   --wrong_false_components-->    problems   wrong counts of invented pairs

`placed` is as `prove_clusters.place` gives it. Each cluster is a set of near-duplicates, and each pair of
near-duplicates lies in one, so documents are connected through clusters exactly when they are through pairs.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from nddup.spark.checking.prove_documents import problem, text


def wrong_false_components(
    tables: Mapping[str, DataFrame], placed: DataFrame, folded: DataFrame, docs: DataFrame
) -> DataFrame:
    """Rows of `false_components` that are not what documents and pairs of each component give, and missing ones.

    The invented pairs of a component are all pairs of its documents without those that are near-duplicates. Only
    components that have some are in the table.

    Schema in:   the tables of a run; as `prove_clusters.place` gives; as `prove_pairs.fold` gives; doc_id, node
    Schema out:  problem string
    Shuffles:  the nodes on node and on component, the folded pairs on either node.    Actions:  none.
    """
    nodes = placed.where("node is not null").select("node", "component").distinct()
    counted = docs.groupBy("node").agg(F.count("*").alias("n")).join(nodes, "node")
    sizes = counted.groupBy("component").agg(F.sum("n").alias("due_size"))

    # A pair of nodes stands for the product of their documents; a node with itself for the pairs of its documents.
    ends = [counted.select(F.col("node").alias(f"node_{end}"), F.col("n").alias(f"n_{end}"), "component")
            for end in "ab"]  # fmt: skip
    edges = folded.where("node_a is not null").join(ends[0], "node_a").join(ends[1].drop("component"), "node_b")
    is_within = F.col("node_a") == F.col("node_b")
    product = F.col("n_a") * F.col("n_b")
    number = F.when(is_within, F.shiftright(product - F.col("n_a"), 1)).otherwise(product)
    pairs = edges.groupBy("component").agg(F.sum(number).alias("due_pairs"))

    every = F.shiftright(F.col("due_size") * (F.col("due_size") - 1), 1)
    due = sizes.join(pairs, "component").withColumn("due", every - F.col("due_pairs")).where("due > 0")

    met = tables["false_components"].join(due, "component", "full")
    names = (("size", "due_size"), ("pairs", "due_pairs"), ("invented", "due"))
    is_right = reduce(lambda left, right: left & right, [F.col(said).eqNullSafe(F.col(must)) for said, must in names])
    said = [part for name, must in names for part in (text(f" {name} "), name, text(" due "), must)]
    return met.where(~is_right).select(problem("component", text(":"), *said))


def straying_components(placed: DataFrame) -> DataFrame:
    """Nodes that are in clusters of two components, and components not named by the smallest of their nodes.

    The smallest id of a node's documents is its name.

    Schema in:   as `prove_clusters.place` gives
    Schema out:  problem string
    Shuffles:  the nodes on node, and on component.    Actions:  none.
    """
    nodes = placed.where("node is not null")
    torn = nodes.groupBy("node").agg(F.count_distinct("component").alias("n")).where("n <> 1")
    named = nodes.groupBy("component").agg(F.min("node").alias("low")).where("not component <=> low")
    return torn.select(problem("node", text(": in "), "n", text(" components"))).unionAll(
        named.select(problem("component", text(": smallest id of the component is "), "low"))
    )


def split_components(clusters: NDArray[np.int64], nodes: NDArray[np.int64], labels: Sequence[str]) -> list[str]:
    """Components whose nodes do not hang together through clusters.

    Args:
        clusters: number of the cluster in each row of `place`, (r,).
        nodes: number of the node, (r,).
        labels: the component each row says.

    Returns:
        A problem for each label with more than one connected part.
    """
    if not len(clusters):
        return []

    # A graph between clusters and their nodes; the nodes are numbered after the clusters.
    first, size = int(clusters.max()) + 1, int(clusters.max()) + int(nodes.max()) + 2
    graph = coo_matrix((np.ones(len(clusters), np.int8), (clusters, nodes + first)), shape=(size, size))
    parts = connected_components(graph, directed=False)[1][clusters]

    seen: dict[str, set[int]] = {}
    for label, part in zip(labels, parts.tolist(), strict=True):
        seen.setdefault(label, set()).add(part)
    return [f"{label}: falls into {len(found)} parts" for label, found in sorted(seen.items()) if len(found) > 1]


def misnamed_parts(first: Sequence[str], second: Sequence[str], named: Sequence[tuple[str, str]]) -> list[str]:
    """Nodes whose component is not the smallest node of their connected part.

    Args:
        first: one end of each pair of nodes.
        second: the other.
        named: (node, the component it says) of nodes in clusters; one without a pair is its own part.

    Returns:
        A problem for each such node.
    """
    names = sorted({*first, *second, *(node for node, _ in named)})
    place = {name: at for at, name in enumerate(names)}
    rows, columns = ([place[name] for name in side] for side in (first, second))
    graph = coo_matrix((np.ones(len(rows), np.int8), (rows, columns)), shape=(len(names), len(names)))
    parts = connected_components(graph, directed=False)[1]

    # Names ascend, so the first of a part is its smallest.
    smallest: dict[int, str] = {}
    for name, part in zip(names, parts.tolist(), strict=True):
        smallest.setdefault(part, name)
    wrong = ((node, component, smallest[parts[place[node]]]) for node, component in named)
    return [f"{node}: component {said}, smallest id of its part {low}" for node, said, low in wrong if said != low]
