"""When two sketches are near-duplicates: one threshold, compared in integers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def least_overlaps(sizes: NDArray[np.int32], *, numerator: int, denominator: int, is_count: bool) -> NDArray[np.int32]:
    """alpha_d: the least overlap with another sketch that a near-duplicate of d can have.

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


@dataclass(frozen=True)
class Threshold:
    """When two sketches are near-duplicates, in exact integers.

    `numerator / denominator` is a share of the larger sketch or a resemblance; with `is_count` the numerator is a
    number of features. `size` says how a resemblance is taken (`Kind.sample`): s of the smallest ids, or minus n of
    n slots. `shows_containment`: a share of a sketch estimates a share of its document. Of the measure `containment`
    the share is of the contained one.
    """

    measure: str
    numerator: int
    denominator: int
    is_count: bool
    size: int
    shows_containment: bool = False

    def bounds(self, sizes: NDArray[np.int32]) -> NDArray[np.int32]:
        """alpha_d of sketches of these sizes, (n,) int32."""
        return least_overlaps(sizes, numerator=self.numerator, denominator=self.denominator, is_count=self.is_count)

    @property
    def least_size(self) -> int:
        """Features from which a sketch can be in a pair, and is a near-duplicate of its equal."""
        return self.numerator if self.is_count else 1

    @property
    def is_containment(self) -> bool:
        """Whether a pair is near because one contains the other."""
        return self.measure == "containment"

    def prune_bounds(self, sizes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Features left below which a sketch is in no pair, (n,) int32: one that contains others needs but one."""
        return np.ones(len(sizes), np.int32) if self.is_containment else self.bounds(sizes)

    @property
    def share(self) -> tuple[int, int] | None:
        """The resemblance a pair must reach, or None where the overlap alone decides."""
        return (self.numerator, self.denominator) if self.measure == "resemblance" else None
