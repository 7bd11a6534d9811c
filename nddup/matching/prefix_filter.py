"""What can be left out before sketches are compared: pruning, the total order, and the prefixes under it.

`nddup.local.pairing.prune` does so with ids, `element_prefixes` with elements in the place of ids.

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

from nddup.arrays import HASH_MULTIPLIER


def partition_of(ids: NDArray[np.uint64], partitions: int) -> NDArray[np.int32]:
    """The partition, in [0, partitions), that owns each id; (n,) uint64 to (n,) int32.

    The ids that a sketch keeps are small numbers, so each is multiplied first: then its high bits differ too.
    """
    return ((ids * HASH_MULTIPLIER >> np.uint64(33)) % np.uint64(partitions)).astype(np.int32)
