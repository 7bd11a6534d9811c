"""Connected components of the pair graph: the independent mining problems.

Every pair of a cluster is an edge, so a cluster lies inside one component and nothing outside can extend it. A
component is not a cluster: its ends may have nothing in common.

Source:
    Tarjan, van Leeuwen 1984, Worst-case analysis of set union algorithms (path halving).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.matching.connected_pairs import find_root


class Components(NamedTuple):
    """Where each of n nodes belongs. Components are numbered in the order of their first node."""

    ordinals: NDArray[np.int32]  # (n,) the component
    positions: NDArray[np.int32]  # (n,) its place among the nodes of the component, ascending
    sizes: NDArray[np.int32]  # (n,) how many nodes its component has


def label_components(edges: NDArray[np.int32], *, nodes: int) -> Components:
    """Label the components of an undirected graph.

    Args:
        edges: (e, 2), int32, each edge once, in [0, nodes).
        nodes: number of nodes, below 2^31; one without an edge is a component alone.

    Returns:
        Components; empty arrays for no nodes. Cost: all but linear in nodes and edges, 20 bytes a node, none an edge.

    Example:
        >>> label_components(np.array([[1, 3], [0, 2]], np.int32), nodes=4).ordinals.tolist()
        [0, 1, 0, 1]
    """
    return Components(*_label(np.ascontiguousarray(edges, np.int32), nodes))


@compiled
def join_edges(above: NDArray[np.int32], first: NDArray[np.integer], second: NDArray[np.integer]) -> None:
    """Union-find: join the ends of each edge, (e,) and (e,).

    Args:
        above: (n,), of each node a smaller one of its component, or itself; changed in place.
        first: one end of each edge.
        second: the other end.
    """
    for i in range(len(first)):
        a, b = find_root(above, first[i]), find_root(above, second[i])
        above[max(a, b)] = min(a, b)


@compiled
def _label(edges: NDArray[np.int32], nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Each node lies under a smaller one, so the root of a tree is the first node of its component."""
    above = np.arange(nodes).astype(np.int32)
    join_edges(above, edges[:, 0], edges[:, 1])

    ordinals, positions = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    sizes = np.zeros(nodes, np.int32)
    count = 0
    for node in range(nodes):
        # The node above is smaller, so it was put directly under its root before.
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
    """The share of each node, or -1 where its component is not cut.

    A node goes along with its leader: a near-duplicate of both is most likely there too.

    Args:
        leaders: (n,), positions of the leaders in their components.
        sizes: (n,), of the components.
        share_nodes: about as many nodes as a share has; None: no component is cut.
    """
    if share_nodes is None:
        return np.full(len(leaders), -1)

    shares = -(-sizes.astype(np.int64) // share_nodes)
    return np.where(shares > 1, leaders * shares // np.maximum(sizes, 1), -1)
