"""Budgets of the miner, and shares of a component: all sets, a cover, or none, never more than the limit."""

from itertools import combinations

import numpy as np
import pytest

from nddup.mining.itemsets import cover_component, gather_component, mine_component, mine_share
from nddup.mining.neighbourhoods import bound_memory, make_lookup, visit_neighbourhood
from tests.mining.mining_problems import as_arrays, as_list, by_count, draw_problem, mine, perturbed


def test_budget_of_sets_turns_to_the_cover() -> None:
    """A family that exceeds its budget of sets gives a cover, far smaller and the same every time."""
    problem = by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 91)

    everything, first, second = mine(problem), mine(problem, max_sets=10), mine(problem, max_sets=10)

    assert everything.coverage == "all"
    assert first.coverage == "pairs"
    assert set(as_list(first)) < set(as_list(everything))
    assert as_list(first) == as_list(second)
    assert {pair for members, _ in as_list(first) for pair in combinations(members, 2)} == problem.edges


@pytest.mark.parametrize(("max_members", "max_nodes"), [(-20_000, None), (10**9, 500)])
def test_other_budgets_turn_to_the_cover(max_members: int, max_nodes: int | None) -> None:
    """Exceeding the budget of member rows or of work gives the same cover as exceeding that of sets."""
    problem = by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 85)

    tried = mine_component(*as_arrays(problem), max_sets=10**7, max_members=max_members, max_nodes=max_nodes)

    assert as_list(tried) == as_list(mine(problem, max_sets=10))


def test_budget_is_met_exactly() -> None:
    """If the budget allows exactly the sets there are, all are returned; if it allows one less, a cover."""
    problem = by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 92)
    n_sets = mine(problem).supports.size

    assert mine(problem, max_sets=n_sets - 4 * 60).coverage == "all"
    assert mine(problem, max_sets=n_sets - 4 * 60 - 1).coverage == "pairs"


def test_cover_past_its_limit_is_none() -> None:
    """A cover that exceeds its limits is dropped as a whole."""
    arrays = as_arrays(by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 88))
    cover = cover_component(*arrays)

    assert cover is not None
    n_sets, n_rows = cover.supports.size, cover.members.size
    assert cover_component(*arrays, max_sets=n_sets, max_members=n_rows) is not None
    assert cover_component(*arrays, max_sets=n_sets - 1) is None
    assert cover_component(*arrays, max_members=n_rows - 1) is None


@pytest.mark.parametrize(("max_sets", "max_members", "max_nodes"), [(-239, 10**9, None), (0, -23_999, None), (0, 0, 9)])
def test_past_ten_times_the_budget_there_are_no_sets(max_sets: int, max_members: int, max_nodes: int | None) -> None:
    """A cover that exceeds ten times the budget of sets, member rows or work is dropped; `coverage` says so."""
    arrays = as_arrays(by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 88))

    given_up = mine_component(*arrays, max_sets=max_sets, max_members=max_members, max_nodes=max_nodes)

    assert given_up.coverage == "documents"
    assert given_up.offsets.tolist() == [0]
    assert given_up.members.size == given_up.supports.size == 0


@pytest.mark.parametrize("seed", range(4))
def test_shares_of_any_partition_make_the_whole(seed: int) -> None:
    """Pivots assigned to tasks at random give all sets, each once, in any order within a task."""
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
    """A share within its budget gives all its sets; one that exceeds it gives None."""
    arrays = as_arrays(by_count(perturbed(np.random.default_rng(5), 60, 100, changed=0.03), 92))
    share = np.arange(0, 60, 2)
    whole = mine_share(*arrays, share)

    assert whole is not None
    assert mine_share(*arrays, share, max_sets=whole.supports.size, max_members=whole.members.size) is not None
    assert mine_share(*arrays, share, max_sets=whole.supports.size - 1) is None
    assert mine_share(*arrays, share, max_members=whole.members.size - 1) is None
    assert mine_share(*arrays, share, max_nodes=9) is None


def test_memory_bound_follows_neighbours_not_documents() -> None:
    """The bound of a star of 1,000 documents among 100,000 follows its neighbours, not the words they touch."""
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
    """A family of 500 documents, 100 slots kept with probability 0.97, pairs at 50, is covered by under 1,000 sets."""
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
        # Every pair of this family is an edge: a set is maximal if no other document has 50 of its joint features.
        addable = (kept & joint).sum(axis=1) >= 50
        assert set(np.flatnonzero(addable).tolist()) == set(members)
    assert together[a, b].all()
