"""Clusters around leaders where near-duplicates are given by a list: the guarantees, on random components."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged
from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import Budget, Problem, find_sets
from nddup.mining.pair_graph import keep_first

RULE = Threshold("overlap", 2, 1, is_count=True, size=8, by_text=True)


def draw_component(seed: int) -> Problem:
    """Draw sketches that share features, list some of the pairs that fit the rule, and derive leaders from the list."""
    random = np.random.default_rng(seed)
    m = int(random.integers(2, 14))
    rows = [np.unique(random.integers(0, 12, random.integers(3, 9))) for _ in range(m)]
    fits = [(a, b) for a, b in combinations(range(m), 2) if len(np.intersect1d(rows[a], rows[b])) >= 2]
    edges = np.array([pair for pair in fits if random.random() < 0.7], np.int32).reshape(-1, 2)
    ranks = random.permutation(m).astype(np.int32)
    leads = keep_first(edges, np.where(random.random(m) < 0.2, -1.0, 1.0)[edges.T], ranks).kept  # some always lead
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    sketches = Ragged(offsets, np.concatenate(rows).astype(np.uint64))
    return Problem(sketches, np.full(m, 2, np.int32), edges, ranks, leads, by_leaders=True)


@given(seed=st.integers(0, 2**32 - 1))
def test_sets_keep_the_promises_of_leaders(seed: int) -> None:
    """Sets have a leader, only listed pairs, and the support; they hold all listed documents; none is nested."""
    problem = draw_component(seed)
    listed = {tuple(edge) for edge in problem.edges.tolist()}
    rows = np.split(problem.sketches.values, problem.sketches.offsets[1:-1])

    found = find_sets(problem, threshold=RULE, mode="all", budget=Budget(1, 1))

    sets = [frozenset(members.tolist()) for members in np.split(found.members, found.offsets[1:-1])]
    sets = sets if len(found.supports) else []
    for members, support in zip(sets, found.supports.tolist(), strict=True):
        assert all(pair in listed for pair in combinations(sorted(members), 2))
        assert problem.leads[list(members)].any()
        assert support == len(set.intersection(*(set(rows[one].tolist()) for one in members))) >= 2
    assert {one for edge in listed for one in edge} == set().union(*sets)
    assert not any(one < other for one in sets for other in sets)
    assert len(sets) == len(set(sets))
    assert found.coverage == "documents"
