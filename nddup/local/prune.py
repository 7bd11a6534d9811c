"""Divide and prune: from distinct sketches to the features that can be in an overlap, rarest first.

The rounds, and why stopping after any of them is exact, are those of `nddup.matching.prefix_filter`. Here the features
that two sketches or more hold are numbered once; a round then counts small numbers.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, Ragged, compiled
from nddup.matching.threshold import Threshold

LEAST_GAIN = 0.02
"""Pruning goes on while a round drops more than this share of the postings."""

MOST_ROUNDS = 20

KEYS = 1 << 24
"""Ids that are numbered at a time: tables of some 400 MB."""


class Pruned(NamedTuple):
    """The m sketches with enough features left."""

    rows: NDArray[np.int64]
    """Their places among the sketches given, (m,), ascending."""

    bounds: NDArray[np.int32]
    """The features that each needs, (m,)."""

    offsets: NDArray[np.int64]
    """(m + 1,), of `features`."""

    features: NDArray[np.int32]
    """The places of the features left in the total order: fewest holders first, then by id; ascending in a row."""

    holders: NDArray[np.int32]
    """How many sketches hold each feature, by its place in the total order."""

    rounds: list[int]
    """Postings left after each round."""


def prune(sketches: Ragged, *, threshold: Threshold, threads: ThreadPoolExecutor, parts: int) -> Pruned:
    """Drop what can be in no overlap, round by round, until a round drops almost nothing.

    Args:
        sketches: m distinct, non-empty sketches.
        threshold: when two are near-duplicates.
        threads: to count with.
        parts: how many of them.

    Cost: one pass over the ids with a table of them, then passes over the postings left; 12 bytes an id.
    """
    sizes = np.diff(sketches.offsets).astype(np.int32)
    bounds = threshold.prune_bounds(sizes)
    numbers, ids = number_shared(sketches.values, bounds, sizes, sketches.offsets, threads=threads, parts=parts)
    rows, offsets = np.arange(len(sizes)), sketches.offsets
    rounds: list[int] = []
    while True:
        holders = np.bincount(numbers[numbers >= 0], minlength=len(ids)).astype(np.int32)
        stays, offsets, numbers = _drop(offsets, numbers, holders, bounds)
        rows, bounds = rows[stays], bounds[stays]
        rounds.append(len(numbers))
        is_done = len(rounds) > 1 and rounds[-2] - rounds[-1] <= LEAST_GAIN * rounds[-2]
        if rounds[-1] == 0 or is_done or len(rounds) == MOST_ROUNDS:
            break
    ranks = np.empty(len(ids), np.int32)
    by_rarity = np.lexsort((ids, holders))
    ranks[by_rarity] = np.arange(len(ids), dtype=np.int32)
    return Pruned(rows, bounds, offsets, _sort_rows(offsets, ranks[numbers]), holders[by_rarity], rounds)


def number_shared(  # noqa: PLR0913 - a ragged array, who takes part, and how
    values: NDArray[np.uint64],
    bounds: NDArray[np.int32],
    sizes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    *,
    threads: ThreadPoolExecutor,
    parts: int,
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Number the ids that occur more than once, in sketches that are as large as their bound.

    Returns:
        The number of each id, -1 where it occurs once or its sketch is too small; and the ids by number.
    """
    numbers = np.full(len(values), -1, np.int32)
    pieces = max(parts, -(-len(values) // KEYS))
    possible = bounds <= sizes

    def count(piece: int) -> NDArray[np.uint64]:
        return _number_piece(values, offsets, possible, np.uint64(piece), np.uint64(pieces), numbers)

    found = list(threads.map(count, range(pieces)))
    starts = np.cumsum([0, *(len(ids) for ids in found)])

    def shift(piece: int) -> None:
        if starts[piece]:
            _shift(values, numbers, np.uint64(piece), np.uint64(pieces), starts[piece])

    list(threads.map(shift, range(pieces)))
    return numbers, np.concatenate(found)


@compiled
def _number_piece(  # noqa: PLR0913 - arrays of one loop
    values: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    possible: NDArray[np.bool_],
    piece: np.uint64,
    pieces: np.uint64,
    numbers: NDArray[np.int32],
) -> NDArray[np.uint64]:
    """Number the shared ids of one piece of all ids, from 0; the ids themselves by number."""
    half = np.uint64(32)
    total = 0
    for row in range(len(possible)):
        if possible[row]:
            for at in range(offsets[row], offsets[row + 1]):
                total += ((values[at] * HASH_MULTIPLIER) >> half) * pieces >> half == piece
    bits = 4
    while (1 << bits) < 2 * total:
        bits += 1
    mask, low = (1 << bits) - 1, np.uint64(0xFFFFFFFF)
    keys, slots = np.empty(1 << bits, np.uint64), np.full(1 << bits, -2, np.int32)  # -2 free, -1 seen once
    count = 0
    for row in range(len(possible)):
        if not possible[row]:
            continue
        for at in range(offsets[row], offsets[row + 1]):
            scattered = values[at] * HASH_MULTIPLIER
            if (scattered >> half) * pieces >> half != piece:
                continue
            slot = np.int64((scattered ^ (scattered >> np.uint64(29))) & low) & mask
            while slots[slot] != -2 and keys[slot] != values[at]:
                slot = (slot + 1) & mask
            if slots[slot] == -2:
                slots[slot] = -1
                keys[slot] = values[at]
            elif slots[slot] == -1:
                slots[slot] = count
                count += 1
            numbers[at] = slot
    shared = np.empty(count, np.uint64)
    for slot in range(len(slots)):
        if slots[slot] >= 0:
            shared[slots[slot]] = keys[slot]
    for row in range(len(possible)):
        if not possible[row]:
            continue
        for at in range(offsets[row], offsets[row + 1]):
            if ((values[at] * HASH_MULTIPLIER) >> half) * pieces >> half == piece:
                numbers[at] = slots[numbers[at]]
    return shared


@compiled
def _shift(
    values: NDArray[np.uint64], numbers: NDArray[np.int32], piece: np.uint64, pieces: np.uint64, start: np.int64
) -> None:
    """Add what was numbered in earlier pieces to the numbers of one."""
    half = np.uint64(32)
    for at in range(len(values)):
        if numbers[at] >= 0 and ((values[at] * HASH_MULTIPLIER) >> half) * pieces >> half == piece:
            numbers[at] += start


@compiled
def _drop(
    offsets: NDArray[np.int64], numbers: NDArray[np.int32], holders: NDArray[np.int32], bounds: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Drop features of one holder, then rows with fewer left than they need."""
    rows = np.empty(len(bounds), np.int64)
    starts = np.zeros(len(bounds) + 1, np.int64)
    kept = np.empty(len(numbers), np.int32)
    count = end = 0
    for row in range(len(bounds)):
        begin = end
        for at in range(offsets[row], offsets[row + 1]):
            if numbers[at] >= 0 and holders[numbers[at]] > 1:
                kept[end] = numbers[at]
                end += 1
        if end - begin < bounds[row] or end == begin:
            end = begin
        else:
            rows[count] = row
            count += 1
            starts[count] = end
    return rows[:count].copy(), starts[: count + 1].copy(), kept[:end].copy()


@compiled
def _sort_rows(offsets: NDArray[np.int64], values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each row in ascending order, in place."""
    for row in range(len(offsets) - 1):
        values[offsets[row] : offsets[row + 1]] = np.sort(values[offsets[row] : offsets[row + 1]])
    return values
