"""Token edit similarity of texts: 2 LCS / (a + b), with a cut-off and a bound on the work for each pair.

    rows of token numbers, pairs  --compare_tokens-->  similarity of each pair that an `EditRule` confirms

RapidFuzz finds the LCS, 64 tokens a step, and stops when the threshold is out of reach. It is fastest on strings, so
each distinct token of a block of pairs becomes one character.

A pair beyond that bound gets a lower bound of its LCS. Common tokens at both ends count. Between them, the tokens that
occur exactly once in each text are anchors: a longest chain of anchors in the same order is a common subsequence, and
the texts between two anchors are compared exactly while the bound on the work allows it. So such a pair is never
confirmed in error, but it may be left unconfirmed.

Sources:
    Hyyrö 2004, Bit-parallel LCS-length computation revisited.
    Fredman 1975, On computing the length of longest increasing subsequences.
    Cohen, "patience diff" (2003): tokens that occur once, as anchors.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cpdist

from nddup.arrays import Ragged, number_keys, take_rows
from nddup.matching.confirm_rules import Compared, EditRule, least_common

BLOCK = 1 << 19
"""Tokens spelled at a time: fewer than there are Unicode characters, so each distinct token can have its own."""

SURROGATES, AFTER = 0xD800, 0x800
"""The first surrogate, a code point that is no character, and how many there are."""

CLOSE = 1.05
"""Pairs whose least LCS differ by at most this factor are compared in one call, with one cut-off."""


def compare_tokens(tokens: Ragged, pairs: NDArray[np.integer], rule: EditRule) -> Compared:
    """
    Find which pairs of texts are confirmed by their tokens.

    Args:
        tokens: n rows of token numbers in the order of the text; only equal tokens have equal numbers.
        pairs: (k, 2), rows of `tokens`; fastest if pairs with the same row are adjacent.
        rule: the threshold and the bound on the work.

    Returns:
        The similarity of each confirmed pair. A text without tokens is similar to none.

    Cost: for a pair at most a b / 64 steps, less if the threshold is soon out of reach; beyond the bound a sort of the
        tokens and `rule.cells` / 64 steps. Memory: some 30 bytes per token, for `BLOCK` tokens.

    Example:
        >>> rows = Ragged(np.array([0, 4, 8, 11]), np.array([1, 2, 3, 4, 1, 2, 9, 4, 7, 8, 9], np.uint64))
        >>> compare_tokens(rows, np.array([[0, 1], [0, 2]]), EditRule(3, 4)).similarity.tolist()
        [0.75, nan]
    """
    ends = pairs.reshape(-1, 2).astype(np.int64)
    sizes = np.diff(tokens.offsets)[ends]
    totals = sizes.sum(axis=1)
    need = least_common(totals, rule)

    # The length of the shorter text is an upper bound of the LCS: a pair that it rules out is not compared.
    can_be = sizes.min(axis=1, initial=np.iinfo(np.int64).max) >= need
    is_long = can_be & ((sizes[:, 0] > rule.cells // np.maximum(sizes[:, 1], 1)) | (totals > BLOCK))
    common = np.zeros(len(ends), np.int64)
    for rows in _blocks(np.flatnonzero(can_be & ~is_long), totals):
        common[rows] = _measure(tokens, ends[rows], need[rows])
    for row in np.flatnonzero(is_long):
        first, second = (tokens.values[tokens.offsets[end] : tokens.offsets[end + 1]] for end in ends[row])
        common[row] = bound_common(first, second, rule.cells)

    common[common < need] = 0
    similarity = np.where(common > 0, 2 * common / np.maximum(totals, 1), np.nan)
    return Compared(common, similarity, is_long)


def _blocks(rows: NDArray[np.int64], totals: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield consecutive rows that have at most `BLOCK` tokens together."""
    ends = np.cumsum(totals[rows])
    low = 0
    while low < len(rows):
        before = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, before + BLOCK, "right")))
        yield rows[low:high]
        low = high


def _measure(tokens: Ragged, pairs: NDArray[np.int64], need: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the LCS of each pair of a block, (k,); 0 where it is well below what the pair needs."""
    rows, places = np.unique(pairs, return_inverse=True)
    texts = spell(take_rows(tokens, rows))
    first, second = ([texts[place] for place in column] for column in places.reshape(-1, 2).T.tolist())

    # A call takes one cut-off, a count. With a share as cut-off, `Indel.normalized_similarity` loses pairs that lie
    # exactly at it.
    order = np.argsort(need, kind="stable")
    level = (np.log(need[order]) / np.log(CLOSE)).astype(np.int64)
    found = np.zeros(len(need), np.int64)
    for some in np.split(order, np.flatnonzero(np.diff(level)) + 1):
        left, right = [first[i] for i in some], [second[i] for i in some]
        found[some] = cpdist(left, right, scorer=LCSseq.similarity, score_cutoff=int(need[some[0]]), dtype=np.int64)
    return found


def spell(tokens: Ragged) -> list[str]:
    """Spell each row as a string, one character per token; at most `BLOCK` distinct tokens in all rows."""
    codes = number_keys(np.ascontiguousarray(tokens.values))[0].astype(np.uint32)
    codes[codes >= SURROGATES] += AFTER
    whole = codes.astype("<u4").tobytes().decode("utf-32-le")
    return [whole[low:high] for low, high in pairwise(tokens.offsets.tolist())]


def bound_common(first: NDArray[np.uint64], second: NDArray[np.uint64], cells: int) -> int:
    """
    Return a lower bound of the LCS of two long texts.

    Args:
        first: (a,), tokens.
        second: (b,), tokens.
        cells: work allowed for exact comparisons: products of lengths, summed over the gaps between anchors.

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

    anchors = _chain(first, second)
    starts = np.concatenate([[[0, 0]], anchors + 1])
    ends = np.concatenate([anchors, [[len(first), len(second)]]])
    work = (ends - starts).prod(axis=1)
    order = np.argsort(work, kind="stable")

    # The smallest gaps come first: most of them can be compared before the bound is reached.
    compared = order[(np.cumsum(work[order]) <= cells) & (work[order] > 0)]
    gaps = sum(_exact(first[a:c], second[b:d]) for (a, b), (c, d) in zip(starts[compared], ends[compared], strict=True))
    return head + tail + len(anchors) + gaps


def _common_start(first: NDArray[np.uint64], second: NDArray[np.uint64], most: int) -> int:
    """Return how many tokens at the start are equal, `most` at most."""
    differ = np.flatnonzero(first[:most] != second[:most])
    return int(differ[0]) if len(differ) else most


def _chain(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the places, (c, 2), of a longest chain of tokens that occur once in each text, in the order of both."""
    places = []
    for text in (first, second):
        values, at, counts = np.unique(text, return_index=True, return_counts=True)
        places.append((values[counts == 1], at[counts == 1]))
    _, of_first, of_second = np.intersect1d(places[0][0], places[1][0], assume_unique=True, return_indices=True)
    anchors = np.stack([places[0][1][of_first], places[1][1][of_second]], axis=1)
    anchors = anchors[np.argsort(anchors[:, 0])]

    # `last[k]` is the anchor at which the best chain of k + 1 anchors ends; `before` holds the previous one of each.
    ends: list[int] = []
    last: list[int] = []
    before = np.full(len(anchors), -1, np.int64)
    for number, place in enumerate(anchors[:, 1].tolist()):
        length = bisect_left(ends, place)
        before[number] = last[length - 1] if length else -1
        ends[length : length + 1], last[length : length + 1] = [place], [number]

    chain: list[int] = []
    following = last[-1] if last else -1
    while following >= 0:
        chain.append(following)
        following = int(before[following])
    return anchors[np.array(chain[::-1], np.int64)]


def _exact(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> int:
    """Return the LCS of two short texts, or of long ones with few distinct tokens."""
    return int(LCSseq.similarity(first.tolist(), second.tolist()))
