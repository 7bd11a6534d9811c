"""The kept nodes of a graph whose nodes have names, from its edges in order.

`pair_graph.StreamedChoice` needs nodes numbered from 0; here a name is any 64-bit number, and the memory is that of the
removed ones, in a table of open addressing.
"""

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER, compiled

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
        chosen = _choose(self._removed, np.asarray(later, np.int64), np.asarray(earlier, np.int64))
        self._count += int(np.count_nonzero(chosen))
        return chosen


@compiled
def _find(table: NDArray[np.int64], name: np.int64) -> np.int64:
    """Return the slot of a name, or the free one where it belongs."""
    mask = np.int64(table.size - 1)
    slot = np.int64((np.uint64(name) * HASH_MULTIPLIER) >> np.uint64(32)) & mask
    while table[slot] >= 0 and table[slot] != name:
        slot = (slot + 1) & mask
    return slot


@compiled
def _enter(table: NDArray[np.int64], names: NDArray[np.int64]) -> None:
    for name in names:
        table[_find(table, name)] = name


@compiled
def _choose(removed: NDArray[np.int64], later: NDArray[np.int64], earlier: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Enter the later end of each edge whose earlier end is kept; return which edges did, (e,)."""
    chosen = np.zeros(len(later), np.bool_)
    for i in range(len(later)):
        slot = _find(removed, later[i])
        if removed[slot] < 0 and removed[_find(removed, earlier[i])] < 0:
            removed[slot] = later[i]
            chosen[i] = True
    return chosen
