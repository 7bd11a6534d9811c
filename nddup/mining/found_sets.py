"""The sets found so far, in arrays that grow."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.mining.bitsets import Bits, list_slots
from nddup.mining.neighbourhoods import Neighbourhood


class Found(NamedTuple):
    """Sets found so far, with room for more; `counts` holds sets, member rows, work."""

    ends: NDArray[np.int64]
    members: NDArray[np.int32]
    supports: NDArray[np.int32]
    counts: NDArray[np.int64]


@compiled
def empty_found() -> Found:
    """Start with nothing found and little room."""
    return Found(np.empty(16, np.int64), np.empty(256, np.int32), np.empty(16, np.int32), np.zeros(3, np.int64))


@compiled
def make_room(found: Found, size: int) -> Found:
    """Return the same sets with room for one more of `size` members, at least doubled when full."""
    ends, members, supports, counts = found
    if counts[0] == ends.size:
        ends = np.empty(2 * found.ends.size, np.int64)
        supports = np.empty(2 * found.ends.size, np.int32)
        for i in range(counts[0]):
            ends[i] = found.ends[i]
            supports[i] = found.supports[i]
    if counts[1] + size > members.size:
        members = np.empty(2 * (found.members.size + size), np.int32)
        for i in range(counts[1]):
            members[i] = found.members[i]
    return Found(ends, members, supports, counts)


@compiled
def add_found(found: Found, place: Neighbourhood, members: Bits, support: int, slots: NDArray[np.int64]) -> Found:
    """Add the pivot and `members` as one set, ascending; the sets may move to more room."""
    size = list_slots(members, slots)
    found = make_room(found, size + 1)
    ends, rows, supports, counts = found
    at = counts[1]
    pivot_written = False
    for i in range(size):
        document = place.documents[slots[i]]
        if document > place.pivot and not pivot_written:
            rows[at] = place.pivot
            at += 1
            pivot_written = True
        rows[at] = document
        at += 1
    if not pivot_written:
        rows[at] = place.pivot
        at += 1
    counts[1] = at
    ends[counts[0]] = at
    supports[counts[0]] = support
    counts[0] += 1
    return found


@compiled
def is_past(counts: NDArray[np.int64], limits: tuple[int, int, int]) -> bool:
    """Tell whether sets, member rows or work are past their limit."""
    return bool(counts[0] > limits[0] or counts[1] > limits[1] or counts[2] > limits[2])
