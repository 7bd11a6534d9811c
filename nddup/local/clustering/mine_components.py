"""Clusters: maximal sets of documents that are near-duplicates of each other and share enough features together.

The pivot miner mines every component, except one of two nodes whose pair has the support: its only set is the pair.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nddup.local.clustering.graph import Graph
from nddup.local.clustering.problems import MiningRule, problem_of
from nddup.local.clustering.shares import mine_spread
from nddup.local.memory import OF_SET_MEMBER
from nddup.local.pairing.collapse import Nodes
from nddup.local.reading.workers import Workers
from nddup.mining.cluster_modes import find_sets
from nddup.mining.itemsets import Itemsets
from nddup.mining.neighbourhoods import bound_memory

PAIR = 2

SURE_WORK = 100_000
"""Search nodes: more than a component of two nodes can take."""

LARGE = 64
"""Nodes above which a component is a task of its own."""

TOGETHER = 256
"""Small components in one task."""


@dataclass(frozen=True)
class Sets:
    """K sets of nodes.

    Attributes:
        offsets: (k + 1,), of `members`.
        members: places in the graph, ascending in each set.
        supports: (k,), features common to all members.
        coverages: (k,), the coverage of each, as `find_sets` gives it.
        components: (k,), the component of each.
    """

    offsets: NDArray[np.int64]
    members: NDArray[np.int64]
    supports: NDArray[np.int32]
    coverages: NDArray[np.str_]
    components: NDArray[np.int64]


def mine(graph: Graph, nodes: Nodes, rule: MiningRule, workers: Workers) -> Sets:
    """Mine the sets of all components, by `clusters.mode`.

    Args:
        graph: the components.
        nodes: the documents, with their sketches.
        rule: which sets are mined, and their budget.
        workers: each thread mines one large component or many small ones at a time.

    Raises:
        NeedsSparkError: if the largest components, or the sets found, may not fit in memory.
    """
    threshold, mode, budget = rule
    is_plain = mode in ("all", "cover") and budget.max_nodes >= SURE_WORK
    is_pair = (graph.sizes == PAIR) & is_plain & ~graph.by_leaders[graph.starts[:-1]]
    is_pair[is_pair] = graph.overlaps[graph.edge_starts[:-1][is_pair]] >= budget.min_support
    is_spread = graph.shares[graph.starts[:-1]] >= 0
    rest = np.flatnonzero(~is_pair & ~is_spread)

    def mine_some(components: NDArray[np.int64]) -> list[Itemsets]:
        problems = (problem_of(graph, nodes, int(ordinal), threshold) for ordinal in components)
        return [find_sets(problem, threshold=threshold, mode=mode, budget=budget) for problem in problems]

    # The largest components come first, so the first tasks take the most memory together.
    portions = list(_in_portions(rest, graph.sizes[rest]))
    largest = [_bound(graph, nodes, some[0]) for some in portions[: workers.count] if graph.sizes[some[0]] > LARGE]
    if mode in ("all", "cover"):
        workers.memory.require(sum(largest), f"components of up to {graph.sizes.max(initial=0):,} distinct sketches")

    found: list[tuple[list[int], list[Itemsets]]] = []
    members = 0
    for some, made in zip(portions, workers.work("mine", mine_some, portions), strict=True):
        found.append((some.tolist(), made))
        members += sum(len(sets.members) for sets in made)
        workers.memory.require(sum(largest) + OF_SET_MEMBER * members, f"sets of {members:,} members so far")
    large = np.flatnonzero(is_spread)
    spread = [mine_spread(graph, nodes, int(ordinal), rule, workers) for ordinal in large]
    ordinals = [ordinal for portion, _ in found for ordinal in portion] + large.tolist()
    itemsets = [sets for _, portion in found for sets in portion] + spread
    pairs = _pairs(graph, np.flatnonzero(is_pair), "all" if mode == "all" else "pairs")
    return _join(graph, ordinals, itemsets, pairs)


def _bound(graph: Graph, nodes: Nodes, ordinal: int) -> int:
    """Return the most bytes that mining a component takes, without its sets."""
    low, high = graph.starts[ordinal], graph.starts[ordinal + 1]
    offsets = np.concatenate([[0], np.cumsum(nodes.sizes[graph.nodes[low:high]])]).astype(np.int64)
    edges = graph.edges[graph.edge_starts[ordinal] : graph.edge_starts[ordinal + 1]] - low
    return bound_memory(offsets, edges)


def _in_portions(components: NDArray[np.int64], sizes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the components of each task: large ones alone, the largest first, then small ones together."""
    order = np.argsort(-sizes, kind="stable")
    large = int(np.count_nonzero(sizes > LARGE))
    for place in order[:large]:
        yield components[[place]]
    small = np.sort(components[order[large:]])
    for low in range(0, len(small), TOGETHER):
        yield small[low : low + TOGETHER]


def _pairs(graph: Graph, components: NDArray[np.int64], coverage: str) -> Sets:
    """Return the sets of components of two nodes: their one edge."""
    edges = graph.edge_starts[components]
    return Sets(
        PAIR * np.arange(len(edges) + 1),
        graph.edges[edges].astype(np.int64).ravel(),
        graph.overlaps[edges],
        np.full(len(edges), coverage),
        components,
    )


def _join(graph: Graph, ordinals: Sequence[int], itemsets: Sequence[Itemsets], pairs: Sets) -> Sets:
    """Join all sets; the members become places in the graph."""
    counts = [len(sets.supports) for sets in itemsets]
    lows = graph.starts[np.array(ordinals, np.int64)]
    sizes = [np.diff(pairs.offsets), *(np.diff(sets.offsets) for sets in itemsets)]
    members = [pairs.members, *(sets.members + low for sets, low in zip(itemsets, lows, strict=True))]
    return Sets(
        np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64),
        np.concatenate(members).astype(np.int64),
        np.concatenate([pairs.supports, *(sets.supports for sets in itemsets)]).astype(np.int32),
        np.concatenate([pairs.coverages, np.repeat([sets.coverage for sets in itemsets] or [""], counts or [0])]),
        np.concatenate([pairs.components, np.repeat(np.array(ordinals, np.int64), counts)]),
    )
