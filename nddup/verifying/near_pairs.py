"""All near-duplicates of some sketches among many, found without the code by which a run searches.

    Probes      sketches indexed by feature
    find_near   every overlap of a batch of sketches with ALL probes, without pruning or prefixes; returns the pairs
                that are near-duplicates by definition

The only shortcut: sketches that share no feature have overlap 0, and resemblance never exceeds overlap over the size of
the sample. Both follow from the definitions.

Source:
    Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (MIN_s and its resemblance).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, compiled
from nddup.verifying.definitions import Definition, Rows, bound_of, judge

FOUND = 7
"""Numbers per pair that the kernel returns: place in the batch, probe, and the five results of `compare`."""

EACH = 16
"""Bits of `Index.held` for each bucket: of the ids that no probe holds, one in so many gets past them."""

BLOCK = 64
"""Overlaps that are tested in one step."""

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

    def cut(self, low: int, high: int) -> "Near":
        """Return the pairs `low` to `high` - 1."""
        return Near(
            self.rows[low:high],
            self.probes[low:high],
            self.overlap[low:high],
            self.resemblance[low:high],
            self.within[low:high],
            self.around[low:high],
        )


class Index(NamedTuple):
    """The ids of the probes in buckets by hash: those of bucket b are at `starts[b]` to `starts[b + 1]` - 1.

    Within a bucket the entries keep the order of the probes. A bucket holds one id on average, so an id is looked up in
    two steps, where a search of all ids in order would take twenty.
    """

    starts: NDArray[np.int32]  # (b + 1,), b a power of two
    ids: NDArray[np.uint64]  # (number of all ids,)
    holders: NDArray[np.int32]  # (number of all ids,), the probe that holds each
    is_last: NDArray[np.bool_]  # (number of all ids,), whether no entry follows in its bucket; by place in the probes
    held: NDArray[
        np.uint64
    ]  # (b / 8,), a bit for each of 8 b hashes: whether an id has it; most others are ruled out here


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


@compiled
def _hash_of(id_: np.uint64) -> np.uint64:
    """Return the hash of an id. The ids of minima are the small ones, so a product is taken, whose high bits vary."""
    return (id_ * HASH_MULTIPLIER) >> np.uint64(32)


@compiled
def _bucket_of(id_: np.uint64, buckets: int) -> np.int64:
    return np.int64(_hash_of(id_) & np.uint64(buckets - 1))


@compiled
def _index(offsets: NDArray[np.int64], ids: NDArray[np.uint64]) -> Index:
    """Return the index of p sketches: their ids sorted by bucket, by counting."""
    buckets = 16
    while buckets < len(ids):
        buckets *= 2
    starts = np.zeros(buckets + 1, np.int32)
    for id_ in ids:
        starts[_bucket_of(id_, buckets) + 1] += 1
    for bucket in range(buckets):
        starts[bucket + 1] += starts[bucket]

    held = np.zeros(max(buckets * EACH // 64, 1), np.uint64)
    for id_ in ids:
        bit = _hash_of(id_) & np.uint64(buckets * EACH - 1)
        held[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))

    free, is_last = starts[:-1].copy(), np.zeros(len(ids), np.bool_)
    sorted_ids, holders = np.empty(len(ids), np.uint64), np.empty(len(ids), np.int32)
    for probe in range(len(offsets) - 1):
        for i in range(offsets[probe], offsets[probe + 1]):
            home = _bucket_of(ids[i], buckets)
            place = free[home]
            sorted_ids[place], holders[place] = ids[i], probe
            free[home] = place + 1
            is_last[i] = place + 1 == starts[home + 1]
    return Index(starts, sorted_ids, holders, is_last, held)


def find_near(batch: Rows, probes: Probes, rule: Definition, places: NDArray[np.int64] | None = None) -> Near:
    """Find every near-duplicate of a probe in the batch, including sketches equal to the probe if the rule admits them.

    Args:
        batch: n sketches.
        probes: p sketches.
        rule: the definition.
        places: place of each sketch of the batch among the probes, -1 if it is none; (n,). It is then compared only
            with the probes after it, so that each pair of probes is found once, and no probe with itself.

    Returns:
        The pairs in no particular order; empty if there is none.

    Cost: two steps for each feature of each sketch of the batch, one for each probe that holds it, and a merge for
        each pair whose overlap does not rule it out. Runs without the interpreter's lock.
    """
    own, other = _plain(batch), _plain(probes.sketches)
    is_levelled = bool(own[2].any() or other[2].any())
    after = np.full(len(batch.offsets) - 1, -1, np.int64) if places is None else places
    found = _find_near(*own, after, *other, probes.index, rule, is_levelled)
    rows, places, overlap, shared, seen, first, second = found.T
    return Near(rows, places, overlap, shared / seen, overlap / first, overlap / second)


def _plain(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    """Return offsets, ids and levels; all levels are 0 for sketches without them."""
    levels = np.zeros(len(rows.offsets) - 1, np.int64) if rows.levels is None else rows.levels.copy()
    return rows.offsets, rows.ids, levels


@compiled
def count_overlaps(
    sketch: NDArray[np.uint64],
    index: Index,
    after: int,
    is_last: NDArray[np.bool_],
    least: int,
    counts: NDArray[np.int32],
    met: NDArray[np.int32],
    few: NDArray[np.int32],
) -> int:
    """Count the overlaps of a sketch with every probe, and list those of at least `least`.

    Args:
        sketch: its ids.
        index: of the probes.
        after: the probes up to this one are left out; -1: none are.
        is_last: ids that no later probe holds, of a sketch that is probe `after`; else empty.
        least: the least overlap listed, at least 1.
        counts: zeros, before and after the call; (p,).
        met: takes the probes and their overlaps, (p, 2).
        few: room for the holders that are met, with repeats; if there are more, all counts are searched.

    Returns:
        How many probes are listed.

    Cost: a look at the bucket of each feature, a step per holder; then a test of each holder met or, if they are many,
        of every count, several at once.
    """
    buckets, steps, held = len(index.starts) - 1, 0, index.held
    mask = np.uint64(buckets * EACH - 1)
    for i in range(len(sketch)):
        bit = _hash_of(sketch[i]) & mask
        is_held = held[bit >> np.uint64(6)] >> (bit & np.uint64(63)) & np.uint64(1)
        if not is_held or (len(is_last) and is_last[i]):
            continue
        bucket = _bucket_of(sketch[i], buckets)
        low, high = index.starts[bucket], index.starts[bucket + 1]
        if after >= 0:
            low += np.searchsorted(index.holders[low:high], after, side="right")
        for place in range(low, high):
            if index.ids[place] == sketch[i]:
                probe = np.uint32(index.holders[place])  # unsigned: no test for a negative place
                counts[probe] += 1
                if steps < len(few):
                    few[steps] = probe
                steps += 1

    if steps > len(few):
        return _search_counts(after, least, counts, met)
    n = 0
    for probe in few[:steps]:
        if counts[probe] >= least:
            met[n, 0], met[n, 1] = probe, counts[probe]
            n += 1
        counts[probe] = 0  # a probe that was met before is not listed again
    return n


@compiled
def _search_counts(after: int, least: int, counts: NDArray[np.int32], met: NDArray[np.int32]) -> int:
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
                met[n, 0], met[n, 1] = low + place, block[place]
                n += 1
        block[:] = 0
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
    counts, met = np.zeros(probes, np.int32), np.empty((probes, 2), np.int32)
    few, none = np.empty(probes // FEW + 1, np.int32), np.empty(0, np.bool_)
    found, k = np.empty((64, FOUND), np.int64), 0

    # A pair is left unmeasured only if its overlap is too small for its sizes. With levels, containment or bands the
    # sizes do not bound the overlap so simply, so every overlap is measured.
    is_plain = not is_levelled and not rule.is_containment and not rule.bands

    for row in range(len(offsets) - 1):
        sketch = ids[offsets[row] : offsets[row + 1]]

        # The larger of this sketch and any other is at least as large as this one.
        size = len(sketch) if is_plain else 1
        least = bound_of(min(size, rule.sample.size) if rule.is_resemblance else size, rule)
        is_last = none
        if after[row] >= 0:
            low, high = probe_offsets[after[row]], probe_offsets[after[row] + 1]
            if np.array_equal(sketch, probe_ids[low:high]):
                is_last = index.is_last[low:high]
        for t in range(count_overlaps(sketch, index, after[row], is_last, least, counts, met, few)):
            probe, overlap = met[t, 0], met[t, 1]
            other = probe_ids[probe_offsets[probe] : probe_offsets[probe + 1]]

            larger = max(len(sketch), len(other)) if is_plain else 1
            if overlap < bound_of(min(larger, rule.sample.size) if rule.is_resemblance else larger, rule):
                continue
            mask = (np.uint64(1) << np.uint64(max(levels[row], probe_levels[probe]))) - np.uint64(1)
            measured, near = judge(sketch, other, mask, rule)
            if not near:
                continue

            if k == len(found):
                grown = np.empty((2 * k, FOUND), np.int64)
                grown[:k] = found
                found = grown
            found[k, 0], found[k, 1] = row, probe
            found[k, 2], found[k, 3], found[k, 4], found[k, 5], found[k, 6] = measured
            k += 1
    return found[:k]
