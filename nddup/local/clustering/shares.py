"""Large components, mined in shares: each share has some of the component's nodes as pivots.

The shares and their budgets are those of `nddup.spark.clustering.shares`, so both engines find the same sets.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import take_rows
from nddup.local.clustering.graph import Graph
from nddup.local.clustering.problems import MiningRule, problem_of
from nddup.local.pairing.collapse import Nodes
from nddup.local.reading.workers import Workers
from nddup.mining.cluster_modes import Budget, Problem, Share, cover_part, find_sets, mine_part
from nddup.mining.itemsets import Itemsets
from nddup.mining.neighbourhoods import bound_memory


class Find(Protocol):
    """A miner of shares; it returns None for one that passes its budget."""

    def __call__(self, share: Share, *, budget: Budget) -> Itemsets | None: ...  # noqa: D102 - the class says it


class _Cut(NamedTuple):
    """A share, and the places of its nodes in the component."""

    places: NDArray[np.int64]
    share: Share


def mine_spread(graph: Graph, nodes: Nodes, ordinal: int, rule: MiningRule, workers: Workers) -> Itemsets:
    """Find the sets of one component that is cut into shares; the members are places in the component.

    They are all maximal sets; if a share passes its budget, covers; if one passes that budget too, sets around leaders.
    """
    threshold, mode, budget = rule
    problem = problem_of(graph, nodes, ordinal, threshold, by_leaders=True)
    numbers = graph.shares[graph.starts[ordinal] : graph.starts[ordinal + 1]]
    cuts = list(_cut(problem, numbers))
    bounds = sorted(bound_memory(cut.share.sketches.offsets, cut.share.edges) for cut in cuts)[-workers.count :]
    workers.memory.require(sum(bounds), f"shares of a component of {len(numbers):,} distinct sketches")

    steps: list[Find] = [mine_part, cover_part]
    for find in steps[mode == "cover" :]:
        found = list(workers.work("mine", partial(_find, find=find, budget=budget), cuts))
        whole = [sets for sets in found if sets is not None]
        if len(whole) == len(found):
            return _distinct(whole)
    return find_sets(problem, threshold=threshold, mode="all", budget=budget)


def _cut(problem: Problem, numbers: NDArray[np.int64]) -> Iterator[_Cut]:
    """Yield each share: its pivots, all their neighbours, and every edge among these."""
    for number in np.unique(numbers):
        is_pivot = numbers == number
        touching = is_pivot[problem.edges].any(axis=1)
        is_in = is_pivot.copy()
        is_in[problem.edges[touching].ravel()] = True
        places = np.flatnonzero(is_in)
        index = np.cumsum(is_in) - 1
        edges = index[problem.edges[is_in[problem.edges].all(axis=1)]].astype(np.int32)
        own = np.flatnonzero(is_pivot[places])
        yield _Cut(places, Share(take_rows(problem.sketches, places), problem.bounds[places], edges, own))


def _find(cut: _Cut, *, find: Find, budget: Budget) -> Itemsets | None:
    """Return the sets of a share, with the places of their members in the component."""
    found = find(cut.share, budget=budget)
    return found and Itemsets(found.offsets, cut.places[found.members].astype(np.int32), found.supports, found.coverage)


def _distinct(parts: list[Itemsets]) -> Itemsets:
    """Return the sets of all shares, each once: the covers of two shares may hold the same set."""
    seen: dict[bytes, tuple[NDArray[np.int32], np.int32]] = {}
    for part in parts:
        rows = (part.members[low:high] for low, high in pairwise(part.offsets.tolist()))  # a share may have none
        for members, support in zip(rows, part.supports, strict=True):
            seen.setdefault(members.tobytes(), (members, support))
    found = [members for members, _ in seen.values()]
    offsets = np.concatenate([[0], np.cumsum([len(members) for members in found])]).astype(np.int64)
    supports = np.array([support for _, support in seen.values()], np.int32)
    return Itemsets(offsets, np.concatenate([np.empty(0, np.int32), *found]), supports, parts[0].coverage)
