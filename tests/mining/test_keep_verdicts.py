"""Which edges may remove a node, against the definition: forced nodes, and what a node may lose."""

from fractions import Fraction
from itertools import combinations
from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nddup.mining.keep_verdicts import KEPT, REMOVED, Loss, direct_edges
from nddup.mining.pair_graph import keep_first


class Drawn(NamedTuple):
    """Sets of shingles, the edges between them, the class and the rank of each, and what may be lost."""

    sets: list[frozenset[int]]
    edges: list[tuple[int, int]]
    classes: list[int]
    ranks: list[int]
    most: Fraction | None


@st.composite
def graphs(draw: st.DrawFn) -> Drawn:
    """Draw small sets, a list of pairs of them, and forced nodes, which come first or last."""
    sets = draw(st.lists(st.frozensets(st.integers(0, 7), min_size=1), max_size=7))
    pairs = list(combinations(range(len(sets)), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    classes = draw(st.lists(st.sampled_from([0, 0, KEPT, REMOVED]), min_size=len(sets), max_size=len(sets)))
    order = sorted(draw(st.permutations(range(len(sets)))), key=lambda node: classes[node])
    most = draw(st.sampled_from([None, Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)]))
    return Drawn(sets, edges, classes, [order.index(node) for node in range(len(sets))], most)


def resemblance(drawn: Drawn, a: int, b: int) -> float:
    return len(drawn.sets[a] & drawn.sets[b]) / len(drawn.sets[a] | drawn.sets[b])


def choose(drawn: Drawn) -> dict[int, int | None]:
    """Return the kept node of each removed one, None if there is none; the kernels decide."""
    ends = np.array(drawn.edges, np.int32).reshape(-1, 2)
    sizes = np.array([len(one) for one in drawn.sets], np.int64)
    common = np.array([len(drawn.sets[a] & drawn.sets[b]) for a, b in drawn.edges], np.int32)
    classes, ranks = np.array(drawn.classes, np.int8), np.array(drawn.ranks, np.int32)
    likeness = np.array([resemblance(drawn, a, b) for a, b in drawn.edges])
    loss = None if drawn.most is None else Loss(common, sizes[ends.T], drawn.most)
    directed = direct_edges(likeness, classes[ends.T], loss)
    found = keep_first(ends, directed, ranks)
    places = enumerate(found.duplicate_of.tolist())
    return {at: (of if of >= 0 else None) for at, of in places if of >= 0 or drawn.classes[at] == REMOVED}


def define(drawn: Drawn) -> dict[int, int | None]:
    """Return the same by the definition, node by node in the order of preference."""
    near: dict[int, set[int]] = {node: set() for node in range(len(drawn.sets))}
    for a, b in drawn.edges:
        near[a].add(b)
        near[b].add(a)

    def may_go(node: int, other: int) -> bool:
        """Whether a node may be removed for another that is kept."""
        lost = Fraction(len(drawn.sets[node] - drawn.sets[other]), len(drawn.sets[node]))
        is_before = drawn.ranks[other] < drawn.ranks[node]
        return is_before and (drawn.most is None or drawn.classes[node] == REMOVED or lost <= drawn.most)

    kept: set[int] = set()
    for node in sorted(near, key=lambda one: drawn.ranks[one]):
        removers = {other for other in kept & near[node] if may_go(node, other)}
        if drawn.classes[node] == KEPT or (drawn.classes[node] != REMOVED and not removers):
            kept.add(node)
    found: dict[int, int | None] = {}
    for node in near.keys() - kept:
        offers = [other for other in kept & near[node] if may_go(node, other)]
        found[node] = min(offers, key=lambda one: (-resemblance(drawn, node, one), drawn.ranks[one]), default=None)
    return found


@given(graphs())
def test_what_is_kept_is_the_kernel_of_the_relation(drawn: Drawn) -> None:
    """Removed are the nodes with a kept one before them that may replace them; they name the one most alike."""
    assert choose(drawn) == define(drawn)


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_the_edges_changes_nothing(drawn: Drawn, random: Random) -> None:
    """The kernel of an acyclic relation is unique: edges in any order and direction give it."""
    edges = [edge if random.random() < 0.5 else (edge[1], edge[0]) for edge in drawn.edges]
    random.shuffle(edges)

    assert choose(drawn._replace(edges=edges)) == choose(drawn)
