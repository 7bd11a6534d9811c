"""What is made of one component of the pair graph, by `clusters.mode`.

all          its maximal sets; past the budget a cover; past ten times that, or where it was led, leaders
cover        maximal sets that hold every pair, few of them
partition    each kept sketch with those that are duplicates of it; disjoint
components   the component as it is: near-duplicates of near-duplicates
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nddup.algorithms.itemsets import COVER_SHARE, Itemsets, cover_component, mine_component
from nddup.algorithms.leaders import follow_leaders
from nddup.algorithms.overlap import Ragged
from nddup.algorithms.thresholds import Threshold

MODES = ("all", "cover", "partition", "components")


@dataclass(frozen=True)
class Problem:
    """One component of m distinct sketches, in canonical order.

    Attributes:
        sketches: m rows of ascending ids, uint64.
        bounds: (m,), alpha of each.
        edges: (e, 2), int32, the near-duplicate pairs, the lower index first.
        ranks: (m,), their places in the order of the keep policy.
        leaders: (m,), the kept near-duplicate of each, itself where it is kept.
        is_led: its pairs are those with a kept end, not all.
    """

    sketches: Ragged
    bounds: NDArray[np.int32]
    edges: NDArray[np.int32]
    ranks: NDArray[np.int32]
    leaders: NDArray[np.int32]
    is_led: bool


def find_sets(problem: Problem, *, threshold: Threshold, mode: str, max_sets: int, max_members: int) -> Itemsets:
    """
    Find the sets of a component.

    Args:
        problem: the component.
        threshold: when two sketches are near-duplicates.
        mode: one of MODES.
        max_sets: budget, as of `mine_component`; like the next.
        max_members: as above.

    Returns:
        The sets. `coverage` is `all`, `pairs` or `documents` for maximal sets, covers and leaders, else the mode.
        In `partition` a kept sketch without duplicates is a set of one: it may stand for several documents.

    Example:
        A chain of three, its middle first in the policy's order.

        >>> ids, offsets = np.array([1, 2, 2, 3, 3, 4], np.uint64), np.array([0, 2, 4, 6])
        >>> edges, ranks, leaders = np.array([[0, 1], [1, 2]], np.int32), np.array([1, 0, 2]), np.array([1, 1, 1])
        >>> chain = Problem(Ragged(offsets, ids), np.ones(3, np.int32), edges, ranks, leaders, False)
        >>> by_count = Threshold("overlap", 1, 1, is_count=True, size=4)
        >>> for mode in MODES:
        ...     sets = find_sets(chain, threshold=by_count, mode=mode, max_sets=100, max_members=1000)
        ...     print(sets.coverage, np.split(sets.members, sets.offsets[1:-1]), sets.supports)
        all [array([0, 1], dtype=int32), array([1, 2], dtype=int32)] [1 1]
        pairs [array([0, 1], dtype=int32), array([1, 2], dtype=int32)] [1 1]
        partition [array([0, 1, 2], dtype=int32)] [0]
        components [array([0, 1, 2], dtype=int32)] [0]
    """
    if mode == "components":
        return _groups(problem.sketches, np.zeros(len(problem.bounds), np.int32), mode)
    if mode == "partition":
        return _groups(problem.sketches, problem.leaders, mode)
    found = None if problem.is_led else _list_maximal(problem, mode, max_sets, max_members)
    if found is None:
        by_policy = np.argsort(problem.ranks).astype(np.int64)
        found = follow_leaders(problem.sketches, problem.bounds, by_policy, threshold).itemsets
    return found


def _list_maximal(problem: Problem, mode: str, max_sets: int, max_members: int) -> Itemsets | None:
    """All maximal sets, or a cover; None where a cover would pass ten times the budget."""
    arrays = (problem.sketches.offsets, problem.sketches.values.view(np.int64), problem.bounds, problem.edges)
    if mode == "cover":
        m = len(problem.bounds)
        sets, members = COVER_SHARE * (max_sets + 4 * m), COVER_SHARE * (max_members + 400 * m)
        return cover_component(*arrays, max_sets=sets, max_members=members)
    found = mine_component(*arrays, max_sets=max_sets, max_members=max_members)
    return None if found.coverage == "documents" else found


def _groups(sketches: Ragged, labels: NDArray[np.int32], mode: str) -> Itemsets:
    """The sets of equal labels, in order of their first members, with the features that all members have in common."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.append(True, labels[order][1:] != labels[order][:-1]))
    sets = sorted((group.tolist() for group in np.split(order, starts[1:])), key=lambda group: group[0])
    supports = [_joint_support(sketches, group) for group in sets]
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in sets])]).astype(np.int64)
    members = np.concatenate([np.array(group, np.int32) for group in sets])
    return Itemsets(offsets, members, np.array(supports, np.int32), mode)


def _joint_support(sketches: Ragged, group: list[int]) -> int:
    """The features common to all of a group: those that occur as often as it has members."""
    ids = [sketches.values[sketches.offsets[row] : sketches.offsets[row + 1]] for row in group]
    _, counts = np.unique(np.concatenate(ids), return_counts=True)
    return int(np.count_nonzero(counts == len(group)))
