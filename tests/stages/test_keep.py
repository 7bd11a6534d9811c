"""The keep-list on both engines: reasons, and the kept near-duplicate of every removed document."""

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from nddup.engines.engine import Engine
from nddup.matching.preference import Order, parse_column
from nddup.mining.keep_verdicts import FORCED_WEIGHT, Forced
from nddup.mining.pair_graph import keep_first
from nddup.stages.keep import Replacing, count_kept, list_kept
from nddup.tables import CONFIRMED, GRAPH, NODES
from tests.engine_rows import rows_of, see_rows, see_table


def node(doc_id: str, node: int, **other: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a row of NODES: a document whose sketch has nine features and no other document."""
    known = {"doc_id": doc_id, "node": node, "size": 9, "weight": 9, "policy": 0, "content_fingerprint": b"X", "n": 1}
    return known | other


def removed(node: int, duplicate_of: int | None) -> dict[str, Any]:
    """Return a row of GRAPH."""
    return {"node": node, "duplicate_of": duplicate_of}


def test_says_why_each_document_goes(engine: Engine) -> None:
    """
    With a kept, b has its bytes, c only its sketch, d is near a; e has no near-duplicate and stays.

    {a, b, c} -- {d}      {e}
    """
    contents = {"c": b"Y", "a": b"X", "b": b"X", "d": b"Z", "e": b"X"}
    nodes = [node(name, 1, policy=turn, n=3) for name, turn in (("c", 5), ("a", 1), ("b", 2))]
    nodes += [node("d", 3), node("e", 4)]
    see_rows(engine, NODES, [row | {"content_fingerprint": contents[row["doc_id"]]} for row in nodes])
    see_rows(engine, GRAPH, [removed(1, None), removed(3, 1)])
    edge = {"node_a": 1, "node_b": 3, "resemblance": 0.9}
    see_rows(engine, CONFIRMED, [edge], name="matches")
    see_rows(engine, CONFIRMED, [edge | {"common": 9, "shingles_a": 9, "shingles_b": 10}], name="counted")

    rows = rows_of(list_kept(engine, Replacing(1)))
    engine.see("matches", engine.answer("SELECT * FROM counted"))
    by_sets = rows_of(list_kept(engine, Replacing(1, by_sets=True)))

    assert rows == {
        ("a", True, None, None, None, None, False),
        ("b", False, "a", "exact", 1.0, 0.0, False),
        ("c", False, "a", "equal", 1.0, None, False),
        ("d", False, "a", "near", 0.9, None, False),
        ("e", True, None, None, None, None, False),
    }
    assert by_sets - rows == {("c", False, "a", "equal", 1.0, 0.0, False), ("d", False, "a", "near", 0.9, 0.1, False)}


def test_equal_sketches_below_the_count_all_stay(engine: Engine) -> None:
    """Equal sketches of nine features are near-duplicates if nine are enough, and all stay if ten are needed."""
    nodes = [node("a", 0, n=2), node("b", 0, n=2), node("x", 2, size=0), node("y", 3, size=0)]
    see_rows(engine, NODES, nodes)
    see_rows(engine, GRAPH, [])
    see_rows(engine, CONFIRMED, [], name="matches")

    for least_size, kept in ((9, {"a", "x", "y"}), (10, {"a", "b", "x", "y"}), (0, {"a", "x", "y"})):
        rows = rows_of(list_kept(engine, Replacing(least_size)))

        assert len(rows) == len(nodes)
        assert {row[0] for row in rows if row[1]} == kept


def test_keeps_the_first_independent_documents(engine: Engine) -> None:
    """
    In a random graph of groups, the kept documents are those that no kept near-duplicate precedes in policy order.

    Each removed document names the nearest of its kept near-duplicates, among equals the one the policy prefers.
    """
    random = np.random.default_rng(5)
    node_of = {f"d{i:02}": int(random.integers(0, 40)) for i in range(70)}
    policy = {name: int(random.integers(0, 20)) for name in node_of}
    used = sorted(set(node_of.values()))
    edges = {pair: float(random.choice([0.8, 0.9])) for pair in combinations(used, 2) if random.random() < 0.06}
    order = sorted(node_of, key=lambda name: (policy[name], name))

    def likeness(a: str, b: str) -> float:
        ends = sorted((node_of[a], node_of[b]))
        return 1.0 if ends[0] == ends[1] else edges.get((ends[0], ends[1]), 0.0)

    kept: list[str] = []
    for name in order:
        if not any(likeness(name, other) for other in kept):
            kept.append(name)

    def head_of(name: str) -> str | None:
        if name in kept:
            return None
        before = [other for other in kept if order.index(other) < order.index(name)]
        return min(before, key=lambda other: (-likeness(name, other), order.index(other)))

    firsts = [node_of[name] for name in order]
    ranks = np.array([firsts.index(one) if one in firsts else len(order) for one in range(40)], np.int32)
    choice = keep_first(np.array(list(edges), np.int32), np.array(list(edges.values())), ranks, 0.0)
    numbers = list(node_of.values())
    see_rows(engine, NODES, [
        node(name, one, policy=policy[name], content_fingerprint=name.encode(), n=numbers.count(one))
        for name, one in node_of.items()
    ])  # fmt: skip
    see_rows(engine, GRAPH, [
        removed(one, None if choice.kept[one] else int(choice.duplicate_of[one])) for one in used
    ])  # fmt: skip
    matches = [{"node_a": a, "node_b": b, "resemblance": value} for (a, b), value in edges.items()]
    see_rows(engine, CONFIRMED, matches, name="matches")

    rows = rows_of(list_kept(engine, Replacing(1)))

    assert {(row[0], row[2]) for row in rows} == {(name, head_of(name)) for name in node_of}
    assert len(rows) == len(node_of)
    assert all(row[1] == (row[2] is None) == (row[3] is None) for row in rows)
    assert {row[3] for row in rows} == {None, "equal", "near"}


def test_counts_what_is_forced_and_what_a_column_lacks(engine: Engine) -> None:
    """Forced documents, pairs that stay in the keep-list, blank values, and texts where numbers are expected."""
    weights = {"a": FORCED_WEIGHT, "b": 9 - FORCED_WEIGHT, "c": 9, "d": 9 + FORCED_WEIGHT}
    see_rows(engine, NODES, [node(name, at, weight=weight) for at, (name, weight) in enumerate(weights.items())])
    see_table(engine, "pairs", pa.table({"doc_a": ["a", "a", "c"], "doc_b": ["b", "d", "d"]}))
    see_table(engine, "keep", pa.table({"doc_id": list("abcd"), "kept": [True, False, True, True]}))
    values = [["1", None], ["x", "y"], [" ", "2e3"], [None, "\t"]]
    see_table(engine, "documents", pa.table({"policy": values}))
    forced = Forced(("a", "d", "nobody"), ("b",))
    order = Order("first-id", columns=(parse_column("score:number"), parse_column("date")))

    found = count_kept(engine, order, forced, by_loss=False)

    assert found == {
        "forced_kept": 2, "forced_removed": 1, "kept_pairs": 2,
        "without_value": {"score": 2, "date": 2}, "unparsable": {"score": 1},
    }  # fmt: skip
    assert count_kept(engine, Order("first-id"), None, by_loss=False) == {}
