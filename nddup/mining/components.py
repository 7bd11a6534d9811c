"""Connected components of the pair graph: the independent mining problems.

Every pair of a cluster is an edge, so a cluster lies inside one component and nothing outside can extend it. A
component is not a cluster: two of its documents may have nothing in common.

Source:
    Tarjan, van Leeuwen 1984, Worst-case analysis of set union algorithms (path halving).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.matching.connected_pairs import find_root


class Components(NamedTuple):
    """The component of each of n nodes. Components are numbered in the order of their first node."""

    ordinals: NDArray[np.int32]  # (n,) the component
    positions: NDArray[np.int32]  # (n,) its place among the nodes of the component, ascending
    sizes: NDArray[np.int32]  # (n,) the number of nodes of its component


def label_components(edges: NDArray[np.int32], *, nodes: int) -> Components:
    """Label the components of an undirected graph.

    Args:
        edges: (e, 2), int32, each edge once, in [0, nodes).
        nodes: number of nodes, below 2^31; a node without an edge is a component by itself.

    Returns:
        Components; empty arrays for no nodes. Cost: almost linear in nodes and edges; memory: 20 bytes a node.

    Example:
        >>> label_components(np.array([[1, 3], [0, 2]], np.int32), nodes=4).ordinals.tolist()
        [0, 1, 0, 1]
    """
    return Components(*_label(np.ascontiguousarray(edges, np.int32), nodes))


@compiled
def join_edges(above: NDArray[np.int32], first: NDArray[np.integer], second: NDArray[np.integer]) -> None:
    """Join the components of the ends of each edge (union-find).

    Args:
        above: (n,), a smaller node of the component of each node, or the node itself; changed in place.
        first: (e,), one end of each edge.
        second: (e,), the other end.
    """
    for i in range(len(first)):
        a, b = find_root(above, first[i]), find_root(above, second[i])
        above[max(a, b)] = min(a, b)


@compiled
def _label(edges: NDArray[np.int32], nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return the arrays of `Components`. Each node lies under a smaller one: a root is the first of its component."""
    above = np.arange(nodes).astype(np.int32)
    join_edges(above, edges[:, 0], edges[:, 1])

    ordinals, positions = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    sizes = np.zeros(nodes, np.int32)
    count = 0
    for node in range(nodes):
        # The node above is smaller, so it has already been put directly under its root.
        root = above[above[node]]
        above[node] = root
        if root == node:
            ordinals[node] = count
            count += 1
        ordinals[node] = ordinals[root]
        positions[node] = sizes[root]
        sizes[root] += 1

    for node in range(nodes):
        sizes[node] = sizes[above[node]]
    return ordinals, positions, sizes


def number_shares(leaders: NDArray[np.int32], sizes: NDArray[np.int32], share_nodes: int | None) -> NDArray[np.int64]:
    """Return the share of each node, (n,), or -1 where its component is not cut.

    A node goes to the share of its leader, where their common near-duplicates are most likely to be.

    Args:
        leaders: (n,), the position of each node's leader in their component.
        sizes: (n,), the size of each node's component.
        share_nodes: about how many nodes a share has; None: no component is cut.
    """
    if share_nodes is None:
        return np.full(len(leaders), -1)

    shares = -(-sizes.astype(np.int64) // share_nodes)
    return np.where(shares > 1, leaders * shares // np.maximum(sizes, 1), -1)
