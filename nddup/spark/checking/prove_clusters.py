"""Proof of `clusters`: conditions, maximality and coverage.

clusters         --place-->                placed     the nodes (distinct sketches) of each cluster
placed           --partial_groups-->       problems   sketches of which a cluster holds some documents only
chosen clusters  --prove (driver)-->       sets       their conditions
sketches, sets   --extend-->               added      what could be added to a chosen cluster
truth, placed    --uncovered-->            problems   near-duplicates that no cluster holds together
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.spark.checking.prove_documents import problem, sketch_rows, text
from nddup.verifying.cluster_proofs import Proof, Sets, find_extensions, prove_cluster
from nddup.verifying.definitions import Rows, Rule, gather
from nddup.verifying.near_pairs import Probes

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
    """Clusters that hold some documents of a sketch and not the others, which could be added. No shuffle.

    A member that is no document is such a problem too: its node is null.
    """
    some = placed.where(F.col("node").isNull() | (F.col("coverage").isin(*MAXIMAL) & (F.col("held") != F.col("n"))))
    return some.select(
        problem("cluster_id", text(": "), "held", text(" of "), "n", text(" documents with the sketch of "), "node")
    )


def prove(
    rows: Sequence[tuple[str, int, str, list[int]]], nodes: Rows, rule: Rule, min_support: int
) -> tuple[Sets, list[str]]:
    """Prove the conditions of clusters on the driver; in `partition` and `components`, the support only.

    Args:
        rows: cluster_id, support, coverage, places of its nodes in `nodes`; each.
        nodes: the sketches.
        rule: what a near-duplicate is.
        min_support: what `clusters.support` asks for; 0: nothing more.

    Returns:
        The sets for `extend`, and what is wrong with them.

    Cost: a merge for each pair of sketches of a cluster.
    """
    members = [np.array(places, np.int64) for *_, places in rows]
    proofs: list[Proof] = [prove_cluster(gather([nodes.row(int(i)) for i in places]), rule) for places in members]
    bounds = np.array([max(proof.bound, min_support) for proof in proofs], np.int64)

    problems: list[str] = []
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

    Schema in:   node, cluster_id; as `place` gives; as `prove_pairs.fold` gives
    Schema out:  problem string
    Shuffles:  none, or where pairs were cut on cluster_id, on the pair and on (node, cluster_id).    Actions:  none.
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
    Schema out:  problem string
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
    Schema out:  problem string
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
