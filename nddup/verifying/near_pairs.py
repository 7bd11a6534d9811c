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

from nddup.arrays import compiled
from nddup.verifying.definitions import Rows, Rule, bound_of, judge

FOUND = 7
"""Numbers per pair that the kernel returns: place in the batch, probe, and the five results of `compare`."""

BLOCK = 64
"""Overlaps that are tested in one step."""


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
    """The holders of each feature: those of `features[i]` are `holders[starts[i]:starts[i + 1]]`, ascending."""

    features: NDArray[np.uint64]  # (f,), ascending
    starts: NDArray[np.int64]  # (f + 1,)
    holders: NDArray[np.int32]  # (number of all ids,)


class Probes:
    """Sketches that all others are compared with, indexed by their features.

    Attributes:
        sketches: p sketches.
        index: the holders of their features.
    """

    def __init__(self, sketches: Rows) -> None:
        """Index p sketches by feature; p may be 0. Cost: a sort of their ids."""
        order = np.argsort(sketches.ids, kind="stable")
        ids = sketches.ids[order]
        starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if len(ids) else np.empty(0, np.int64)
        owners = np.repeat(np.arange(len(sketches.offsets) - 1, dtype=np.int32), np.diff(sketches.offsets))
        self.sketches = sketches
        self.index = Index(ids[starts], np.append(starts, len(ids)).astype(np.int64), owners[order])


def find_near(batch: Rows, probes: Probes, rule: Rule, places: NDArray[np.int64] | None = None) -> Near:
    """Find every near-duplicate of a probe in the batch, including sketches equal to the probe if the rule admits them.

    Args:
        batch: n sketches.
        probes: p sketches.
        rule: the definition.
        places: place of each sketch of the batch among the probes, -1 if it is none; (n,). It is then compared only
            with the probes after it, so that each pair of probes is found once, and no probe with itself.

    Returns:
        The pairs in no particular order; empty if there is none.

    Cost: one step for each feature of each sketch of the batch and each probe that holds it, and a merge for each pair
        whose overlap does not rule it out. Runs without the interpreter's lock.
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
    sketch: NDArray[np.uint64], index: Index, after: int, least: int, counts: NDArray[np.int32], met: NDArray[np.int32]
) -> int:
    """Count the overlaps of a sketch with every probe, and list those of at least `least`.

    Args:
        sketch: its ids.
        index: of the probes.
        after: the probes up to this one are left out; -1: none are.
        least: the least overlap listed, at least 1.
        counts: zeros, before and after the call; (p,).
        met: takes the probes and their overlaps, (p, 2).

    Returns:
        How many probes are listed.

    Cost: a binary search per feature, a step per holder; then a test of every count, several at once.
    """
    for id_ in sketch:
        at = np.searchsorted(index.features, id_)
        if at < len(index.features) and index.features[at] == id_:
            holders = index.holders[index.starts[at] : index.starts[at + 1]]
            for probe in holders[np.searchsorted(holders, after, side="right") :]:
                counts[np.uint32(probe)] += 1  # unsigned: no test for a negative place

    # The loop above does not test whether a probe is new; the counts are searched here, a block at a time.
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
    rule: Rule,
    is_levelled: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
) -> NDArray[np.int64]:
    """Return the near pairs, (k, `FOUND`): place in the batch, probe, and the result of `compare`."""
    probes = len(probe_offsets) - 1
    counts, met = np.zeros(probes, np.int32), np.empty((probes, 2), np.int32)
    found, k = np.empty((64, FOUND), np.int64), 0

    # A pair is left unmeasured only if its overlap is too small for its sizes. With levels, containment or bands the
    # sizes do not bound the overlap so simply, so every overlap is measured.
    is_plain = not is_levelled and not rule.is_containment and not rule.bands

    for row in range(len(offsets) - 1):
        sketch = ids[offsets[row] : offsets[row + 1]]

        # The larger of this sketch and any other is at least as large as this one.
        size = len(sketch) if is_plain else 1
        least = bound_of(min(size, rule.sample.size) if rule.is_resemblance else size, rule)
        for t in range(count_overlaps(sketch, index, after[row], least, counts, met)):
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
