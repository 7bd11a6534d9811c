"""Which documents stay: the lexicographically first maximal independent set of the pair graph, in policy order.

A node is kept iff no neighbour before it was kept. So every removed node has a kept neighbour that the policy prefers
to it, no two kept nodes are neighbours, and the set does not depend on how the work was divided.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled


class Kept(NamedTuple):
    """The choice, for n nodes."""

    kept: NDArray[np.bool_]  # (n,)
    duplicate_of: NDArray[np.int32]  # (n,) the kept neighbour of highest likeness, ties by policy; -1 iff kept
    resemblance: NDArray[np.float64]  # (n,) with it; 1 for kept nodes


def keep_first(
    edges: NDArray[np.int32],
    resemblance: NDArray[np.float64],
    ranks: NDArray[np.int32],
    least: float = 0.0,
) -> Kept:
    """Choose the kept nodes.

    Args:
        edges: (e, 2), int32, each pair of near-duplicates once, in [0, n).
        resemblance: (e,), of each pair; or (2, e), how much of the first end the second contains, and the other way.
        ranks: (n,), int32, a permutation of 0..n-1: the policy's order, 0 first.
        least: a node is removed by an earlier one, and is a duplicate of one, only at this likeness or more.

    Returns:
        Kept; empty for no nodes. Cost: linear in nodes and edges, after sorting the edges by node.

    Example:
        >>> chain = np.array([[0, 1], [1, 2]], np.int32)
        >>> keep_first(chain, np.array([.9, .8]), np.array([0, 1, 2], np.int32)).duplicate_of.tolist()
        [-1, 0, -1]
    """
    nodes = len(ranks)
    ends = np.concatenate([edges[:, 0], edges[:, 1]])
    others = np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.argsort(ends, kind="stable")
    offsets = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=nodes), out=offsets[1:])
    by_rank = np.argsort(ranks).astype(np.int64)
    likeness = np.broadcast_to(resemblance, (2, len(edges))).ravel()[order]
    return Kept(*_keep(offsets, others[order], likeness, ranks.astype(np.int32), by_rank, least))


@compiled
def _keep(
    offsets: NDArray[np.int64],
    others: NDArray[np.int32],
    likeness: NDArray[np.float64],
    ranks: NDArray[np.int32],
    by_rank: NDArray[np.int64],
    least: float,
) -> tuple[NDArray[np.bool_], NDArray[np.int32], NDArray[np.float64]]:
    kept = np.ones(len(ranks), np.bool_)
    duplicate_of = np.full(len(ranks), -1, np.int32)
    best = np.ones(len(ranks), np.float64)
    for node in by_rank:
        for at in range(offsets[node], offsets[node + 1]):
            other = others[at]
            if ranks[other] < ranks[node] and kept[other] and likeness[at] >= least:
                kept[node] = False
                break
    for node in range(len(ranks)):
        if kept[node]:
            continue
        best[node] = -1.0
        for at in range(offsets[node], offsets[node + 1]):
            other = others[at]
            if not kept[other] or likeness[at] < least:
                continue
            nearer = likeness[at] > best[node]
            if nearer or (likeness[at] == best[node] and ranks[other] < ranks[duplicate_of[node]]):
                duplicate_of[node] = other
                best[node] = likeness[at]
    return kept, duplicate_of, best
