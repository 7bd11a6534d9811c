"""All near-duplicates of some sketches among many, found without the code by which a run searches.

    Probes        sketches indexed by feature
    near_each     about how many probes are near a sketch
    find_near     every overlap of a batch of sketches with ALL probes; the pairs that are near-duplicates by definition
    count_common  how many ids pairs of sets have in common

The only shortcuts follow from the definitions: sketches that share no feature have overlap 0, resemblance never exceeds
overlap over the size of the sample, and which common ids are among the s smallest of A | B follows from their places.

Source:
    Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (MIN_s and its resemblance).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER
from nddup.ground.kernels import Written, compiled
from nddup.verifying.definitions import Definition, Rows, bound_of, gather, is_near, judge

FOUND = 7
"""Numbers per pair that the kernel returns: place in the batch, probe, and the five results of `compare`."""

BLOCK = 64
"""Overlaps that are tested in one step."""

DRAWN = 64
"""Sketches that are compared with all probes to estimate how many are near each."""

FEW = 16
"""Up to p / 16 holders are tested one by one; above that, all p counts in blocks are as fast."""


class Near(NamedTuple):
    """k near-duplicate pairs of a sketch of the batch and a probe; each array is (k,)."""

    rows: NDArray[np.int64]
    """Place in the batch."""

    probes: NDArray[np.int64]
    """Place among the probes."""

    overlap: NDArray[np.int64]
    resemblance: NDArray[np.float64]
    within: NDArray[np.float64]
    """Containment of the batch's sketch in the probe."""

    around: NDArray[np.float64]
    """Containment of the probe in the batch's sketch."""

    def take(self, pairs: NDArray[np.int64]) -> "Near":
        """Return some of the pairs."""
        return Near(*(column[pairs] for column in self))  # type: ignore[arg-type]


class Index(NamedTuple):
    """The holders of each distinct id of the probes; the number of an id is found in a hash table.

    The holders of one id lie together, in the order of the probes, so that a common id costs one step for each.
    """

    slots: NDArray[np.int32]  # (a power of two,), the number of the id at each slot, -1: none; two thirds full at most
    ids: NDArray[np.uint64]  # (d,), the distinct ids by number
    starts: NDArray[np.int64]  # (d + 1,), those that hold id i are at `starts[i]` to `starts[i + 1]` - 1
    holders: NDArray[np.int32]  # (number of all ids,), probes
    ranks: NDArray[np.int32]  # (number of all ids,), place of the id in the sketch of each holder
    is_last: NDArray[np.bool_]  # (number of all ids,), whether no later probe holds it; by place in the probes


class Probes:
    """Sketches that all others are compared with, indexed by their features.

    Attributes:
        sketches: p sketches of fewer than 2^31 ids together.
        index: the holders of their features.
    """

    def __init__(self, sketches: Rows) -> None:
        """Index p sketches by feature; p may be 0. Cost: two steps for each of their ids."""
        self.sketches = sketches
        self.index = _index(sketches.offsets, sketches.ids)

    @property
    def meetings(self) -> int:
        """How often two probes hold the same id, a probe and itself included: the steps of comparing all with all."""
        holders = np.diff(self.index.starts)
        return int(holders @ holders)


@compiled
def find_slot(id_: np.uint64, slots: NDArray[np.int32], ids: NDArray[np.uint64]) -> np.int64:
    """Return the slot of an id, or the free one that ends the search for it.

    The ids of minima are the small ones, so a product is taken, whose high bits vary.
    """
    last = np.uint64(len(slots) - 1)
    slot = ((id_ * HASH_MULTIPLIER) >> np.uint64(32)) & last
    while slots[slot] >= 0 and ids[slots[slot]] != id_:
        slot = (slot + np.uint64(1)) & last
    return np.int64(slot)


@compiled
def number_ids(ids: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.uint64], NDArray[np.int32]]:
    """Number ids as they first occur. Return the hash table of `Index`, the distinct ids, and the number of each id."""
    size = 16
    while 2 * size < 3 * len(ids):
        size *= 2
    slots, distinct, d = np.full(size, -1, np.int32), np.empty(len(ids), np.uint64), 0
    numbers = np.empty(len(ids), np.int32)
    for i in range(len(ids)):
        slot = find_slot(ids[i], slots, distinct)
        if slots[slot] < 0:
            slots[slot], distinct[d] = d, ids[i]
            d += 1
        numbers[i] = slots[slot]
    return slots, distinct[:d].copy(), numbers


@compiled
def _index(offsets: NDArray[np.int64], ids: NDArray[np.uint64]) -> Index:
    """Return the index of p sketches: their ids are numbered, and the holders sorted by number."""
    slots, distinct, numbers = number_ids(ids)
    starts = np.zeros(len(distinct) + 1, np.int64)
    for number in numbers:
        starts[number + 1] += 1
    for number in range(len(distinct)):
        starts[number + 1] += starts[number]

    free, is_last = starts[:-1].copy(), np.zeros(len(ids), np.bool_)
    holders, ranks = np.empty(len(ids), np.int32), np.empty(len(ids), np.int32)
    for probe in range(len(offsets) - 1):
        for i in range(offsets[probe], offsets[probe + 1]):
            place = free[numbers[i]]
            holders[place], ranks[place] = probe, i - offsets[probe]
            free[numbers[i]] = place + 1
            is_last[i] = place + 1 == starts[numbers[i] + 1]
    return Index(slots, distinct, starts, holders, ranks, is_last)


@compiled
def count_common(
    offsets: NDArray[np.int64], ids: NDArray[np.uint64], first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count the common ids of k pairs of sets.

    Args:
        offsets: set i is `ids[offsets[i]:offsets[i + 1]]`; (n + 1,).
        ids: of all sets, fewer than 2^31.
        first: one set of each pair, by place; (k,). Sorted, the ids of each are marked only once.
        second: the other; (k,).

    Returns:
        (k,), int64.

    Cost: each id is numbered, some 30 ns; then a step for each id of `second`, half a nanosecond.
    """
    distinct, numbers = number_ids(ids)[1:]
    holder, common = np.full(len(distinct), -1, np.int64), np.zeros(len(first), np.int64)
    mark = 0
    for k in range(len(first)):
        if k == 0 or first[k] != first[k - 1]:
            mark = k
            for number in numbers[offsets[first[k]] : offsets[first[k] + 1]]:
                holder[number] = mark
        for number in numbers[offsets[second[k]] : offsets[second[k] + 1]]:
            common[k] += holder[number] == mark
    return common


def find_near(batch: Rows, probes: Probes, rule: Definition, places: NDArray[np.int64] | None = None) -> Near:
    """Find every near-duplicate of a probe in the batch, including sketches equal to the probe if the rule admits them.

    Args:
        batch: n sketches.
        probes: p sketches.
        places: place of each sketch of the batch among the probes, -1 for any other; (n,). It is then compared only
            with the probes after it, so that each pair of probes is found once, and no probe with itself.

    Returns:
        The pairs in no particular order; empty if there is none.

    Cost: two steps for each feature of each sketch of the batch, one for each probe that holds it, and a merge for
        each pair whose overlap does not rule it out. Runs without the interpreter's lock.
    """
    sketches, other = _plain(batch), _plain(probes.sketches)
    is_levelled = bool(sketches[2].any() or other[2].any())
    after = np.full(len(batch.offsets) - 1, -1, np.int64) if places is None else places
    pairs = _find_near(*sketches, after, *other, probes.index, rule, is_levelled)
    rows, places, overlap, shared, seen, first, second = pairs.T
    return Near(rows, places, overlap, shared / seen, overlap / first, overlap / second)


def near_each(rows: Rows, places: NDArray[np.int64], probes: Probes, rule: Definition) -> float:
    """Return how many probes are near a sketch, itself included: the mean of about `DRAWN` of those at `places`.

    Cost: that of `find_near` for those drawn.
    """
    drawn = (
        places[np.unique(np.linspace(0, max(len(places) - 1, 0), DRAWN).astype(np.int64))] if len(places) else places
    )
    levels = None if rows.levels is None else rows.levels[drawn]
    sample = gather([rows.row(place) for place in drawn])._replace(levels=levels)
    return len(find_near(sample, probes, rule).rows) / max(len(drawn), 1)


def _plain(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    levels = np.zeros(len(rows.offsets) - 1, np.int64) if rows.levels is None else rows.levels.copy()
    return rows.offsets, rows.ids, levels


@compiled
def count_overlaps(
    sketch: NDArray[np.uint64],
    size: int,
    index: Index,
    after: int,
    is_last: NDArray[np.bool_],
    least: int,
    counts: Written[np.int32],
    shares: Written[np.int32],
    met: Written[np.int64],
    few: Written[np.int32],
) -> int:
    """Count what a sketch A has in common with every probe B, and list those with at least `least` common ids.

    An id at the places i of A and j of B (from 0), after k common ones, has i + j - k smaller ids in A | B. It is among
    the first `size` of them if that is less than `size`.

    Args:
        sketch: its ids.
        size: below 2^31, the number of ids of A | B whose common ones are counted apart; 0: they are not.
        index: of the probes.
        after: the probes up to this one are left out; -1: none are.
        is_last: ids that no later probe holds, of a sketch that is probe `after`; else empty.
        least: the least overlap listed, at least 1.
        counts: zeros, before and after the call; (p,).
        shares: the same; (p,).
        met: takes the probes, their overlaps, and the common ids among the first `size`; (p, 3).
        few: room for the holders that are met, with repeats; if there are more, all counts are searched.

    Returns:
        How many probes are listed.

    Cost: a look-up of each feature, a step per holder; then a test of each holder met or, if they are many, of every
        count, several at once.
    """
    steps = 0
    for i in range(len(sketch)):
        if len(is_last) and is_last[i]:
            continue
        number = index.slots[find_slot(sketch[i], index.slots, index.ids)]
        if number < 0:
            continue
        low, high = index.starts[number], index.starts[number + 1]
        if after >= 0:
            low += np.searchsorted(index.holders[low:high], after, side="right")
        holders, ranks, bound = index.holders[low:high], index.ranks[low:high], np.int32(size - i)
        for at in range(len(holders)):
            holder = np.uint32(holders[at])  # unsigned: no test for a negative place
            if size:
                shares[holder] += np.int32(ranks[at] - counts[holder] < bound)
            counts[holder] += np.int32(1)
        if steps + len(holders) <= len(few):
            few[steps : steps + len(holders)] = holders
        steps += len(holders)

    if steps > len(few):
        return _search_counts(after, least, counts, shares, met)
    return _list_few(few[:steps], least, counts, shares, met)


@compiled
def _list_few(
    few: NDArray[np.int32], least: int, counts: Written[np.int32], shares: Written[np.int32], met: Written[np.int64]
) -> int:
    """List these probes, met once or more, if their count is at least `least`, and set their counts to zero."""
    n = 0
    for probe in few:
        if counts[probe] >= least:
            met[n, 0], met[n, 1], met[n, 2] = probe, counts[probe], shares[probe]
            n += 1
        counts[probe] = shares[probe] = 0  # a probe that was met before is not listed again
    return n


@compiled
def _search_counts(
    after: int, least: int, counts: Written[np.int32], shares: Written[np.int32], met: Written[np.int64]
) -> int:
    """List the probes behind `after` whose count is at least `least`, and set all counts to zero, a block at a time."""
    n = 0
    for low in range(max(after, 0) // BLOCK * BLOCK, len(counts), BLOCK):
        block = counts[low : low + BLOCK]
        most = np.int32(0)
        for count in block:
            most = max(most, count)
        if most == 0:
            continue

        for place in range(len(block) if most >= least else 0):
            if block[place] >= least:
                met[n, 0], met[n, 1], met[n, 2] = low + place, block[place], shares[low + place]
                n += 1
        block[:] = 0
        shares[low : low + BLOCK] = 0
    return n


@compiled
def _find_near(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    levels: NDArray[np.int64],
    after: NDArray[np.int64],
    probe_offsets: NDArray[np.int64],
    probe_ids: NDArray[np.uint64],
    probe_levels: NDArray[np.int64],
    index: Index,
    rule: Definition,
    is_levelled: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
) -> NDArray[np.int64]:
    """Return the near pairs, (k, `FOUND`): place in the batch, probe, and the result of `compare`."""
    probes = len(probe_offsets) - 1
    counts, shares, met = np.zeros(probes, np.int32), np.zeros(probes, np.int32), np.empty((probes, 3), np.int64)
    few, none = np.empty(probes // FEW + 1, np.int32), np.empty(0, np.bool_)
    pairs, k = np.empty((64, FOUND), np.int64), 0

    # A pair is left unmeasured only if its overlap is too small for its sizes. With levels, containment, slots or bands
    # the sizes do not bound the overlap so simply, so every overlap is measured.
    is_plain = not is_levelled and not rule.is_containment and not rule.bands and not rule.sample.by_slots
    s, largest = rule.sample.size, 0
    for probe in range(probes):
        largest = max(largest, probe_offsets[probe + 1] - probe_offsets[probe])

    for row in range(len(offsets) - 1):
        sketch = ids[offsets[row] : offsets[row + 1]]

        # The larger of this sketch and any other is at least as large as this one.
        size = len(sketch) if is_plain else 1
        least = bound_of(min(size, s) if rule.is_resemblance else size, rule)
        is_last = none
        if after[row] >= 0:
            low, high = probe_offsets[after[row]], probe_offsets[after[row] + 1]
            if np.array_equal(sketch, probe_ids[low:high]):
                is_last = index.is_last[low:high]
        cut = s if is_plain and max(len(sketch), largest) >= s else 0  # else each pair is whole
        for t in range(count_overlaps(sketch, cut, index, after[row], is_last, least, counts, shares, met, few)):
            probe, overlap, shared = met[t]
            other = probe_ids[probe_offsets[probe] : probe_offsets[probe + 1]]
            if is_plain:
                seen = len(sketch) + len(other) - overlap
                if len(sketch) < s and len(other) < s:  # both are whole
                    shared = overlap
                else:
                    seen = min(s, seen)
                measured = overlap, shared, seen, len(sketch), len(other)
                near = is_near(measured, rule)
            else:
                mask = (np.uint64(1) << np.uint64(max(levels[row], probe_levels[probe]))) - np.uint64(1)
                measured, near = judge(sketch, other, mask, rule)
            if not near:
                continue

            if k == len(pairs):
                grown = np.empty((2 * k, FOUND), np.int64)
                grown[:k] = pairs
                pairs = grown
            pairs[k, 0], pairs[k, 1] = row, probe
            pairs[k, 2], pairs[k, 3], pairs[k, 4], pairs[k, 5], pairs[k, 6] = measured
            k += 1
    return pairs[:k]
