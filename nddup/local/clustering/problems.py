"""Components as mining problems."""

from typing import NamedTuple

import numpy as np

from nddup.arrays import take_rows
from nddup.local.clustering.graph import Graph
from nddup.local.pairing.collapse import Nodes
from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import Budget, Problem


class MiningRule(NamedTuple):
    """When two sketches are near-duplicates, which sets are mined (`cluster_modes.MODES`), and their budget."""

    threshold: Threshold
    mode: str
    budget: Budget


def problem_of(
    graph: Graph, nodes: Nodes, ordinal: int, threshold: Threshold, *, by_leaders: bool | None = None
) -> Problem:
    """Return a component as a mining problem; `by_leaders`: whether leaders make its sets, None: as the graph says."""
    low, high = int(graph.starts[ordinal]), int(graph.starts[ordinal + 1])
    mine = graph.nodes[low:high].astype(np.int64)
    between = slice(graph.edge_starts[ordinal], graph.edge_starts[ordinal + 1])
    return Problem(
        take_rows(nodes.sketches, mine),
        threshold.bounds(nodes.sizes[mine]),
        (graph.edges[between] - low).astype(np.int32),
        graph.ranks[low:high],
        (graph.duplicate_of[low:high] - low).astype(np.int32),
        bool(graph.by_leaders[low]) if by_leaders is None else by_leaders,
    )
