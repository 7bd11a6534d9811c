"""Pruning and the total order by sorts alone: the input of the join of prefixes in its tests."""

import numpy as np
from numpy.typing import NDArray


def count_holders(features: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return how many of `features` (n,) equal each of them, itself included, (n,)."""
    _, which, counts = np.unique(features, return_inverse=True, return_counts=True)
    return counts.astype(np.int32)[which]


def keep_possible(nodes: NDArray[np.uint64], bounds: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the postings of sketches that have as many left as they need, sketch by sketch, and where each begins."""
    stays = np.flatnonzero(count_holders(nodes) >= bounds)
    order = stays[np.argsort(nodes[stays], kind="stable")]
    _, counts = np.unique(nodes[order], return_counts=True)
    return order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def order_by_rarity(
    offsets: NDArray[np.int64], features: NDArray[np.uint64], holders: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the order of each sketch's features in the one total order: fewest holders first, then by id."""
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.lexsort((features, holders, rows))
