"""Elements: short names of ids, small enough to send to other tasks, which count and compare them.

    divide            number of ids, partitions  -> Division: how ids become elements, and which task owns each
    list_elements     ids of each sketch         -> their distinct elements, ascending
    rarity_classes    elements of an owner       -> a class of 4 bits for each, by its number of holders
    cut_prefixes      elements, classes          -> Prefixes: the sketches that can be in a pair, rarest elements first
    post              Prefixes, Division         -> Posted: a row per sketch and owner of a part of its prefix

The element of an id is the first `bits` bits of a hash of it. Two ids may have the same element, which then has more
holders than either id. Every conclusion drawn from elements allows for that, and pairs are verified on the ids.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER, Ragged
from nddup.ground.kernels import Written, compiled
from nddup.matching.bitmaps import add_parities, scatter

LEAST_BITS = 36
SPARE_BITS = 6
"""Bits beyond those needed to number the ids: one of 64 distinct ids shares its element with another."""

LAST_CLASS = 15
"""The class of all elements with more than 16,384 holders: a class fits half a byte."""

MOST_BITS = 47
"""Maximum number of bits of an element, so that some number of 48 bits is no element."""

RANGE_BITS, FREQUENT = 16, 8
"""Frequent elements are found by counting in 2**RANGE_BITS ranges; see `find_frequent`."""


class Division(NamedTuple):
    """How ids become elements, and which task owns an element.

    An element belongs to the task in whose range it lies. The owner knows its range, so only the rest of the element is
    sent, usually 4 bytes. `bits` depends on the number of ids, never on the number of tasks, so that no result does.
    """

    bits: int
    """Bits of an element, at most `MOST_BITS`."""

    partitions: int
    """Number of tasks, at most 2**16; each owns a range of elements."""

    def owners(self, elements: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the task that owns each element, (n,); owners ascend with the elements."""
        return (elements * np.uint64(self.partitions) >> np.uint64(self.bits)).astype(np.int32)

    def rests(self, elements: NDArray[np.uint64], owners: NDArray[np.int32]) -> NDArray[np.generic]:
        """Return the place of each element in its owner's range, (n,), of `rest_type`."""
        count = np.uint64(self.partitions)
        first = ((owners.astype(np.uint64) << np.uint64(self.bits)) + count - np.uint64(1)) // count
        return (elements - first).astype(self.rest_type)

    @property
    def rest_type(self) -> type[np.generic]:
        """uint32; uint64 if a task owns more than 2**32 elements, as when there are few tasks."""
        return np.uint32 if 1 << self.bits <= self.partitions << 32 else np.uint64


WORDS = 2
"""64-bit words of a bitmap (`nddup.matching.bitmaps`)."""

BEFORE = 5
"""Maximum number of elements before each one that are sent with it."""

NO_ELEMENT = (1 << 48) - 1
"""Stands in place of an element where there is none."""


def divide(ids: int, partitions: int) -> Division:
    """Return the division for this many ids, repeated ones counted each time.

    Example:
        >>> divide(10**6, 16), divide(2 * 10**11, 2_400)
        (Division(bits=36, partitions=16), Division(bits=44, partitions=2400))
    """
    return Division(min(max(LEAST_BITS, SPARE_BITS + ids.bit_length()), MOST_BITS), partitions)


def list_elements(rows: Ragged, bits: int) -> Ragged:
    """Return the distinct elements of each row of ids, ascending.

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
    """Return a mask, (n,), of the elements that are better asked for once, with a count, than once per occurrence.

    They are those in ranges that hold more than four times the mean plus `FREQUENT`. Elements are spread evenly, so
    such a range has one that many sketches hold; and every element that occurs that often is in such a range.
    """
    ranges = (elements >> np.uint64(max(bits - RANGE_BITS, 0))).astype(np.int64)
    counts = np.bincount(ranges, minlength=1)
    return (counts > FREQUENT + 4 * len(elements) / (1 << RANGE_BITS))[ranges]


def rarity_classes(
    elements: NDArray[Any], counts: NDArray[np.int64] | None = None, most: int = 1 << 22
) -> NDArray[np.uint8]:
    """Count how often each of `elements` occurs, as a class: 0 for once, c for 2**(c - 1) + 1 … 2**c times.

    Args:
        elements: (n,), of unsigned numbers.
        counts: weight of each, (n,); None: 1.
        most: about how many are counted at a time: counting takes four times their memory.

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
    """Pack two classes to a byte, run by run; a class above `LAST_CLASS` becomes `LAST_CLASS`.

    Args:
        classes: of all runs, one after another, uint8.
        lengths: of each run, in classes.

    Returns:
        The bytes, and the number of bytes of each run.

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
    """Unpack what `pack_classes` packed, from runs of the same lengths.

    Raises:
        ValueError: if the number of bytes is not that of such runs.
    """
    expected = int(((lengths + 1) // 2).sum())
    if expected != len(packed):
        raise ValueError(f"expected {expected} bytes of classes, got {len(packed)}")
    classes = np.empty(int(lengths.sum()), np.uint8)
    _unpack_runs(packed, lengths, classes)
    return classes


@compiled
def _pack_runs(classes: NDArray[np.uint8], lengths: NDArray[np.int64], packed: Written[np.uint8]) -> None:
    """Write two classes to a byte, the first in its lower half; each run begins in a new byte."""
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
def _unpack_runs(packed: NDArray[np.uint8], lengths: NDArray[np.int64], classes: Written[np.uint8]) -> None:
    at = byte = 0
    for run in range(len(lengths)):
        for place in range(lengths[run]):
            both = packed[byte + (place >> 1)]
            classes[at + place] = both >> 4 if place & 1 else both & LAST_CLASS
        at += lengths[run]
        byte += (lengths[run] + 1) >> 1


@compiled
def _count_classes(elements: NDArray[np.uint64], weights: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Do `rarity_classes` by one open-addressing table, at most half full; a slot holds the place of an element."""
    bits = 4
    while (1 << bits) < 2 * len(elements):
        bits += 1
    mask, shift = (1 << bits) - 1, np.uint64(64 - bits)
    table, counts = np.full(1 << bits, -1, np.int32), np.zeros(len(elements), np.int64)

    # Equal elements are counted at the first of them; `firsts` holds its place for each.
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


class Prefixes(NamedTuple):
    """The m sketches that can be in a pair."""

    sketch: NDArray[np.int64]
    """The number of each row's sketch, (m,)."""

    elements: Ragged
    """Its prefix in the total order, m rows; for a containment, all elements left."""

    left: NDArray[np.int32]
    """Number of its elements left, those with another holder, (m,)."""

    need: NDArray[np.int32]
    """The least number of these that a near-duplicate shares, (m,)."""

    bitmaps: NDArray[np.uint64]
    """Of these elements (`nddup.matching.bitmaps`), (m, WORDS); no owner is chosen by the bits that give the bucket."""


class Posted(NamedTuple):
    """Parts of prefixes for the owners of their elements: r rows ordered by owner; p elements in all."""

    owner: NDArray[np.int32]  # (r,)
    row: NDArray[np.int64]  # (r,), row of `Prefixes`
    rests: Ragged  # r rows: the elements, each by its place in the owner's range
    places: Ragged  # r rows: place of each element in the total order of its sketch
    before: Ragged  # r rows, BEFORE for each element: the elements before it, the nearest first, or NO_ELEMENT


def cut_prefixes(
    elements: Ragged, classes: NDArray[np.uint8], sizes: NDArray[np.int32], bounds: NDArray[np.int32], *, whole: bool
) -> Prefixes:
    """Cut the prefixes of the sketches that have enough elements with another holder.

    Why it is exact. Near-duplicates a and b share at least max(alpha_a, alpha_b) ids. If a sketch loses c ids to
    collisions, alpha of its ids are at least alpha - c distinct elements. So both share max(need_a, need_b) elements,
    where `need` is alpha - c, at least 1. A shared element has two holders, so elements with one holder can be dropped,
    and with them the sketches that have fewer than `need` left. Under one total order the first element that both share
    lies in the prefix of (elements left) - need + 1 of each. The data sent about the elements before and after it never
    rules out a pair at that element.

    Args:
        elements: of each sketch, distinct; n rows.
        classes: how rare each element is, by `elements.rarity_classes`; 0 for one holder.
        sizes: how many ids each sketch has, (n,).
        bounds: alpha_d, (n,).
        whole: return all elements left, in the total order, not only the prefix. One element left is then enough.

    Cost: a sort of the elements left of each sketch.

    Sources:
        Chaudhuri, Ganti, Kaushik 2006, A primitive operator for similarity joins in data cleaning (the prefix filter).
        Xiao, Wang, Lin, Yu 2008, Efficient similarity joins for near duplicate detection (order and positions).
    """
    offsets, ids = elements.offsets, elements.values
    sketch, ends, values, left, need, bitmaps = _cut(offsets, ids, classes, sizes, bounds, whole)
    return Prefixes(sketch, Ragged(ends, values), left, need, bitmaps)


@compiled
def _cut(
    offsets: NDArray[np.int64],
    elements: NDArray[np.uint64],
    classes: NDArray[np.uint8],
    sizes: NDArray[np.int32],
    bounds: NDArray[np.int32],
    whole: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.uint64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.uint64],
]:
    n = len(sizes)
    sketch, starts = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    left, need = np.empty(n, np.int32), np.empty(n, np.int32)
    bitmaps, values = np.zeros((n, WORDS), np.uint64), np.empty(len(elements), np.uint64)
    m, end = 0, 0
    for i in range(n):
        kept = offsets[i] + np.flatnonzero(classes[offsets[i] : offsets[i + 1]])
        least = max(1, bounds[i] - (sizes[i] - (offsets[i + 1] - offsets[i])))
        # With `whole`, a sketch with few elements left may still contain a smaller sketch.
        if len(kept) < (1 if whole else least):
            continue

        # The total order: rarest first, then by a hash. By value, low ranges would own most of the prefixes.
        keys = np.empty(len(kept), np.uint64)
        for k in range(len(kept)):
            keys[k] = (np.uint64(classes[kept[k]]) << np.uint64(56)) | (scatter(elements[kept[k]]) >> np.uint64(8))
        order = np.argsort(keys)
        for k in range(len(kept) if whole else len(kept) - least + 1):
            values[end] = elements[kept[order[k]]]
            end += 1

        add_parities(bitmaps[m], elements[kept])
        sketch[m], left[m], need[m] = i, len(kept), least
        m += 1
        starts[m] = end
    return sketch[:m].copy(), starts[: m + 1].copy(), values[:end].copy(), left[:m].copy(), need[:m].copy(), bitmaps[:m]


def take_all(keys: Ragged, ids: Ragged, bounds: NDArray[np.int32]) -> Prefixes:
    """Make `Prefixes` for sketches that meet at any common key: all elements of the keys, and bitmaps of the ids.

    Args:
        keys: the elements of the keys of each sketch, distinct; n rows.
        ids: of each sketch.
        bounds: alpha_d, (n,).
    """
    sizes = np.diff(ids.offsets).astype(np.int32)
    bitmaps = _parities(ids.offsets, ids.values)
    return Prefixes(np.arange(len(sizes)), keys, sizes, np.maximum(bounds, 1), bitmaps)


@compiled
def _parities(offsets: NDArray[np.int64], ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    bitmaps = np.zeros((len(offsets) - 1, WORDS), np.uint64)
    for i in range(len(offsets) - 1):
        add_parities(bitmaps[i], ids[offsets[i] : offsets[i + 1]])
    return bitmaps


def post(prefixes: Prefixes, division: Division) -> Posted:
    """Split each prefix into the parts that its owners receive.

    Cost: linear; 40 bytes of memory per element.
    """
    elements, lengths = prefixes.elements.values, np.diff(prefixes.elements.offsets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(elements)) - np.repeat(prefixes.elements.offsets[:-1], lengths)
    owners = division.owners(elements)

    # By owner; then, because the sort is stable, by sketch and by place.
    order = np.argsort(owners.astype(np.uint16), kind="stable")
    owner, row, place = owners[order], rows[order], place[order]
    is_first = np.append(np.ones(min(len(order), 1), np.bool_), (np.diff(owner) != 0) | (np.diff(row) != 0))
    first = np.flatnonzero(is_first)
    starts = np.append(first, len(order)).astype(np.int64)

    before = np.full((len(order), BEFORE), NO_ELEMENT, np.uint64)
    for back in range(1, BEFORE + 1):
        has_one = np.flatnonzero(place >= back)
        before[has_one, back - 1] = elements[order[has_one] - back]

    rests = division.rests(elements[order], owner)
    return Posted(
        owner[first],
        row[first],
        Ragged(starts, rests),  # type: ignore[arg-type]
        Ragged(starts, place.astype(np.int32)),
        Ragged(starts * BEFORE, before.ravel()),
    )
