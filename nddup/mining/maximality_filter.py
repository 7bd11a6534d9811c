"""Select the clusters of a small component from the list of all its frequent sets.

FP-Growth lists every set of documents that share enough features. A cluster needs more: its joint support reaches the
bound of each member, and every pair of members is a near-duplicate. Adding documents can only break these conditions,
so the sets that meet them are closed under subsets, and one of them is maximal iff none of them has just one document
more. Taking maximal sets first and testing the conditions afterwards would lose clusters.

Sources:
    Han, Pei, Yin 2000, Mining frequent patterns without candidate generation (FP-Growth).
    Sperner 1928, Ein Satz über Untermengen einer endlichen Menge (the largest antichain).
"""

import math

import numpy as np
from numpy.typing import NDArray


def keep_maximal(
    masks: NDArray[np.int64],
    supports: NDArray[np.int32],
    bounds: NDArray[np.int32],
    neighbours: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return whether each listed set is a cluster.

    Args:
        masks: (k,), int64, each set of a component of m documents as bits; all frequent sets of at least two.
        supports: (k,), int32, number of features common to each set.
        bounds: (m,), int32, alpha_d.
        neighbours: (m,), int64, the near-duplicates of each document as bits.

    Returns:
        (k,), bool. Cost: O(k m), and 2^m bytes.

    Example:
        >>> masks, all_near = np.array([0b011, 0b101, 0b110, 0b111]), np.array([0b110, 0b101, 0b011])
        >>> keep_maximal(masks, np.array([5, 5, 5, 4]), np.array([5, 5, 5]), all_near).tolist()
        [True, True, True, False]
    """
    is_valid = np.ones(len(masks), np.bool_)
    for member, bound in enumerate(bounds):
        bit = np.int64(1) << member
        without = (masks & bit) == 0
        is_valid &= without | ((supports >= bound) & ((masks & ~bit & ~neighbours[member]) == 0))

    # A valid set is maximal iff adding any one member makes no valid set.
    listed = np.zeros(1 << len(bounds), np.bool_)
    listed[masks[is_valid]] = True
    is_maximal = is_valid.copy()
    for member in range(len(bounds)):
        bit = np.int64(1) << member
        is_maximal &= ((masks & bit) != 0) | ~listed[masks | bit]
    return is_maximal


def fits_budget(nodes: int, *, max_sets: int, max_members: int) -> bool:
    """Return whether a component of `nodes` documents cannot pass its budget, whatever its sets are.

    An antichain of m documents has at most C(m, m/2) sets (Sperner 1928), each of at most m members.
    """
    sets = math.comb(nodes, nodes // 2)
    return sets <= max_sets + 4 * nodes and sets * nodes <= max_members + 400 * nodes
