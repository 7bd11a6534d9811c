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
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.ground.kernels import compiled

Side = Literal["any", "smaller", "larger"]


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
        exact: the resemblance of all shingles that the texts must reach, where a sketch is the `size` smallest ids of
            its document: sketches that rule it out are no candidates (`common_needed`). Else None.
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

    def totals(self, sizes: NDArray[np.int32], n_features: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return what bounds the overlap of sketches: their documents' shingles if `exact` is set, else their sizes.

        Args:
            sizes: of the original sketches, (n,).
            n_features: distinct shingles of their documents, (n,).
        """
        return sizes if self.exact is None else n_features.astype(np.int32)

    def needs(
        self, totals: NDArray[np.int32], partners: NDArray[np.int32] | None = None, side: Side = "any"
    ) -> NDArray[np.int32]:
        """Return the fewest ids that sketches have in common with a candidate: (n,) int32 to (n,) int32.

        They are not less than `bounds`, may fall as the total grows, and may be more than the size: then a sketch is
        in no pair.

        Args:
            totals: `Threshold.totals` of the sketches.
            partners: those of all sketches that they are compared with; None: any, so that what is needed depends on
                nothing but the total, whatever other sketches a task holds.
            side: which of the partners are meant: any, or those whose total is not greater (`smaller`) or not less
                (`larger`).
        """
        if self.exact is None:
            return self.bounds(totals)
        own_totals, where = np.unique(totals.astype(np.int64), return_inverse=True)
        low = own_totals if side == "larger" else -(-own_totals * self.exact.numerator // self.exact.denominator)
        high = own_totals if side == "smaller" else own_totals * self.exact.denominator // self.exact.numerator
        is_met = np.ones(len(own_totals), np.bool_)
        if partners is not None:
            others = np.append(np.unique(partners.astype(np.int64)), 0)
            first, end = np.searchsorted(others[:-1], low), np.searchsorted(others[:-1], high, "right")
            is_met, low, high = first < end, others[first], others[end - 1]

        # What is needed rises with the partner's total until both s and the own total are passed, then falls.
        least = np.where(is_met, _least_of_two(own_totals, low, high, self.rule), own_totals + 1)
        bounds = self.bounds(np.minimum(own_totals, self.size))
        needs: NDArray[np.int32] = np.maximum(least, bounds)[where].astype(np.int32)
        return needs

    def prune_bounds(self, totals: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the fewest features that must be left of each of all sketches for it to be in a pair, as `needs`.

        For a containment this is 1: a sketch that contains a small one need not share more with it.
        """
        return np.ones(len(totals), np.int32) if self.is_containment else self.needs(totals, totals)

    @property
    def least_size(self) -> int:
        """Minimum size of a sketch in a pair; two equal sketches of this size or more are near-duplicates."""
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
    """Return the fewest ids that two sketches have in common if their documents, of `a` and `b` shingles, are near.

    With t = p / q the resemblance of all shingles that decides, two documents that reach it have at least
    p (a + b) / (p + q) shingles in common. Those that a sketch of s ids lacks are the largest: at most max(a, b) - s.

    Returns:
        0 or less where this rules out nothing, as without `Threshold.exact`; more than the smaller sketch has where the
        documents differ too much in size.
    """
    p, q = rule.exact_numerator, rule.exact_denominator
    if p == 0:
        return 0
    small, large = min(a, b), max(a, b)
    if is_too_small(small, large, rule):
        return small + 1
    return -(-p * (a + b) // (p + q)) - max(large - rule.size, 0)


@compiled
def is_too_small(small: int, large: int, rule: Rule) -> bool:
    """Return whether documents of so many shingles are no near-duplicates, whatever these are."""
    return small * rule.exact_denominator < large * rule.exact_numerator


@compiled
def _least_of_two(
    totals: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64], rule: Rule
) -> NDArray[np.int64]:
    """Return the lesser `common_needed` of each total with two partners, (n,)."""
    least = np.empty(len(totals), np.int64)
    for k in range(len(totals)):
        least[k] = min(common_needed(totals[k], low[k], rule), common_needed(totals[k], high[k], rule))
    return least


@compiled
def compare_sketches(sketches: Ragged, a: int, b: int, need: int, rule: Rule) -> tuple[int, int, int]:
    """Apply the rule of `threshold` to two sketches.

    Args:
        sketches: rows of ascending ids, uint64.
        a: row of one sketch.
        b: row of the other.
        need: least overlap: the larger alpha_d of the two, or what `common_needed` asks; for a containment, that of the
            contained sketch.
        rule: when two sketches are near-duplicates.

    Returns:
        Overlap, and numerator and denominator of the resemblance; (-1, 0, 0) if they are not near-duplicates.

    Cost: one merge, which stops as soon as `need` is out of reach.
    """
    offsets, ids = sketches
    i, i_end, j, j_end = offsets[a], offsets[a + 1], offsets[b], offsets[b + 1]
    if rule.by_slots:
        overlap = overlap_or_less(ids, i, i_end, j, j_end, need)
        shared, united = overlap, rule.size
    else:
        overlap, shared, united = _overlap_and_resemblance(ids, i, i_end, j, j_end, need, rule)
    if overlap < 0 or (rule.by_resemblance and shared * rule.denominator < rule.numerator * united):
        return -1, 0, 0
    return overlap, shared, united


@compiled
def compare_by_overlap(sketches: Ragged, a: int, b: int, overlap: int, rule: Rule) -> tuple[int, int, int]:
    """Do `compare_sketches` for two sketches whose overlap is known, and enough.

    Of the union the `size` smallest ids count: what both sketches hold of the others is taken off, from the largest id
    down.

    Cost: a step for each id of the union beyond those that count.
    """
    offsets, ids = sketches
    a, a_end, b, b_end = offsets[a], offsets[a + 1], offsets[b], offsets[b + 1]
    if rule.by_slots:
        shared, united = overlap, rule.size
    else:
        shared, united = overlap, (a_end - a) + (b_end - b) - overlap
        beyond = max(united - rule.size, 0)
        if a_end - a < rule.size and b_end - b < rule.size:
            beyond = 0
        united -= beyond
        if rule.by_resemblance and shared * rule.denominator < rule.numerator * united:
            return -1, 0, 0
        i, j = a_end - 1, b_end - 1
        while beyond > 0 and i >= a and j >= b:
            x, y = ids[i], ids[j]
            shared -= x == y
            i -= x >= y
            j -= y >= x
            beyond -= 1
    if rule.by_resemblance and shared * rule.denominator < rule.numerator * united:
        return -1, 0, 0
    return overlap, shared, united


@compiled
def _overlap_and_resemblance(
    ids: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int, need: int, rule: Rule
) -> tuple[int, int, int]:
    """Return what `overlap_or_less` and `resemblance_parts` do, by one merge: the latter ends within the former.

    The first is -1, too, as soon as the resemblance is out of reach.
    """
    limit = most_apart = rule.size
    if a_end - a < rule.size and b_end - b < rule.size:
        limit = a_end - a + b_end - b
        most_apart = limit
    elif rule.by_resemblance:  # the union has s ids or more
        most_apart -= -(-rule.numerator * rule.size // rule.denominator)

    common = united = 0
    while a < a_end and b < b_end and united < limit:
        if united - common > most_apart or common + min(a_end - a, b_end - b) < need:
            return -1, 0, 0
        x, y = ids[a], ids[b]
        common += x == y
        a += x <= y
        b += y <= x
        united += 1
    shared, united = common, min(limit, united + (a_end - a) + (b_end - b))
    if rule.by_resemblance and shared * rule.denominator < rule.numerator * united:
        return -1, 0, 0

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
