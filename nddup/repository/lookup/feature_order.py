"""The total order of the features of one segment, and the prefixes of sketches under it.

The order is (holders in the segment if they are `COMMON` or more, else 0; hash of the id; id). It is fixed when the
segment is written and is defined for every id, also for ids the segment has never seen. Under any one total order two
sketches with an overlap of max(alpha) share a feature of both prefixes (`nddup.matching.prefix_filter`). So a new
sketch cut to its prefix under the order of a segment meets every near-duplicate stored there.

Holders are counted by hash. Two ids with one hash are counted together, which changes the order but leaves it total.
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled
from nddup.sketching.permutations import GOLDEN, ONE, mix_id

COMMON = 4
"""Least number of holders that makes a feature common in a segment."""

HALF = np.uint64(32)

Features = NDArray[np.uint32]
"""Hashes of ids, 32 bits: a collision adds a false candidate, which the comparison of the sketches rejects."""


@compiled
def hash_ids(ids: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the hash of each id, (n,)."""
    found = np.empty(len(ids), np.uint32)
    for i in range(len(ids)):
        found[i] = np.uint32(mix_id(ids[i], ONE, GOLDEN) >> HALF)
    return found


def count_common(sketches: Ragged) -> tuple[Features, NDArray[np.int32]]:
    """Return the features that `COMMON` sketches or more hold, ascending, and how many hold each.

    Cost: a sort of the ids.
    """
    hashes = np.sort(hash_ids(sketches.values))
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)])
    counts = np.diff(np.append(starts, len(hashes)))
    is_common = counts >= COMMON
    return hashes[starts[is_common]], counts[is_common].astype(np.int32)


def order_features(
    sketches: Ragged, common: Features, holders: NDArray[np.int32]
) -> tuple[NDArray[np.int64], Features]:
    """Sort each sketch's features in the total order.

    Args:
        sketches: rows of distinct ids, ascending.
        common: (c,), the common features of the segment, ascending.
        holders: (c,), how many sketches hold each.

    Returns:
        The offsets of the sketches, and the hashes row by row. Cost: a look-up of each id, and a sort of each row.
    """
    hashes = hash_ids(sketches.values)
    return sketches.offsets, _order(sketches.offsets, hashes, common, holders)


@compiled
def _order(
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint32],
    common: NDArray[np.uint32],
    holders: NDArray[np.int32],
) -> NDArray[np.uint32]:
    ordered = np.empty(len(hashes), np.uint32)
    for row in range(len(offsets) - 1):
        low, high = offsets[row], offsets[row + 1]
        keys = np.empty(high - low, np.uint64)
        for i in range(low, high):
            at = np.searchsorted(common, hashes[i])
            known = at < len(common) and common[at] == hashes[i]
            keys[i - low] = (np.uint64(holders[at]) << HALF if known else np.uint64(0)) | np.uint64(hashes[i])

        # Rows are ascending by id, so a stable sort keeps ids with one hash in the order of the ids.
        by_key = np.argsort(keys, kind="mergesort")
        for i in range(high - low):
            ordered[low + i] = hashes[low + by_key[i]]
    return ordered


def prefix_lengths(sizes: NDArray[np.int32], bounds: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return how many first features each sketch needs to meet every near-duplicate, (n,); 0 if it can have none.

    Args:
        sizes: (n,), sizes of the sketches.
        bounds: (n,), the least overlap of each with a near-duplicate (`Threshold.bounds`).
    """
    lengths: NDArray[np.int32] = np.maximum(sizes - bounds + 1, 0).astype(np.int32)
    return lengths
