"""The rule for near-duplicate sketches: one threshold t = numerator / denominator, in exact integers.

Let a and b be two sketches with |a| >= |b|, and o = |a ∩ b| their overlap. They are near-duplicates iff

    measure       threshold    condition                 alpha_d: least overlap of d with a near-duplicate
    overlap       a count k    o >= k                    k
    overlap       a share      o >= t |a|                the least integer >= t |d|, at least 1
    resemblance   a share      r(a, b) >= t, o >= 1      the same: r(a, b) >= t implies o >= t |a|
    containment   a share      o >= t |b|, o >= 1        the same, of the contained sketch b only

`Threshold.bounds` gives alpha_d. `compare.compare_sketches` applies the rule to two sketches; all searches use it.

Source:
    Broder 1997, On the resemblance and containment of documents (resemblance r, containment).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rule(NamedTuple):
    """A `Threshold` in the form that kernels take. The fraction is 0 / 1 where the overlap alone decides."""

    size: int
    by_slots: bool
    by_resemblance: bool
    numerator: int
    denominator: int
    is_containment: bool


@dataclass(frozen=True)
class Threshold:
    """The condition under which two sketches are near-duplicates.

    Attributes:
        measure: `overlap`, `resemblance` or `containment`.
        numerator: of the threshold as an exact decimal; with `is_count`, the number of features.
        denominator: of the threshold; at least 1.
        is_count: the threshold is a number of features, not a share.
        size: how many of the smallest ids of both sketches, or how many slots, a resemblance is estimated from.
        by_slots: whether it is estimated from slots: each slot of a sketch is one id.
        shows_containment: whether a share of a sketch estimates the same share of its document.
        by_text: sketches that reach the threshold are only candidates; their texts decide (`edit_rule`). Whether two
            sketches are a pair is then known only from a list of pairs, never from the sketches.
    """

    measure: str
    numerator: int
    denominator: int
    is_count: bool
    size: int
    by_slots: bool = False
    shows_containment: bool = False
    by_text: bool = False

    def bounds(self, sizes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return alpha_d of original sketches of these sizes: (n,) int32 to (n,) int32."""
        return least_overlaps(sizes, numerator=self.numerator, denominator=self.denominator, is_count=self.is_count)

    def prune_bounds(self, sizes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the fewest features that must be left of a sketch for it to be in a pair: (n,) int32 to (n,) int32.

        For a containment this is 1: a sketch that contains a small one need not share more with it.
        """
        return np.ones(len(sizes), np.int32) if self.is_containment else self.bounds(sizes)

    @property
    def least_size(self) -> int:
        """Least size of a sketch that can be in a pair; two equal sketches of this size or more are near-duplicates."""
        return self.numerator if self.is_count else 1

    @property
    def is_containment(self) -> bool:
        """Whether the threshold is on containment: one sketch contains the other."""
        return self.measure == "containment"

    @property
    def rule(self) -> Rule:
        """The threshold as plain numbers, for kernels."""
        by_resemblance = self.measure == "resemblance"
        numerator, denominator = (self.numerator, self.denominator) if by_resemblance else (0, 1)
        return Rule(self.size, self.by_slots, by_resemblance, numerator, denominator, self.is_containment)


def least_overlaps(sizes: NDArray[np.int32], *, numerator: int, denominator: int, is_count: bool) -> NDArray[np.int32]:
    """Return alpha_d, the least overlap with d that a near-duplicate of d can have.

    Args:
        sizes: |d| of the original sketches, shape (n,), int32.
        numerator: of the threshold as an exact decimal; for a count, the count.
        denominator: of the threshold; at least 1.
        is_count: the threshold is a number of features, not a share of |d|.

    Returns:
        Shape (n,), int32: the count, or the least integer o >= 1 with o / |d| >= threshold, in integers (0.55 of 100
        is 55; `ceil(0.55 * 100)` in floats is 56).

    Example:
        >>> least_overlaps(np.array([100, 7, 0], np.int32), numerator=11, denominator=20, is_count=False).tolist()
        [55, 4, 1]
    """
    if is_count:
        return np.full(len(sizes), numerator, np.int32)
    shares = -(-sizes.astype(np.int64) * numerator // denominator)
    return np.maximum(shares, 1).astype(np.int32)
