"""Components of a graph, against a graph search."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nddup.mining.pair_graph import label_components

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    """Draw a number of nodes, and distinct edges between them in either direction."""
    nodes = draw(st.integers(0, 12))
    every = [(a, b) for a in range(nodes) for b in range(nodes) if a < b]
    chosen = draw(st.lists(st.sampled_from(every), unique=True, max_size=14)) if every else []
    return nodes, [(b, a) if draw(st.booleans()) else (a, b) for a, b in chosen]


def as_array(edges: Edges) -> np.ndarray:
    return np.array(edges, np.int32).reshape(-1, 2)


def search(nodes: int, edges: Edges) -> list[list[int]]:
    """List the components in the order of their first node, each ascending, by a graph search."""
    around: dict[int, set[int]] = {node: set() for node in range(nodes)}
    for a, b in edges:
        around[a].add(b)
        around[b].add(a)
    found: list[list[int]] = []
    seen: set[int] = set()
    for start in range(nodes):
        if start in seen:
            continue
        reached, waiting = {start}, [start]
        while waiting:
            new = around[waiting.pop()] - reached
            reached |= new
            waiting += new
        seen |= reached
        found.append(sorted(reached))
    return found


@given(graphs())
def test_numbers_components_positions_and_sizes_as_a_search_does(graph: tuple[int, Edges]) -> None:
    """Each node gets the number of its component, its place among the component's nodes, and the component's size."""
    nodes, edges = graph
    expected = {
        node: (ordinal, position, len(component))
        for ordinal, component in enumerate(search(nodes, edges))
        for position, node in enumerate(component)
    }

    labels = label_components(as_array(edges), nodes=nodes)

    found = zip(labels.ordinals.tolist(), labels.positions.tolist(), labels.sizes.tolist(), strict=True)
    assert dict(enumerate(found)) == expected


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_the_edges_changes_nothing(graph: tuple[int, Edges], random: Random) -> None:
    """The same edges in another order give the same labels."""
    nodes, edges = graph
    shuffled = sorted(edges, key=lambda _: random.random())

    labels = label_components(as_array(edges), nodes=nodes)
    again = label_components(as_array(shuffled), nodes=nodes)

    assert [row.tolist() for row in labels] == [row.tolist() for row in again]


def test_a_long_chain_is_one_component() -> None:
    """A chain of fifty thousand nodes, with its edges from the far end, is one component in node order."""
    nodes = np.arange(50_000, dtype=np.int32)
    chain = np.stack([nodes[1:], nodes[:-1]], axis=1)[::-1]

    labels = label_components(chain, nodes=len(nodes))

    assert not labels.ordinals.any()
    assert np.array_equal(labels.positions, nodes)
    assert (labels.sizes == len(nodes)).all()
