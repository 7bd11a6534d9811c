"""The runs of tokens that an item and its document have in common.

The item is walked from its first token. At a shingle that is not suppressed and stands in the document, the longest
common run from there is taken, of equal ones the first in the document; the walk goes on after the last shingle of the
run. A run grows over suppressed shingles too: its tokens are equal. Of a shingle that a document has very often, the
first `OCCURRENCES` places are tried.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled

OCCURRENCES: Final = 64
"""Places of one shingle in a document that are tried; more would make repetitive texts cost their square."""


class Runs(NamedTuple):
    """Common runs: the first shingle in the item, the first hit of the document, and how many shingles."""

    item: NDArray[np.int32]
    hit: NDArray[np.int32]
    shingles: NDArray[np.int32]


def find_runs(
    item: NDArray[np.int32], tokens: NDArray[np.int32], numbers: NDArray[np.int32], is_suppressed: NDArray[np.bool_]
) -> Runs:
    """The common runs of one item and one document.

    Args:
        item: (t,), the number of the shingle that begins at each token of the item; -1 for none.
        tokens: (h,), the tokens of the document at which a known shingle begins, ascending.
        numbers: (h,), their numbers.
        is_suppressed: by number.

    Returns:
        The runs, in the order of the item; they overlap by fewer tokens than a shingle has. None where nothing that
        counts is shared.

    Cost: linear in tokens and hits, up to `OCCURRENCES` times where the document repeats itself.

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
    """How many shingles follow one another in both, the first included."""
    size = 1
    while (
        at + size < len(item)
        and hit + size < len(tokens)
        and tokens[hit + size] == tokens[hit] + size
        and numbers[hit + size] == item[at + size]
    ):
        size += 1
    return size
