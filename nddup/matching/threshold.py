"""The rule for near-duplicate sketches: one threshold t = numerator / denominator, in exact integers.

    measure       threshold    condition, |a| >= |b|     alpha_d: least overlap of d with a near-duplicate
    overlap       a count k    o >= k                    k
    overlap       a share      o >= t |a|                the least integer >= t |d|, at least 1
    resemblance   a share      r(a, b) >= t, o >= 1      the same: r(a, b) >= t implies o >= t |a|
    containment   a share      o >= t |b|, o >= 1        the same, of the contained sketch b only

Here o = |a ∩ b| is the overlap of two sketches a and b. `Threshold.bounds` gives alpha_d, `Threshold.needs` what the
texts ask besides. `compare_sketches` applies the rule to two sketches; all searches use it. They take ORIGINAL
sketches, never pruned ones, as ascending runs of one array of ids.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, compiled


class Rule(NamedTuple):
    """A `Threshold` in the form that kernels take. A fraction is 0 / 1 where nothing depends on it."""

    size: int
    by_slots: bool
    by_resemblance: bool
    numerator: int
    denominator: int
    is_containment: bool
    exact_numerator: int
    exact_denominator: int


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
        by_text: sketches that reach the threshold are only candidates; their texts decide (`confirm_texts`). Whether
            two sketches are a pair is then known only from a list of pairs, never from the sketches.
        exact: the resemblance of all shingles that the texts must reach, where a sketch of fewer than `size` ids holds
            all shingles of its document: sketches whose ids rule it out are no candidates (`common_needed`). Else None.
    """

    measure: str
    numerator: int
    denominator: int
    is_count: bool
    size: int
    by_slots: bool = False
    shows_containment: bool = False
    by_text: bool = False
    exact: Fraction | None = None

    def bounds(self, sizes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return alpha_d of original sketches of these sizes: (n,) int32 to (n,) int32."""
        return least_overlaps(sizes, numerator=self.numerator, denominator=self.denominator, is_count=self.is_count)

    def needs(self, sizes: NDArray[np.int32], partners: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return the fewest ids that sketches have in common with a candidate: (n,) int32 to (n,) int32.

        They are not less than `bounds`, do not fall as the size grows, and may be more than the size: then a sketch is
        in no pair.

        Args:
            sizes: of the sketches.
            partners: sizes of all sketches that they are compared with; None: any, so that what is needed depends on
                nothing but the size.
        """
        if self.exact is None:
            return self.bounds(sizes)
        return self._least_needs(sizes, partners, above=False)

    def posted_needs(self, sizes: NDArray[np.int32], partners: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the fewest ids that sketches have in common with a candidate that is not smaller, as `needs`.

        They may fall as the size grows.
        """
        return self.bounds(sizes) if self.exact is None else self._least_needs(sizes, partners, above=True)

    def prune_bounds(self, sizes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the fewest features that must be left of each of all sketches for it to be in a pair, as `needs`.

        For a containment this is 1: a sketch that contains a small one need not share more with it.
        """
        return np.ones(len(sizes), np.int32) if self.is_containment else self.needs(sizes, sizes)

    def _least_needs(
        self, sizes: NDArray[np.int32], partners: NDArray[np.int32] | None, *, above: bool
    ) -> NDArray[np.int32]:
        if partners is None:  # tasks that hold other sketches find the same
            others = own = np.arange(max(self.size, int(sizes.max(initial=0))) + 1, dtype=np.int32)
            where = sizes.astype(np.int64)
        else:
            others = np.unique(partners)
            own, where = np.unique(sizes, return_inverse=True)
        least = np.maximum(
            _least_needs(own.astype(np.int64), others.astype(np.int64), self.rule, above), self.bounds(own)
        )
        if not above:
            least = np.minimum.accumulate(least[::-1])[::-1]
        needs: NDArray[np.int32] = least[where.reshape(-1)].astype(np.int32)
        return needs

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
        exact = self.exact or Fraction(0)
        return Rule(
            self.size, self.by_slots, by_resemblance, numerator, denominator, self.is_containment, exact.numerator,
            exact.denominator,
        )  # fmt: skip


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


@compiled
def common_needed(a: int, b: int, rule: Rule) -> int:
    """Return the fewest ids that sketches of `a` and `b` ids have in common if their documents are near-duplicates.

    With t = p / q the resemblance of all shingles that decides and N the number of a document's shingles, two documents
    that reach it have at least p (Na + Nb) / (p + q) shingles in common, and Nb is at most Na q / p. A sketch of fewer
    than s ids holds all shingles; of one of s ids, at most N - s common ones are not in it. The bound falls as N grows,
    so the largest N counts.

    Returns:
        0 where the ids rule out nothing: no `Threshold.exact`, or both sketches have s ids. More than the smaller has
        where the documents differ too much in size.
    """
    p, q, size = rule.exact_numerator, rule.exact_denominator, rule.size
    small, large = min(a, b), max(a, b)
    if p == 0 or small >= size:
        return 0
    if large < size:
        return -(-p * (small + large) // (p + q))
    most = small * q // p
    return -(-p * (small + most) // (p + q)) - (most - size) if most >= size else small + 1


@compiled
def _least_needs(sizes: NDArray[np.int64], partners: NDArray[np.int64], rule: Rule, above: bool) -> NDArray[np.int64]:  # noqa: FBT001 - numba takes no names
    """Return the least `common_needed` of each size with any of the partners, ascending, or with those not below it.

    What is needed rises with the partner's size, and is least again, or least of all, with one of s ids or more. Where
    no partner is possible, it is the size and 1.
    """
    least = sizes + 1
    for k in range(len(sizes)):
        size = sizes[k]
        if size >= rule.size:
            least[k] = 0
            continue
        first = size if above else -(-size * rule.exact_numerator // rule.exact_denominator)
        at = np.searchsorted(partners, first)
        if at < len(partners):
            least[k] = min(least[k], common_needed(size, partners[at], rule), common_needed(size, partners[-1], rule))
    return least


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

    Cost: one merge, which stops as soon as `need` is out of reach.
    """
    offsets, ids = sketches
    i, i_end, j, j_end = offsets[a], offsets[a + 1], offsets[b], offsets[b + 1]
    need = max(need, common_needed(i_end - i, j_end - j, rule))
    if rule.by_slots:
        overlap = overlap_or_less(ids, i, i_end, j, j_end, need)
        shared, united = overlap, rule.size
    else:
        overlap, shared, united = _overlap_and_resemblance(ids, i, i_end, j, j_end, need, rule.size)
    if overlap < 0 or (rule.by_resemblance and shared * rule.denominator < rule.numerator * united):
        return -1, 0, 0
    return overlap, shared, united


@compiled
def _overlap_and_resemblance(
    ids: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int, need: int, size: int
) -> tuple[int, int, int]:
    """Return what `overlap_or_less` and `resemblance_parts` do, by one merge: the latter ends within the former."""
    limit = size
    if a_end - a < size and b_end - b < size:
        limit = a_end - a + b_end - b

    common = united = 0
    while a < a_end and b < b_end and united < limit:
        if common + min(a_end - a, b_end - b) < need:
            return -1, 0, 0
        x, y = ids[a], ids[b]
        common += x == y
        a += x <= y
        b += y <= x
        united += 1
    shared, united = common, min(limit, united + (a_end - a) + (b_end - b))

    while a < a_end and b < b_end:
        if common + min(a_end - a, b_end - b) < need:
            return -1, 0, 0
        x, y = ids[a], ids[b]
        common += x == y
        a += x <= y
        b += y <= x
    return common if common >= need else -1, shared, united


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

    Source: Broder 1997, On the resemblance and containment of documents (MIN_s and its resemblance).
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
