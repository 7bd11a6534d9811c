"""Comparison of two sketches: their overlap, their resemblance, and whether they are near-duplicates.

All functions are kernels over ascending runs of one array of ids. They take ORIGINAL sketches, never pruned ones.

Source:
    Broder 1997, On the resemblance and containment of documents (MIN_s and its resemblance).
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled
from nddup.matching.threshold import Rule


@compiled
def compare_sketches(sketches: Ragged, a: int, b: int, need: int, rule: Rule) -> tuple[int, int, int]:
    """Apply the rule of `threshold` to two sketches.

    Args:
        sketches: rows of ascending ids, uint64.
        a: row of one sketch.
        b: row of the other.
        need: least overlap: the larger alpha_d of the two; for a containment, that of the contained sketch.
        rule: when two sketches are near-duplicates.

    Returns:
        Overlap, and numerator and denominator of the resemblance; (-1, 0, 0) if they are not near-duplicates.

    Cost: one merge, which stops as soon as `need` is out of reach; then one for the resemblance.
    """
    offsets, ids = sketches
    overlap = overlap_or_less(ids, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], need)
    if overlap < 0:
        return -1, 0, 0

    shared, united = resemblance_parts(ids, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], rule)
    if rule.by_resemblance and shared * rule.denominator < rule.numerator * united:
        return -1, 0, 0
    return overlap, shared, united


@compiled
def overlap_or_less(ids: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int, need: int) -> int:
    """Return |A ∩ B| of the ascending runs ids[a:a_end] and ids[b:b_end], or -1 as soon as it cannot reach `need`."""
    common = 0
    while a < a_end and b < b_end:
        if common + min(a_end - a, b_end - b) < need:
            return -1

        # Without branches: step over the smaller id, or over both if they are equal.
        x, y = ids[a], ids[b]
        common += x == y
        a += x <= y
        b += y <= x
    return common if common >= need else -1


@compiled
def resemblance_parts(ids: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int, rule: Rule) -> tuple[int, int]:
    """Return numerator and denominator of the resemblance of the ascending runs ids[a:a_end] and ids[b:b_end].

    Args:
        ids: of both sketches A and B, uint64.
        a: start of A.
        a_end: end of A.
        b: start of B.
        b_end: end of B.
        rule: how a resemblance is estimated: by MIN_s, where s is `rule.size`, or by that many slots.

    Returns:
        |MIN_s(A ∪ B) ∩ A ∩ B| and |MIN_s(A ∪ B)|. If both have fewer than s ids they are whole documents, and the
        result is |A ∩ B| and |A ∪ B|. For n slots it is |A ∩ B| and n; for two empty sketches without slots, 0 and 0.
    """
    size = rule.size
    if rule.by_slots:
        return max(overlap_or_less(ids, a, a_end, b, b_end, 0), 0), size

    limit = size
    if a_end - a < size and b_end - b < size:
        limit = a_end - a + b_end - b

    # Merge until `limit` ids of the union are counted, or one run ends.
    shared = 0
    united = 0
    while a < a_end and b < b_end and united < limit:
        x, y = ids[a], ids[b]
        shared += x == y
        a += x <= y
        b += y <= x
        united += 1

    # The rest of the other run belongs to the union only.
    return shared, min(limit, united + (a_end - a) + (b_end - b))
