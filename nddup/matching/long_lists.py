"""Limits on the cost of comparing all holders of one feature with each other.

Where there are leaders, the holders of a long list are linked instead (`nddup.mining.family_pairs`). Without leaders
every pair must be found: either every list is compared in full, however long, or nothing is.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class LongLists(NamedTuple):
    """`pairs.max_postings` and `pairs.max_comparisons`."""

    max_postings: int
    """Number of holders of a feature that are always compared."""

    max_comparisons: int
    """Comparisons allowed with the holders beyond `max_postings`."""


def find_too_long(holders: NDArray[np.int64], lookers: NDArray[np.int64], long_lists: LongLists) -> int:
    """Return the most holders of any feature that would cost more comparisons than allowed.

    Args:
        holders: number of sketches that can be met at each of f features, (f,).
        lookers: number of sketches that look for them, the holders included, (f,).
        long_lists: the limits.

    Returns:
        0 if no feature would cost more.

    Example:
        >>> find_too_long(np.array([5, 4]), np.array([9, 900]), LongLists(4, 8))
        5
    """
    beyond = np.maximum(holders - long_lists.max_postings, 0) * lookers
    return int(holders[beyond > long_lists.max_comparisons].max(initial=0))
