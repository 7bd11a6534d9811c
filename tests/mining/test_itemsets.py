"""The miner and the cover against the definition of a cluster, on every form of near-duplicate pair."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.mining.itemsets import Itemsets, cover_component, gather_component, mine_component, mine_share
from nddup.mining.neighbourhoods import bound_memory, make_lookup, visit_neighbourhood

Sketch = frozenset[int]
Members = tuple[int, ...]
Found = set[tuple[Members, int]]


@dataclass(frozen=True)
class Problem:
    """A component-like problem: sketches, alpha of each, near-duplicate pairs."""

    sketches: tuple[Sketch, ...]
    bounds: tuple[int, ...]
    edges: frozenset[tuple[int, int]]


# The three forms of a pair, from their definitions.


def by_count(sketches: Sequence[Sketch], k: int) -> Problem:
    """Near-duplicates share k features."""
    return relate(sketches, [k] * len(sketches), lambda a, b: len(a & b) >= k)


def least_overlap(size: int, share: Fraction) -> int:
    """Find the least o >= 1 with o / size >= share."""
    return next(o for o in range(1, size + 2) if Fraction(o, max(size, 1)) >= share)


def by_share(sketches: Sequence[Sketch], share: Fraction) -> Problem:
    """Near-duplicates share a part of the larger sketch."""
    bounds = [least_overlap(len(sketch), share) for sketch in sketches]
    return relate(sketches, bounds, lambda a, b: len(a & b) >= share * max(len(a), len(b), 1))


def resemblance(a: Sketch, b: Sketch, size: int) -> Fraction:
    """Estimate by MIN_s of the union, or compute exactly where both sketches are whole documents."""
    union = sorted(a | b)
    if len(a) == size or len(b) == size:
        union = union[:size]
    return Fraction(len(set(union) & a & b), max(len(union), 1))


def by_resemblance(sketches: Sequence[Sketch], threshold: Fraction, size: int) -> Problem:
    """Near-duplicates are min-s sketches of high resemblance."""
    smallest = [frozenset(sorted(sketch)[:size]) for sketch in sketches]
    bounds = [least_overlap(len(sketch), threshold) for sketch in smallest]
    return relate(smallest, bounds, lambda a, b: resemblance(a, b, size) >= threshold)


def relate(sketches: Sequence[Sketch], bounds: Iterable[int], is_pair: Callable[[Sketch, Sketch], bool]) -> Problem:
    """Make the problem whose pairs are those of which `is_pair` holds."""
    pairs = combinations(range(len(sketches)), 2)
    edges = frozenset((a, b) for a, b in pairs if is_pair(sketches[a], sketches[b]))
    return Problem(tuple(sketches), tuple(bounds), edges)


# The definition, and a slower reference for problems whose subsets are too many.


def common(problem: Problem, members: Iterable[int]) -> int:
    """Count the features common to all members."""
    return len(frozenset.intersection(*(problem.sketches[i] for i in members)))


def is_valid(problem: Problem, members: Iterable[int], min_support: int) -> bool:
    """Tell whether all pairs are near-duplicates and the joint support meets tau."""
    chosen = sorted(members)
    tau = max([min_support, *(problem.bounds[i] for i in chosen)])
    return all(pair in problem.edges for pair in combinations(chosen, 2)) and common(problem, chosen) >= tau


def is_maximal(problem: Problem, members: Iterable[int], min_support: int) -> bool:
    """Tell whether a set is valid and none of all other sketches can be added."""
    chosen = set(members)
    others = set(range(len(problem.sketches))) - chosen
    return is_valid(problem, chosen, min_support) and not any(
        is_valid(problem, chosen | {other}, min_support) for other in others
    )


def define(problem: Problem, min_support: int) -> Found:
    """Enumerate all subsets, and keep the valid ones of two or more that no other valid one contains."""
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
    """Search as Bron and Kerbosch do, without any cut, testing all by the definition."""
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


# Between problems and arrays.


def as_arrays(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lay a problem out as the arrays of `mine_component`."""
    sizes = [len(sketch) for sketch in problem.sketches]
    return (
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.array([i for sketch in problem.sketches for i in sorted(sketch)], dtype=np.int64),
        np.array(problem.bounds, dtype=np.int32),
        np.array(sorted(problem.edges), dtype=np.int32).reshape(-1, 2),
    )


def as_list(itemsets: Itemsets) -> list[tuple[Members, int]]:
    """Read the ragged array back, in its order."""
    rows = np.split(itemsets.members, itemsets.offsets[1:-1]) if itemsets.supports.size else []
    return [(tuple(row.tolist()), support) for row, support in zip(rows, itemsets.supports.tolist(), strict=True)]


def mine(problem: Problem, min_support: int = 0, max_sets: int = 10**6) -> Itemsets:
    """Mine with a budget that small problems do not reach."""
    return mine_component(*as_arrays(problem), max_sets=max_sets, max_members=10**8, min_support=min_support)


def perturbed(rng: np.random.Generator, m: int, size: int, *, changed: float, spread: int = 0) -> list[Sketch]:
    """Draw copies of one original whose features are each replaced with probability `changed`."""
    fresh = iter(rng.permutation(10 * m * (size + spread)) + size + spread)
    sketches = []
    for _ in range(m):
        original = rng.permutation(size + spread)[: size + int(rng.integers(-spread, spread + 1))]
        sketches.append(frozenset(int(i) if rng.random() >= changed else int(next(fresh)) for i in original))
    return sketches


def draw_problem(rng: np.random.Generator) -> Problem:
    """Draw a small problem of any form whose pairs and joint supports are often just met or just missed."""
    m, universe = int(rng.integers(2, 9)), int(rng.integers(4, 14))
    density = rng.uniform(0.4, 0.95)
    sketches = [frozenset(np.flatnonzero(rng.random(universe) < density).tolist()) for _ in range(m)]
    threshold = Fraction(int(rng.integers(4, 19)), 20)
    form = rng.integers(3)
    if form == 0:
        return by_count(sketches, int(rng.integers(1, universe)))
    if form == 1:
        return by_share(sketches, threshold)
    return by_resemblance(sketches, threshold, int(rng.integers(3, universe + 1)))


id_sets = st.lists(st.frozensets(st.integers(0, 11), min_size=1, max_size=10), min_size=2, max_size=7)
thresholds = st.fractions(Fraction(2, 5), Fraction(1), max_denominator=20)
forms = st.one_of(
    st.builds(by_count, id_sets, st.integers(1, 8)),
    st.builds(by_share, id_sets, thresholds),
    st.builds(by_resemblance, id_sets, thresholds, st.integers(3, 10)),
)


@settings(max_examples=300, deadline=None)
@given(problem=forms, min_support=st.integers(0, 6))
def test_miner_meets_the_definition(problem: Problem, min_support: int) -> None:
    """Exactly the maximal sets of the definition come out, once each, in order, with their supports."""
    mined = as_list(mine(problem, min_support))

    assert mined == sorted(define(problem, min_support))


@pytest.mark.parametrize("seed", range(8))
def test_miner_meets_the_definition_on_dense_problems(seed: int) -> None:
    """The same on 400 problems a seed whose sketches resemble each other more than hypothesis draws them."""
    rng = np.random.default_rng(seed)
    for _ in range(400):
        problem, min_support = draw_problem(rng), int(rng.integers(0, 5))

        assert as_list(mine(problem, min_support)) == sorted(define(problem, min_support))


@pytest.mark.parametrize("seed", range(8))
def test_cover_is_made_of_maximal_sets_and_holds_every_pair(seed: int) -> None:
    """Every set of a cover is maximal by definition, none repeats, every pair that meets tau lies in one."""
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
    """Three sketches share enough for a set of three, but two of them are no pair (s=8, t=0.7)."""
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
    A sketch that holds all common features but demands more of them is branched on, not absorbed.

    By hand: 3 demands four common features, so it joins neither {0, 1, 2} nor any two of them.
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
    """Sketches around the width of a word, and of several words, give what the plain search gives."""
    rng = np.random.default_rng(size)
    problem = by_share(perturbed(rng, 12, size, changed=0.05, spread=2), Fraction(22, 25))

    mined = as_list(mine(problem))

    assert len(mined) > 1
    assert mined == sorted(search_plainly(problem, 0))


@pytest.mark.parametrize(("m", "count"), [(63, 91), (64, 92), (65, 92), (130, 94)])
def test_neighbourhoods_of_any_width(m: int, count: int) -> None:
    """Families around the width of a word, and of several words, give what the plain search gives."""
    rng = np.random.default_rng(m)
    problem = by_count(perturbed(rng, m, 100, changed=0.05), count)

    mined = as_list(mine(problem))

    assert len(mined) > m
    assert mined == sorted(search_plainly(problem, 0))


@pytest.mark.parametrize("seed", range(6))
def test_families_among_strangers(seed: int) -> None:
    """Three families whose members are scattered over 300 sketches; many words of the graph are empty."""
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


def test_budget_of_sets_turns_to_the_cover() -> None:
    """A family past its budget of sets gives its cover, far smaller and the same every time."""
    problem = by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 91)

    everything, first, second = mine(problem), mine(problem, max_sets=10), mine(problem, max_sets=10)

    assert everything.coverage == "all"
    assert first.coverage == "pairs"
    assert set(as_list(first)) < set(as_list(everything))
    assert as_list(first) == as_list(second)
    assert {pair for members, _ in as_list(first) for pair in combinations(members, 2)} == problem.edges


@pytest.mark.parametrize(("max_members", "max_nodes"), [(-20_000, None), (10**9, 500)])
def test_other_budgets_turn_to_the_cover(max_members: int, max_nodes: int | None) -> None:
    """Too many member rows, or too much work, give the same cover as too many sets."""
    problem = by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 85)

    tried = mine_component(*as_arrays(problem), max_sets=10**7, max_members=max_members, max_nodes=max_nodes)

    assert as_list(tried) == as_list(mine(problem, max_sets=10))


def test_budget_is_met_exactly() -> None:
    """As many sets as the budget allows are given in full; one less turns to the cover."""
    problem = by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 90)
    n_sets = mine(problem).supports.size

    assert mine(problem, max_sets=n_sets - 4 * 60).coverage == "all"
    assert mine(problem, max_sets=n_sets - 4 * 60 - 1).coverage == "pairs"


def test_cover_past_its_limit_is_none() -> None:
    """A cover that would pass its limits is dropped whole."""
    arrays = as_arrays(by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 88))
    cover = cover_component(*arrays)

    assert cover is not None
    n_sets, n_rows = cover.supports.size, cover.members.size
    assert cover_component(*arrays, max_sets=n_sets, max_members=n_rows) is not None
    assert cover_component(*arrays, max_sets=n_sets - 1) is None
    assert cover_component(*arrays, max_members=n_rows - 1) is None


@pytest.mark.parametrize(("max_sets", "max_members", "max_nodes"), [(-239, 10**9, None), (0, -23_999, None), (0, 0, 9)])
def test_past_ten_times_the_budget_there_are_no_sets(max_sets: int, max_members: int, max_nodes: int | None) -> None:
    """A cover of more than ten times the sets, the member rows or the work is dropped whole, and that is said."""
    arrays = as_arrays(by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 88))

    given_up = mine_component(*arrays, max_sets=max_sets, max_members=max_members, max_nodes=max_nodes)

    assert given_up.coverage == "documents"
    assert given_up.offsets.tolist() == [0]
    assert given_up.members.size == given_up.supports.size == 0


@pytest.mark.parametrize("seed", range(4))
def test_shares_of_any_partition_make_the_whole(seed: int) -> None:
    """Pivots dealt to tasks at random give all sets, each once, whatever the order within a task."""
    rng = np.random.default_rng(200 + seed)
    for _ in range(30):
        problem, min_support = draw_problem(rng), int(rng.integers(0, 5))
        owners = rng.integers(0, 3, len(problem.sketches))
        shares = [rng.permutation(np.flatnonzero(owners == task)) for task in range(3)]
        mined = [mine_share(*as_arrays(problem), share, min_support=min_support) for share in shares]

        found = [row for itemsets in mined if itemsets is not None for row in as_list(itemsets)]
        assert len(mined) == 3
        assert sorted(found) == as_list(mine(problem, min_support))


def test_share_past_its_budget_is_none() -> None:
    """A share is given in full or not at all."""
    arrays = as_arrays(by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 90))
    share = np.arange(0, 60, 2)
    whole = mine_share(*arrays, share)

    assert whole is not None
    assert mine_share(*arrays, share, max_sets=whole.supports.size, max_members=whole.members.size) is not None
    assert mine_share(*arrays, share, max_sets=whole.supports.size - 1) is None
    assert mine_share(*arrays, share, max_members=whole.members.size - 1) is None
    assert mine_share(*arrays, share, max_nodes=9) is None


def test_memory_bound_follows_neighbours_not_documents() -> None:
    """A star of 1,000 documents among 100,000 is bounded by its neighbours, not by the words they touch."""
    offsets = np.arange(100_001) * 4
    scattered = np.stack([np.zeros(1000, np.int64), np.arange(1, 1001) * 99], axis=1).astype(np.int32)
    dense = np.stack([np.zeros(1000, np.int64), np.arange(1, 1001)], axis=1).astype(np.int32)

    assert bound_memory(offsets, scattered) < 1.2 * bound_memory(offsets, dense) + 10**7
    assert bound_memory(np.zeros(1, np.int64), np.empty((0, 2), np.int32)) == 0


@pytest.mark.parametrize(("m", "among"), [(70, 70), (70, 900), (3, 900)])
def test_neighbourhoods_fit_their_bound(m: int, among: int) -> None:
    """A neighbourhood of n documents has at most 4n + 63 slots, scattered or not, and its arrays fit the bound."""
    rng = np.random.default_rng(m)
    sketches = [frozenset({10**7 + i}) for i in range(among)]
    for at, sketch in zip(rng.choice(among, m, replace=False), perturbed(rng, m, 100, changed=0.05), strict=True):
        sketches[at] = sketch
    offsets, features, bounds, edges = as_arrays(by_count(sketches, 60))
    component = gather_component(offsets, features, bounds, edges)
    degrees = np.bincount(edges.ravel(), minlength=among)

    for pivot in np.flatnonzero(degrees):
        place = visit_neighbourhood(component, int(pivot), make_lookup(component))
        held = sum(array.nbytes for array in place if isinstance(array, np.ndarray))
        assert place.documents.size <= 4 * degrees[pivot] + 63
        assert held < bound_memory(offsets, edges)


def test_large_family_is_covered_by_few_sets() -> None:
    """500 documents, 100 slots kept with probability 0.97, pairs at 50: under 1,000 sets hold all pairs."""
    rng = np.random.default_rng(0)
    kept = rng.random((500, 100)) < 0.97
    features = np.where(kept, np.arange(100), 1000 + np.arange(50_000).reshape(500, 100)).astype(np.int64)
    a, b = np.nonzero(np.triu(kept.astype(np.int32) @ kept.T >= 50, 1))
    edges = np.stack([a, b], axis=1).astype(np.int32)

    cover = mine_component(
        np.arange(501) * 100,
        features.ravel(),
        np.full(500, 50, np.int32),
        edges,
        max_sets=1000,
        max_members=100_000,
    )

    assert cover.coverage == "pairs"
    assert cover.supports.size < 1000
    together = np.zeros((500, 500), dtype=bool)
    for members, support in as_list(cover):
        together[np.ix_(members, members)] = True
        joint = kept[list(members)].all(axis=0)
        assert support == joint.sum()
        # Every pair of this family is an edge: maximal means that nothing else keeps 50 of these features.
        addable = (kept & joint).sum(axis=1) >= 50
        assert set(np.flatnonzero(addable).tolist()) == set(members)
    assert together[a, b].all()


def test_identical_demands_make_one_set() -> None:
    """A clique that shares all it needs is accepted whole, whatever its size."""
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
    """Two near-duplicates are one set, unless a higher support is asked for: singles are never given."""
    problem = by_count([frozenset({1, 2, 3}), frozenset({2, 3, 4})], 2)

    assert as_list(mine(problem)) == [((0, 1), 2)]
    assert as_list(mine(problem, min_support=2)) == [((0, 1), 2)]
    assert as_list(mine(problem, min_support=3)) == []


def test_ids_are_names_only() -> None:
    """Negative ids, ascending as unsigned, give the same sets: only equality of features counts."""
    problem = by_count([frozenset({0, 1, 2}), frozenset({1, 2, 3}), frozenset({2, 3, 4})], 2)
    offsets, features, bounds, edges = as_arrays(problem)
    renamed = np.array([7, 2**62, -9, -4, -1], dtype=np.int64)[features]

    mined = mine_component(offsets, renamed, bounds, edges[::-1], max_sets=10, max_members=10)

    assert as_list(mined) == as_list(mine(problem))


@pytest.mark.parametrize("edges", [[[1, 0]], [[0, 0]], [[0, 2]], [[-1, 1]]])
def test_refuses_what_is_no_pair(edges: list[list[int]]) -> None:
    """A pair names two sketches of the component, the lower first."""
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
    """Offsets are one more than bounds and end where the features end."""
    with pytest.raises(ValueError, match="2 bounds need 3 offsets, the last of them 2, got 2 ending in"):
        mine_component(
            np.array([0, 1]),
            np.array([5, 5]),
            np.ones(2, np.int32),
            np.zeros((0, 2), np.int32),
            max_sets=1,
            max_members=1,
        )
