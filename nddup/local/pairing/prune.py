"""Divide and prune: from distinct sketches to the features that can be in an overlap, rarest first.

The rounds, and why stopping after any of them is exact, are explained in `nddup.matching.overlap_join`. Here the
features that two or more sketches hold are numbered once, so that a round counts small numbers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, Ragged, compiled
from nddup.local.workers import Workers
from nddup.matching.threshold import Threshold

LEAST_GAIN = 0.02
"""Pruning goes on while a round drops more than this share of the postings."""

MOST_ROUNDS = 20

FREE = -2
"""Marks a slot of the hash table that holds no id; -1 marks one whose id was seen once."""

KEYS, PIECES, MOST_KEYS = 1 << 22, 16, (1 << 23) - (1 << 17)
"""Ids in a piece: its hash table of some 100 MB is read faster than a larger one. Each piece is a pass over all ids, so
there are more than `PIECES` only where a table would have more than `MOST_KEYS` ids, or 200 MB for each thread. Pieces
differ a little in size, so this is a little below a power of two, at which a table doubles."""


class Pruned(NamedTuple):
    """The m sketches with enough features left."""

    rows: NDArray[np.int64]
    """Their places among the sketches given, (m,), ascending."""

    bounds: NDArray[np.int32]
    """Least number of features that each needs, (m,)."""

    offsets: NDArray[np.int64]
    """(m + 1,), of `features`."""

    features: NDArray[np.int32]
    """The features left, as places in the total order: fewest holders first, then by id; ascending in a row."""

    holders: NDArray[np.int32]
    """The number of sketches that hold each feature, by its place in the total order."""

    rounds: list[int]
    """Postings left after each round."""


def prune(sketches: Ragged, threshold: Threshold, workers: Workers) -> Pruned:
    """Drop features that can be in no overlap, round by round, until a round drops almost nothing.

    Args:
        sketches: m distinct, non-empty sketches.
        threshold: when two are near-duplicates.
        workers: the threads to count with.

    Cost: `number_shared`, then passes over the postings left; 12 bytes an id.
    """
    sizes = np.diff(sketches.offsets).astype(np.int32)
    bounds = threshold.prune_bounds(sizes)
    numbers, ids = number_shared(sketches, bounds <= sizes, workers)
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


def number_shared(
    sketches: Ragged, possible: NDArray[np.bool_], workers: Workers
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Number the ids that occur more than once.

    Args:
        sketches: m rows.
        possible: (m,), which of them are looked at.
        workers: the threads to count with.

    Returns:
        The number of each id, -1 where it occurs once or its row is not looked at; and the ids by number.

    Cost: a pass over the ids for each piece.
    """
    numbers = np.full(len(sketches.values), -1, np.int32)
    total = len(sketches.values)
    pieces = max(workers.count, min(PIECES, -(-total // KEYS)), -(-total // MOST_KEYS))

    def count(piece: int) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint64]]:
        return number_ids(sketches.values, _pick(sketches.offsets, sketches.values, possible, piece, pieces))

    by_number, start = [np.empty(0, np.uint64)], 0
    for places, ordinals, ids in workers.work("prune", count, range(pieces)):  # a piece is released after its turn
        numbers[places] = ordinals + np.int32(start)
        by_number.append(ids)
        start += len(ids)
    return numbers, np.concatenate(by_number)


@compiled
def _pick(
    offsets: NDArray[np.int64], values: NDArray[np.uint64], possible: NDArray[np.bool_], piece: int, pieces: int
) -> NDArray[np.int64]:
    """Return the places of the ids that fall into one piece, in the rows that are looked at."""
    places = np.empty(len(values) // pieces + 1024, np.int64)
    half, first, number = np.uint64(32), np.uint64(piece), np.uint64(pieces)
    count = 0
    for row in range(len(possible)):
        if not possible[row]:
            continue
        for at in range(offsets[row], offsets[row + 1]):
            if ((values[at] * HASH_MULTIPLIER) >> half) * number >> half != first:
                continue
            if count == len(places):
                places = np.concatenate((places, np.empty_like(places)))
            places[count] = at
            count += 1
    return places[:count]


@compiled
def number_ids(
    values: NDArray[np.uint64], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint64]]:
    """Number the ids that occur more than once at these places: return their places, their numbers, ids by number."""
    bits = 4
    while (1 << bits) < 2 * len(places):
        bits += 1
    mask, one = np.int64((1 << bits) - 1), np.int64(1)
    keys, owners = np.empty(1 << bits, np.uint64), np.full(1 << bits, FREE, np.int32)
    slots = np.empty(len(places), np.int32)
    count = n_shared = 0
    for i in range(len(places)):
        key = values[places[i]]
        scattered = key * HASH_MULTIPLIER  # its high bits chose the piece
        slot = np.int64(scattered ^ (scattered >> np.uint64(29))) & mask
        while owners[slot] != FREE and keys[slot] != key:
            slot = (slot + one) & mask
        if owners[slot] == FREE:
            owners[slot] = -1
            keys[slot] = key
        elif owners[slot] == -1:
            owners[slot] = count
            count += 1
        slots[i] = slot

    for i in range(len(places)):
        n_shared += owners[slots[i]] >= 0
    shared, numbers, ids = np.empty(n_shared, np.int64), np.empty(n_shared, np.int32), np.empty(count, np.uint64)
    at = 0
    for i in range(len(places)):
        number = owners[slots[i]]
        if number >= 0:
            shared[at] = places[i]
            numbers[at] = number
            ids[number] = keys[slots[i]]
            at += 1
    return shared, numbers, ids


@compiled
def _drop(
    offsets: NDArray[np.int64], numbers: NDArray[np.int32], holders: NDArray[np.int32], bounds: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Drop features with one holder, then rows with fewer features left than they need."""
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
    """Sort each row in ascending order, in place."""
    for row in range(len(offsets) - 1):
        values[offsets[row] : offsets[row + 1]] = np.sort(values[offsets[row] : offsets[row + 1]])
    return values
