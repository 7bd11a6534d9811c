"""The miner and the cover, against the definition of a cluster, for every kind of near-duplicate pair."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.mining.itemsets import cover_component, mine_component
from tests.mining.mining_problems import (
    Members,
    Problem,
    as_arrays,
    as_list,
    by_count,
    by_resemblance,
    by_share,
    draw_problem,
    mine,
    perturbed,
)
from tests.samples_by_night import examples, first

Found = set[tuple[Members, int]]


# The definition, and a plain search for problems with too many subsets to enumerate.


def common(problem: Problem, members: Iterable[int]) -> int:
    """Count the features common to all members."""
    return len(frozenset.intersection(*(problem.sketches[i] for i in members)))


def is_valid(problem: Problem, members: Iterable[int], min_support: int) -> bool:
    """Return whether all pairs are near-duplicates and the joint support reaches tau."""
    chosen = sorted(members)
    tau = max([min_support, *(problem.bounds[i] for i in chosen)])
    return all(pair in problem.edges for pair in combinations(chosen, 2)) and common(problem, chosen) >= tau


def is_maximal(problem: Problem, members: Iterable[int], min_support: int) -> bool:
    """Return whether a set is valid and no other sketch can be added."""
    chosen = set(members)
    others = set(range(len(problem.sketches))) - chosen
    return is_valid(problem, chosen, min_support) and not any(
        is_valid(problem, chosen | {other}, min_support) for other in others
    )


def define(problem: Problem, min_support: int) -> Found:
    """Return the valid subsets of two or more that no other valid subset contains."""
    m = len(problem.sketches)
    valid = [
        frozenset(chosen)
        for size in range(2, m + 1)
        for chosen in combinations(range(m), size)
        if is_valid(problem, chosen, min_support)
    ]
    return {
        (tuple(sorted(chosen)), common(problem, chosen))
        for chosen in valid
        if not any(chosen < other for other in valid)
    }


def search_plainly(problem: Problem, min_support: int) -> Found:
    """Search as Bron and Kerbosch do without pruning, testing every set by the definition."""
    found: Found = set()

    def search(chosen: tuple[int, ...], after: list[int], rejecters: list[int]) -> None:
        after = [i for i in after if is_valid(problem, (*chosen, i), min_support)]
        rejecters = [i for i in rejecters if is_valid(problem, (*chosen, i), min_support)]
        if not after and not rejecters and len(chosen) > 1:
            found.add((chosen, common(problem, chosen)))
        for at, i in enumerate(after):
            search((*chosen, i), after[at + 1 :], rejecters + after[:at])

    everyone = list(range(len(problem.sketches)))
    for i in everyone:
        search((i,), everyone[i + 1 :], everyone[:i])
    return found


id_sets = st.lists(st.frozensets(st.integers(0, 11), min_size=1, max_size=10), min_size=2, max_size=7)
thresholds = st.fractions(Fraction(2, 5), Fraction(1), max_denominator=20)
forms = st.one_of(
    st.builds(by_count, id_sets, st.integers(1, 8)),
    st.builds(by_share, id_sets, thresholds),
    st.builds(by_resemblance, id_sets, thresholds, st.integers(3, 10)),
)


@settings(max_examples=examples(100, 300), deadline=None)
@given(problem=forms, min_support=st.integers(0, 6))
def test_miner_meets_the_definition(problem: Problem, min_support: int) -> None:
    """The miner returns exactly the maximal sets of the definition, each once, in order, with their supports."""
    mined = as_list(mine(problem, min_support))

    assert mined == sorted(define(problem, min_support))


@pytest.mark.parametrize("seed", range(8))
def test_miner_meets_the_definition_on_dense_problems(seed: int) -> None:
    """The miner meets the definition on 400 problems per seed, with sketches more alike than hypothesis draws them."""
    rng = np.random.default_rng(seed)
    for _ in range(400):
        problem, min_support = draw_problem(rng), int(rng.integers(0, 5))

        assert as_list(mine(problem, min_support)) == sorted(define(problem, min_support))


@pytest.mark.parametrize("seed", range(8))
def test_cover_is_made_of_maximal_sets_and_holds_every_pair(seed: int) -> None:
    """Every set of a cover is maximal by definition, none repeats, and every pair that reaches tau is in one."""
    rng = np.random.default_rng(100 + seed)
    for _ in range(200):
        problem, min_support = draw_problem(rng), int(rng.integers(0, 5))
        cover = cover_component(*as_arrays(problem), min_support=min_support)

        assert cover is not None
        sets = as_list(cover)
        assert sets == sorted(set(sets))
        assert all(is_maximal(problem, members, min_support) for members, _ in sets)
        assert all(support == common(problem, members) for members, support in sets)
        covered = {pair for members, _ in sets for pair in combinations(members, 2)}
        assert covered == {pair for pair in problem.edges if is_valid(problem, pair, min_support)}


def test_resemblance_is_not_derived_from_common_features() -> None:
    """Three sketches share enough features for a set of three, but two of them are not near (s=8, t=0.7)."""
    sketches = [
        frozenset({0, 1, 2, 3, 6, 7, 8, 9}),
        frozenset({0, 2, 3, 6, 7, 8, 9, 10}),
        frozenset({0, 1, 2, 3, 5, 6, 7, 9}),
    ]
    problem = by_resemblance(sketches, Fraction(7, 10), 8)

    assert problem.edges == {(0, 1), (0, 2)}
    assert [members for members, _ in as_list(mine(problem))] == [(0, 1), (0, 2)]


def test_absorbing_asks_for_the_bound() -> None:
    """
    A sketch that has all common features but requires more of them is branched on, not absorbed.

    By hand: 3 requires four common features, so it cannot join {0, 1, 2}, which has three.
    """
    sketches = [
        frozenset(range(9)),
        frozenset({0, 1, 2, 3, 20}),
        frozenset({0, 1, 2, 4, 21}),
        frozenset(range(10)),
    ]
    problem = Problem(tuple(sketches), (3, 3, 3, 4), frozenset(combinations(range(4), 2)))

    assert [members for members, _ in as_list(mine(problem))] == [(0, 1, 2), (0, 1, 3), (0, 2, 3)]


@pytest.mark.parametrize("size", [63, 64, 65, 100, 128, 200, 257])
def test_bitmaps_of_any_width(size: int) -> None:
    """Sketches of about one 64-bit word, and of several words, give the sets of the plain search."""
    rng = np.random.default_rng(size)
    problem = by_share(perturbed(rng, 12, size, changed=0.05, spread=2), Fraction(22, 25))

    mined = as_list(mine(problem))

    assert len(mined) > 1
    assert mined == sorted(search_plainly(problem, 0))


@pytest.mark.parametrize(
    ("m", "count"), [pytest.param(63, 91, marks=pytest.mark.nightly), (64, 92), (65, 92), (130, 94)]
)
def test_neighbourhoods_of_any_width(m: int, count: int) -> None:
    """Families of about one 64-bit word, and of several words, give the sets of the plain search."""
    rng = np.random.default_rng(m)
    problem = by_count(perturbed(rng, m, 100, changed=0.05), count)

    mined = as_list(mine(problem))

    assert len(mined) > m
    assert mined == sorted(search_plainly(problem, 0))


@pytest.mark.parametrize("seed", first(1, range(6)))
def test_families_among_strangers(seed: int) -> None:
    """Three families scattered over 300 sketches, with many empty words in the graph, give the right sets."""
    rng = np.random.default_rng(seed)
    sketches = [frozenset(range(1000 * i, 1000 * i + 20)) for i in range(1, 300)]
    for family in range(3):
        for at, sketch in zip(
            rng.choice(299, 14, replace=False), perturbed(rng, 14, 20, changed=0.08, spread=1), strict=True
        ):
            sketches[at] = frozenset(i + 10**6 * (family + 1) for i in sketch)
    problem = [
        by_share(sketches, Fraction(3, 4)),
        by_resemblance(sketches, Fraction(7, 10), 20),
        by_count(sketches, 15),
    ][seed % 3]

    assert as_list(mine(problem)) == sorted(search_plainly(problem, 0))


def test_identical_demands_make_one_set() -> None:
    """A clique that shares all required features is one set, whatever its size."""
    sketches = [frozenset({*range(10), 100 + i}) for i in range(200)]
    problem = by_count(sketches, 10)

    assert as_list(mine(problem)) == [(tuple(range(200)), 10)]
    covered = mine_component(*as_arrays(problem), max_sets=1000, max_members=-79_900)
    assert covered.coverage == "pairs"
    assert as_list(covered) == [(tuple(range(200)), 10)]


@pytest.mark.parametrize("m", [0, 1, 3])
def test_no_pairs_no_sets(m: int) -> None:
    """A component without pairs, or without sketches, has no sets of two."""
    problem = by_count([frozenset({i}) for i in range(m)], 1)

    mined = mine(problem)

    assert as_list(mined) == []
    assert mined.offsets.tolist() == [0]
    assert [str(mined.members.dtype), str(mined.supports.dtype)] == ["int32", "int32"]


def test_two_sketches() -> None:
    """Two near-duplicates are one set, unless a higher support is required; no set has a single sketch."""
    problem = by_count([frozenset({1, 2, 3}), frozenset({2, 3, 4})], 2)

    assert as_list(mine(problem)) == [((0, 1), 2)]
    assert as_list(mine(problem, min_support=2)) == [((0, 1), 2)]
    assert as_list(mine(problem, min_support=3)) == []


def test_ids_are_names_only() -> None:
    """Negative ids, ascending as unsigned, give the same sets: only the equality of features matters."""
    problem = by_count([frozenset({0, 1, 2}), frozenset({1, 2, 3}), frozenset({2, 3, 4})], 2)
    offsets, features, bounds, edges = as_arrays(problem)
    renamed = np.array([7, 2**62, -9, -4, -1], dtype=np.int64)[features]

    mined = mine_component(offsets, renamed, bounds, edges[::-1], max_sets=10, max_members=10)

    assert as_list(mined) == as_list(mine(problem))


@pytest.mark.parametrize("edges", [[[1, 0]], [[0, 0]], [[0, 2]], [[-1, 1]]])
def test_refuses_what_is_no_pair(edges: list[list[int]]) -> None:
    """Pairs that are not two sketches of the component, the lower first, are refused."""
    with pytest.raises(ValueError, match="a pair is two indices from 0 to 1"):
        mine_component(
            np.array([0, 1, 2]),
            np.array([5, 5]),
            np.ones(2, np.int32),
            np.array(edges, np.int32),
            max_sets=1,
            max_members=1,
        )


def test_refuses_offsets_that_do_not_fit() -> None:
    """Offsets must be one more than the bounds, and end where the features end."""
    with pytest.raises(ValueError, match="2 bounds need 3 offsets, the last of them 2, got 2 ending in"):
        mine_component(
            np.array([0, 1]),
            np.array([5, 5]),
            np.ones(2, np.int32),
            np.zeros((0, 2), np.int32),
            max_sets=1,
            max_members=1,
        )
