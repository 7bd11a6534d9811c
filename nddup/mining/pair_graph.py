"""The pair graph in memory and as a stream: its connected components, and the documents that are kept.

    label_components    edges, nodes                 -> Components: the independent mining problems
    keep_first          edges, resemblance, ranks    -> Kept: the greedy choice in policy order
    Edges               batches of edges             -> names and places of the ends, while a whole graph fits
    StreamedComponents  edges in any order           -> components; 4 bytes a node, no edge is held
    StreamedChoice      edges by their later end     -> the same choice; 1 bit a node, no edge is held
    Cost.most_edges, most_nodes    memory            -> how large a graph fits into one task

Every pair of a cluster is an edge, so a cluster lies inside one component and nothing outside can extend it. A
component is not a cluster: two of its documents may have nothing in common.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER
from nddup.ground.kernels import Written, compiled
from nddup.matching.overlap_join import find_root


class Components(NamedTuple):
    """The component of each of n nodes. Components are numbered in the order of their first node."""

    ordinals: NDArray[np.int32]  # (n,) the component
    positions: NDArray[np.int32]  # (n,) its place among the nodes of the component, ascending
    sizes: NDArray[np.int32]  # (n,) the number of nodes of its component


MERGED = 1 << 20
"""Minimum number of ends to gather before their distinct names are taken."""

WORKER_BYTES = 836 << 20
"""Address space of a Python worker before it holds any edge: loaded code and data, and one batch."""

BATCHES_BYTES = 64 << 20
"""Address space beyond that of an idle worker: the current batches, and what their allocator reserves."""

MOST_NODES = 2**31
"""Maximum number of nodes of a graph: they are numbered with 31 bits."""

Ends = NDArray[np.int64]  # (e,), nodes

GRAPH_BITS, CHOICE_BITS = 34, 1
"""Memory for each node in bits: of components, the choice and the leaders together, and of the choice alone."""


LEAST_ROOM = 16


class NamedChoice:
    """The choice among the nodes of any number of components: a node is removed for the first kept one of its edges.

    Example:
        >>> choice = NamedChoice()
        >>> choice.feed(np.array([70, 50, 50]), np.array([90, 70, 90])).tolist()
        [True, False, True]
    """

    def __init__(self) -> None:
        self._removed = np.full(LEAST_ROOM, -1, np.int64)
        self._count = 0

    def feed(self, later: NDArray[np.int64], earlier: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which edges remove their later end, (e,): the first of each node whose earlier end is kept.

        Args:
            later: (e,), one end of each edge, at least 0; in the order of preference over all batches.
            earlier: (e,), the other end, all of whose own edges came before.

        Cost: linear in the edges; 16 to 32 bytes a removed node.
        """
        room = LEAST_ROOM
        while room < 2 * (self._count + len(later)):
            room *= 2
        if room > len(self._removed):
            known = self._removed[self._removed >= 0]
            self._removed = np.full(room, -1, np.int64)
            _enter(self._removed, known)
        chosen = _choose_by_name(self._removed, np.asarray(later, np.int64), np.asarray(earlier, np.int64))
        self._count += int(np.count_nonzero(chosen))
        return chosen


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
def join_edges(above: Written[np.int32], first: NDArray[np.integer], second: NDArray[np.integer]) -> None:
    """Join the components of the ends of each edge (union-find).

    Source: Tarjan, van Leeuwen 1984, Worst-case analysis of set union algorithms (path halving).

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


class Kept(NamedTuple):
    """The choice, for n nodes."""

    kept: NDArray[np.bool_]  # (n,)
    duplicate_of: NDArray[
        np.int32
    ]  # (n,) the kept neighbour before it of highest likeness, ties by policy; -1 iff kept
    resemblance: NDArray[np.float64]  # (n,) that likeness; 1 for kept nodes


def keep_first(
    edges: NDArray[np.int32],
    resemblance: NDArray[np.float64],
    ranks: NDArray[np.int32],
    least: float = 0.0,
) -> Kept:
    """Choose the kept nodes.

    They are the lexicographically first maximal independent set of the pair graph, in policy order: a node is kept iff
    no neighbour before it is kept. So every removed node has a kept neighbour that the policy prefers to it, no two
    kept nodes are neighbours, and the set does not depend on how the work is divided.

    Source: Blelloch, Fineman, Shun 2012, Greedy sequential maximal independent set and matching are parallel on
    average.

    Args:
        edges: (e, 2), int32, each pair of near-duplicates once, in [0, n).
        resemblance: (e,), of each pair; or (2, e), the part of the first end that the second contains, then of the
            second that the first contains.
        ranks: (n,), int32, a permutation of 0..n-1: the place of each in the policy's order.
        least: least likeness of a later node to an earlier one at which that may replace it.

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
        np.ascontiguousarray(np.atleast_2d(np.asarray(resemblance, np.float64))),
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
def _find_duplicates(graph: _Graph, kept: NDArray[np.bool_], best: Written[np.float64]) -> NDArray[np.int32]:
    """Return the most alike kept one of the neighbours before each removed node, (n,); write its likeness to `best`."""
    edges, likeness, least, rows = graph.edges, graph.likeness, graph.least, len(graph.likeness)
    ranks = graph.ranks
    duplicate_of = np.full(len(ranks), -1, np.int32)
    for i in range(len(edges)):
        for end in range(2):
            node, other = edges[i, end], edges[i, 1 - end]
            value = likeness[end % rows, i]
            if kept[node] or not kept[other] or ranks[other] > ranks[node] or value < least:
                continue

            is_tie = value == best[node]
            if value > best[node] or (is_tie and ranks[other] < ranks[duplicate_of[node]]):
                duplicate_of[node] = other
                best[node] = value
    return duplicate_of


@compiled
def _list_by_first(edges: NDArray[np.int32], ranks: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
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


class Cost(NamedTuple):
    """The memory that a task over a whole graph takes, in bytes."""

    edge: int  # for each edge
    node: int  # for each node that has an edge

    def most_edges(self, memory: int, nodes: int) -> int:
        """Return the number of edges of the largest graph that fits.

        Only nodes with an edge count, so e edges have at most 2 e nodes. The result is the greatest e with
        `WORKER_BYTES + edge * e + node * min(2 * e, nodes) <= memory`.

        Args:
            memory: of the process of one task, in bytes.
            nodes: upper limit of the number of nodes.

        Returns:
            The edges; 0 where the memory is not even enough for the worker itself.

        Example:
            >>> cost = Cost(edge=40, node=80)
            >>> cost.most_edges(WORKER_BYTES + 2_000, nodes=1_000), cost.most_edges(WORKER_BYTES + 2_000, nodes=10)
            (10, 30)
        """
        free = max(memory - WORKER_BYTES, 0)
        return max((free - self.node * nodes) // self.edge, free // (self.edge + 2 * self.node))


class Edges:
    """The edges of a whole graph in one task, their ends named by 64-bit numbers.

    Batches are copied, so that each can be freed as soon as it has been read. `take_ends` turns the ends into places in
    a list of nodes, 8 bytes an edge, and frees the batches.
    """

    def __init__(self) -> None:
        self._pieces: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
        self._count = 0

    def __len__(self) -> int:
        """Return the number of edges added."""
        return self._count

    def add(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> None:
        """Copy a batch of edges: both ends, (b,)."""
        for pieces, column in zip(self._pieces, (first, second), strict=True):
            pieces.append(np.array(column, np.int64))
        self._count += len(first)

    def names(self) -> NDArray[np.int64]:
        """Return the distinct ends, ascending."""
        names, n_ends, waiting = np.empty(0, np.int64), 0, []
        for piece in (piece for pieces in self._pieces for piece in pieces):
            waiting.append(piece)
            n_ends += len(piece)
            # Wait for at least as many new ends as names, or each batch would sort all names again.
            if n_ends >= max(MERGED, len(names)):
                names, n_ends, waiting = _distinct([names, *waiting]), 0, []
        return _distinct([names, *waiting])

    def take_ends(self, names: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the ends of each edge as places among all `names`, which ascend, (e, 2); can be called only once."""
        ends = np.empty((self._count, 2), np.int32)
        for column, pieces in enumerate(self._pieces):
            at = 0
            while pieces:
                piece = pieces.pop(0)
                ends[at : at + len(piece), column] = np.searchsorted(names, piece)
                at += len(piece)
        return ends


def _distinct(pieces: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the distinct values of all pieces, ascending; sorts in place, since `np.unique` would copy once more."""
    values = np.concatenate(pieces)
    values.sort()
    is_first = np.append(np.ones(min(len(values), 1), np.bool_), values[1:] != values[:-1])
    return np.asarray(values[is_first])


def most_nodes(memory: int, bits: int) -> int:
    """Return the number of nodes of the largest graph whose edges can stream through a task.

    Args:
        memory: of the process of one task, in bytes.
        bits: for each node, `GRAPH_BITS` or `CHOICE_BITS`.

    Returns:
        The nodes, at most `MOST_NODES`; 0 where the memory is not even enough for the worker itself.

    Example:
        >>> most_nodes(WORKER_BYTES + BATCHES_BYTES + 34_000, GRAPH_BITS)
        8000
    """
    return min(max(memory - WORKER_BYTES - BATCHES_BYTES, 0) * 8 // bits, MOST_NODES)


def memory_of_nodes(nodes: int, bits: int) -> int:
    """Return the least bytes of memory with which `most_nodes` is at least `nodes`."""
    return WORKER_BYTES + BATCHES_BYTES + -(-nodes * bits // 8)


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

    The nodes are numbered 0..n-1 in the order of the keep policy, and the edges come in batches, sorted by their later
    end. So when an edge is read, all edges that could remove its earlier end have been read: whether that is kept is
    known.

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
def _flatten(above: Written[np.int32]) -> None:
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
def _remove(removed: Written[np.uint8], first: Ends, second: Ends, last: int) -> int:
    """Set the bits of the removed nodes; return the last later end, or -1 where the edges are out of order."""
    for i in range(len(second)):
        earlier, later = first[i], second[i]
        if later < last or earlier >= later:
            return -1

        last = later
        if not (removed[earlier >> 3] >> (earlier & 7)) & 1:
            removed[later >> 3] |= 1 << (later & 7)
    return last


@compiled
def _find(table: NDArray[np.int64], name: np.int64) -> np.int64:
    """Return the slot of a name, or the free one where it belongs."""
    mask = np.int64(table.size - 1)
    slot = np.int64((np.uint64(name) * HASH_MULTIPLIER) >> np.uint64(32)) & mask
    while table[slot] >= 0 and table[slot] != name:
        slot = (slot + 1) & mask
    return slot


@compiled
def _enter(table: Written[np.int64], names: NDArray[np.int64]) -> None:
    for name in names:
        table[_find(table, name)] = name


@compiled
def _choose_by_name(
    removed: Written[np.int64], later: NDArray[np.int64], earlier: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Enter the later end of each edge whose earlier end is kept; return which edges did, (e,)."""
    chosen = np.zeros(len(later), np.bool_)
    for i in range(len(later)):
        slot = _find(removed, later[i])
        if removed[slot] < 0 and removed[_find(removed, earlier[i])] < 0:
            removed[slot] = later[i]
            chosen[i] = True
    return chosen
