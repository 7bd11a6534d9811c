"""Compare texts by one of the `confirm_rules`: shingle ids by merges of ascending rows, tokens by `token_edits`.

rows, pairs  --compare_texts-->  the similarity of each pair that the rule confirms
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled
from nddup.matching.confirm_rules import Compared, ConfirmRule, EditRule, SetRule, least_common
from nddup.matching.threshold import overlap_or_less

FAMILY: Final = 2
"""More pairs than this many for each row are a family: its rows are compared with a pivot first."""

TOGETHER: Final = 1 << 18
"""Most pairs of a portion."""

AHEAD: Final = 16
"""Texts that one text is compared with at a time, where one confirmed pair is enough."""

TakeTexts = Callable[[NDArray[np.int64]], Ragged]
"""Returns the texts at some places, each as the rule compares it. All of them need not be in memory."""


def compare_texts(rows: Ragged, pairs: NDArray[np.integer], rule: ConfirmRule) -> Compared:
    """Find which pairs of texts are confirmed.

    Args:
        rows: n texts, each as the rule compares it: ascending distinct shingle ids, or tokens in order.
        pairs: (k, 2), rows.
        rule: the threshold.

    Returns:
        The similarity of each confirmed pair. An empty row is similar to none.

    Cost: for a `SetRule` one merge a pair, without the interpreter's lock; else that of `token_edits.compare_tokens`.
    """
    if isinstance(rule, EditRule):
        from nddup.matching.token_edits import compare_tokens  # noqa: PLC0415 - loads RapidFuzz

        return compare_tokens(rows, pairs, rule)
    return compare_sets(rows, pairs, rule)


def compare_sets(rows: Ragged, pairs: NDArray[np.integer], rule: SetRule) -> Compared:
    """Find which pairs of shingle sets reach a resemblance; arguments and result as of `compare_texts`.

    Example:
        >>> rows = Ragged(np.array([0, 4, 8, 11]), np.array([1, 2, 3, 4, 1, 2, 3, 9, 7, 8, 9], np.uint64))
        >>> compare_sets(rows, np.array([[0, 1], [0, 2]]), SetRule(3, 5)).similarity.tolist()
        [0.6, nan]
    """
    ends = np.ascontiguousarray(pairs.reshape(-1, 2), np.int64)
    totals = np.diff(rows.offsets)[ends].sum(axis=1)
    common = _count_common(rows, ends, least_common(totals, rule), len(ends) > FAMILY * len(rows.offsets))
    similarity = np.where(common > 0, common / np.maximum(totals - common, 1), np.nan)
    return Compared(common, similarity, np.zeros(len(ends), np.bool_))


@compiled
def _count_common(
    rows: Ragged,
    ends: NDArray[np.int64],
    need: NDArray[np.int64],
    is_family: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
) -> NDArray[np.int64]:
    """Return the number of ids that both rows of each pair have, 0 if it is less than `need`; (k,).

    In a family of many pairs, a row is compared with a pivot P once. With the ids that A and B lack of P, and those
    they have besides, |A & B| = |P| - |lacks of A or B| + |extras of A and B|: a few steps, if they are much like P.
    """
    offsets, ids = rows
    n = len(offsets) - 1
    pivots = _choose_pivots(ends, n) if is_family else np.arange(n)
    lack_ends, lacks, extra_ends, extras = _compare_with_pivots(rows, pivots) if is_family else _nothing(n)

    common = np.empty(len(ends), np.int64)
    for k in range(len(ends)):
        a, b = ends[k, 0], ends[k, 1]
        p = pivots[a]
        steps = lack_ends[a + 1] - lack_ends[a] + lack_ends[b + 1] - lack_ends[b]
        steps += extra_ends[a + 1] - extra_ends[a] + extra_ends[b + 1] - extra_ends[b]
        if is_family and p == pivots[b] and steps < offsets[a + 1] - offsets[a] + offsets[b + 1] - offsets[b]:
            lost = lack_ends[a + 1] - lack_ends[a] + lack_ends[b + 1] - lack_ends[b]
            lost -= overlap_or_less(lacks, lack_ends[a], lack_ends[a + 1], lack_ends[b], lack_ends[b + 1], 0)
            more = overlap_or_less(extras, extra_ends[a], extra_ends[a + 1], extra_ends[b], extra_ends[b + 1], 0)
            found = offsets[p + 1] - offsets[p] - lost + more
            common[k] = found if found >= need[k] else 0
        else:
            common[k] = max(overlap_or_less(ids, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], need[k]), 0)
    return common


@compiled
def _choose_pivots(ends: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return for each row the least row within two pairs of it, itself included; (n,)."""
    pivots = np.arange(n)
    for _ in range(2):
        before = pivots.copy()
        for k in range(len(ends)):
            a, b = ends[k, 0], ends[k, 1]
            pivots[a] = min(pivots[a], before[b])
            pivots[b] = min(pivots[b], before[a])
    return pivots


@compiled
def _nothing(n: int) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    none = np.zeros(n + 1, np.int64)
    return none, np.empty(0, np.uint64), none, np.empty(0, np.uint64)


@compiled
def _compare_with_pivots(
    rows: Ragged, pivots: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    """Return the ids that each row lacks of its pivot, and those it has besides, as two ragged arrays of n rows."""
    offsets, ids = rows
    n, room = len(pivots), 0
    for row in range(n):
        room += offsets[pivots[row] + 1] - offsets[pivots[row]]
    lack_ends, extra_ends = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    lacks, extras = np.empty(room, np.uint64), np.empty(len(ids), np.uint64)
    n_lacks, n_extras = 0, 0
    for row in range(n):
        i, end = offsets[row], offsets[row + 1]
        j, pivot_end = offsets[pivots[row]], offsets[pivots[row] + 1]
        while pivots[row] != row and (i < end or j < pivot_end):
            if j == pivot_end or (i < end and ids[i] < ids[j]):
                extras[n_extras] = ids[i]
                n_extras += 1
                i += 1
            elif i == end or ids[j] < ids[i]:
                lacks[n_lacks] = ids[j]
                n_lacks += 1
                j += 1
            else:
                i += 1
                j += 1
        lack_ends[row + 1], extra_ends[row + 1] = n_lacks, n_extras
    return lack_ends, lacks[:n_lacks].copy(), extra_ends, extras[:n_extras].copy()


def divide_pairs(pairs: NDArray[np.int64], sizes: NDArray[np.int64], most: int) -> Iterator[NDArray[np.int64]]:
    """Yield the pairs in portions whose rows have about `most` values together, so that families meet in few portions.

    Args:
        pairs: (k, 2), rows, the first of each pair ascending at best.
        sizes: (n,), values of each row.
        most: values of the rows of a portion, unless one pair has more.

    Yields:
        Places of pairs; each pair is in one portion.
    """
    # Rows one after another fill tiles of half the size. The pairs of two tiles stay together.
    tiles = (np.cumsum(sizes) - sizes) // max(most // 2, 1)
    keys = tiles[pairs[:, 0]] * (int(tiles.max(initial=0)) + 1) + tiles[pairs[:, 1]]
    order = np.argsort(keys, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(keys[order])) + 1, len(order)) if len(order) else np.empty(0, np.int64)
    work = np.append(0, np.cumsum(sizes[pairs[order]].sum(axis=1)))
    low = start = held = 0
    for end in ends.tolist():
        held += min(int(work[end] - work[start]), most)
        start = end
        if held >= most or end == len(order):
            for first in range(low, end, TOGETHER):
                yield order[first : min(first + TOGETHER, end)]
            low, held = end, 0


def compare_taken(take: TakeTexts, pairs: NDArray[np.integer], rule: ConfirmRule) -> Compared:
    """Compare pairs of texts, given by their places, as `compare_texts`; each is taken once."""
    needed, rows = np.unique(pairs, return_inverse=True)
    return compare_texts(take(needed.astype(np.int64)), rows.reshape(-1, 2), rule)


def confirms_any(take: TakeTexts, rule: ConfirmRule, one: int, others: NDArray[np.int64]) -> bool:
    """Return whether one text is confirmed with any of several others, which are tried in order."""
    portions = (others[low : low + AHEAD] for low in range(0, len(others), AHEAD))
    pairs = (np.stack([np.full(len(some), one), some], axis=1) for some in portions)
    return any(compare_taken(take, some, rule).is_near.any() for some in pairs)
