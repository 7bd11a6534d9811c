"""The near-duplicates of some sketches among many, found without the job's own search.

    Probes      sketches by feature
    find_near   every overlap of a batch of sketches with ALL probes, no pruning, no prefixes; those that are
                near-duplicates by definition

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
"""Numbers of a pair that the kernel gives back: place in the batch, probe, and what `compare` measures."""

BLOCK = 64
"""Overlaps that are looked at together."""


class Near(NamedTuple):
    """Near-duplicate pairs of a sketch of a batch and a probe, one array for each number; each (k,)."""

    rows: NDArray[np.int64]
    """Place in the batch."""

    probes: NDArray[np.int64]
    """Place among the probes."""

    overlap: NDArray[np.int64]
    resemblance: NDArray[np.float64]
    within: NDArray[np.float64]
    """Containment of the sketch of the batch in the probe."""

    around: NDArray[np.float64]
    """Containment of the probe in the sketch of the batch."""

    def cut(self, low: int, high: int) -> "Near":
        """The pairs from place `low` to before `high`."""
        return Near(
            self.rows[low:high],
            self.probes[low:high],
            self.overlap[low:high],
            self.resemblance[low:high],
            self.within[low:high],
            self.around[low:high],
        )


class Index(NamedTuple):
    """Who holds which feature: the holders of `features[i]` are `holders[starts[i]:starts[i + 1]]`, ascending."""

    features: NDArray[np.uint64]  # (f,) ascending
    starts: NDArray[np.int64]  # (f + 1,)
    holders: NDArray[np.int32]  # (all ids,)


class Probes:
    """Sketches that all others are compared with, by their features.

    Attributes:
        sketches: p sketches.
        index: of their features.
    """

    def __init__(self, sketches: Rows) -> None:
        """Index p sketches by feature; of none, nothing overlaps. Cost: a sort of their ids."""
        order = np.argsort(sketches.ids, kind="stable")
        ids = sketches.ids[order]
        starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if len(ids) else np.empty(0, np.int64)
        owners = np.repeat(np.arange(len(sketches.offsets) - 1, dtype=np.int32), np.diff(sketches.offsets))
        self.sketches = sketches
        self.index = Index(ids[starts], np.append(starts, len(ids)).astype(np.int64), owners[order])


def find_near(batch: Rows, probes: Probes, rule: Rule, places: NDArray[np.int64] | None = None) -> Near:
    """Every near-duplicate of a probe in the batch; a sketch equal to the probe is one where the rule says so.

    Args:
        batch: n sketches.
        probes: p sketches.
        rule: the definition.
        places: where each sketch of the batch is among the probes, -1 where it is not; (n,). It is then compared only
            with the probes after it, so that of two probes a pair is found once, and none with itself.

    Returns:
        In no order; empty if there is none.

    Cost: one step for each feature of a batch's sketch and each probe that holds it, and a merge for each pair whose
        overlap does not rule it out. Without the interpreter's lock.
    """
    own, other = _plain(batch), _plain(probes.sketches)
    is_levelled = bool(own[2].any() or other[2].any())
    after = np.full(len(batch.offsets) - 1, -1, np.int64) if places is None else places
    found = _find_near(*own, after, *other, probes.index, rule, is_levelled)
    rows, places, overlap, shared, seen, first, second = found.T
    return Near(rows, places, overlap, shared / seen, overlap / first, overlap / second)


def _plain(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    """Offsets, ids and levels; of sketches without levels all 0."""
    levels = np.zeros(len(rows.offsets) - 1, np.int64) if rows.levels is None else rows.levels.copy()
    return rows.offsets, rows.ids, levels


@compiled
def count_overlaps(
    sketch: NDArray[np.uint64], index: Index, after: int, least: int, counts: NDArray[np.int32], met: NDArray[np.int32]
) -> int:
    """Overlaps of a sketch with every probe, as far as they reach a least one.

    Args:
        sketch: its ids.
        index: of the probes.
        after: the probes up to this one are left out; -1: none is.
        least: the overlap from which a probe is told, at least 1.
        counts: zeros, before and after the call; (p,).
        met: takes the probes and their overlaps, (p, 2).

    Returns:
        How many probes are told.

    Cost: a binary search a feature, a step a holder; then a look at every count, several at once.
    """
    for id_ in sketch:
        at = np.searchsorted(index.features, id_)
        if at < len(index.features) and index.features[at] == id_:
            holders = index.holders[index.starts[at] : index.starts[at + 1]]
            for probe in holders[np.searchsorted(holders, after, side="right") :]:
                counts[np.uint32(probe)] += 1  # no test for a negative place

    # No step asks whether a probe is new: the counts are looked at afterwards, a block at a time.
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
    """The near pairs, (k, `FOUND`): place in the batch, probe, and what is measured."""
    probes = len(probe_offsets) - 1
    counts, met = np.zeros(probes, np.int32), np.empty((probes, 2), np.int32)
    found, k = np.empty((64, FOUND), np.int64), 0

    # A pair is left unmeasured only if its overlap is too small for its sizes. At a common modulus, for containment and
    # for bands the sizes do not bound the overlap so simply: there every overlap is measured.
    is_plain = not is_levelled and not rule.is_containment and not rule.bands

    for row in range(len(offsets) - 1):
        sketch = ids[offsets[row] : offsets[row + 1]]

        # Of this sketch and any other the larger one is at least as large.
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
