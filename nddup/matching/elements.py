"""Elements: short names of ids, small enough to be counted and compared in other tasks than those that hold the ids.

The element of an id is the first `bits` bits of a hash of it. Two ids may have the same element; then it has more
holders than either id. Whatever is concluded from elements allows for that, and pairs are verified on the ids.

An element belongs to the task in whose range it lies. The range is known there, so only the rest of the element is
sent, 4 bytes as a rule. `bits` follows the number of ids, never the number of tasks: no result depends on that.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, Ragged, compiled

LEAST_BITS = 36
SPARE_BITS = 6
"""So many bits beyond those that number the ids: of 64 distinct ids one has the element of another."""

LAST_CLASS = 15
"""The class of all elements with more than 16,384 holders: it fits half a byte."""

MOST_BITS = 47
"""A number of 48 bits is left that is no element."""

SHIFT = np.uint64(32)

RANGE_BITS, FREQUENT = 16, 8
"""Ranges in which frequent elements are looked for, 2**16 of them; see `find_frequent`."""


class Division(NamedTuple):
    """How ids become elements, and which task owns an element."""

    bits: int
    """Of an element, at most `MOST_BITS`."""

    partitions: int
    """Tasks, at most 2**16: each owns a range of elements."""

    def owners(self, elements: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The task that owns each element, (n,); it ascends with the elements."""
        return (elements * np.uint64(self.partitions) >> np.uint64(self.bits)).astype(np.int32)

    def rests(self, elements: NDArray[np.uint64], owners: NDArray[np.int32]) -> NDArray[np.generic]:
        """What an owner needs to tell its elements apart, (n,), of `rest_type`."""
        count = np.uint64(self.partitions)
        first = ((owners.astype(np.uint64) << np.uint64(self.bits)) + count - np.uint64(1)) // count
        return (elements - first).astype(self.rest_type)

    @property
    def rest_type(self) -> type[np.generic]:
        """uint32; uint64 where a task owns more than 2**32 elements, which a few tasks do."""
        return np.uint32 if 1 << self.bits <= self.partitions << 32 else np.uint64


def divide(ids: int, partitions: int) -> Division:
    """The division for so many ids, the repeated ones counted each time.

    Example:
        >>> divide(10**6, 16), divide(2 * 10**11, 2_400)
        (Division(bits=36, partitions=16), Division(bits=44, partitions=2400))
    """
    return Division(min(max(LEAST_BITS, SPARE_BITS + ids.bit_length()), MOST_BITS), partitions)


@compiled
def scatter(value: np.uint64) -> np.uint64:
    """Hash one number, one to one: two rounds of multiplying and folding."""
    value = value * HASH_MULTIPLIER
    value = (value ^ (value >> SHIFT)) * HASH_MULTIPLIER
    return value ^ (value >> SHIFT)


def list_elements(rows: Ragged, bits: int) -> Ragged:
    """The distinct elements of each row of ids, ascending.

    Cost: a sort of each row.
    """
    return Ragged(*_list_elements(rows.offsets, rows.values, bits))


@compiled
def _list_elements(
    offsets: NDArray[np.int64], ids: NDArray[np.uint64], bits: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    shift = np.uint64(64 - bits)
    starts = np.zeros(len(offsets), np.int64)
    elements = np.empty(len(ids), np.uint64)
    end = 0
    for i in range(len(offsets) - 1):
        row = np.empty(offsets[i + 1] - offsets[i], np.uint64)
        for at in range(len(row)):
            row[at] = scatter(ids[offsets[i] + at]) >> shift
        row.sort()

        # Ids of one row with the same element are one element.
        for at in range(len(row)):
            if at == 0 or row[at] != row[at - 1]:
                elements[end] = row[at]
                end += 1
        starts[i + 1] = end
    return starts, elements[:end].copy()


def find_frequent(elements: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
    """Which of `elements`, (n,), are better asked for once, with how often they are there.

    They are those in ranges that hold four times the mean and `FREQUENT` more. Elements are spread evenly, so such a
    range has one that many sketches hold; and every element of which there are so many is in such a range.
    """
    ranges = (elements >> np.uint64(max(bits - RANGE_BITS, 0))).astype(np.int64)
    held = np.bincount(ranges, minlength=1)
    return (held > FREQUENT + 4 * len(elements) / (1 << RANGE_BITS))[ranges]


def rarity_classes(
    elements: NDArray[Any], counts: NDArray[np.int64] | None = None, most: int = 1 << 22
) -> NDArray[np.uint8]:
    """How many of `elements` equal each of them, as a class: 0 for one alone, c for 2**(c - 1) + 1 … 2**c of them.

    Args:
        elements: (n,), of unsigned numbers.
        counts: how often each counts, (n,); None: once.
        most: about so many are counted at a time, for counting takes four times their memory.

    Returns:
        (n,), uint8.

    Example:
        >>> rarity_classes(np.array([7, 8, 7, 9, 9, 9], np.uint32)).tolist()
        [1, 0, 1, 2, 2, 2]
    """
    classes = np.zeros(len(elements), np.uint8)
    weights = np.ones(len(elements), np.int64) if counts is None else counts
    parts = 1
    while parts * most < len(elements):
        parts *= 2
    for part in range(parts):
        chosen = np.flatnonzero((elements & np.asarray(parts - 1, elements.dtype)) == part)
        classes[chosen] = _count_classes(elements[chosen].astype(np.uint64), weights[chosen])
    return classes


def pack_classes(classes: NDArray[np.uint8], lengths: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Two classes to a byte, run by run; a class above `LAST_CLASS` becomes that one.

    Args:
        classes: of all runs, one after another.
        lengths: of each run, in classes.

    Returns:
        The bytes, and how many each run has.

    Example:
        >>> packed, sizes = pack_classes(np.array([1, 2, 3, 99], np.uint8), np.array([3, 1]))
        >>> packed.tolist(), sizes.tolist(), unpack_classes(packed, np.array([3, 1])).tolist()
        ([33, 3, 15], [2, 1], [1, 2, 3, 15])
    """
    sizes = (lengths + 1) // 2
    packed = np.empty(int(sizes.sum()), np.uint8)
    _pack_runs(classes, lengths, packed)
    return packed, sizes


def unpack_classes(packed: NDArray[np.uint8], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """What `pack_classes` packed, of runs of the same lengths.

    Raises:
        ValueError: if there are not as many bytes as such runs have.
    """
    expected = int(((lengths + 1) // 2).sum())
    if expected != len(packed):
        raise ValueError(f"expected {expected} bytes of classes, got {len(packed)}")
    classes = np.empty(int(lengths.sum()), np.uint8)
    _unpack_runs(packed, lengths, classes)
    return classes


@compiled
def _pack_runs(classes: NDArray[np.uint8], lengths: NDArray[np.int64], packed: NDArray[np.uint8]) -> None:
    """Two classes to a byte, the first in its lower half; a run begins with a byte of its own."""
    at = byte = 0
    for run in range(len(lengths)):
        for place in range(lengths[run]):
            lowered = min(classes[at + place], LAST_CLASS)
            if place & 1:
                packed[byte + (place >> 1)] |= lowered << 4
            else:
                packed[byte + (place >> 1)] = lowered
        at += lengths[run]
        byte += (lengths[run] + 1) >> 1


@compiled
def _unpack_runs(packed: NDArray[np.uint8], lengths: NDArray[np.int64], classes: NDArray[np.uint8]) -> None:
    """The reverse of `_pack_runs`."""
    at = byte = 0
    for run in range(len(lengths)):
        for place in range(lengths[run]):
            both = packed[byte + (place >> 1)]
            classes[at + place] = both >> 4 if place & 1 else both & LAST_CLASS
        at += lengths[run]
        byte += (lengths[run] + 1) >> 1


@compiled
def _count_classes(elements: NDArray[np.uint64], weights: NDArray[np.int64]) -> NDArray[np.uint8]:
    """`rarity_classes` by one open-addressing table, at most half full; a slot holds the place of an element."""
    bits = 4
    while (1 << bits) < 2 * len(elements):
        bits += 1
    mask, shift = (1 << bits) - 1, np.uint64(64 - bits)
    table, counts = np.full(1 << bits, -1, np.int32), np.zeros(len(elements), np.int64)

    # Equal elements are counted at the first of them, which `firsts` tells.
    firsts = np.empty(len(elements), np.int32)
    for row in range(len(elements)):
        slot = np.int64((elements[row] * HASH_MULTIPLIER) >> shift)
        while table[slot] >= 0 and elements[table[slot]] != elements[row]:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = row
        firsts[row] = table[slot]
        counts[table[slot]] += weights[row]

    classes = np.zeros(len(elements), np.uint8)
    for row in range(len(elements)):
        more = counts[firsts[row]] - 1
        while more:
            more >>= 1
            classes[row] += 1
    return classes
