"""The keep-list: policies, reasons, and the kept near-duplicate of every removed document."""

from itertools import combinations

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nddup.matching.preference import Order
from nddup.spark.clustering.graph import Assignment, build_graph
from nddup.spark.clustering.keep_list import list_kept
from nddup.spark.pairing.collapse import name_nodes
from nddup.spark.schemas import DOCUMENTS, GRAPH, MATCHES, NODES


@pytest.mark.parametrize(
    ("policy", "order"),
    [("longest", "cabd"), ("first-id", "abcd"), ("first", "dbac"), ("shortest-url", "bcda")],
)
def test_the_policy_orders_the_documents(spark: SparkSession, policy: str, order: str) -> None:
    """Policies prefer most tokens, smallest id, first in the collection, shortest URL (none is last); ties go by id."""
    rows = [
        # key, id, url, source, record, tokens, ...
        (3, "a", None, "f", 4, 10, 9, bytearray(b""), None, "a", [1], None, None),
        (2, "b", "u/1", "f", 3, 10, 9, bytearray(b""), None, "b", [2], None, None),
        (5, "c", "u/2", "f", 6, 12, 9, bytearray(b""), None, "c", [3], None, None),
        (1, "d", "u/long", "f", 2, 9, 9, bytearray(b""), None, "d", [4], None, None),
    ]

    nodes = name_nodes(spark.createDataFrame(rows, DOCUMENTS), order=Order(policy)).collect()

    assert "".join(row.doc_id for row in sorted(nodes, key=lambda row: (row.policy, row.doc_id))) == order


def test_says_why_each_document_goes(spark: SparkSession) -> None:
    """
    With a kept, b has its bytes, c only its sketch, d is near a; e has no near-duplicate and stays.

    {a, b, c} -- {d}      {e}
    """
    nodes = spark.createDataFrame(
        [
            (0, "c", "a", 1, 9, 9, 5, bytearray(b"Y"), 9, 3),
            (1, "a", "a", 1, 9, 9, 1, bytearray(b"X"), 9, 3),
            (2, "b", "a", 1, 9, 9, 2, bytearray(b"X"), 9, 3),
            (3, "d", "d", 3, 9, 9, 4, bytearray(b"Z"), 9, 1),
            (4, "e", "e", 4, 9, 9, 4, bytearray(b"X"), 9, 1),
        ],
        NODES,
    )
    graph = spark.createDataFrame(
        [
            (1, "a", 0, 0, 2, 0, True, None, 1.0, 0, 0, False, None),
            (3, "a", 0, 1, 2, 0, False, 1, 0.9, 0, 1, False, None),
        ],
        GRAPH,
    )

    matches = spark.createDataFrame([(1, 3, 9, 0.9, None, None)], MATCHES)
    counted = matches.withColumns({"common": F.lit(9), "shingles_a": F.lit(9), "shingles_b": F.lit(10)})

    rows = {tuple(row) for row in list_kept(nodes, graph, matches, least_size=1).collect()}
    by_sets = {tuple(row) for row in list_kept(nodes, graph, counted, least_size=1, by_sets=True).collect()}

    assert rows == {
        ("a", True, None, None, None, None),
        ("b", False, "a", "exact", 1.0, 0.0),
        ("c", False, "a", "equal", 1.0, None),
        ("d", False, "a", "near", 0.9, None),
        ("e", True, None, None, None, None),
    }
    assert by_sets - rows == {("c", False, "a", "equal", 1.0, 0.0), ("d", False, "a", "near", 0.9, 0.1)}


@pytest.mark.parametrize(
    ("least_size", "kept"), [(9, {"a", "x", "y"}), (10, {"a", "b", "x", "y"}), (0, {"a", "x", "y"})]
)
def test_equal_sketches_below_the_count_all_stay(spark: SparkSession, least_size: int, kept: set[str]) -> None:
    """Equal sketches of nine features are near-duplicates if nine are enough, and all stay if ten are needed."""
    nodes = spark.createDataFrame(
        [
            (0, "a", "a", 0, 9, 9, 0, bytearray(b"X"), 9, 2),
            (1, "b", "a", 0, 9, 9, 0, bytearray(b"X"), 9, 2),
            (2, "x", "x", 2, 0, 0, 0, bytearray(b"X"), 0, 1),
            (3, "y", "y", 3, 0, 0, 0, bytearray(b"Y"), 0, 1),
        ],
        NODES,
    )

    rows = list_kept(
        nodes, *(spark.createDataFrame([], schema) for schema in (GRAPH, MATCHES)), least_size=least_size
    ).collect()

    assert len(rows) == 4
    assert {row.doc_id for row in rows if row.kept} == kept


def test_keeps_the_first_independent_documents(spark: SparkSession) -> None:
    """
    In a random graph of groups, the kept documents are those that no kept near-duplicate precedes in policy order.

    Each removed document names the nearest of its kept near-duplicates, among equals the one the policy prefers.
    """
    random = np.random.default_rng(5)
    node_of = {f"d{i:02}": int(random.integers(0, 40)) for i in range(70)}
    policy = {name: int(random.integers(0, 20)) for name in node_of}
    used = sorted(set(node_of.values()))
    edges = {pair: float(random.choice([0.8, 0.9])) for pair in combinations(used, 2) if random.random() < 0.06}
    groups = {node: min(name for name in node_of if node_of[name] == node) for node in used}

    def likeness(a: str, b: str) -> float:
        ends = sorted((node_of[a], node_of[b]))
        return 1.0 if ends[0] == ends[1] else edges.get((ends[0], ends[1]), 0.0)

    order = sorted(node_of, key=lambda name: (policy[name], name))
    kept: list[str] = []
    for name in order:
        if not any(likeness(name, other) for other in kept):
            kept.append(name)

    def head_of(name: str) -> str | None:
        if name in kept:
            return None
        return min(kept, key=lambda other: (-likeness(name, other), order.index(other)))

    expected = {(name, head_of(name)) for name in node_of}
    nodes = spark.createDataFrame(
        [
            (
                i,
                name,
                groups[node],
                node,
                9,
                9,
                policy[name],
                bytearray(name.encode()),
                9,
                list(node_of.values()).count(node),
            )
            for i, (name, node) in enumerate(node_of.items())
        ],
        NODES,
    )
    matches = spark.createDataFrame([(a, b, 9, value, None, None) for (a, b), value in edges.items()], MATCHES)

    graph = build_graph(matches, nodes, Assignment("pivot", 8, max_sets=1_000, max_members=100_000))
    rows = list_kept(nodes, graph, matches, least_size=1).collect()

    assert {(row.doc_id, row.duplicate_of) for row in rows} == expected
    assert len(rows) == len(node_of)
    assert all(row.kept == (row.duplicate_of is None) == (row.reason is None) for row in rows)
    assert {row.reason for row in rows} == {None, "equal", "near"}
