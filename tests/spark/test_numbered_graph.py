"""The numbered graph, whose edges stream through a task, against the graph gathered in one task."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from nddup.mining.pair_graph import keep_first
from nddup.spark.clustering.graph import Assignment, build_graph, graph_task
from nddup.spark.clustering.numbered_graph import (
    FIRST_KEYS,
    Solving,
    assemble,
    count_parts,
    number_edges,
    number_nodes,
    order_nodes,
    rest_task,
    solve,
    solve_task,
)
from nddup.spark.schemas import local_table, schema_of
from nddup.tables import MATCHES, NODES

AUTO = Assignment("auto", 3, max_sets=1_000, max_members=100_000, share_nodes=4)
Edge = tuple[int, int]
Likeness = dict[Edge, tuple[float, float]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Likeness]:
    """Draw a number of nodes, each with a neighbour; for each edge, the contained share of its second and first end."""
    drawn = draw(st.lists(st.sampled_from(list(combinations(range(9), 2))), min_size=1, unique=True))
    names = sorted({end for edge in drawn for end in edge})
    share = st.sampled_from([0.2, 0.5, 0.9])
    return len(names), {(names.index(a), names.index(b)): draw(st.tuples(share, share)) for a, b in drawn}


def stream(likeness: Likeness, least: float | None) -> Iterator[pa.RecordBatch]:
    """Yield the edges as `solve` sends them, one per batch."""
    for (first, second), (of_second, _) in sorted(likeness.items(), key=lambda row: row[0][1]):
        row: dict[str, Any] = {"first": [first], "second": [second]}
        yield pa.record_batch(row if least is None else row | {"replaces": [of_second >= least]})


GATHERED = pa.schema(
    {
        **dict.fromkeys(("is_node", "by_leaders"), pa.bool_()),
        **dict.fromkeys(("node_a", "node_b", "node"), pa.int64()),
        **dict.fromkeys(("resemblance", "containment_a", "containment_b"), pa.float64()),
        **dict.fromkeys(("rank", "number"), pa.int32()),
    }
)
"""The columns that `build_graph` sends to its task."""


def gather(nodes: int, likeness: Likeness) -> Iterator[pa.RecordBatch]:
    """Yield the same graph as `graph_task` reads it; a node is named by its rank."""
    rows: list[dict[str, Any]] = [
        {"is_node": False, "node_a": a, "node_b": b, "resemblance": of_b, "containment_a": of_a, "containment_b": of_b}
        for (a, b), (of_b, of_a) in likeness.items()
    ]
    rows += [{"is_node": True, "node": n, "rank": n, "number": n, "by_leaders": False} for n in range(nodes)]
    yield pa.RecordBatch.from_pylist(rows, schema=GATHERED)


@given(graphs(), st.sampled_from([None, 0.5]))
def test_streamed_edges_are_solved_as_gathered_ones(graph: tuple[int, Likeness], least: float | None) -> None:
    """Streamed edges give the components, their fits and the kept nodes of gathered ones, also by containment."""
    nodes, likeness = graph
    solving = Solving(nodes, AUTO, least)

    solved = [row for batch in solve_task(stream(likeness, least), solving=solving) for row in batch.to_pylist()]

    gathered = list(graph_task(gather(nodes, likeness), assignment=AUTO, least_containment=least))
    expected = sorted((row for batch in gathered for row in batch.to_pylist()), key=lambda row: row["node"])
    assert [row["order_key"] for row in solved] == list(range(nodes))
    assert [row["ordinal"] for row in solved] == [row["first"] for row in expected]
    assert [row["kept"] for row in solved] == [row["kept"] for row in expected]
    assert [row["fit"] for row in solved] == [row["batch"] if row["position"] == 0 else None for row in expected]


@given(graphs())
def test_the_last_task_of_the_rounds_removes_what_the_definition_removes(graph: tuple[int, Likeness]) -> None:
    """The last task removes the nodes that `keep_first` does not keep, in the order of their numbers."""
    nodes, likeness = graph
    edges = np.array(list(likeness), np.int32)
    expected = keep_first(edges, np.ones(len(edges)), np.arange(nodes, dtype=np.int32)).kept

    removed = [
        key for batch in rest_task(stream(likeness, None), nodes=nodes) for key in batch["order_key"].to_pylist()
    ]

    assert removed == np.flatnonzero(~expected).tolist()


def without_numbers(rows: list[Row]) -> list[dict[str, Any]]:
    """Return rows of GRAPH without the numbers of components and fits, and with ranks counted within the component."""
    ranks = defaultdict(list)
    for row in rows:
        ranks[row.component].append(row.rank)
    plain = [
        row.asDict()
        | {"ordinal": None, "batch": row.batch is None, "rank": sorted(ranks[row.component]).index(row.rank)}
        for row in rows
    ]
    return sorted(plain, key=lambda row: int(row["node"]))


@pytest.mark.parametrize("least", [None, 0.5])
def test_the_graph_is_the_same(spark: SparkSession, least: float | None) -> None:
    """Every column is the same for many random components, some led, with ties in likeness and policy."""
    random = np.random.default_rng(7)
    names = random.permutation(260)
    near = {tuple(sorted(map(int, 13 * (n % 20) + random.integers(0, 13, 2)))) for n in range(300)}
    values = random.choice([0.4, 0.6, 0.8], (len(near), 3)).tolist()
    of_matches = [(a, b, 9, *value) for (a, b), value in zip(sorted(near), values, strict=True) if a != b]
    of_nodes = [
        (
            n,
            f"d{names[n]:03}",
            f"d{names[n]:03}",
            n,
            9,
            int(random.integers(1, 4)),
            int(random.integers(0, 9)),
            b"",
            9,
            1,
        )
        for n in range(260)
    ]
    matches, nodes = local_table(spark, schema_of(MATCHES), of_matches), local_table(spark, schema_of(NODES), of_nodes)
    large = local_table(spark, schema_of(NODES), of_nodes[26:52]).select("node")
    expected = build_graph(matches, nodes, AUTO, large=large, least_containment=least).collect()

    ordered = order_nodes(matches, nodes, large=large, by_weight=least is not None, partitions=3).localCheckpoint()
    parts = sorted(map(tuple, count_parts(ordered).collect()))
    firsts = [(part, sum(n for _, n in parts[:at])) for at, (part, _) in enumerate(parts)]
    numbered = number_nodes(ordered, local_table(spark, FIRST_KEYS, firsts))
    edges = number_edges(matches, numbered, is_contained=least is not None)
    solved = solve(edges, Solving(len(expected), AUTO, least))
    found = assemble(numbered, edges, solved, share_nodes=AUTO.share_nodes, least_containment=least).collect()

    assert len(parts) == 3
    assert {row.kept for row in found} == {row.by_leaders for row in found} == {True, False}
    assert len({row.share for row in found}) > 3
    assert without_numbers(found) == without_numbers(expected)
