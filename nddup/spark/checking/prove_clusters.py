"""Proof of `clusters`: conditions, maximality, coverage and components.

    clusters --place-->    placed    the nodes (distinct sketches) of each cluster
    placed   --partial_groups, straying_components-->   every document of a sketch, one component a node
    chosen clusters --prove (driver)--> proofs; sketches --extend--> what could be added to a chosen cluster
    truth, placed --uncovered-->  near-duplicates that no cluster holds together

Components are recounted from the clusters: each is a set of near-duplicates, and each pair of near-duplicates lies in
one, so documents are connected through clusters exactly when they are through pairs.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from nddup.spark.checking.prove_documents import problem, sketch_rows, text
from nddup.verifying.cluster_proofs import Proof, Sets, find_extensions, prove_cluster
from nddup.verifying.definitions import Probes, Rows, Rule, gather

Batches = Iterator[pa.RecordBatch]
MAXIMAL = ("all", "pairs")
"""Values of `coverage` that promise maximal sets and every pair in one."""

JOINT = (*MAXIMAL, "documents")
"""Those that promise near-duplicates only, and enough features common to all."""


def place(clusters: DataFrame, members: DataFrame, docs: DataFrame) -> DataFrame:
    """The nodes of each cluster, and how many documents of each are members.

    Schema in:   CLUSTERS; MEMBERS; doc_id, node, n
    Schema out:  cluster_id, component, coverage, node (null for members that are no documents), n, held
    Shuffles:  the members on their cluster, on doc_id, then on (cluster, node).    Actions:  none.
    """
    rows = clusters.select("cluster_id", "component", "coverage").join(
        members.select("cluster_id", "doc_id"), "cluster_id"
    )
    named = rows.join(docs.select("doc_id", "node", "n"), "doc_id", "left")
    return named.groupBy("cluster_id", "component", "coverage", "node", "n").agg(F.count("*").alias("held"))


def partial_groups(placed: DataFrame) -> DataFrame:
    """Clusters that hold some documents of a sketch and not the others: those could be added."""
    some = placed.where(F.col("node").isNull() | (F.col("coverage").isin(*MAXIMAL) & (F.col("held") != F.col("n"))))
    return some.select(
        problem("cluster_id", text(": "), "held", text(" of "), "n", text(" documents with the sketch of "), "node")
    )


def prove(
    rows: Sequence[tuple[str, int, str, list[int]]], nodes: Rows, rule: Rule, min_support: int
) -> tuple[Sets, list[str]]:
    """Prove the conditions of clusters whose sketches are at hand; in `partition` and `components`, the support only.

    Args:
        rows: cluster_id, support, coverage, places of its nodes in `nodes`; each.
        nodes: the sketches.
        rule: what a near-duplicate is.
        min_support: what `clusters.support` asks for; 0: nothing more.

    Returns:
        The sets for `extend`, and what is wrong with them.
    """
    members = [np.array(places, np.int64) for *_, places in rows]
    proofs: list[Proof] = [prove_cluster(gather([nodes.row(int(i)) for i in places]), rule) for places in members]
    problems: list[str] = []
    bounds = np.array([max(proof.bound, min_support) for proof in proofs], np.int64)
    for (cluster_id, support, coverage, _), proof, bound in zip(rows, proofs, bounds.tolist(), strict=True):
        shared = len(proof.joint)
        if shared != support:
            problems.append(f"{cluster_id}: support {support}, its members share {shared}")
        if coverage not in JOINT:
            continue
        if shared < bound:
            problems.append(f"{cluster_id}: its members share {shared}, fewer than {bound}")
        if proof.bad_pair is not None:
            problems.append(f"{cluster_id}: holds a pair that is no near-duplicate")
    return Sets(nodes, members, Probes(gather([proof.joint for proof in proofs])), bounds), problems


def extend(sketches: DataFrame, names: list[str], cluster_ids: list[str], sets: Sets, rule: Rule) -> DataFrame:
    """The nodes that could be added to one of `sets`, of ALL distinct sketches.

    Schema in:   node string, sketch array<long>
    Schema out:  node, cluster_id
    Shuffles:  none; the sets travel to every task.    Actions:  none.
    """
    task = partial(_extend, names=names, cluster_ids=cluster_ids, sets=sets, rule=rule)
    return sketches.select("node", "sketch").mapInArrow(task, "node string, cluster_id string")


def _extend(batches: Batches, *, names: list[str], cluster_ids: list[str], sets: Sets, rule: Rule) -> Batches:
    known = {name: i for i, name in enumerate(names)}
    for batch in batches:
        nodes = batch.column("node").to_pylist()
        places = np.array([known.get(node, -1) for node in nodes], np.int64)
        found = find_extensions(sketch_rows(batch.column("sketch")), places, sets, rule)
        columns = [[nodes[row] for row, _ in found], [cluster_ids[of] for _, of in found]]
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, pa.string()) for column in columns], names=["node", "cluster_id"]
        )


def extensible(extensions: DataFrame, placed: DataFrame, folded: DataFrame, *, is_cut: bool) -> DataFrame:
    """Clusters to which a document can be added.

    Where pairs were cut, a cluster is maximal as far as pairs were found: only an extension all of whose pairs are
    in `pairs` breaks it.

    Schema in:   node, cluster_id; as `place` and `check_pairs.fold` give
    """
    if is_cut:
        has = folded.select("node_a", "node_b", F.lit(1).alias("has"))
        members = placed.select("cluster_id", F.col("node").alias("member"))
        ends = {"node_a": F.least("node", "member"), "node_b": F.greatest("node", "member")}
        paired = extensions.join(members, "cluster_id").withColumns(ends).join(has, ["node_a", "node_b"], "left")
        extensions = paired.groupBy("node", "cluster_id").agg(F.count("has").alias("h"), F.count("*").alias("m"))
        extensions = extensions.where("h = m")
    return extensions.select(problem("cluster_id", text(": "), "node", text(" can be added")))


def nested(placed: DataFrame, chosen: DataFrame) -> DataFrame:
    """Chosen clusters that lie inside another one.

    A cluster around another holds all its nodes, so also the one that is in the fewest clusters: only the clusters of
    that node are compared.

    Schema in:   as `place` gives; cluster_id
    Shuffles:  on node, and on cluster_id.    Actions:  none.
    """
    frequency = placed.groupBy("node").agg(F.count("*").alias("clusters"))
    mine = placed.join(F.broadcast(chosen), "cluster_id").join(frequency, "node")
    rarest = mine.groupBy("cluster_id").agg(
        F.min_by("node", F.struct("clusters", "node")).alias("node"), F.count("*").alias("nodes")
    )
    others = placed.select(F.col("cluster_id").alias("outer_id"), "node")
    met = rarest.join(others, "node").drop("node").where(F.col("cluster_id") != F.col("outer_id"))

    inner = placed.select("cluster_id", "node")
    shared = met.join(inner, "cluster_id").join(others, ["outer_id", "node"])
    counted = shared.groupBy("cluster_id", "outer_id", "nodes").agg(F.count("*").alias("shared"))
    return counted.where("shared = nodes").select(problem("cluster_id", text(": lies inside "), "outer_id"))


def maximal_only(rows: DataFrame, placed: DataFrame) -> DataFrame:
    """The rows of clusters that promise to be maximal.

    Schema in:   cluster_id, ...; as `place` gives
    """
    promised = placed.where(F.col("coverage").isin(*MAXIMAL)).select("cluster_id").distinct()
    return rows.join(promised, "cluster_id", "left_semi")


def left_out(truth: DataFrame, placed: DataFrame) -> DataFrame:
    """Sketches that have a near-duplicate and are in no cluster.

    Schema in:   TRUTH; as `place` gives
    """
    lonely = truth.select(F.col("probe").alias("node")).distinct().join(placed.select("node"), "node", "left_anti")
    return lonely.select(problem("node", text(": has a near-duplicate, and is in no cluster")))


def leaderless(placed: DataFrame, kept: DataFrame) -> DataFrame:
    """Clusters made around kept documents that hold none.

    Schema in:   as `place` gives; node
    """
    led = placed.where("coverage = 'documents'")
    with_kept = led.join(kept, "node", "left_semi").select("cluster_id").distinct()
    bare = led.select("cluster_id").distinct().join(with_kept, "cluster_id", "left_anti")
    return bare.select(problem("cluster_id", text(": holds no kept document")))


def uncovered(truth: DataFrame, within: DataFrame, placed: DataFrame, probes: DataFrame) -> DataFrame:
    """Near-duplicates that no cluster holds together; a node with itself is a group of equal documents.

    Schema in:   TRUTH; node (groups of two or more near-duplicates); as `place` gives; node
    Shuffles:  on cluster_id, and on the pair.    Actions:  none.
    """
    mine = placed.join(F.broadcast(probes), "node").select("cluster_id", F.col("node").alias("probe"))
    together = mine.join(placed.select("cluster_id", F.col("node").alias("other")), "cluster_id")
    due = truth.select("probe", "other").unionAll(within.select("node", "node"))
    lost = due.join(together.select("probe", "other"), ["probe", "other"], "left_anti")
    pair = problem(
        F.least("probe", "other"), text(" / "), F.greatest("probe", "other"), text(": in no cluster together")
    )
    return lost.select(pair).distinct()


def wrong_false_components(
    tables: Mapping[str, DataFrame], placed: DataFrame, folded: DataFrame, docs: DataFrame
) -> DataFrame:
    """Rows of `false_components` that are not what documents and pairs of each component give, and missing ones.

    Schema in:   the tables of a run; cluster_id, node, component, …; as `check_pairs.fold`; doc_id, node
    Schema out:  problem string
    Shuffles:  the nodes on node and on component, the folded pairs on either node.    Actions:  none.
    """
    nodes = placed.where("node is not null").select("node", "component").distinct()
    counted = docs.groupBy("node").agg(F.count("*").alias("n")).join(nodes, "node")
    sizes = counted.groupBy("component").agg(F.sum("n").alias("due_size"))
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
    smallest: dict[int, str] = {}
    for name, part in zip(names, parts.tolist(), strict=True):
        smallest.setdefault(part, name)
    wrong = ((node, component, smallest[parts[place[node]]]) for node, component in named)
    return [f"{node}: component {said}, smallest id of its part {low}" for node, said, low in wrong if said != low]
