"""The rules by which the texts of two sketches confirm a pair, in exact integers. Candidates are found by the sketches.

    rule        what is compared                          the pair is confirmed iff
    SetRule     S, the distinct shingle ids of a text     |A & B| / |A | B| >= t: the resemblance itself, not estimated
    EditRule    the tokens of a text, in order            2 LCS / (a + b) >= t: the token edit similarity

Let t = p / q. With c = |A & B|, the first rule is c (p + q) >= p (|A| + |B|), so a merge of two ascending rows of ids
decides it, and stops when too few ids are left. For the second, let a and b be the numbers of tokens of two texts, and
LCS the length of their longest common subsequence of tokens; the similarity is 1 - d / (a + b), where d counts the
tokens to delete and to insert. `confirm_texts` measures both.

**The margin.** The candidates of a `SetRule` are pairs of sketches whose estimated resemblance is at least t - m. With
a sketch of s ids the estimate of a pair at t is x / s, where x follows a law no wider than the binomial one (s draws
without replacement from A | B). Then t - m = c / s, where c is the largest with P(Bin(s, t) < c) < 1 / 1000
(`accuracy.least_equal`). So fewer than one in a thousand pairs at t is no candidate, and fewer above t.

Sources:
    Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (resemblance; sampling by MIN_s).
    Hoeffding 1963, Probability inequalities for sums of bounded random variables (the hypergeometric law is narrower).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

CELLS: Final = 1 << 30
"""Largest product of two texts' token counts for which LCS is computed exactly: 32,768 tokens each, some 0.1 s at
worst. Above it a lower bound is used."""


class EditRule(NamedTuple):
    """The threshold as an exact decimal, and the bound on the work per pair."""

    numerator: int
    denominator: int
    cells: int = CELLS

    @property
    def share(self) -> float:
        """The threshold as a number."""
        return self.numerator / self.denominator


class SetRule(NamedTuple):
    """The threshold of the resemblance as an exact decimal."""

    numerator: int
    denominator: int


ConfirmRule = EditRule | SetRule


class Compared(NamedTuple):
    """The results for k pairs of texts."""

    common: NDArray[np.int64]
    """(k,), of a confirmed pair the common shingles, or the LCS or its lower bound; 0 for any other."""

    similarity: NDArray[np.float64]
    """(k,), what the threshold applies to; NaN for a pair that is not confirmed."""

    is_bounded: NDArray[np.bool_]
    """(k,), whether the pair was beyond the bound on the work."""

    @property
    def is_near(self) -> NDArray[np.bool_]:
        """Whether each pair is confirmed, (k,)."""
        return self.common > 0


def join_compared(parts: Sequence[Compared]) -> Compared:
    """Concatenate the results for several lists of pairs; none give empty arrays."""
    if not parts:
        return Compared(np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_))
    return Compared(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def least_common(totals: NDArray[np.int64], rule: ConfirmRule) -> NDArray[np.int64]:
    """Return the least common part that confirms a pair of texts, at least 1, from both sizes together; (n,) to (n,).

    Example:
        >>> least_common(np.array([200, 201, 0]), EditRule(77, 100)).tolist()
        [77, 78, 1]
        >>> least_common(np.array([170, 171, 0]), SetRule(7, 10)).tolist()
        [70, 71, 1]
    """
    p, q = rule.numerator, rule.denominator
    parts = 2 * q if isinstance(rule, EditRule) else p + q
    return np.maximum(-(-totals.astype(np.int64) * p // parts), 1)


def may_confirm(sizes: NDArray[np.integer], rule: ConfirmRule) -> NDArray[np.bool_]:
    """Return whether texts of these sizes can be confirmed: one has to hold the least common part; (2, k) to (k,)."""
    ends = sizes.astype(np.int64)
    return np.asarray(ends.min(axis=0) >= least_common(ends.sum(axis=0), rule))
