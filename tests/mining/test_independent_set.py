"""The kept nodes, against the definition: the first of all maximal independent sets in the order of the policy."""

from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.mining.pair_graph import Kept, NamedChoice, keep_first

Edge = tuple[int, int]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[Edge, float], list[int]]:
    """Draw edges with resemblances of few values, so that ties occur, and a rank for each node."""
    nodes = draw(st.integers(0, 8))
    pairs = list(combinations(range(nodes), 2))
    edges = draw(st.dictionaries(st.sampled_from(pairs), st.sampled_from([0.7, 0.8, 0.9]))) if pairs else {}
    return edges, draw(st.permutations(range(nodes)))


def choose(edges: dict[Edge, float], ranks: list[int]) -> Kept:
    return keep_first(
        np.array(list(edges), np.int32).reshape(-1, 2),
        np.array(list(edges.values()), np.float64),
        np.array(ranks, np.int32),
    )


def define_kept(edges: dict[Edge, float], ranks: list[int]) -> set[int]:
    """Return the maximal independent set whose ascending ranks are lexicographically first."""
    nodes = range(len(ranks))

    def is_independent(chosen: set[int]) -> bool:
        return not any(a in chosen and b in chosen for a, b in edges)

    independent = [
        set(chosen)
        for size in range(len(ranks) + 1)
        for chosen in combinations(nodes, size)
        if is_independent(set(chosen))
    ]
    maximal = [
        chosen for chosen in independent if not any(is_independent(chosen | {node}) for node in set(nodes) - chosen)
    ]
    return min(maximal, key=lambda chosen: sorted(ranks[node] for node in chosen))


@given(graphs())
def test_keeps_the_first_maximal_independent_set(graph: tuple[dict[Edge, float], list[int]]) -> None:
    """The kept nodes are the lexicographically first maximal independent set."""
    edges, ranks = graph

    choice = choose(edges, ranks)

    assert set(np.flatnonzero(choice.kept).tolist()) == define_kept(edges, ranks)


@given(graphs())
def test_a_removed_node_names_its_nearest_kept_neighbour(graph: tuple[dict[Edge, float], list[int]]) -> None:
    """`duplicate_of` has the highest resemblance of the kept ones before it, of equals the best rank; -1 iff kept."""
    edges, ranks = graph
    kept = define_kept(edges, ranks)
    expected = []
    for node in range(len(ranks)):
        around = {(set(edge) - {node}).pop(): value for edge, value in edges.items() if node in edge}
        near = [(-value, ranks[other], other) for other, value in around.items() if other in kept
                and ranks[other] < ranks[node]]  # fmt: skip
        expected.append((-1, 1.0) if node in kept else (min(near)[2], -min(near)[0]))

    choice = choose(edges, ranks)

    assert list(zip(choice.duplicate_of.tolist(), choice.resemblance.tolist(), strict=True)) == expected


@given(graphs())
def test_every_removed_node_has_a_kept_neighbour_before_it(graph: tuple[dict[Edge, float], list[int]]) -> None:
    """No two kept nodes are neighbours, and each removed one has a kept neighbour that the policy prefers."""
    edges, ranks = graph

    kept = choose(edges, ranks).kept

    assert not any(kept[a] and kept[b] for a, b in edges)
    for node in np.flatnonzero(~kept):
        others = [(set(edge) - {int(node)}).pop() for edge in edges if node in edge]
        assert any(kept[other] and ranks[other] < ranks[node] for other in others)


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_and_direction_of_edges_change_nothing(
    graph: tuple[dict[Edge, float], list[int]], random: Random
) -> None:
    """Permuting the edges, and the two ends of each, gives the same choice."""
    edges, ranks = graph
    rows = sorted(edges.items(), key=lambda _: random.random())
    permuted = {(edge if random.random() < 0.5 else edge[::-1]): value for edge, value in rows}

    choice, again = choose(edges, ranks), choose(permuted, ranks)

    assert [row.tolist() for row in choice] == [row.tolist() for row in again]


@pytest.mark.parametrize(
    ("ranks", "kept"),
    [([0, 1, 2, 3, 4], [0, 2, 4]), ([4, 3, 2, 1, 0], [0, 2, 4]), ([1, 0, 2, 4, 3], [1, 4]), ([4, 0, 3, 1, 2], [1, 3])],
)
def test_a_chain_keeps_what_no_kept_one_precedes(ranks: list[int], kept: list[int]) -> None:
    """
    A removed node does not remove its neighbours: 2 stays if 1, which it resembles, is removed.

    0 - 1 - 2 - 3 - 4
    """
    chain = {(node, node + 1): 0.9 for node in range(4)}

    choice = choose(chain, ranks)

    assert np.flatnonzero(choice.kept).tolist() == kept


@given(graphs(), st.integers(1, 9))
def test_named_nodes_are_chosen_alike(graph: tuple[dict[Edge, float], list[int]], size: int) -> None:
    """Nodes of any names, their edges in order and in batches of any size: the same nodes are removed."""
    edges, ranks = graph
    names = [(rank * 0x9E3779B97F4A7C15) % 2**62 for rank in ranks]
    directed = [(b, a) if ranks[a] < ranks[b] else (a, b) for a, b in edges]
    directed.sort(key=lambda ends: (ranks[ends[0]], ranks[ends[1]]))
    choice, removed = NamedChoice(), dict[int, int]()
    for start in range(0, len(directed), size):
        some = directed[start : start + size]
        ends = np.array([[names[later], names[earlier]] for later, earlier in some], np.int64)
        chosen = choice.feed(ends[:, 0], ends[:, 1])
        removed |= {later: earlier for (later, earlier), is_chosen in zip(some, chosen, strict=True) if is_chosen}
    kept = define_kept(edges, ranks)
    assert set(removed) == set(range(len(ranks))) - kept
    assert set(removed.values()) <= kept
