"""The graph whose edges stream through a task, against the whole graph."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from nddup.mining.pair_graph import keep_first, label_components
from nddup.spark.clustering.graph import (
    FIRST_KEYS,
    MOST_FITS,
    Assignment,
    Solving,
    assemble,
    count_parts,
    describe_nodes,
    number_edges,
    number_few,
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
        yield pa.record_batch(
            row if least is None else row | {"replaces": [of_second >= least], "bars": [second % 3 > 0]}
        )


@given(graphs(), st.sampled_from([None, 0.5]))
def test_streamed_edges_are_solved_as_whole_ones(graph: tuple[int, Likeness], least: float | None) -> None:
    """Streamed edges give the components and kept nodes of the whole graph, also by containment; numbers beyond its
    nodes change nothing.
    """
    nodes, likeness = graph
    edges, ranks = np.array(list(likeness), np.int32), np.arange(nodes, dtype=np.int32)
    contained = np.array([(of_a, of_b) for of_b, of_a in likeness.values()]).T
    components = label_components(edges, nodes=nodes)
    first = np.flatnonzero(components.positions == 0)
    expected = keep_first(edges, np.ones(len(edges)) if least is None else contained, ranks, least or 0.0)

    solving = Solving(2 * len(likeness), AUTO, least)
    solved = [row for batch in solve_task(stream(likeness, least), solving=solving) for row in batch.to_pylist()]

    assert [row["order_key"] for row in solved] == list(range(2 * len(likeness)))
    assert [row["ordinal"] for row in solved[:nodes]] == first[components.ordinals].tolist()
    assert [row["kept"] for row in solved[:nodes]] == expected.kept.tolist()
    barred = np.where((edges.T % 3 == 0) & (least is not None), -1.0, 1.0)
    assert [row["leads"] for row in solved[:nodes]] == keep_first(edges, barred, ranks).kept.tolist()
    fits = [row["fit"] is not None for row in solved]
    assert fits == [key < nodes and key in first and components.sizes[key] <= 3 for key in range(len(solved))]


@pytest.mark.parametrize("miner", ["auto", "fpgrowth"])
def test_auto_leaves_what_many_fits_would_take_to_the_pivot_miner(monkeypatch: pytest.MonkeyPatch, miner: str) -> None:
    """Components beyond the fits of `auto` are the pivot miner's; if FP-Growth is asked for, it has them all."""
    monkeypatch.setattr("nddup.spark.clustering.graph.FIT_SETS", 40)  # two pairs, each as much as 20 sets
    pairs = dict.fromkeys(((2 * i, 2 * i + 1) for i in range(20)), (1.0, 1.0))
    solving = Solving(40, Assignment(miner, 3, max_sets=1_000, max_members=100_000), None)

    solved = [row for batch in solve_task(stream(pairs, None), solving=solving) for row in batch.to_pylist()]

    fits = [row["fit"] for row in solved[::2]]
    assert fits == [fit if fit < MOST_FITS or miner == "fpgrowth" else None for fit in (i // 2 for i in range(1, 21))]


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


@pytest.mark.parametrize("least", [None, pytest.param(0.5, marks=pytest.mark.nightly)])
def test_the_graph_is_the_same(spark: SparkSession, least: float | None) -> None:
    """A graph of few edges has the columns of a large one: of many random components, some led, with ties."""
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
            0,
        )
        for n in range(260)
    ]
    matches, nodes = local_table(spark, schema_of(MATCHES), of_matches), local_table(spark, schema_of(NODES), of_nodes)
    large = local_table(spark, schema_of(NODES), of_nodes[26:52]).select("node")
    by_weight = least is not None
    described = describe_nodes(matches, nodes, large).localCheckpoint()
    numbered = number_few(described, by_weight=by_weight)
    edges = number_edges(matches, numbered, is_contained=by_weight)
    solving = Solving(2 * len(of_matches), AUTO, least)
    few = assemble(numbered, edges, solve(edges, solving), solving, is_large=False)

    ordered = order_nodes(described, by_weight=by_weight, partitions=3).localCheckpoint()
    parts = sorted(map(tuple, count_parts(ordered).collect()))
    firsts = [(part, sum(n for _, n in parts[:at])) for at, (part, _) in enumerate(parts)]
    numbered = number_nodes(ordered, local_table(spark, FIRST_KEYS, firsts))
    edges = number_edges(matches, numbered, is_contained=by_weight)
    solving = Solving(described.count(), AUTO, least)
    found = assemble(numbered, edges, solve(edges, solving), solving).collect()

    assert len(parts) == 3
    assert {row.kept for row in found} == {row.by_leaders for row in found} == {True, False}
    assert len({row.share for row in found}) > 3
    assert sorted(found) == sorted(few.collect())
