"""The sets made of one component of the pair graph, by `clusters.mode` (`modes`).

all          its maximal sets; past the budget a cover; past ten times that, or with too many pairs, sets around leaders
cover        a few maximal sets that hold every pair
components   the whole component: near-duplicates of near-duplicates

The clusters of `partition` follow from the keep-list (`nddup.stages.names`).

A cluster is a set of documents, and a sketch may stand for several. Where a least support leaves a sketch in no set of
two, the sketch alone is a set: its documents are a cluster if there are two of them. The step that turns sketches into
documents drops the sets of one document.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, Self, TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import lists_of
from nddup.ground.kernels import compiled
from nddup.matching.threshold import Threshold
from nddup.mining.itemsets import COVER_SHARE, Itemsets, cover_component, mine_component, mine_share
from nddup.mining.leader_clusters import Known, count_shared, follow_leaders
from nddup.tables import SETS

MEMBERS_PER_BATCH: Final = 1_000_000
"""Members of sets that are gathered before a batch is sent: 4 MB."""

VALUES_PER_BATCH: Final = 1 << 26
"""Maximum number of values of a list column in one batch; more are cut into several batches."""


class LimitArguments(TypedDict):
    """Exact limits of one search, as keyword arguments of `itemsets`."""

    max_sets: int
    max_members: int
    max_nodes: int


class Budget(NamedTuple):
    """The base budget of one component, to which each of its sketches adds, and the least support of its sets.

    Attributes:
        max_sets: sets; 4 more for each sketch.
        max_members: member rows; 400 more for each sketch.
        max_nodes: work in search nodes, as `mine_component` counts it; 100 more for each sketch.
        min_support: least number of features common to a set, where it is above the threshold's own; 0: none.
    """

    max_sets: int
    max_members: int
    max_nodes: int = 2_000_000
    min_support: int = 0

    def of(self, sketches: int, times: int = 1) -> LimitArguments:
        """Return the limits of a component of `sketches` sketches, multiplied by `times`."""
        return {
            "max_sets": times * (self.max_sets + 4 * sketches),
            "max_members": times * (self.max_members + 400 * sketches),
            "max_nodes": times * (self.max_nodes + 100 * sketches),
        }


@dataclass(frozen=True)
class Problem:
    """One component of m distinct sketches, in canonical order.

    Attributes:
        sketches: m rows of ascending ids, uint64.
        bounds: (m,), alpha of each.
        edges: (e, 2), int32, the near-duplicate pairs, the lower index first.
        ranks: (m,), the place of each in the order of the keep policy.
        leads: (m,), whether each leads: no leader before it is near, or it is forced to be kept.
        by_leaders: whether `edges` holds not all pairs, but those with an end that leads.
    """

    sketches: Ragged
    bounds: NDArray[np.int32]
    edges: NDArray[np.int32]
    ranks: NDArray[np.int32]
    leads: NDArray[np.bool_]
    by_leaders: bool


@dataclass(frozen=True)
class Problems:
    """The c components of a task: m nodes by (component, position), e edges by component.

    Attributes:
        ordinals: (c,), the number of each component; `by_leaders` likewise.
        starts: (c + 1,), where its nodes begin; `edge_starts` its edges.
        rows: (m,), the row of each node in `sketches`; `bounds`, `ranks` and `leads` are as of `Problem`.
        edges: (e, 2), positions in the component.
    """

    ordinals: NDArray[np.int64]
    starts: NDArray[np.int64]
    edge_starts: NDArray[np.int64]
    by_leaders: NDArray[np.bool_]
    sketches: Ragged
    rows: NDArray[np.int64]
    bounds: NDArray[np.int32]
    ranks: NDArray[np.int32]
    leads: NDArray[np.bool_]
    edges: NDArray[np.int32]

    def component(self, index: int) -> Problem:
        """Return one component."""
        nodes, edges = (slice(*starts[index : index + 2].tolist()) for starts in (self.starts, self.edge_starts))
        of_nodes = self.bounds[nodes], self.edges[edges], self.ranks[nodes], self.leads[nodes]
        return Problem(take_rows(self.sketches, self.rows[nodes]), *of_nodes, bool(self.by_leaders[index]))

    def mine(self, places: NDArray[np.int64], rule: "MiningRule") -> Iterator[pa.RecordBatch]:
        """Yield SETS of some components: `find_sets` of each."""
        itemsets = ((one, find_sets(self.component(one), **rule._asdict())) for one in places.tolist())
        return list_sets((int(self.ordinals[one]), sets) for one, sets in itemsets)


@dataclass(frozen=True)
class Share:
    """A part of a component: m distinct sketches, in canonical order.

    Attributes:
        sketches: m rows of ascending ids, uint64.
        bounds: (m,), alpha of each.
        edges: (e, 2), int32, the near-duplicate pairs among them, the lower index first; all those of the pivots.
        pivots: the sketches whose sets the share finds, those with such a first member.
    """

    sketches: Ragged
    bounds: NDArray[np.int32]
    edges: NDArray[np.int32]
    pivots: NDArray[np.int64]

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """Return the first four arguments of the miners."""
        return self.sketches.offsets, self.sketches.values.view(np.int64), self.bounds, self.edges


class MiningRule(NamedTuple):
    """When two sketches are near-duplicates, which sets are mined (`modes.MODES`), and their budget."""

    threshold: Threshold
    mode: str
    budget: Budget


Find = Callable[[Share], Itemsets | None]
"""A miner of shares; it returns None for one that passes its budget."""


def find_sets(problem: Problem, *, threshold: Threshold, mode: str, budget: Budget) -> Itemsets:
    """
    Find the sets of a component.

    Args:
        mode: one of `modes.MODES` that has clusters, but not those of the keep-list.
        budget: the limits of the maximal sets, and their least support.

    Returns:
        The sets. `coverage` is `all`, `pairs` or `documents` for maximal sets, covers and leaders, else the mode.
        Under a least support a sketch that is in no other set is a set of one: it may stand for several documents.

    Example:
        A chain of three sketches; the policy prefers the middle one.

        >>> ids, offsets = np.array([1, 2, 2, 3, 3, 4], np.uint64), np.array([0, 2, 4, 6])
        >>> edges, ranks = np.array([[0, 1], [1, 2]], np.int32), np.array([1, 0, 2])
        >>> chain = Problem(Ragged(offsets, ids), np.ones(3, np.int32), edges, ranks, ranks == 0, False)
        >>> by_count = Threshold("overlap", 1, 1, is_count=True, size=4)
        >>> for mode in ("all", "cover", "components"):
        ...     sets = find_sets(chain, threshold=by_count, mode=mode, budget=Budget(100, 1000))
        ...     print(sets.coverage, np.split(sets.members, sets.offsets[1:-1]), sets.supports)
        all [array([0, 1], dtype=int32), array([1, 2], dtype=int32)] [1 1]
        pairs [array([0, 1], dtype=int32), array([1, 2], dtype=int32)] [1 1]
        components [array([0, 1, 2], dtype=int32)] [0]
    """
    if mode in DIVIDED:
        members, starts = DIVIDED[mode](problem)
        return Itemsets(starts, members, intersect(problem.sketches, members, starts)[0], mode)

    # Not all pairs of a component given by leaders are known, so its maximal sets cannot be found.
    sets = None if problem.by_leaders else _list_maximal(problem, mode, budget)
    if sets is None:
        sets = _follow(problem, threshold, budget)
    in_none = np.setdiff1d(np.arange(len(problem.bounds)), sets.members)
    return with_lone(sets, problem.sketches, in_none, budget.min_support)


def _whole(problem: Problem) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    return np.arange(len(problem.bounds), dtype=np.int32), np.array([0, len(problem.bounds)])


DIVIDED: dict[str, Callable[[Problem], tuple[NDArray[np.int32], NDArray[np.int64]]]] = {"components": _whole}
"""What divides a component in each mode that mines no sets: the members, and (s + 1,) where each set begins."""


class PlacedShare(NamedTuple):
    """A share, and the (m,) positions of its sketches in the component."""

    positions: NDArray[np.integer]
    share: Share

    @classmethod
    def of(
        cls,
        positions: NDArray[np.integer],
        sketches: Ragged,
        bounds: NDArray[np.int32],
        edges: NDArray[np.generic],
        is_pivot: NDArray[np.bool_],
    ) -> Self:
        """Make a share of sketches at ascending positions; the edges are positions in the component, in any order."""
        ends = np.sort(np.searchsorted(positions, edges), axis=1).astype(np.int32)
        in_order = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        return cls(positions, Share(sketches, bounds, in_order, np.flatnonzero(is_pivot)))

    def find(self, find: "Find") -> Itemsets | None:
        """Return the sets of the share, whose members are positions in the component."""
        sets = find(self.share)
        return sets and replace(sets, members=self.positions[sets.members].astype(np.int32))


def share_steps(mode: str, budget: Budget) -> dict[str, Find]:
    """Return the miners of a component that is cut into shares, by what they find.

    If a share passes the budget of the first, the second finds the sets of the whole component; if one passes that
    too, leaders give them (`find_sets` of a problem with `by_leaders`).
    """
    steps: dict[str, Find] = {
        "listed": partial(mine_part, budget=budget),
        "covered": partial(cover_part, budget=budget, times=COVER_SHARE),
    }
    return steps if mode == "all" else {"covered": steps["covered"]}


def mine_part(share: Share, *, budget: Budget) -> Itemsets | None:
    """Find the sets of a share, each once in all shares of the component; None where they pass the share's budget."""
    limits = budget.of(len(share.pivots))
    sets = mine_share(*share.arrays(), share.pivots, min_support=budget.min_support, **limits)
    return sets and _with_lone_pivots(sets, share, budget.min_support)


def cover_part(share: Share, *, budget: Budget, times: int) -> Itemsets | None:
    """Find maximal sets that hold every pair of a pivot with a later sketch; None past `times` the share's budget.

    Two shares may find the same set.
    """
    limits = budget.of(len(share.pivots), times)
    sets = cover_component(*share.arrays(), pivots=share.pivots, min_support=budget.min_support, **limits)
    return sets and _with_lone_pivots(sets, share, budget.min_support)


def with_lone(sets: Itemsets, sketches: Ragged, in_none: NDArray[np.int64], min_support: int) -> Itemsets:
    """Return the sets and, under a least support, those of one sketch: of the sketches in no set that have as many ids.

    Args:
        in_none: the sketches that are in none of its sets.
        min_support: the least support; 0: every sketch with a near-duplicate is in a set.
    """
    sizes = np.diff(sketches.offsets)[in_none]
    lone, supports = in_none[sizes >= min_support], sizes[sizes >= min_support]
    if not min_support or not len(lone):
        return sets
    return Itemsets(
        np.concatenate([sets.offsets, sets.offsets[-1] + 1 + np.arange(len(lone))]),
        np.concatenate([sets.members, lone.astype(np.int32)]),
        np.concatenate([sets.supports, supports.astype(np.int32)]),
        sets.coverage,
    )


def _with_lone_pivots(sets: Itemsets, share: Share, min_support: int) -> Itemsets:
    """Add the sets of one pivot. A set with it may be in another share, so its pairs decide: none has the support."""
    if not min_support:
        return sets
    enough = share.edges[count_shared(share.sketches, share.edges) >= min_support]
    return with_lone(sets, share.sketches, np.setdiff1d(share.pivots, enough), min_support)


def _follow(problem: Problem, threshold: Threshold, budget: Budget) -> Itemsets:
    known = Known(problem.edges, problem.ranks, problem.leads, is_whole=threshold.by_text)
    return follow_leaders(problem.sketches, problem.bounds, known, threshold.rule, min_support=budget.min_support)


def _list_maximal(problem: Problem, mode: str, budget: Budget) -> Itemsets | None:
    """Return all maximal sets, or a cover; None where a cover would pass ten times the budget."""
    arrays = (problem.sketches.offsets, problem.sketches.values.view(np.int64), problem.bounds, problem.edges)
    if mode == "cover":
        limits = budget.of(len(problem.bounds), COVER_SHARE)
        return cover_component(*arrays, min_support=budget.min_support, **limits)

    # `mine_component` itself adds the share of each sketch to the first two budgets.
    sets = mine_component(
        *arrays,
        max_sets=budget.max_sets,
        max_members=budget.max_members,
        min_support=budget.min_support,
        max_nodes=budget.max_nodes + 100 * len(problem.bounds),
    )
    return None if sets.coverage == "documents" else sets


def intersect(
    sketches: Ragged, rows: NDArray[np.integer], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Count the features that all sketches of a group have, and return those of the last group.

    Args:
        sketches: rows of ascending ids, uint64.
        rows: the rows of each group, at least one, group by group.
        starts: (g + 1,), where the groups begin.

    Returns:
        The counts, (g,), and the ids that the sketches of the last group have in common; none without a group.

    Cost: one pass over the sketches.
    """
    counts, common = _intersect(sketches.offsets, sketches.values, rows.astype(np.int64), starts)
    return counts, common


@compiled
def _intersect(
    offsets: NDArray[np.int64], values: NDArray[np.uint64], rows: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    counts = np.empty(len(starts) - 1, np.int32)
    common = np.empty(0, np.uint64)
    for group in range(len(counts)):
        first = rows[starts[group]]
        common = values[offsets[first] : offsets[first + 1]].copy()
        count = len(common)
        for place in range(starts[group] + 1, starts[group + 1]):
            at, end = offsets[rows[place]], offsets[rows[place] + 1]
            stay = 0
            for i in range(count):
                while at < end and values[at] < common[i]:
                    at += 1
                if at < end and values[at] == common[i]:
                    common[stay] = common[i]
                    stay += 1
            count = stay
        common = common[:count]
        counts[group] = count
    return counts, common


def list_sets(components: Iterable[tuple[int, Itemsets]]) -> Iterator[pa.RecordBatch]:
    """Yield SETS of components in few batches: one each would cost more than mining a small component.

    Args:
        components: the number of each component and its sets, whose members are positions in it.
    """
    batch: list[tuple[int, Itemsets]] = []
    members = 0
    for ordinal, sets in components:
        batch.append((ordinal, sets))
        members += len(sets.members)
        if members >= MEMBERS_PER_BATCH:
            yield from _lay_out(batch)
            batch, members = [], 0
    yield from _lay_out(batch)


def _lay_out(batch: list[tuple[int, Itemsets]]) -> Iterator[pa.RecordBatch]:
    counts = [len(sets.supports) for _, sets in batch]
    members = [np.empty(0, np.int32), *(sets.members.astype(np.int32, copy=False) for _, sets in batch)]
    sizes = [np.empty(0, np.int64), *(np.diff(sets.offsets) for _, sets in batch)]
    supports = [np.empty(0, np.int32), *(sets.supports for _, sets in batch)]
    coverages = np.repeat(np.array([sets.coverage for _, sets in batch], object), counts)
    ordinals = np.repeat(np.array([ordinal for ordinal, _ in batch], np.int64), counts)

    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    lists = lists_of(offsets, pa.array(np.concatenate(members)), VALUES_PER_BATCH)
    columns = [pa.array(ordinals), lists, pa.array(np.concatenate(supports)), pa.array(coverages, pa.string())]
    yield from pa.Table.from_arrays(columns, schema=SETS.arrow).to_batches()
