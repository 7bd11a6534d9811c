"""What can be left out before sketches are compared: pruning, the total order, and the prefixes under it.

Each function sees one partition's columns; `nddup.spark.pairing` moves them between the steps.

    count_holders      features of postings   -> how many sketches hold each
    keep_possible      postings by node       -> those of sketches with at least alpha_d features left
    order_by_rarity    postings by node       -> features rarest first

Why it is exact. alpha_d comes from the ORIGINAL size, so dropping a feature that one sketch holds loses no common
feature, and a sketch with fewer than alpha_d features left is in no pair. Under one total order two sketches with
overlap >= max(alpha) share a feature in both prefixes of (features left) - alpha + 1; the first they share is unique,
and only the partition that owns it makes the pair (`overlap_join`).

Sources:
    Chaudhuri, Ganti, Kaushik 2006, A primitive operator for similarity joins in data cleaning (the prefix filter).
    Xiao, Wang, Lin, Yu 2008, Efficient similarity joins for near duplicate detection (order and size filter).
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, compiled, group_rows, number_keys


def partition_of(ids: NDArray[np.uint64], partitions: int) -> NDArray[np.int32]:
    """The partition, in [0, partitions), that owns each id; (n,) uint64 to (n,) int32.

    The ids that a sketch keeps are small numbers, so each is multiplied first: then its high bits differ too.
    """
    return ((ids * HASH_MULTIPLIER >> np.uint64(33)) % np.uint64(partitions)).astype(np.int32)


def count_holders(features: NDArray[np.uint64]) -> NDArray[np.int32]:
    """How many of `features` (n,) equal each of them, itself included: (n,), int32.

    With one posting for each feature of each sketch these are the holders of the feature. Cost: linear.
    """
    groups, count = number_keys(features)
    holders: NDArray[np.int32] = np.bincount(groups, minlength=count).astype(np.int32)[groups]
    return holders


def keep_possible(nodes: NDArray[np.uint64], bounds: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Drop the postings of sketches that have fewer features left than they need.

    Args:
        nodes: the sketch of each posting, shape (n,), uint64.
        bounds: its alpha_d, shape (n,), int32.

    Returns:
        `order` and `offsets` as of `group_rows`, of the sketches that stay. Cost: linear.
    """
    order, offsets = group_rows(nodes)

    lengths = np.diff(offsets)
    stays = lengths >= bounds[order[offsets[:-1]]]
    kept: NDArray[np.int64] = np.concatenate([[0], np.cumsum(lengths[stays])]).astype(np.int64)
    return order[np.repeat(stays, lengths)], kept


@compiled
def order_by_rarity(
    offsets: NDArray[np.int64], features: NDArray[np.uint64], holders: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Sort each sketch's features by the one total order: fewest holders first, then by id.

    Args:
        offsets: (m + 1,), int64, rows of `features` and `holders` per sketch.
        features: (n,), uint64, distinct within a sketch.
        holders: (n,), int32.

    Returns:
        (n,), int64: positions into `features`, sketch by sketch. Cost: n log(longest sketch).
    """
    order = np.empty(len(features), np.int64)
    # Sorted by id first: the stable sort by holders then leaves equal ones in order of their ids.
    for i in range(len(offsets) - 1):
        low, high = offsets[i], offsets[i + 1]
        by_id = np.argsort(features[low:high])
        by_holders = np.argsort(holders[low:high][by_id], kind="mergesort")
        order[low:high] = by_id[by_holders] + low
    return order
