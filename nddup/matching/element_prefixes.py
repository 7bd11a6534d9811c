"""The prefixes of sketches as elements, and the rows that are sent to the owners of these elements.

    elements, classes  --cut_prefixes-->  prefixes     sketches that can be in a pair, rarest elements first
    prefixes           --post-->          posted       a row per sketch and owner of a part of its prefix

Why it is exact. Near-duplicates a and b share at least max(alpha_a, alpha_b) ids. If a sketch loses c ids to
collisions, alpha of its ids are at least alpha - c distinct elements. So both share max(need_a, need_b) elements, where
`need` is alpha - c, at least 1. A shared element has two holders, so elements with one holder can be dropped, and with
them the sketches that have fewer than `need` left. Under one total order the first element that both share lies in the
prefix of (elements left) - need + 1 of each. The data sent about the elements before and after it never rules out a
pair at that element.

Sources:
    Chaudhuri, Ganti, Kaushik 2006, A primitive operator for similarity joins in data cleaning (the prefix filter).
    Xiao, Wang, Lin, Yu 2008, Efficient similarity joins for near duplicate detection (order and positions).
    Sandes, Teodoro, Melo 2017, Bitmap filter: speeding up exact set similarity joins with bitwise operations.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled
from nddup.matching.elements import Division, scatter

WORDS = 2
"""64-bit words of a bitmap."""

BEFORE = 5
"""Most elements before each one that are sent with it."""

NO_ELEMENT = (1 << 48) - 1
"""Stands in place of an element where there is none."""


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
    """The parity of the count of these elements in each of 64 * WORDS buckets, (m, WORDS): two sketches with l and r
    elements that share c of them differ in at most l + r - 2 c buckets."""


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

    Args:
        elements: of each sketch, distinct; n rows.
        classes: how rare each element is, by `elements.rarity_classes`; 0 for one holder.
        sizes: how many ids each sketch has, (n,).
        bounds: alpha_d, (n,).
        whole: return all elements left, in the total order, not only the prefix. One element left is then enough.

    Cost: a sort of the elements left of each sketch.
    """
    found = _cut(elements.offsets, elements.values, classes, sizes, bounds, whole)
    sketch, ends, values, left, need, bitmaps = found
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


@compiled
def add_parities(bitmap: NDArray[np.uint64], values: NDArray[np.uint64]) -> None:
    """Flip the bit of each value's bucket; no owner is chosen by the bits that give the bucket."""
    for value in values:
        bucket = scatter(value ^ np.uint64(0x5555)) & np.uint64(64 * WORDS - 1)
        bitmap[bucket >> np.uint64(6)] ^= np.uint64(1) << (bucket & np.uint64(63))


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
