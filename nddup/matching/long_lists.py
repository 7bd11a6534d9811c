"""What the holders of one feature may cost where all of them are compared with each other.

Where there are leaders, the holders of a long list are linked instead (`nddup.mining.family_pairs`). Where there are
none, every pair is to be found: a list is compared in full, however long, or nothing is.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class LongLists(NamedTuple):
    """`pairs.max_postings` and `pairs.max_comparisons`."""

    max_postings: int
    """So many holders of a feature are always compared."""

    max_comparisons: int
    """Comparisons with the holders beyond these."""


def find_too_long(holders: NDArray[np.int64], lookers: NDArray[np.int64], long_lists: LongLists) -> int:
    """The most holders of a feature that would cost more comparisons than they may.

    Args:
        holders: of each of f features, the sketches that can be met at it, (f,).
        lookers: the sketches that look for these, the holders included, (f,).
        long_lists: what a feature may cost.

    Returns:
        0 where none costs more.

    Example:
        >>> find_too_long(np.array([5, 4]), np.array([9, 900]), LongLists(4, 8))
        5
    """
    beyond = np.maximum(holders - long_lists.max_postings, 0) * lookers
    return int(holders[beyond > long_lists.max_comparisons].max(initial=0))
