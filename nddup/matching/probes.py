"""What sketches are joined by, of those that pruning left: their prefixes, their bitmaps, and which are heavy.

make_probes   Pruned, sketches, totals -> Probes by total, and their places among all
find_heavy    prefixes                 -> which sketches have a feature that too many have
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.kernels import compiled
from nddup.matching.bitmaps import MOST_BITS, NOTHING_PACKED, Bitmaps, Packed, make_bitmaps, pack
from nddup.matching.overlap_join import NO_LIMIT, Prefixes, Probes, count_ranks, take_prefixes
from nddup.matching.prune import Pruned
from nddup.matching.threshold import Threshold

CROWDED = 100
"""Meetings for each sketch above which sketches are packed: a comparison is then some times as fast."""

COMMON = 8
"""A feature has a bit in packed sketches if it has at least this part of the holders of the commonest."""


Take: TypeAlias = Callable[[Ragged, NDArray[np.int64]], Ragged]
"""Takes rows, as `take_rows` does: in memory or in a mapped file."""


def make_probes(
    pruned: Pruned,
    sketches: Ragged,
    totals: NDArray[np.int32],
    threshold: Threshold,
    *,
    max_postings: int = NO_LIMIT,
    take: Take = take_rows,
) -> tuple[NDArray[np.int64], Probes]:
    """Return the sketches with features left, each with its prefix, by total, and their places among all.

    For containment the prefix is all features left, since any sketch may contain another; `posted` then counts those
    that larger sketches look for.

    Args:
        pruned: what is left of the sketches.
        sketches: n rows, the original ones.
        totals: (n,), what bounds the overlap of each (`Threshold.totals`).
        threshold: when two are near-duplicates.
        max_postings: sketches that may hold a feature without being heavy.
        take: makes the copy of the sketches.

    Memory: a copy of the sketches, and 8 bytes for every feature left.
    """
    totals = totals[pruned.rows]
    order = np.lexsort((pruned.rows, totals))
    rows, totals = pruned.rows[order], totals[order]
    lengths = np.diff(pruned.offsets)[order].astype(np.int32)
    bounds, probed = threshold.needs(totals, totals, "smaller"), lengths
    posted = np.maximum(lengths - threshold.needs(totals, totals, "larger") + 1, 0).astype(np.int32)
    if not threshold.is_containment:
        probed = np.maximum(lengths - bounds + 1, 0).astype(np.int32)
    all_features = Prefixes(pruned.offsets, pruned.features, len(pruned.holders))
    prefixes = take_prefixes(all_features, order, np.maximum(probed, posted))
    bitmaps = make_bitmaps(pruned.offsets, pruned.features)
    bitmaps = Bitmaps(bitmaps.sizes[order], bitmaps.words[order])
    heavy, meetings = find_heavy(prefixes, max_postings)
    packed = _pack(pruned, order) if meetings > CROWDED * len(rows) else NOTHING_PACKED
    return rows, Probes(take(sketches, rows), prefixes, totals, bounds, probed, posted, heavy, bitmaps, packed)


def _pack(pruned: Pruned, order: NDArray[np.int64]) -> Packed:
    """Return the features left of each sketch, if most are among those that very many hold; else nothing.

    Memory: at most `MOST_BITS` / 8 bytes a sketch, and 4 for each feature without a bit.
    """
    end = len(pruned.holders)
    first = max(int(np.searchsorted(pruned.holders, pruned.holders[-1] // COMMON)), end - MOST_BITS)
    if 2 * pruned.holders[first:].sum() < pruned.holders.sum():
        return NOTHING_PACKED
    return pack(pruned.offsets, pruned.features, order, first, end)


@compiled
def find_heavy(prefixes: Prefixes, max_postings: int) -> tuple[NDArray[np.bool_], int]:
    """Mark the sketches, (n,), with a feature, or key, that more than `max_postings` have; count those that meet.

    Args:
        prefixes: of n sketches.
        max_postings: `NO_LIMIT` where none is heavy.

    Returns:
        The marks; and the sum, over the features, of the square of the number of sketches that have it.
    """
    holders, meetings = count_ranks(prefixes), 0
    for count in holders:
        meetings += int(count) * int(count)
    is_heavy = np.zeros(len(prefixes.offsets) - 1, np.bool_)
    for row in range(len(is_heavy)):
        for at in range(prefixes.offsets[row], prefixes.offsets[row + 1]):
            is_heavy[row] |= holders[prefixes.ranks[at]] > max_postings
    return is_heavy, meetings
