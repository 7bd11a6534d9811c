"""The documents to keep: the lexicographically first maximal independent set of the pair graph, in policy order.

A node is kept iff no neighbour before it is kept. So every removed node has a kept neighbour that the policy prefers
to it, no two kept nodes are neighbours, and the set does not depend on how the work is divided.

Source:
    Blelloch, Fineman, Shun 2012, Greedy sequential maximal independent set and matching are parallel on average.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled


class Kept(NamedTuple):
    """The choice, for n nodes."""

    kept: NDArray[np.bool_]  # (n,)
    duplicate_of: NDArray[np.int32]  # (n,) the kept neighbour of highest likeness, ties by policy; -1 iff kept
    resemblance: NDArray[np.float64]  # (n,) that likeness; 1 for kept nodes


def keep_first(
    edges: NDArray[np.int32],
    resemblance: NDArray[np.float64],
    ranks: NDArray[np.int32],
    least: float = 0.0,
) -> Kept:
    """Choose the kept nodes.

    Args:
        edges: (e, 2), int32, each pair of near-duplicates once, in [0, n).
        resemblance: (e,), of each pair; or (2, e), the part of the first end that the second contains, then of the
            second that the first contains.
        ranks: (n,), int32, a permutation of 0..n-1: the place of each in the policy's order.
        least: least likeness at which an earlier node removes a later one, and at which a node duplicates a kept one.

    Returns:
        Kept; empty for no nodes. Cost: linear in nodes and edges, after a sort of the ranks; memory: 4 bytes an edge
        and some 40 a node, beside the arguments.

    Raises:
        ValueError: for 2^31 edges or more.

    Example:
        >>> chain = np.array([[0, 1], [1, 2]], np.int32)
        >>> keep_first(chain, np.array([.9, .8]), np.array([0, 1, 2], np.int32)).duplicate_of.tolist()
        [-1, 0, -1]
    """
    if len(edges) > np.iinfo(np.int32).max:
        raise ValueError(f"one task takes fewer than 2^31 edges, got {len(edges):,}")
    graph = _Graph(
        np.ascontiguousarray(edges, np.int32),
        np.atleast_2d(np.asarray(resemblance, np.float64)),
        ranks.astype(np.int32),
        least,
    )
    kept = _choose(graph, np.argsort(ranks).astype(np.int32))
    best = np.where(kept, 1.0, -1.0)
    return Kept(kept, _find_duplicates(graph, kept, best), best)


class _Graph(NamedTuple):
    """The pair graph as the kernels read it."""

    edges: NDArray[np.int32]  # (e, 2)
    likeness: NDArray[np.float64]  # (1, e), or (2, e): row i is the part of end i that the other end contains
    ranks: NDArray[np.int32]  # (n,)
    least: float


@compiled
def _choose(graph: _Graph, by_rank: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Keep, in policy order, each node that is not removed yet, and remove its later neighbours; return (n,)."""
    edges, likeness, least, rows = graph.edges, graph.likeness, graph.least, len(graph.likeness)
    offsets, listed = _list_by_first(edges, graph.ranks)
    kept = np.ones(len(graph.ranks), np.bool_)
    for node in by_rank:
        if not kept[node]:
            continue

        for i in listed[offsets[node] : offsets[node + 1]]:
            end = 0 if edges[i, 1] == node else 1
            # With one row, both directions have the same likeness.
            if likeness[end % rows, i] >= least:
                kept[edges[i, end]] = False
    return kept


@compiled
def _find_duplicates(graph: _Graph, kept: NDArray[np.bool_], best: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the kept neighbour of highest likeness of each removed node, (n,); write that likeness to `best`, (n,)."""
    edges, likeness, least, rows = graph.edges, graph.likeness, graph.least, len(graph.likeness)
    ranks = graph.ranks
    duplicate_of = np.full(len(ranks), -1, np.int32)
    for i in range(len(edges)):
        for end in range(2):
            node, other = edges[i, end], edges[i, 1 - end]
            value = likeness[end % rows, i]
            if kept[node] or not kept[other] or value < least:
                continue

            is_tie = value == best[node]
            if value > best[node] or (is_tie and ranks[other] < ranks[duplicate_of[node]]):
                duplicate_of[node] = other
                best[node] = value
    return duplicate_of


@compiled
def _list_by_first(edges: NDArray[np.int32], ranks: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """List the edges of each node to later nodes, as offsets (n + 1,) and places in `edges`, (e,)."""
    nodes = len(ranks)
    offsets, listed = np.zeros(nodes + 2, np.int64), np.empty(len(edges), np.int32)
    for i in range(len(edges)):
        first = edges[i, 0] if ranks[edges[i, 0]] < ranks[edges[i, 1]] else edges[i, 1]
        offsets[first + 2] += 1
    for node in range(nodes):
        offsets[node + 2] += offsets[node + 1]

    # Filling moves the start of each node to its end, where the next node starts.
    for i in range(len(edges)):
        first = edges[i, 0] if ranks[edges[i, 0]] < ranks[edges[i, 1]] else edges[i, 1]
        listed[offsets[first + 1]] = i
        offsets[first + 1] += 1
    return offsets[: nodes + 1], listed
