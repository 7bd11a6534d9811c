"""Two sketches compared: what they have in common, and their resemblance.

Both are kernels over two ascending runs of one array of ids, and take ORIGINAL sketches, never pruned ones.

Source:
    Broder 1997, On the resemblance and containment of documents (MIN_s and its resemblance).
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled


@compiled
def overlap_or_less(ids: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int, need: int) -> int:
    """|A ∩ B| of two ascending runs of `ids`, or -1 as soon as it cannot reach `need`."""
    common = 0
    while a < a_end and b < b_end:
        if common + min(a_end - a, b_end - b) < need:
            return -1
        x, y = ids[a], ids[b]
        common += x == y
        a += x <= y
        b += y <= x
    return common if common >= need else -1


@compiled
def resemblance_parts(ids: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int, size: int) -> tuple[int, int]:
    """Numerator and denominator of the resemblance of two ascending runs of `ids`.

    |MIN_s(A ∪ B) ∩ A ∩ B| / |MIN_s(A ∪ B)|; when both have fewer than s ids they are the whole documents, and
    it is |A ∩ B| / |A ∪ B|. Two empty sketches: 0 / 0. A negative `size` means so many slots, each of which is an id:
    |A ∩ B| / slots.
    """
    if size < 0:
        return max(overlap_or_less(ids, a, a_end, b, b_end, 0), 0), -size
    limit = size
    if a_end - a < size and b_end - b < size:
        limit = a_end - a + b_end - b
    shared = 0
    united = 0
    while a < a_end and b < b_end and united < limit:
        x, y = ids[a], ids[b]
        shared += x == y
        a += x <= y
        b += y <= x
        united += 1
    return shared, min(limit, united + (a_end - a) + (b_end - b))
