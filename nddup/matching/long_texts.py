"""A lower bound of the longest common subsequence of two long texts, by anchors: tokens that occur once in each."""

from array import array
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import compiled

FACTOR: Final = np.uint64(0x9FB21C651E98DF25)
"""Odd: the fingerprint of a window is the sum of its tokens times powers of this."""


def bound_common(
    first: NDArray[np.uint64], second: NDArray[np.uint64], cells: int, window: int = 1, need: int = 0
) -> int:
    """Return a lower bound of the LCS of two long texts.

    Common tokens at both ends count. Between them, the tokens that occur exactly once in each text are anchors: a
    longest chain of anchors in the same order is a common subsequence, and the texts between two anchors are compared
    exactly while the bound on the work allows it. No character occurs once in a long text: where tokens are characters,
    an anchor is the first of `window` consecutive ones that occur once.

    Sources:
        Fredman 1975, On computing the length of longest increasing subsequences.
        Cohen, "patience diff" (2003): tokens that occur once, as anchors.

    Args:
        first: (a,), tokens.
        second: (b,), tokens.
        cells: work allowed for exact comparisons: products of lengths, summed over the gaps between anchors.
        window: consecutive tokens by which an anchor, the first of them, is recognised.
        need: the bound that is of use; where it is out of reach, a smaller one may be returned at once.

    Cost: sorts of both texts, and `cells` / 64 steps.

    Example:
        >>> first, second = np.array([5, 1, 1, 2, 2, 6], np.uint64), np.array([5, 2, 2, 1, 1, 6], np.uint64)
        >>> bound_common(first, second, 100), bound_common(first, second, 0)
        (4, 2)
    """
    shorter = min(len(first), len(second))
    head = _common_start(first, second, shorter)
    tail = _common_start(first[::-1], second[::-1], shorter - head)
    first, second = first[head : len(first) - tail], second[head : len(second) - tail]

    anchors = _chain(_windows(first, window), _windows(second, window))
    anchors = anchors[first[anchors[:, 0]] == second[anchors[:, 1]]]  # also where two fingerprints are equal by chance
    starts = np.concatenate([[[0, 0]], anchors + 1])
    ends = np.concatenate([anchors, [[len(first), len(second)]]])
    work = (ends - starts).prod(axis=1)
    order = np.argsort(work, kind="stable")

    # The smallest gaps come first: most of them can be compared before the bound is reached.
    compared = order[(np.cumsum(work[order]) <= cells) & (work[order] > 0)]
    common = head + tail + len(anchors)
    if common + int((ends - starts)[compared].min(axis=1).sum()) < need:
        return common
    gaps = sum(_exact(first[a:c], second[b:d]) for (a, b), (c, d) in zip(starts[compared], ends[compared], strict=True))
    return common + gaps


def _common_start(first: NDArray[np.uint64], second: NDArray[np.uint64], most: int) -> int:
    """Return how many tokens at the start are equal, `most` at most."""
    differ = np.flatnonzero(first[:most] != second[:most])
    return int(differ[0]) if len(differ) else most


def _windows(text: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """Return a fingerprint of the `length` tokens from each place that has so many, (n - length + 1,)."""
    count = max(len(text) - length + 1, 0)
    windows = np.zeros(count, np.uint64)
    for at in range(length):
        windows = windows * FACTOR + text[at : at + count]
    return windows


def _once(text: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the tokens that occur once, ascending, and where."""
    order = np.argsort(text)
    values = text[order]
    differs = np.append(np.append(True, values[1:] != values[:-1]), True)
    is_once = differs[:-1] & differs[1:] if len(values) else np.zeros(0, np.bool_)
    return values[is_once], order[is_once]


def _chain(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the places, (c, 2), of a longest chain of tokens that occur once in each text, in the order of both."""
    return _longest_chain(*_once(first), *_once(second), len(first))


@compiled
def _longest_chain(
    first: NDArray[np.uint64],
    of_first: NDArray[np.int64],
    second: NDArray[np.uint64],
    of_second: NDArray[np.int64],
    length: int,
) -> NDArray[np.int64]:
    """Return the places of a longest chain of values that both ascending lists hold, in the order of both places.

    Source: Fredman 1975. `last[k]` is the place at which the best chain of k + 1 ends; `before` holds the previous one
    of each.
    """
    partner = np.full(length, -1, np.int64)
    i = j = 0
    while i < len(first) and j < len(second):
        if first[i] == second[j]:
            partner[of_first[i]] = of_second[j]
        is_first = first[i] <= second[j]
        j += second[j] <= first[i]
        i += is_first

    last = np.empty(min(len(first), len(second)), np.int64)
    before = np.full(length, -1, np.int64)
    count = 0
    for place in range(length):
        if partner[place] < 0:
            continue
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if partner[last[middle]] < partner[place]:
                low = middle + 1
            else:
                high = middle
        before[place] = last[low - 1] if low else -1
        last[low] = place
        count = max(count, low + 1)

    chain = np.empty((count, 2), np.int64)
    place = last[count - 1] if count else -1
    for at in range(count - 1, -1, -1):
        chain[at, 0], chain[at, 1] = place, partner[place]
        place = before[place]
    return chain


def _exact(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> int:
    """Return the LCS of two short texts, or of long ones with few distinct tokens."""
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most runs compare no tokens

    return int(LCSseq.similarity(array("Q", first.tobytes()), array("Q", second.tobytes())))
