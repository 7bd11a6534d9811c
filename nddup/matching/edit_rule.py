"""The rule by which two texts confirm a pair: a threshold on their token edit similarity, in exact integers.

Let a and b be the numbers of tokens of two texts, and LCS the length of their longest common subsequence of tokens. The
token edit similarity is 2 LCS / (a + b): 1 - d / (a + b), where d counts the tokens to delete and to insert. A pair of
sketches is confirmed iff the similarity is at least t = numerator / denominator, that is, iff LCS >= t (a + b) / 2.

`nddup.matching.token_edits` measures it.
"""

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


def least_common(totals: NDArray[np.int64], rule: EditRule) -> NDArray[np.int64]:
    """Return the least LCS that confirms a pair of texts, at least 1, from their tokens together; (n,) to (n,).

    Example:
        >>> least_common(np.array([200, 201, 0]), EditRule(77, 100)).tolist()
        [77, 78, 1]
    """
    return np.maximum(-(-totals.astype(np.int64) * rule.numerator // (2 * rule.denominator)), 1)
