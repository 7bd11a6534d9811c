"""Components and the keep-list of a graph whose edges are streamed: no edge is held.

The n nodes are numbered 0..n-1 in the order of the keep policy. The edges come in batches, sorted by their later end.
So when an edge is read, all edges that could remove its earlier end have been read: whether that is kept is known.

    StreamedComponents   4 bytes a node      union-find; the edges in any order
    StreamedChoice       1 bit a node        the greedy choice; the edges by their later end

Sources:
    Tarjan, van Leeuwen 1984, Worst-case analysis of set union algorithms (path halving).
    Blelloch, Fineman, Shun 2012, Greedy sequential maximal independent set and matching are parallel on average.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.mining.components import join_edges
from nddup.mining.edges import WORKER_BYTES

GRAPH_BITS, CHOICE_BITS = 33, 1
"""Memory for each node in bits: of components and choice together, and of the choice alone."""

BATCHES_BYTES = 64 << 20
"""Address space beyond that of an idle worker: the current batches, and what their allocator reserves."""

MOST_NODES = 2**31
"""Most nodes of a graph: they are numbered with 31 bits."""

Ends = NDArray[np.int64]  # (e,), nodes


def most_nodes(memory: int, bits: int) -> int:
    """Return the number of nodes of the largest graph whose edges can stream through a task.

    Args:
        memory: of the process of one task, in bytes.
        bits: for each node, `GRAPH_BITS` or `CHOICE_BITS`.

    Returns:
        The nodes, at most `MOST_NODES`; 0 where the memory is not even enough for the worker itself.

    Example:
        >>> most_nodes(WORKER_BYTES + BATCHES_BYTES + 33_000, GRAPH_BITS)
        8000
    """
    return min(max(memory - WORKER_BYTES - BATCHES_BYTES, 0) * 8 // bits, MOST_NODES)


class StreamedComponents:
    """The components of a graph, found from its edges in any order.

    Example:
        >>> components = StreamedComponents(4)
        >>> components.feed(np.array([0, 2]), np.array([2, 3]))
        >>> [row.tolist() for row in components.finish().label(0, 4)]
        [[0, 1, 0, 0], [3, 1, 3, 3]]
    """

    def __init__(self, nodes: int) -> None:
        if nodes > MOST_NODES:
            raise ValueError(f"components are labelled for at most 2^31 nodes, got {nodes:,}")
        self._above = np.arange(nodes, dtype=np.int32)

    def feed(self, first: Ends, second: Ends) -> None:
        """Join the ends of some edges, in [0, n). Cost: almost linear."""
        join_edges(self._above, first, second)

    def finish(self) -> Self:
        """Make the labels; no edge can be fed afterwards. Cost: linear in the nodes, no memory."""
        _flatten(self._above)
        return self

    def label(self, low: int, high: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the first node of the component of each node in [low, high), and its size; both (high - low,).

        Call `finish` first. A node without an edge is a component by itself.
        """
        above = self._above[low:high]
        first = np.where(above < 0, np.arange(low, high, dtype=np.int32), above)
        return first, -self._above[first]


class StreamedChoice:
    """The kept nodes of a graph: the lexicographically first maximal independent set.

    Example:
        >>> choice = StreamedChoice(3)
        >>> choice.feed(np.array([0, 1]), np.array([1, 2]))
        >>> choice.kept(0, 3).tolist()
        [True, False, True]
    """

    def __init__(self, nodes: int) -> None:
        self._removed = np.zeros(-(-nodes // 8), np.uint8)
        self._last = 0

    def feed(self, first: Ends, second: Ends) -> None:
        """Remove the later end of each edge whose earlier end is kept. Cost: linear.

        Args:
            first: (e,), the earlier end of each edge, in [0, n).
            second: (e,), the later end, ascending over all batches. For a directed likeness, give only the edges
                whose earlier end may replace the later one.

        Raises:
            ValueError: if the edges do not come in that order.
        """
        self._last = _remove(self._removed, first, second, self._last)
        if self._last < 0:
            raise ValueError("expected edges from an earlier to a later node, sorted by the later one")

    def kept(self, low: int, high: int) -> NDArray[np.bool_]:
        """Return whether each node in [low, high) is kept, by the edges fed so far; `low` is a multiple of 8."""
        bits = np.unpackbits(self._removed[low // 8 : -(-high // 8)], count=high - low, bitorder="little")
        return np.asarray(bits == 0)


@compiled
def _flatten(above: NDArray[np.int32]) -> None:
    """Put each node directly under the first node of its component, which gets minus the component's size."""
    for node in range(len(above)):
        up = above[node]
        if up == node:
            above[node] = -1
            continue

        # The node above is smaller, so it is already directly under the first node, unless it is the first node.
        root = up if above[up] < 0 else above[up]
        above[node] = root
        above[root] -= 1


@compiled
def _remove(removed: NDArray[np.uint8], first: Ends, second: Ends, last: int) -> int:
    """Set the bits of the removed nodes; return the last later end, or -1 where the edges are out of order."""
    for i in range(len(second)):
        earlier, later = first[i], second[i]
        if later < last or earlier >= later:
            return -1

        last = later
        if not (removed[earlier >> 3] >> (earlier & 7)) & 1:
            removed[later >> 3] |= 1 << (later & 7)
    return last
