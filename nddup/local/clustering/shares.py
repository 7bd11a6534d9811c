"""Large components, mined in shares: each share has some of the component's nodes as pivots.

The shares and their budgets are those of `nddup.spark.clustering.shares`, so both engines find the same sets.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, take_rows
from nddup.local.clustering.graph import Graph
from nddup.local.clustering.problems import MiningRule, problem_of
from nddup.local.pairing.collapse import Nodes
from nddup.local.reading.workers import Workers
from nddup.mining.cluster_modes import Budget, Problem, find_sets
from nddup.mining.itemsets import COVER_SHARE, Itemsets, cover_component, mine_share
from nddup.mining.neighbourhoods import bound_memory


class _Share(NamedTuple):
    """A share of m nodes, in canonical order."""

    places: NDArray[np.int64]  # (m,), in the component
    sketches: Ragged
    bounds: NDArray[np.int32]
    edges: NDArray[np.int32]  # (e, 2), indices in the share, the lower first
    pivots: NDArray[np.int64]  # indices of the nodes that are its pivots


def mine_spread(graph: Graph, nodes: Nodes, ordinal: int, rule: MiningRule, workers: Workers) -> Itemsets:
    """Find the sets of one component that is cut into shares; the members are places in the component.

    They are all maximal sets; if a share passes its budget, covers; if one passes that budget too, sets around leaders.
    """
    threshold, mode, budget = rule
    problem = problem_of(graph, nodes, ordinal, threshold, by_leaders=True)
    numbers = graph.shares[graph.starts[ordinal] : graph.starts[ordinal + 1]]
    steps: list[Callable[[_Share], Itemsets | None]] = [partial(_mine, budget=budget), partial(_cover, budget=budget)]
    shares = list(_cut(problem, numbers))
    bounds = sorted(bound_memory(share.sketches.offsets, share.edges) for share in shares)[-workers.count :]
    workers.memory.require(sum(bounds), f"shares of a component of {len(numbers):,} distinct sketches")

    for find in steps[mode == "cover" :]:
        found = list(workers.work("mine", find, shares))
        whole = [sets for sets in found if sets is not None]
        if len(whole) == len(found):
            return _distinct(whole)
    return find_sets(problem, threshold=threshold, mode="all", budget=budget)


def _cut(problem: Problem, numbers: NDArray[np.int64]) -> Iterator[_Share]:
    """Yield each share: its pivots, all their neighbours, and every edge among these."""
    for number in np.unique(numbers):
        is_pivot = numbers == number
        touching = is_pivot[problem.edges].any(axis=1)
        is_in = is_pivot.copy()
        is_in[problem.edges[touching].ravel()] = True
        places = np.flatnonzero(is_in)
        index = np.cumsum(is_in) - 1
        edges = index[problem.edges[is_in[problem.edges].all(axis=1)]].astype(np.int32)
        yield _Share(
            places, take_rows(problem.sketches, places), problem.bounds[places], edges, np.flatnonzero(is_pivot[places])
        )


def _mine(share: _Share, *, budget: Budget) -> Itemsets | None:
    limits = budget.of(len(share.pivots))
    return _placed(share, mine_share(*_arrays(share), share.pivots, min_support=budget.min_support, **limits))


def _cover(share: _Share, *, budget: Budget) -> Itemsets | None:
    limits = budget.of(len(share.pivots), COVER_SHARE)
    found = cover_component(*_arrays(share), pivots=share.pivots, min_support=budget.min_support, **limits)
    return _placed(share, found)


def _arrays(share: _Share) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    return share.sketches.offsets, share.sketches.values.view(np.int64), share.bounds, share.edges


def _placed(share: _Share, found: Itemsets | None) -> Itemsets | None:
    """Turn members from indices in the share to places in the component."""
    return found and Itemsets(
        found.offsets, share.places[found.members].astype(np.int32), found.supports, found.coverage
    )


def _distinct(parts: list[Itemsets]) -> Itemsets:
    """Return the sets of all shares, each once: the covers of two shares may hold the same set."""
    seen: dict[bytes, tuple[NDArray[np.int32], np.int32]] = {}
    for part in parts:
        for members, support in zip(np.split(part.members, part.offsets[1:-1]), part.supports, strict=True):
            seen.setdefault(members.tobytes(), (members, support))
    rows = [row for row, _ in seen.values()]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    supports = np.array([support for _, support in seen.values()], np.int32)
    return Itemsets(offsets, np.concatenate([np.empty(0, np.int32), *rows]), supports, parts[0].coverage)
