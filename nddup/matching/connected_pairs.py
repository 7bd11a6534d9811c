"""How many near-duplicate pairs each connected component has, counted while the pairs are found.

The components are those of the pairs found so far, by union-find. Once one of them has more than `max_edges` pairs, it
is large, and stays so whatever is joined to it. Two sketches of one large component need not be compared any more: that
they are connected is known, and how many pairs there are beyond the limit is not asked.

Source:
    Tarjan, van Leeuwen 1984, Worst-case analysis of set union algorithms (path halving).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled

NO_LIMIT = np.iinfo(np.int64).max
"""More pairs than any component has."""


class Limits(NamedTuple):
    """`pairs.max_edges` and `pairs.max_comparisons`."""

    max_edges: int
    """Pairs of distinct sketches of a component beyond which it is given by leaders."""

    max_comparisons: int
    """Comparisons of sketches that a family of heavy sketches may cost."""


class ConnectedPairs(NamedTuple):
    """The components of n sketches, and the pairs found in each."""

    above: NDArray[np.int32]
    """(n,), of each sketch a smaller one of its component, or itself: then it is the first one, the root."""

    pairs: NDArray[np.int64]
    """(n,), at a root, the pairs found in its component."""

    max_edges: int


@compiled
def find_root(above: NDArray[np.int32], sketch: int) -> int:
    """The first sketch of a component."""
    while above[sketch] != sketch:
        above[sketch] = above[above[sketch]]  # path halving
        sketch = above[sketch]
    return sketch


@compiled
def begin_count(count: int, max_edges: int) -> ConnectedPairs:
    """So many sketches, none of them connected."""
    return ConnectedPairs(np.arange(count).astype(np.int32), np.zeros(count, np.int64), max_edges)


@compiled
def count_pair(connected: ConnectedPairs, a: int, b: int) -> bool:
    """Count a pair and connect its ends; tells whether their component is large now."""
    a, b = find_root(connected.above, a), find_root(connected.above, b)
    root = min(a, b)
    if a != b:
        connected.pairs[root] += connected.pairs[max(a, b)]
        connected.above[max(a, b)] = root
    connected.pairs[root] += 1
    return bool(connected.pairs[root] > connected.max_edges)


@compiled
def share_large(connected: ConnectedPairs, a: int, b: int) -> bool:
    """Whether both sketches are of one large component."""
    root = find_root(connected.above, a)
    return bool(connected.pairs[root] > connected.max_edges and root == find_root(connected.above, b))


@compiled
def choose_pairs(connected: ConnectedPairs, first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Count pairs (k,), and say of each whether it is needed: not within a component that was large before it."""
    is_needed = np.ones(len(first), np.bool_)
    for row in range(len(first)):
        is_needed[row] = not share_large(connected, first[row], second[row])
        if is_needed[row]:
            count_pair(connected, first[row], second[row])
    return is_needed
