"""Sketches that may be near another, found before any id is numbered: by a filter of the ids that occur again.

    sift          sketches, bounds -> which of them hold enough ids that may occur in another
    sifted_bytes  ids              -> the memory that it takes

Of very many sketches most are near no other, and their ids, once each, would be held to learn so. Here each id has two
bits, at a place that it may share with others: whether it was seen, and seen again. So an id may seem to occur again
that does not, and none is missed.

Source: Bloom 1970, Space/time trade-offs in hash coding with allowable errors; with one hash and counts up to two.
"""

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER, Ragged
from nddup.ground.kernels import Written, compiled
from nddup.matching.prune import Each

SLOTS = 4
"""Slots for each id, at least: a fifth of the ids that occur once then seem to occur again, at most."""

SLOT_BITS, SLOTS_OF_WORD = 2, 32

TOGETHER = 1 << 20
"""Ids that are brought into the order of their slots before these are marked: at random each would miss the cache."""

BUCKET_BITS = 8

PARTS = 64
"""Parts of the rows, each looked up by one thread."""


def sifted_bytes(ids: int) -> int:
    """Return the bytes that `sift` takes for so many ids: one to two an id."""
    return SLOT_BITS * (1 << _bits_of(ids)) // 8


def _bits_of(ids: int) -> int:
    return max((SLOTS * ids - 1).bit_length(), BUCKET_BITS + 8)


def sift(
    sketches: Ragged, rows: NDArray[np.int64], bounds: NDArray[np.int32], each: Each, threads: int
) -> NDArray[np.bool_]:
    """Tell which sketches may be in a pair.

    Args:
        sketches: rows of distinct ids; they may lie in a mapped file.
        rows: (m,), the rows to look at, ascending.
        bounds: (m,), the fewest ids that each must have in common with another.
        each: runs the parts.
        threads: how many run at a time; each passes over all ids to mark its share of the slots.

    Returns:
        (m,), true for every sketch that has `bounds` ids in common with others, and for few besides.

    Cost: two passes over the ids, 30 ns an id; `sifted_bytes`, and 20 MB a thread.
    """
    sizes = sketches.offsets[rows + 1] - sketches.offsets[rows]
    bits, shares = _bits_of(int(sizes.sum())), 1 << max(threads - 1, 0).bit_length()
    slots = np.zeros((1 << bits) // SLOTS_OF_WORD, np.uint64)
    for _ in each(partial(_mark, *sketches, rows, slots, bits, shares), range(shares)):
        pass
    look = partial(_look, sketches, rows, bounds, slots, bits)
    cuts = np.linspace(0, len(rows), PARTS + 1).astype(int).tolist()
    return np.concatenate(list(each(look, [range(low, high) for low, high in pairwise(cuts)])))


def _look(
    sketches: Ragged,
    rows: NDArray[np.int64],
    bounds: NDArray[np.int32],
    slots: NDArray[np.uint64],
    bits: int,
    part: range,
) -> NDArray[np.bool_]:
    return _hold_enough(sketches.offsets, sketches.values, rows, bounds, slots, bits, part.start, part.stop)


@compiled
def _mark(
    offsets: NDArray[np.int64],
    values: NDArray[np.uint64],
    rows: NDArray[np.int64],
    slots: Written[np.uint64],
    bits: int,
    shares: int,
    share: int,
) -> None:
    """Mark the ids whose slot, by its number, is in one of so many equal shares."""
    shift, mine, share_bits = np.uint64(64 - bits), np.uint64(share), 0
    while 1 << share_bits < (1 << bits) // shares:
        share_bits += 1
    of_share = np.uint64(share_bits)
    batch, count = np.empty(TOGETHER, np.uint64), 0
    for row in rows:
        for at in range(offsets[row], offsets[row + 1]):
            slot = (values[at] * HASH_MULTIPLIER) >> shift
            batch[count] = slot
            count += slot >> of_share == mine
            if count == TOGETHER:
                _mark_batch(batch, slots, np.uint64(bits - BUCKET_BITS))
                count = 0
    _mark_batch(batch[:count], slots, np.uint64(bits - BUCKET_BITS))


@compiled
def _mark_batch(batch: NDArray[np.uint64], slots: Written[np.uint64], shift: np.uint64) -> None:
    """Count slots up to two, in an order in which those near each other are together."""
    ends = np.zeros((1 << BUCKET_BITS) + 1, np.int64)
    for slot in batch:
        ends[np.int64(slot >> shift) + 1] += 1
    for bucket in range(1 << BUCKET_BITS):
        ends[bucket + 1] += ends[bucket]
    moved = np.empty_like(batch)
    for slot in batch:
        at = np.int64(slot >> shift)
        moved[ends[at]] = slot
        ends[at] += 1
    one, two, within = np.uint64(1), np.uint64(2), np.uint64(SLOTS_OF_WORD - 1)
    for slot in moved:
        word, place = np.int64(slot >> np.uint64(5)), (slot & within) << one
        is_less = np.uint64((slots[word] >> place) & np.uint64(3) < two)
        slots[word] += is_less << place


@compiled
def _hold_enough(
    offsets: NDArray[np.int64],
    values: NDArray[np.uint64],
    rows: NDArray[np.int64],
    bounds: NDArray[np.int32],
    slots: NDArray[np.uint64],
    bits: int,
    start: int,
    stop: int,
) -> NDArray[np.bool_]:
    """Return which of some rows hold as many ids seen again as they need."""
    shift, one, within = np.uint64(64 - bits), np.uint64(1), np.uint64(SLOTS_OF_WORD - 1)
    enough = np.empty(stop - start, np.bool_)
    for i in range(start, stop):
        at, end, need = offsets[rows[i]], offsets[rows[i] + 1], int(bounds[i])
        while 0 < need <= end - at:
            slot = (values[at] * HASH_MULTIPLIER) >> shift
            again = (slots[np.int64(slot >> np.uint64(5))] >> ((slot & within) << one)) >> one & one
            need -= int(again)
            at += 1
        enough[i - start] = need <= 0
    return enough
