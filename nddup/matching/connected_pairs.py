"""How many near-duplicate pairs each connected component has, counted while the pairs are found.

Union-find keeps the components of the pairs found so far. A component with more than `max_edges` pairs is large, and
stays large whatever joins it. Two sketches of one large component need not be compared: they are known to be connected,
and the number of pairs beyond the limit does not matter.

Source:
    Tarjan, van Leeuwen 1984, Worst-case analysis of set union algorithms (path halving).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled

NO_LIMIT = np.iinfo(np.int64).max
"""`max_edges` for no limit: more pairs than any component has."""


class Limits(NamedTuple):
    """`pairs.max_edges` and `pairs.max_comparisons`."""

    max_edges: int
    """Pairs of distinct sketches in a component above which only the pairs of its leaders are listed."""

    max_comparisons: int
    """Comparisons of sketches that the search of a family may take."""


class ConnectedPairs(NamedTuple):
    """The components of n sketches, and the pairs found in each."""

    above: NDArray[np.int32]
    """(n,), for each sketch a sketch of its component with a smaller number, or itself if it is the root."""

    pairs: NDArray[np.int64]
    """(n,), at each root the number of pairs found in its component."""

    max_edges: int


@compiled
def find_root(above: NDArray[np.int32], sketch: int) -> int:
    """Return the root of a sketch's component: its first sketch."""
    while above[sketch] != sketch:
        above[sketch] = above[above[sketch]]  # path halving
        sketch = above[sketch]
    return sketch


@compiled
def begin_count(count: int, max_edges: int) -> ConnectedPairs:
    """Make the components of `count` sketches, none of them connected."""
    return ConnectedPairs(np.arange(count).astype(np.int32), np.zeros(count, np.int64), max_edges)


@compiled
def count_pair(connected: ConnectedPairs, a: int, b: int) -> bool:
    """Count a pair and connect its ends; return whether their component is now large."""
    a, b = find_root(connected.above, a), find_root(connected.above, b)
    root = min(a, b)
    if a != b:
        connected.pairs[root] += connected.pairs[max(a, b)]
        connected.above[max(a, b)] = root
    connected.pairs[root] += 1
    return bool(connected.pairs[root] > connected.max_edges)


@compiled
def share_large(connected: ConnectedPairs, a: int, b: int) -> bool:
    """Return whether both sketches are in one large component."""
    root = find_root(connected.above, a)
    return bool(connected.pairs[root] > connected.max_edges and root == find_root(connected.above, b))


@compiled
def choose_pairs(connected: ConnectedPairs, first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Count pairs, (k,), and return a mask, (k,), of those needed: not within a component that was already large."""
    is_needed = np.ones(len(first), np.bool_)
    for row in range(len(first)):
        is_needed[row] = not share_large(connected, first[row], second[row])
        if is_needed[row]:
            count_pair(connected, first[row], second[row])
    return is_needed
