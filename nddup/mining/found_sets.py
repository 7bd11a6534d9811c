"""The sets found so far, in arrays that grow, and the limits at which a search stops."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.mining.bitsets import Bits, list_slots
from nddup.mining.neighbourhoods import Neighbourhood

SETS, ROWS, WORK = 0, 1, 2
"""Positions in `FoundSets.counts`: sets, member rows, and the work of the search (`itemsets.mine_component`)."""


class FoundSets(NamedTuple):
    """Sets found so far, with room for more: set i is `members[ends[i - 1]:ends[i]]`."""

    ends: NDArray[np.int64]
    members: NDArray[np.int32]
    supports: NDArray[np.int32]
    counts: NDArray[np.int64]  # shape (3,)


class SearchLimits(NamedTuple):
    """Exact limits of one search."""

    sets: int
    rows: int
    work: int


@compiled
def empty_found() -> FoundSets:
    """Return no sets, with a little room."""
    return FoundSets(np.empty(16, np.int64), np.empty(256, np.int32), np.empty(16, np.int32), np.zeros(3, np.int64))


@compiled
def make_room(found: FoundSets, size: int) -> FoundSets:
    """Return the same sets with room for one more of `size` members; full arrays are at least doubled."""
    ends, members, supports, counts = found
    if counts[SETS] == ends.size:
        ends = np.empty(2 * found.ends.size, np.int64)
        supports = np.empty(2 * found.ends.size, np.int32)
        for i in range(counts[SETS]):
            ends[i] = found.ends[i]
            supports[i] = found.supports[i]

    if counts[ROWS] + size > members.size:
        members = np.empty(2 * (found.members.size + size), np.int32)
        for i in range(counts[ROWS]):
            members[i] = found.members[i]
    return FoundSets(ends, members, supports, counts)


@compiled
def add_found(
    found: FoundSets, neighbourhood: Neighbourhood, members: Bits, support: int, slots: NDArray[np.int64]
) -> FoundSets:
    """Add the pivot and `members` as one set, ascending; return the sets, maybe in new arrays. `slots` is scratch."""
    size = list_slots(members, slots)
    found = make_room(found, size + 1)
    ends, rows, supports, counts = found

    # Slots ascend by document; the pivot, which has no slot, goes before the first greater document.
    at = counts[ROWS]
    pivot_written = False
    for i in range(size):
        document = neighbourhood.documents[slots[i]]
        if document > neighbourhood.pivot and not pivot_written:
            rows[at] = neighbourhood.pivot
            at += 1
            pivot_written = True
        rows[at] = document
        at += 1
    if not pivot_written:
        rows[at] = neighbourhood.pivot
        at += 1

    counts[ROWS] = at
    ends[counts[SETS]] = at
    supports[counts[SETS]] = support
    counts[SETS] += 1
    return found


@compiled
def is_past(counts: NDArray[np.int64], limits: SearchLimits) -> bool:
    """Tell whether the sets, the member rows or the work are past their limit."""
    return bool(counts[SETS] > limits.sets or counts[ROWS] > limits.rows or counts[WORK] > limits.work)
