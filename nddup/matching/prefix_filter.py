"""The prefix filter, by which most pairs are never compared: pruning, the total order, and the prefixes under it.

`nddup.local.pairing.prune` applies it to ids, `element_prefixes` to elements in place of ids.

Why it is exact. alpha_d comes from the ORIGINAL size, so dropping a feature that only one sketch holds loses no common
feature, and a sketch with fewer than alpha_d features left is in no pair. Under one total order, two sketches with
overlap >= max(alpha) share a feature that lies in both prefixes of (features left) - alpha + 1 features. The first such
feature is unique, and only the partition that owns it makes the pair (`overlap_join`).

Sources:
    Chaudhuri, Ganti, Kaushik 2006, A primitive operator for similarity joins in data cleaning (the prefix filter).
    Xiao, Wang, Lin, Yu 2008, Efficient similarity joins for near duplicate detection (order and size filter).
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER


def partition_of(ids: NDArray[np.uint64], partitions: int) -> NDArray[np.int32]:
    """Return the partition, in [0, partitions), that owns each id; (n,) uint64 to (n,) int32.

    A sketch keeps small ids, so each id is multiplied first to spread its bits.
    """
    return ((ids * HASH_MULTIPLIER >> np.uint64(33)) % np.uint64(partitions)).astype(np.int32)
