"""The pair graph of distinct sketches, which of its nodes are kept, and the sets mined from its components.

matches, nodes  --build_graph-->  Graph: components, kept nodes
Graph, nodes    --mine-->         SETS: maximal sets that are near-duplicates of each other and share enough features

The pivot miner mines every component, except small ones whose nodes are all near-duplicates of each other and share
enough features: their only set is the component. Most families are such.
Large components are mined in shares, each with some of the component's nodes as pivots. The shares and their budgets
are those of `nddup.spark.clustering.problems`, so both engines find the same sets.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.embedded.collapse import Nodes
from nddup.embedded.confirm import Led
from nddup.embedded.match import Matches
from nddup.embedded.memory import OF_SET_MEMBER
from nddup.embedded.workers import Workers
from nddup.ground.arrays import take_rows
from nddup.ground.columns import lists_of, one_chunk, take
from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import (
    MiningRule,
    PlacedShare,
    Problem,
    Problems,
    find_sets,
    intersect,
    list_sets,
    share_steps,
)
from nddup.mining.itemsets import Itemsets
from nddup.mining.keep_verdicts import Loss, direct_edges, direct_leading
from nddup.mining.modes import MODES, SHARE_NODES
from nddup.mining.neighbourhoods import bound_memory
from nddup.mining.pair_graph import keep_first, label_components, number_shares
from nddup.tables import SETS


@dataclass(frozen=True)
class Graph:
    """The n nodes that have a neighbour, sorted by component, then by the id of their `group` document.

    Attributes:
        nodes: (n,), the place of each in DOCUMENTS.
        starts: (c + 1,), where each of the c components begins.
        ordinals: (n,), the component of each.
        kept: (n,), whether the node is kept.
        duplicate_of: (n,), the index here of its kept near-duplicate, its own where it is kept. A node whose documents
            are all forced out counts as kept if it has no kept near-duplicate; it removes no other.
        ranks: (n,), the place in the order of the keep policy.
        leads: (n,), whether no leader before it is near, or its document is forced to be kept.
        by_leaders: (n,), whether its component had more than `pairs.max_edges` pairs, so that not all are edges.
        edges: (e, 2), indices here, the lower first, sorted by component.
        edge_starts: (c + 1,), where the edges of each component begin.
        shares: (n,), the share that has the node as a pivot; -1 where the component is not cut into shares.
    """

    nodes: NDArray[np.int32]
    starts: NDArray[np.int64]
    ordinals: NDArray[np.int32]
    kept: NDArray[np.bool_]
    duplicate_of: NDArray[np.int32]
    ranks: NDArray[np.int32]
    leads: NDArray[np.bool_]
    by_leaders: NDArray[np.bool_]
    edges: NDArray[np.int32]
    edge_starts: NDArray[np.int64]
    shares: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Nodes of each component, (c,)."""
        return np.diff(self.starts)

    def table(self, nodes: Nodes) -> pa.Table:
        """Return the columns of GRAPH that other stages read; a node is the place of its `group` document."""
        places = self.nodes.astype(np.int64)
        firsts = one_chunk(take(nodes.ids, self.nodes[self.starts[:-1]]))
        columns = {
            "node": pa.array(places),
            "component": firsts.take(pa.array(self.ordinals)),
            "ordinal": pa.array(self.ordinals.astype(np.int64)),
            "position": pa.array((np.arange(len(places)) - self.starts[self.ordinals]).astype(np.int32)),
            "kept": pa.array(self.kept),
            "duplicate_of": pa.array(places[self.duplicate_of], mask=self.kept),
            "leads": pa.array(self.leads),
            "by_leaders": pa.array(self.by_leaders),
        }
        return pa.table(columns)

    def counts(self) -> dict[str, int]:
        """Return the counts of components for `metrics.json`."""
        first = self.starts[:-1]
        return {
            "components": len(first),
            "largest_component": int(self.sizes.max(initial=0)),
            "fpgrowth_components": 0,
            "led_components": int(np.count_nonzero(self.by_leaders[first])),
            "spread_components": int(np.count_nonzero(self.shares[first] >= 0)),
            "shares": int(self.shares.max(initial=-1)) + 1,
        }


SURE_WORK = 100_000
"""Search nodes: more than a small component of near-duplicates of each other can take."""

OF_LED = (10, 320, 80)
"""Bytes of memory for each id, node and pair of a component given by leaders: more than was measured
(`tests/spark/test_graph_memory.py`)."""

LARGE = 64
"""Nodes above which a component is a task of its own."""

TOGETHER = 256
"""Small components in one task."""


def build_graph(  # noqa: PLR0913 - each is a setting of its own
    matches: Matches,
    nodes: Nodes,
    *,
    led: Led,
    share_nodes: int | None = SHARE_NODES,
    least_containment: float | None = None,
    max_lost: Fraction | None = None,
) -> Graph:
    """Label the components and choose the kept nodes.

    Args:
        led: the components that are given by leaders.
        share_nodes: a component of more nodes is cut into shares of about this many; None: no component is cut.
        least_containment: share of a document that another must contain to replace it; the heavier node is then
            preferred, ties by the policy. None: near-duplicates replace each other.
        max_lost: share of a document that another may lack to replace it; needs `matches.common`.

    Cost: sorts of the nodes and edges.
    """
    matched = np.unique(matches.ends)
    matched = matched[np.argsort(nodes.id_rank[matched])]
    places = np.full(len(nodes.node), -1, np.int32)
    places[matched] = np.arange(len(matched), dtype=np.int32)
    ends = places[matches.ends]
    components = label_components(ends, nodes=len(matched))

    turns = nodes.policy_rank[nodes.first_by_policy[matched]]
    heaviest = -nodes.weights[matched] if least_containment is not None else np.zeros(len(matched), np.int64)
    classes = nodes.forced[nodes.first_by_policy[matched]]
    ranks = np.empty(len(matched), np.int32)
    ranks[np.lexsort((turns, heaviest, classes))] = np.arange(len(matched), dtype=np.int32)
    is_led = np.isin(matched, led.nodes)
    likeness = matches.likeness if least_containment is None else matches.containments
    is_free = max_lost is None and not classes.any()
    if not is_free:
        loss = None if max_lost is None else _loss(matches, nodes.n_features[matched][ends.T], max_lost)
        named = None if led.stands is None else _named(ends, matched, is_led, led)
        likeness = direct_edges(likeness, classes[ends.T], loss, named)
    choice = keep_first(ends, likeness, ranks, least_containment or 0.0)
    leads = choice.kept if is_free else keep_first(ends, direct_leading(classes[ends.T]), ranks).kept

    # Reorder the nodes: so far they are sorted by id, from here on by component.
    order = np.argsort(components.ordinals, kind="stable")
    moved = np.empty(len(matched), np.int32)
    moved[order] = np.arange(len(matched), dtype=np.int32)
    heads = np.where(choice.kept, np.arange(len(matched)), choice.duplicate_of)
    ordinals = components.ordinals[order]
    edges = np.sort(moved[ends], axis=1)
    by_place = np.lexsort((edges[:, 1], edges[:, 0]))
    by_leaders = is_led[order]
    shares = number_shares(components.positions[heads], components.sizes, share_nodes)[order]
    n_components = int(ordinals.max(initial=-1)) + 1
    starts = np.searchsorted(ordinals, np.arange(n_components + 1))
    return Graph(
        nodes=matched[order].astype(np.int32),
        starts=starts,
        ordinals=ordinals,
        kept=choice.kept[order],
        duplicate_of=moved[heads[order]],
        ranks=ranks[order],
        leads=leads[order],
        by_leaders=by_leaders,
        edges=edges[by_place],
        edge_starts=np.searchsorted(edges[by_place, 0], starts),
        shares=np.where(by_leaders, -1, shares),
    )


def _named(
    ends: NDArray[np.int32], matched: NDArray[np.int32], is_led: NDArray[np.bool_], led: Led
) -> NDArray[np.bool_]:
    """Return `is_named` of `direct_edges`: of a component given by leaders it is known what replaces each node."""
    stands = np.full(len(matched), -1, np.int32)
    stands[is_led] = np.asarray(led.stands)[np.searchsorted(led.nodes, matched[is_led])]
    return np.asarray(~is_led[ends.T] | (stands[ends.T] == matched[ends.T[::-1]]))


def _loss(matches: Matches, sizes: NDArray[np.int32], most: Fraction) -> Loss:
    """Return what both ends of each pair, (2, e), would lose."""
    if matches.common is None:
        raise ValueError("keep.max_lost: the shingles of the pairs were not counted")
    return Loss(matches.common, sizes.astype(np.int64), most)


def problems_of(graph: Graph, nodes: Nodes, threshold: Threshold) -> Problems:
    """Return the components as mining problems."""
    places, first = graph.nodes.astype(np.int64), graph.starts[graph.ordinals]
    return Problems(
        np.arange(len(graph.sizes)),
        graph.starts,
        graph.edge_starts,
        graph.by_leaders[graph.starts[:-1]],
        nodes.sketches,
        places,
        threshold.bounds(nodes.sizes[places]),
        graph.ranks,
        graph.leads,
        (graph.edges - first[graph.edges[:, :1]]).astype(np.int32),
    )


def mine_spread(problem: Problem, numbers: NDArray[np.int64], rule: MiningRule, workers: Workers) -> Itemsets:
    """Find the sets of one component by `share_steps`; the members are positions in it, `numbers` (m,) their shares."""
    cuts = list(_cut(problem, numbers))
    bounds = sorted(bound_memory(cut.share.sketches.offsets, cut.share.edges) for cut in cuts)[-workers.count :]
    workers.memory.require(sum(bounds), f"shares of a component of {len(numbers):,} distinct sketches")

    for find in share_steps(rule.mode, rule.budget).values():
        results = list(workers.work("mine", partial(PlacedShare.find, find=find), cuts))
        whole = [sets for sets in results if sets is not None]
        if len(whole) == len(results):
            return _distinct(whole)
    return find_sets(replace(problem, by_leaders=True), **rule._replace(mode="all")._asdict())


def _cut(problem: Problem, numbers: NDArray[np.int64]) -> Iterator[PlacedShare]:
    """Yield each share: its pivots, all their neighbours, and every edge among these."""
    for number in np.unique(numbers):
        is_pivot = numbers == number
        is_in = is_pivot.copy()
        is_in[problem.edges[is_pivot[problem.edges].any(axis=1)].ravel()] = True
        places, edges = np.flatnonzero(is_in), problem.edges[is_in[problem.edges].all(axis=1)]
        yield PlacedShare.of(
            places, take_rows(problem.sketches, places), problem.bounds[places], edges, is_pivot[places]
        )


def _distinct(parts: list[Itemsets]) -> Itemsets:
    """Return the sets of all shares, each once: the covers of two shares may hold the same set."""
    seen: dict[bytes, tuple[NDArray[np.int32], np.int32]] = {}
    for part in parts:
        rows = (part.members[low:high] for low, high in pairwise(part.offsets.tolist()))  # a share may have none
        for members, support in zip(rows, part.supports, strict=True):
            seen.setdefault(members.tobytes(), (members, support))
    lists = [members for members, _ in seen.values()]
    offsets = np.concatenate([[0], np.cumsum([len(members) for members in lists])]).astype(np.int64)
    supports = np.array([support for _, support in seen.values()], np.int32)
    return Itemsets(offsets, np.concatenate([np.empty(0, np.int32), *lists]), supports, parts[0].coverage)


def mine(graph: Graph, nodes: Nodes, rule: MiningRule, workers: Workers) -> pa.Table:
    """Return SETS of all components, by `clusters.mode`.

    Args:
        rule: which sets are mined, and their budget.
        workers: each thread mines one large component or many small ones at a time.

    Raises:
        NeedsSparkError: if the largest components, or the sets found, may not fit in memory.
    """
    mode, is_spread = rule.mode, graph.shares[graph.starts[:-1]] >= 0
    problems = problems_of(graph, nodes, rule.threshold)
    supports = np.full(len(graph.sizes), -1, np.int32)
    if MODES[mode].is_mined and rule.budget.max_nodes >= SURE_WORK:
        supports = whole_supports(graph, nodes, problems.bounds, rule.budget.min_support)
    rest = np.flatnonzero((supports < 0) & ~is_spread)

    def mine_some(components: NDArray[np.int64]) -> list[pa.RecordBatch]:
        return list(problems.mine(components, rule))

    # The largest components come first, so the first tasks take the most memory together.
    portions = list(_in_portions(rest, graph.sizes[rest]))
    first = (problems.component(portion[0]) for portion in portions[: workers.count] if graph.sizes[portion[0]] > LARGE)
    largest = sum(_bound(problem) for problem in first)
    if MODES[mode].is_mined:
        workers.memory.require(largest, f"components of up to {graph.sizes.max(initial=0):,} distinct sketches")

    set_batches: list[pa.RecordBatch] = []
    members = int(graph.sizes[supports >= 0].sum())
    for batches in workers.work("mine", mine_some, portions):
        members += sum(len(batch.column("positions").flatten()) for batch in batches)
        set_batches += batches
        workers.memory.require(largest + OF_SET_MEMBER * members, f"sets of {members:,} members so far")
    cut = np.flatnonzero((supports < 0) & is_spread)
    shares = {one: graph.shares[slice(*graph.starts[one : one + 2])] for one in cut.tolist()}
    spread = ((one, mine_spread(problems.component(one), its, rule, workers)) for one, its in shares.items())
    whole = _whole(graph, supports, "all" if mode == "all" else "pairs")
    return pa.concat_tables([whole, pa.Table.from_batches([*set_batches, *list_sets(spread)], SETS.arrow)])


def _bound(problem: Problem) -> int:
    """Return the most bytes that mining a component takes, without its sets."""
    if problem.by_leaders:
        counts = len(problem.sketches.values), len(problem.bounds), len(problem.edges)
        return int(np.dot(OF_LED, counts))
    return bound_memory(problem.sketches.offsets, problem.edges)


def _in_portions(components: NDArray[np.int64], sizes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the components of each task: large ones alone, the largest first, then small ones together."""
    order = np.argsort(-sizes, kind="stable")
    large = int(np.count_nonzero(sizes > LARGE))
    for place in order[:large]:
        yield components[[place]]
    small = np.sort(components[order[large:]])
    for low in range(0, len(small), TOGETHER):
        yield small[low : low + TOGETHER]


def whole_supports(graph: Graph, nodes: Nodes, bounds: NDArray[np.int32], min_support: int) -> NDArray[np.int32]:
    """Return the support of each component that is the only maximal set of its own, (c,); -1 for all others.

    Args:
        bounds: (n,), the least number of features that a set with each node shares. The pair of a component of two is
            known to share enough.
        min_support: the least of any set.
    """
    sizes, n_edges = graph.sizes, np.diff(graph.edge_starts)
    is_whole = (2 * n_edges == sizes * (sizes - 1)) & (sizes <= LARGE) & ~graph.by_leaders[graph.starts[:-1]]
    rows, starts = np.repeat(is_whole, sizes), np.concatenate([[0], np.cumsum(sizes[is_whole])])
    counts, _ = intersect(nodes.sketches, graph.nodes[rows], starts)

    is_pair = sizes[is_whole] == 2  # noqa: PLR2004
    needed = np.where(is_pair, 0, np.maximum.reduceat(bounds[rows], starts[:-1]))
    supports = np.full(len(sizes), -1, np.int32)
    supports[is_whole] = np.where(counts >= np.maximum(needed, min_support), counts, -1)
    return supports


def _whole(graph: Graph, supports: NDArray[np.int32], coverage: str) -> pa.Table:
    """Return the sets of components that are their own only set: all their positions."""
    components = np.flatnonzero(supports >= 0)
    sizes = graph.sizes[components]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    positions = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    members, coverages = lists_of(offsets, pa.array(positions.astype(np.int32))), pa.repeat(coverage, len(components))
    columns = [pa.array(components), members, pa.array(supports[components]), coverages]
    return pa.Table.from_arrays(columns, schema=SETS.arrow)
