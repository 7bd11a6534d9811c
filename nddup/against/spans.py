"""The runs of tokens that an item and its document have in common.

The search walks along the item. At each unsuppressed shingle that the document has, it takes the longest common run
from there, the first in the document if several are equally long, and goes on after the last shingle of the run. A run
may extend over suppressed shingles, as its tokens are equal. Only the first `OCCURRENCES` places of a shingle in the
document are tried.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled

OCCURRENCES: Final = 64
"""Most places of one shingle in a document that are tried; without a limit, repetitive texts would cost n²."""


class Runs(NamedTuple):
    """Common runs: the place of the first shingle in the item, the first hit of the document, and how many shingles."""

    item: NDArray[np.int32]
    hit: NDArray[np.int32]
    shingles: NDArray[np.int32]


def find_runs(
    item: NDArray[np.int32], tokens: NDArray[np.int32], numbers: NDArray[np.int32], is_suppressed: NDArray[np.bool_]
) -> Runs:
    """Find the common runs of one item and one document.

    Args:
        item: (t,), the number of the shingle that begins at each token of the item; -1 for none.
        tokens: (h,), the tokens of the document at which a known shingle begins, ascending.
        numbers: (h,), the numbers of these shingles.
        is_suppressed: (d,), whether each shingle is suppressed, by its number.

    Returns:
        The runs, in the order of the item; they overlap by fewer tokens than a shingle has. Empty if no unsuppressed
        shingle is shared.

    Cost: a sort of the hits, then linear in tokens and hits, times up to `OCCURRENCES` if the document repeats itself.

    Example:
        >>> item, places = np.array([0, 1, 2, 3, -1]), np.array([4, 5, 9])
        >>> runs = find_runs(item, places, np.array([1, 2, 3]), np.zeros(4, bool))
        >>> [values.tolist() for values in runs]
        [[1, 3], [0, 2], [2, 1]]
    """
    order = np.argsort(numbers, kind="stable")
    return Runs(*_walk(item, tokens, numbers, is_suppressed, order, numbers[order]))


@compiled
def _walk(
    item: NDArray[np.int32],
    tokens: NDArray[np.int32],
    numbers: NDArray[np.int32],
    is_suppressed: NDArray[np.bool_],
    order: NDArray[np.int64],
    ordered: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    found = np.empty((len(item), 3), np.int32)
    n_found = 0
    at = 0
    while at < len(item):
        number = item[at]
        longest, best = 0, -1
        if number >= 0 and not is_suppressed[number]:
            low = np.searchsorted(ordered, number)
            high = min(np.searchsorted(ordered, number, "right"), low + OCCURRENCES)
            for place in range(low, high):
                hit = order[place]
                size = _common(item, at, tokens, numbers, hit)
                if size > longest:
                    longest, best = size, hit
        if longest:
            found[n_found, 0], found[n_found, 1], found[n_found, 2] = at, best, longest
            n_found += 1
        at += max(longest, 1)
    return found[:n_found, 0].copy(), found[:n_found, 1].copy(), found[:n_found, 2].copy()


@compiled
def _common(item: NDArray[np.int32], at: int, tokens: NDArray[np.int32], numbers: NDArray[np.int32], hit: int) -> int:
    """Return how many shingles follow one another in both, including the first."""
    size = 1
    while (
        at + size < len(item)
        and hit + size < len(tokens)
        and tokens[hit + size] == tokens[hit] + size
        and numbers[hit + size] == item[at + size]
    ):
        size += 1
    return size
