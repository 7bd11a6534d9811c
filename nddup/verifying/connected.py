"""Connected parts of a graph, by union-find: `nddup check` recounts components with them."""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled


@compiled
def label_parts(first: NDArray[np.int64], second: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Label each node with the smallest node of its connected part, (nodes,).

    Args:
        first: one end of each edge, (m,).
        second: the other end, (m,).
        nodes: number of nodes; one without an edge is its own part.

    Cost: nearly linear: paths are halved, and the smaller root stays the root.

    Example:
        >>> label_parts(np.array([4, 1]), np.array([2, 4]), 5).tolist()
        [0, 1, 1, 3, 1]
    """
    parent = np.arange(nodes)
    for edge in range(len(first)):
        a, b = first[edge], second[edge]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        parent[max(a, b)] = min(a, b)

    for node in range(nodes):  # a parent is never larger than its node
        parent[node] = parent[parent[node]]
    return parent
