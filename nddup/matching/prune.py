"""Pruning: the features that can be in an overlap of two sketches, found before any sketches are compared.

    number_shared   sketches -> the ids that occur more than once, numbered group by group, in parts that fit a cache
    prune           these    -> Pruned: the sketches with enough features left, round by round

An id that one sketch alone holds is in no overlap; a sketch with fewer features than any overlap needs is in no pair,
and without it more ids are held once. The caller says what runs the parts (`Each`) and whether the memory suffices.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER, Ragged
from nddup.ground.columns import pieces_of
from nddup.ground.kernels import Written, compiled
from nddup.matching.threshold import Threshold

Each: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Calls a function for each part, in threads, and yields the results in the order of the parts."""

LEAST_GAIN = 0.02
"""Pruning goes on while a round drops more than this share of the postings."""

MOST_ROUNDS = 20

FREE = -2
"""Marks a slot of the hash table that holds no id; -1 marks one whose id was seen once."""

GROUP, MOST_GROUPS = 1 << 19, 1 << 12
"""Ids in a group, which a thread numbers at a time in some 20 MB; and the most groups, chosen by the highest bits."""

ROUND = 1 << 26
"""Ids in the groups of a round, which is a pass over all ids in their order: a mapped file may not fit in memory."""

PART, PART_SHIFT = 1 << 14, 44
"""Ids in a part of a group, whose hash table stays in the cache; and the place of the bits that choose the part, below
those that choose the group and above those that choose a slot."""


class Pruned(NamedTuple):
    """The m sketches with enough features left."""

    rows: NDArray[np.int64]
    """Their places among the sketches given, (m,), ascending."""

    bounds: NDArray[np.int32]
    """Minimum number of features that each needs, (m,)."""

    offsets: NDArray[np.int64]
    """(m + 1,), of `features`."""

    features: NDArray[np.int32]
    """The features left, as places in the total order: fewest holders first; ascending in a row."""

    holders: NDArray[np.int32]
    """The number of sketches that hold each feature, by its place in the total order."""

    rounds: list[int]
    """Postings left after each round."""


def prune(
    sketches: Ragged,
    totals: NDArray[np.int32],
    threshold: Threshold,
    each: Each,
    require: Callable[[int], None] | None = None,
) -> Pruned:
    """Drop features that can be in no overlap, round by round, until a round drops almost nothing.

    Args:
        sketches: m distinct, non-empty sketches.
        totals: (m,), what bounds the overlap of each (`Threshold.totals`).
        threshold: when two are near-duplicates.
        each: runs the counting.
        require: raises if there is no memory for so many places of ids in common.

    Cost: `number_shared`, then passes over the postings left; 4 bytes an id, and 8 for each that two sketches share.
    """
    sizes = np.diff(sketches.offsets).astype(np.int32)
    bounds = threshold.prune_bounds(totals)
    numbers, count, shared = number_shared(sketches, bounds <= sizes, each)
    if require is not None:
        require(shared)
    _renumber(numbers, count)
    rows, offsets = np.arange(len(sizes)), sketches.offsets
    rounds: list[int] = []
    while True:
        holders = _count_holders(numbers, count)
        stays, offsets, numbers = _drop(offsets, numbers, holders, bounds)
        rows, bounds = rows[stays], bounds[stays]
        rounds.append(len(numbers))
        is_done = len(rounds) > 1 and rounds[-2] - rounds[-1] <= LEAST_GAIN * rounds[-2]
        if rounds[-1] == 0 or is_done or len(rounds) == MOST_ROUNDS:
            break
    ranks, by_rank = _rank(holders)
    return Pruned(rows, bounds, offsets, _rank_rows(offsets, numbers, ranks), by_rank, rounds)


def number_shared(sketches: Ragged, possible: NDArray[np.bool_], each: Each) -> tuple[NDArray[np.int32], int, int]:
    """Number the ids that occur more than once.

    Args:
        sketches: m rows.
        possible: (m,), which of them are looked at.
        each: runs the counting.

    Returns:
        The number of each id, -1 where it occurs once or its row is not looked at; how many numbers there are; and how
        many places have one.

    Cost: a pass over all ids for each `ROUND` of them, 37 ns an id; 4 bytes an id, and 12 for each of a round.
    """
    total = len(sketches.values)
    numbers = np.full(total, -1, np.int32)
    groups = 1
    while groups < MOST_GROUPS and groups * GROUP < total:
        groups *= 2
    ends = _count_groups(sketches.offsets, sketches.values, possible, groups)
    place_type = np.uint32 if total <= 1 << 32 else np.int64
    count = n_shared = 0
    for piece in pieces_of(np.diff(ends), ROUND):
        bounds = ends[piece.start : piece.stop + 1] - ends[piece.start]
        places, ids = np.empty(bounds[-1], place_type), np.empty(bounds[-1], np.uint64)
        gather = partial(_gather, sketches, possible, groups, piece.start, bounds, places, ids)
        middle = int(np.searchsorted(bounds, bounds[-1] // 2))
        for _ in each(gather, [(0, middle), (middle, len(bounds) - 1)]):  # each is a pass over all ids
            pass
        parts = [(places[low:high], ids[low:high]) for low, high in pairwise(bounds.tolist())]
        for shared, ordinals, theirs in each(_number_part, parts):
            numbers[shared] = ordinals + np.int32(count)
            count += theirs
            n_shared += len(shared)
    return numbers, count, n_shared


def _gather(
    sketches: Ragged,
    possible: NDArray[np.bool_],
    groups: int,
    first: int,
    bounds: NDArray[np.int64],
    places: NDArray[np.integer],
    ids: NDArray[np.uint64],
    part: tuple[int, int],
) -> None:
    low, high = part
    starts = bounds[low:high].copy()
    _gather_groups(sketches.offsets, sketches.values, possible, groups, first + low, starts, places, ids)


def _number_part(
    part: tuple[NDArray[np.integer], NDArray[np.uint64]],
) -> tuple[NDArray[np.integer], NDArray[np.int32], int]:
    return number_ids(*part)


@compiled
def _count_groups(
    offsets: NDArray[np.int64], values: NDArray[np.uint64], possible: NDArray[np.bool_], groups: int
) -> NDArray[np.int64]:
    """Return where the ids of each group end, after a zero, of the rows that are looked at."""
    ends = np.zeros(groups + 1, np.int64)
    for row in range(len(possible)):
        if possible[row]:
            for at in range(offsets[row], offsets[row + 1]):
                ends[group_of(values[at], groups) + 1] += 1
    for group in range(groups):
        ends[group + 1] += ends[group]
    return ends


@compiled
def group_of(value: np.uint64, groups: int) -> int:
    """Return the group of an id, by its highest scattered bits; `groups` is a power of two, at most `MOST_GROUPS`."""
    return int(np.int64((value * HASH_MULTIPLIER) >> np.uint64(64 - 12)) & (groups - 1))


@compiled
def _gather_groups(
    offsets: NDArray[np.int64],
    values: NDArray[np.uint64],
    possible: NDArray[np.bool_],
    groups: int,
    first: int,
    starts: Written[np.int64],
    places: Written[np.integer],
    ids: Written[np.uint64],
) -> None:
    """Write the ids of consecutive groups, from the first, and their places; `starts` are advanced to the ends."""
    for row in range(len(possible)):
        if possible[row]:
            for at in range(offsets[row], offsets[row + 1]):
                group = group_of(values[at], groups) - first
                if 0 <= group < len(starts):
                    places[starts[group]], ids[starts[group]] = at, values[at]
                    starts[group] += 1


@compiled
def number_ids(
    places: Written[np.integer], ids_there: NDArray[np.uint64]
) -> tuple[NDArray[np.integer], NDArray[np.int32], int]:
    """Number the ids that occur more than once at these places.

    Returns:
        Their places, the number at each, and how many numbers there are.
    """
    ends, places, keys = _split(places, ids_there)
    most, one = np.int64(0), np.int64(1)
    for part in range(len(ends) - 1):
        most = max(most, ends[part + 1] - ends[part])
    seen, owners = np.empty(4 * most + 2, np.uint64), np.empty(4 * most + 2, np.int32)
    slots = np.empty(most, np.int32)
    numbers = np.empty(len(places), np.int32)
    count = n_shared = 0
    for part in range(len(ends) - 1):
        size = 2
        while size < 2 * (ends[part + 1] - ends[part]):
            size *= 2
        mask = np.int64(size - 1)
        owners[:size] = FREE
        for i in range(ends[part], ends[part + 1]):
            scattered = keys[i] * HASH_MULTIPLIER  # its high bits chose the group and the part
            slot = np.int64(scattered ^ (scattered >> np.uint64(29))) & mask
            while owners[slot] != FREE and seen[slot] != keys[i]:
                slot = (slot + one) & mask
            if owners[slot] == FREE:
                owners[slot] = -1
                seen[slot] = keys[i]
            elif owners[slot] == -1:
                owners[slot] = count
                count += 1
            slots[i - ends[part]] = slot

        for i in range(ends[part], ends[part + 1]):  # at most as many are shared as were read: they are written over
            places[n_shared], numbers[n_shared] = places[i], owners[slots[i - ends[part]]]
            n_shared += numbers[n_shared] >= 0
    return places[:n_shared].copy(), numbers[:n_shared].copy(), count


@compiled
def _split(
    places: NDArray[np.integer], ids: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.integer], NDArray[np.uint64]]:
    """Sort places and their ids into parts of some `PART` ids by scattered bits.

    Returns:
        The end of each part, after a zero; the places, in order within a part; and the ids at them.
    """
    parts = 1
    while parts * PART < len(places):
        parts *= 2
    shift, mask = np.uint64(PART_SHIFT), np.uint64(parts - 1)
    ends = np.zeros(parts + 1, np.int64)
    for key in ids:
        ends[np.int64((key * HASH_MULTIPLIER) >> shift & mask) + 1] += 1
    for part in range(parts):
        ends[part + 1] += ends[part]

    filled, moved, keys = ends[:-1].copy(), np.empty_like(places), np.empty_like(ids)
    for i in range(len(places)):
        part = int(np.int64((ids[i] * HASH_MULTIPLIER) >> shift & mask))
        moved[filled[part]], keys[filled[part]] = places[i], ids[i]
        filled[part] += 1
    return ends, moved, keys


@compiled
def _renumber(numbers: Written[np.int32], count: int) -> None:
    """Number the ids anew, in the order in which they first occur; negative ones stay.

    All that is looked up by number from here on then lies together for the ids of one sketch and those like it.
    """
    renumbered, n_seen = np.full(count, -1, np.int32), 0
    for at in range(len(numbers)):
        number = numbers[at]
        if number >= 0:
            if renumbered[number] < 0:
                renumbered[number] = n_seen
                n_seen += 1
            numbers[at] = renumbered[number]


@compiled
def _drop(
    offsets: NDArray[np.int64], numbers: Written[np.int32], holders: NDArray[np.int32], bounds: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Drop features with one holder, then rows with fewer features left than they need; the rest are moved up."""
    rows = np.empty(len(bounds), np.int64)
    starts = np.zeros(len(bounds) + 1, np.int64)
    count = end = 0
    for row in range(len(bounds)):
        begin = end
        for at in range(offsets[row], offsets[row + 1]):
            if numbers[at] >= 0 and holders[numbers[at]] > 1:
                numbers[end] = numbers[at]
                end += 1
        if end - begin < bounds[row] or end == begin:
            end = begin
        else:
            rows[count] = row
            count += 1
            starts[count] = end
    return rows[:count].copy(), starts[: count + 1].copy(), numbers[:end]


@compiled
def _rank(holders: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the place of each feature by its number of holders, then by its number; and the holders by place."""
    most = 0
    for count in holders:
        most = max(most, count)
    starts = np.zeros(most + 2, np.int64)
    for count in holders:
        starts[count + 1] += 1
    for count in range(most + 1):
        starts[count + 1] += starts[count]
    ranks, by_rank = np.empty(len(holders), np.int32), np.empty(len(holders), np.int32)
    for number in range(len(holders)):
        rank = starts[holders[number]]
        starts[holders[number]] += 1
        ranks[number], by_rank[rank] = rank, holders[number]
    return ranks, by_rank


@compiled
def _count_holders(numbers: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Return how often each number occurs, (count,); negative ones are none."""
    holders = np.zeros(count, np.int32)
    for number in numbers:
        if number >= 0:
            holders[number] += 1
    return holders


@compiled
def _rank_rows(offsets: NDArray[np.int64], numbers: Written[np.int32], ranks: NDArray[np.int32]) -> NDArray[np.int32]:
    """Replace the numbers of features by their places in the total order, ascending in each row."""
    for row in range(len(offsets) - 1):
        low, high = offsets[row], offsets[row + 1]
        for at in range(low, high):
            numbers[at] = ranks[numbers[at]]
        numbers[low:high] = np.sort(numbers[low:high])
    return numbers
