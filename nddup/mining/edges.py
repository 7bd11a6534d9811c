"""The edges of a whole graph in one task, and how many of them fit into its memory.

Edges come in batches, their ends named by 64-bit numbers. They are copied, so that a batch can be freed as soon as it
has been read. Their ends become positions in a list of nodes: 8 bytes an edge, and 8 for each of its values.

    add        batches of edges       -> held in pieces
    names      ends                   -> the distinct nodes
    take_ends  names                  -> places of the ends, (e, 2); frees the pieces
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MERGED = 1 << 20
"""Least number of ends to gather before their distinct names are taken."""

WORKER_BYTES = 832 << 20
"""Address space of a Python worker before it holds any edge: loaded code and data, and one batch."""


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
    """Edges with `values` numbers each, gathered in pieces."""

    def __init__(self, values: int) -> None:
        self._pieces: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
        self._values: list[list[NDArray[np.float64]]] = [[] for _ in range(values)]
        self._count = 0

    def __len__(self) -> int:
        """Return the number of edges added."""
        return self._count

    def add(self, first: NDArray[np.int64], second: NDArray[np.int64], *values: NDArray[np.float64]) -> None:
        """Copy a batch of edges: both ends, and one array for each of their values, all (b,)."""
        for pieces, column in zip(self._pieces, (first, second), strict=True):
            pieces.append(np.array(column, np.int64))
        for parts, column_ in zip(self._values, values, strict=True):
            parts.append(np.array(column_, np.float64))
        self._count += len(first)

    def names(self) -> NDArray[np.int64]:
        """Return the distinct ends, ascending."""
        found, held, waiting = np.empty(0, np.int64), 0, []
        for piece in (piece for pieces in self._pieces for piece in pieces):
            waiting.append(piece)
            held += len(piece)
            # Wait for at least as many new ends as names, or each batch would sort all names again.
            if held >= max(MERGED, len(found)):
                found, held, waiting = _distinct([found, *waiting]), 0, []
        return _distinct([found, *waiting])

    def take_ends(self, names: NDArray[np.int64], places: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return the ends of each edge as places, (e, 2); can be called only once.

        Args:
            names: of all nodes, ascending.
            places: the place of each name; None: its index in `names`.
        """
        ends = np.empty((self._count, 2), np.int32)
        for column, pieces in enumerate(self._pieces):
            at = 0
            while pieces:
                piece = pieces.pop(0)
                found = np.searchsorted(names, piece)
                ends[at : at + len(piece), column] = found if places is None else places[found]
                at += len(piece)
        return ends

    def take_values(self) -> NDArray[np.float64]:
        """Return the values, (values, e), in the order of the edges; can be called only once."""
        values = np.empty((len(self._values), self._count), np.float64)
        for row, pieces in enumerate(self._values):
            at = 0
            while pieces:
                piece = pieces.pop(0)
                values[row, at : at + len(piece)] = piece
                at += len(piece)
        return values


def _distinct(pieces: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the distinct values of all pieces, ascending; sorts in place, since `np.unique` would copy once more."""
    values = np.concatenate(pieces)
    values.sort()
    is_first = np.append(np.ones(min(len(values), 1), np.bool_), values[1:] != values[:-1])
    return np.asarray(values[is_first])
