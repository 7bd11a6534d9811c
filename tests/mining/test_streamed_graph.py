"""Components and the keep-list from streamed edges, against the functions that hold the whole graph."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nddup.mining.pair_graph import MOST_NODES, StreamedChoice, StreamedComponents, keep_first

Edges = NDArray[np.int64]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges, list[int]]:
    """Draw a number of nodes, edges (first, second) sorted by the second, and where to cut them into batches."""
    nodes = draw(st.integers(1, 40))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] != pair[1])
    drawn = draw(st.lists(ends.map(lambda pair: (min(pair), max(pair))), unique=True)) if nodes > 1 else []
    edges = np.array(sorted(drawn, key=lambda pair: pair[1]), np.int64).reshape(-1, 2)
    cuts = draw(st.lists(st.integers(0, len(edges)), max_size=4))
    return nodes, edges, sorted([0, *cuts, len(edges)])


@given(graphs())
def test_keeps_what_the_whole_graph_keeps(graph: tuple[int, Edges, list[int]]) -> None:
    """The kept nodes are those of `keep_first`, for any number of batches, read in pieces of eight."""
    nodes, edges, cuts = graph
    expected = keep_first(edges.astype(np.int32), np.ones(len(edges)), np.arange(nodes, dtype=np.int32))

    choice = StreamedChoice(nodes)
    for low, high in pairwise(cuts):
        choice.feed(edges[low:high, 0], edges[low:high, 1])
    pieces = [choice.kept(low, min(low + 8, nodes)) for low in range(0, nodes, 8)]

    assert np.concatenate(pieces).tolist() == expected.kept.tolist()


@given(graphs(), st.randoms(use_true_random=False))
def test_removes_only_what_contains_enough(graph: tuple[int, Edges, list[int]], random: Random) -> None:
    """If likeness has a direction, a node is removed only by an earlier one that contains enough of it."""
    nodes, edges, _ = graph
    of_ends = np.array([[random.random() for _ in edges] for _ in range(2)]).reshape(2, -1)
    expected = keep_first(edges.astype(np.int32), of_ends, np.arange(nodes, dtype=np.int32), 0.5)

    choice = StreamedChoice(nodes)
    some = edges[of_ends[1] >= 0.5]
    choice.feed(some[:, 0], some[:, 1])

    assert choice.kept(0, nodes).tolist() == expected.kept.tolist()


@given(graphs())
def test_labels_are_those_of_another_library(graph: tuple[int, Edges, list[int]]) -> None:
    """Each node gets the first node and the size of its component, for edges in any order and number of batches."""
    nodes, edges, cuts = graph
    _, of = connected_components(coo_array((np.ones(len(edges)), edges.T), shape=(nodes, nodes)), directed=False)
    expected = [np.flatnonzero(of == label).min() for label in of]

    components = StreamedComponents(nodes)
    for low, high in pairwise(cuts):
        batch = edges[low:high][::-1]
        components.feed(batch[:, 1], batch[:, 0])
    components.finish()
    pieces = [components.label(low, min(low + 7, nodes)) for low in range(0, nodes, 7)]
    first, sizes = (np.concatenate(columns) for columns in zip(*pieces, strict=True))

    assert first.tolist() == expected
    assert sizes.tolist() == [np.count_nonzero(of == label) for label in of]


@pytest.mark.parametrize("edge", [(0, 1), (2, 1), (2, 2)])
def test_edges_out_of_order_are_refused(edge: tuple[int, int]) -> None:
    """Edges whose later ends do not ascend, within or across batches, are refused: the choice would be wrong."""
    choice = StreamedChoice(3)
    choice.feed(np.array([0]), np.array([2]))

    with pytest.raises(ValueError, match="sorted by the later one"):
        choice.feed(*np.array(edge).reshape(2, 1))


def test_more_nodes_than_numbers_are_refused() -> None:
    """More nodes than labels of 31 bits are refused."""
    with pytest.raises(ValueError, match="2\\^31 nodes"):
        StreamedComponents(MOST_NODES + 1)
