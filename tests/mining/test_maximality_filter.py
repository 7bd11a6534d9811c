"""From the frequent sets of a component to its clusters, against the definition; budgets; MLlib's fraction."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.mining.itemsets import fits_budget, keep_maximal
from nddup.spark.clustering.mine_components import support_fraction

Sketch = frozenset[int]


def least_overlap(size: int, share: Fraction) -> int:
    """Return the least o >= 1 with o / size >= share."""
    return next(o for o in range(1, size + 2) if Fraction(o, max(size, 1)) >= share)


def joint(sketches: Sequence[Sketch], members: Iterable[int]) -> int:
    return len(frozenset.intersection(*(sketches[i] for i in members)))


def mask_of(members: Iterable[int]) -> int:
    return sum(1 << member for member in members)


def define(sketches: Sequence[Sketch], bounds: Sequence[int], edges: set[tuple[int, int]]) -> set[tuple[int, ...]]:
    """Return the sets of two or more that meet both conditions and are in no other such set."""
    subsets = [chosen for size in range(2, len(sketches) + 1) for chosen in combinations(range(len(sketches)), size)]
    valid = [
        chosen
        for chosen in subsets
        if all(pair in edges for pair in combinations(chosen, 2))
        and joint(sketches, chosen) >= max(bounds[i] for i in chosen)
    ]
    return {chosen for chosen in valid if not any(set(chosen) < set(other) for other in valid)}


def keep(sketches: Sequence[Sketch], bounds: Sequence[int], edges: set[tuple[int, int]]) -> set[tuple[int, ...]]:
    """List all sets that are frequent at the lowest bound, as FP-Growth does, and return those `keep_maximal` keeps."""
    frequent = [
        chosen
        for size in range(2, len(sketches) + 1)
        for chosen in combinations(range(len(sketches)), size)
        if joint(sketches, chosen) >= min(bounds)
    ]
    neighbours = np.zeros(len(sketches), np.int64)
    for a, b in edges:
        neighbours[a] |= 1 << b
        neighbours[b] |= 1 << a
    is_kept = keep_maximal(
        np.array([mask_of(chosen) for chosen in frequent], np.int64),
        np.array([joint(sketches, chosen) for chosen in frequent], np.int32),
        np.array(bounds, np.int32),
        neighbours,
    )
    return {chosen for chosen, stays in zip(frequent, is_kept, strict=True) if stays}


components = st.lists(st.frozensets(st.integers(0, 9), min_size=1), min_size=2, max_size=6, unique=True)


@given(components, st.integers(1, 6))
def test_with_a_count_gives_the_maximal_frequent_sets(sketches: list[Sketch], k: int) -> None:
    """With one count for all, the clusters are the papers' maximal k-frequent sets."""
    edges = {(a, b) for a, b in combinations(range(len(sketches)), 2) if len(sketches[a] & sketches[b]) >= k}
    bounds = [k] * len(sketches)

    assert keep(sketches, bounds, edges) == define(sketches, bounds, edges)


@given(components, st.sampled_from(["0.3", "0.5", "0.55", "0.7", "1"]), st.data())
def test_with_shares_gives_the_sets_of_the_definition(sketches: list[Sketch], text: str, data: st.DataObject) -> None:
    """With bounds by size, and any subset of the possible pairs near, the clusters are those of the definition."""
    bounds = [least_overlap(len(sketch), Fraction(text)) for sketch in sketches]
    possible = [
        (a, b)
        for a, b in combinations(range(len(sketches)), 2)
        if len(sketches[a] & sketches[b]) >= max(bounds[a], bounds[b])
    ]
    edges = set(data.draw(st.lists(st.sampled_from(possible), unique=True))) if possible else set()

    assert keep(sketches, bounds, edges) == define(sketches, bounds, edges)


def test_the_conditions_come_before_the_maxima() -> None:
    """
    The set of all three is a maximal frequent set but not a cluster: 1 and 2 are not near-duplicates.

    Taking maxima first would keep only {0,1,2}, which the conditions then drop: nothing would be left.
    """
    sketches = [
        frozenset(row) for row in ({0, 1, 2, 3, 6, 7, 8, 9}, {0, 2, 3, 6, 7, 8, 9, 10}, {0, 1, 2, 3, 5, 6, 7, 9})
    ]
    edges, bounds = {(0, 1), (0, 2)}, [6, 6, 6]

    assert joint(sketches, (0, 1, 2)) == 6
    assert keep(sketches, bounds, edges) == {(0, 1), (0, 2)}


def test_a_short_document_does_not_lower_the_bound_of_a_long_one() -> None:
    """A set must reach the highest bound of its members, though the list was made with the lowest."""
    sketches = [frozenset(range(10)), frozenset(range(2, 12)), frozenset(range(4, 10))]
    edges, bounds = {(0, 1), (0, 2), (1, 2)}, [8, 8, 5]

    assert keep(sketches, bounds, edges) == {(0, 1)}


def test_no_frequent_set_gives_no_cluster() -> None:
    """An empty list of sets gives an empty choice."""
    nothing = np.empty(0, np.int64)

    is_kept = keep_maximal(nothing, np.empty(0, np.int32), np.array([1, 1], np.int32), np.array([2, 1], np.int64))

    assert is_kept.tolist() == []


@pytest.mark.parametrize("nodes", range(1, 5))
def test_the_middle_layer_is_the_largest_antichain(nodes: int) -> None:
    """No family of sets in which none contains another has more than C(m, m/2) sets, as Sperner proved."""
    subsets = range(1 << nodes)
    inside = {(a, b) for a in subsets for b in subsets if a != b and a & b == a}
    largest = [0]

    def extend(family: list[int], rest: list[int]) -> None:
        largest[0] = max(largest[0], len(family))
        for at, new in enumerate(rest):
            left = [x for x in rest[at + 1 :] if (x, new) not in inside and (new, x) not in inside]
            if len(family) + 1 + len(left) > largest[0]:
                extend([*family, new], left)

    extend([], list(subsets))

    assert largest[0] == comb(nodes, nodes // 2)


@given(st.integers(2, 23), st.integers(1, 10**6), st.integers(1, 10**7))
def test_what_fits_the_budget_cannot_pass_it(nodes: int, max_sets: int, max_members: int) -> None:
    """A component fits iff C(m, m/2) sets of m members each do; then every layer of subsets fits too."""
    most_sets, most_members = max_sets + 4 * nodes, max_members + 400 * nodes
    widest = comb(nodes, nodes // 2)

    fits = fits_budget(nodes, max_sets=max_sets, max_members=max_members)

    assert fits == (widest <= most_sets and widest * nodes <= most_members)
    if fits:
        assert all(comb(nodes, k) <= most_sets and k * comb(nodes, k) <= most_members for k in range(nodes + 1))


def test_the_budget_of_eight_documents_is_met_exactly() -> None:
    """Eight documents have at most 70 sets; the budget allows 32 in addition to `max_sets`."""
    assert fits_budget(8, max_sets=38, max_members=1)
    assert not fits_budget(8, max_sets=37, max_members=1)
    assert fits_budget(12, max_sets=924, max_members=12 * 924 - 12 * 400)
    assert not fits_budget(12, max_sets=924, max_members=12 * 924 - 12 * 400 - 1)


def test_the_fraction_gives_back_every_small_count() -> None:
    """The fraction, multiplied and rounded up as MLlib does, gives the count for all k <= n < 500."""
    wrong = [(k, n) for n in range(1, 500) for k in range(1, n + 1) if math.ceil(support_fraction(k, n) * n) != k]

    assert wrong == []


@given(st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))))
def test_the_fraction_gives_back_large_counts(case: tuple[int, int]) -> None:
    """The fraction gives the count for up to a thousand million transactions."""
    k, n = case

    assert math.ceil(support_fraction(k, n) * n) == k


def test_the_plain_fraction_would_lose_sets() -> None:
    """The plain fraction k / n gives k + 1 for 7 of 25, which is why half a transaction is subtracted."""
    assert math.ceil(7 / 25 * 25) == 8


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_the_fraction_stays_one(k: int, n: int) -> None:
    """The fraction of a count above the number of transactions is capped, because MLlib refuses more than 1."""
    assert 0 < support_fraction(k, n) <= 1
