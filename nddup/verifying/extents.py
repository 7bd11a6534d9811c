"""What texts share, as ranges of tokens: the extent of a cluster, and windows that are repeated.

    find_extent    tokens of the members   -> Extent: the common shingles, where they lie in the first, and what each
                                              member has beside
    join_ranges    ranges that may overlap -> the tokens that they cover, as ranges that do not
    find_repeated  tokens of the texts     -> RepeatedWindows: all are hashed and sorted, none is sampled
    cover          places of windows       -> which tokens they cover; `cover_runs` for runs

A cluster is a concept: a set of documents, its members, and the set of shingles that all of them have. At a low
threshold this is what tells a template from a text: a family of pages that share a frame shares a few short ranges.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ranges = NDArray[np.int64]
"""(k, 2): ranges of tokens, the first and the one after the last, ascending."""


class Extent(NamedTuple):
    """What m members share."""

    common: int
    """Distinct shingles that every member has."""

    shingles: list[int]
    """Distinct shingles of each member, (m,)."""

    spans: Ranges
    """The maximal ranges of the first member of which every shingle is common; they may overlap."""

    beside: list[Ranges]
    """For each member, the ranges of its tokens that lie in no common shingle, (m,)."""

    @property
    def share(self) -> float:
        """The common shingles as a share of those of the shortest member; 0 if that has none."""
        return self.common / min(self.shingles, default=0) if all(self.shingles) and self.shingles else 0.0


_SHIFT = np.uint64(29)

_LEFT, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x94D049BB133111EB)


def find_extent(texts: Sequence[Sequence[str]], length: int, offset: int = 1) -> Extent:
    """Find what texts have in common.

    Shingles are runs of tokens, compared as they are: no hash is used.

    Args:
        texts: the tokens of each member; the ranges are those of the first.
        length: tokens of a shingle; a text of fewer tokens is one shingle.
        offset: tokens from the start of one shingle to the start of the next.

    Returns:
        The extent; that of no texts is empty. A text without tokens has no shingle, so nothing is common to it.

    Cost: `length` sorts of all shingles, some 60 bytes each.

    Example:
        >>> found = find_extent(["a b c d x".split(), "y a b c d".split()], 3)
        >>> found.common, found.spans.tolist(), [ranges.tolist() for ranges in found.beside]
        (2, [[0, 4]], [[[4, 5]], [[0, 1]]])
    """
    known: dict[str, int] = {}
    rows = [np.array([known.setdefault(token, len(known) + 1) for token in text], np.int64) for text in texts]
    sizes = [len(row) for row in rows]
    starts = [np.arange(0, max(size - length, 0) + 1, offset) if size else np.empty(0, np.int64) for size in sizes]
    owners = np.repeat(np.arange(len(rows)), [len(places) for places in starts])
    numbers = _number(rows, starts, length, len(known) + 1)

    distinct = np.unique(np.stack([owners, numbers]), axis=1) if len(numbers) else np.empty((2, 0), np.int64)
    counts = np.bincount(distinct[1], minlength=1)
    is_common = (counts == len(rows))[numbers] if len(numbers) else np.empty(0, np.bool_)
    bounds = np.cumsum([0, *(len(places) for places in starts)])
    whole = [is_common[low:high] for low, high in pairwise(bounds)]
    spans = [_spans(places, common, length, size) for places, common, size in zip(starts, whole, sizes, strict=True)]
    return Extent(
        common=int(np.count_nonzero(counts == len(rows))) if len(numbers) else 0,
        shingles=np.bincount(distinct[0], minlength=len(rows)).tolist(),
        spans=spans[0] if spans else np.empty((0, 2), np.int64),
        beside=[_complement(join_ranges(ranges), size) for ranges, size in zip(spans, sizes, strict=True)],
    )


def join_ranges(ranges: Ranges) -> Ranges:
    """Join ranges, ascending by both ends, that overlap or touch.

    Example:
        >>> join_ranges(np.array([[0, 5], [3, 8], [8, 9], [11, 12]])).tolist()
        [[0, 9], [11, 12]]
    """
    if not len(ranges):
        return ranges
    is_new = np.append(True, ranges[1:, 0] > ranges[:-1, 1])
    is_last = np.append(is_new[1:], True)
    return np.stack([ranges[is_new, 0], ranges[is_last, 1]], axis=1)


def _number(
    rows: Sequence[NDArray[np.int64]], starts: Sequence[NDArray[np.int64]], length: int, n_tokens: int
) -> NDArray[np.int64]:
    """Return a number for each shingle of all rows, end to end: equal for equal shingles only, from 0."""
    numbers = np.zeros(sum(len(places) for places in starts), np.int64)
    for step in range(length):
        tokens = []
        for row, places in zip(rows, starts, strict=True):
            at = places + step
            tokens.append(np.where(at < len(row), row[np.minimum(at, len(row) - 1)], 0) if len(row) else at)
        keys = numbers * n_tokens + np.concatenate([np.empty(0, np.int64), *tokens])
        numbers = np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers


def _spans(places: NDArray[np.int64], is_common: NDArray[np.bool_], length: int, size: int) -> Ranges:
    """Return the maximal ranges whose shingles are all common: runs of common shingles."""
    padded = np.concatenate([[False], is_common, [False]]).astype(np.int8)
    edges = np.flatnonzero(np.diff(padded))
    first, last = places[edges[::2]], places[edges[1::2] - 1] + length
    return np.stack([first, np.minimum(last, size)], axis=1).astype(np.int64)


def _complement(covered: Ranges, size: int) -> Ranges:
    ends = np.concatenate([[0], covered.ravel(), [size]]).reshape(-1, 2)
    return ends[ends[:, 0] < ends[:, 1]]


class RepeatedWindows(NamedTuple):
    """The w places of repeated windows among t tokens.

    Attributes:
        places: (w,), the first token of each, ascending.
        windows: (w,), the number of the window at each place.
        is_first: (w,), whether the place is the first of its window, or in the document of the first where repeats
            within a document do not count.
        is_earliest: (w,), whether the place is the first of its window.
        covered: (t,), whether a repeated window covers the token.
        kept: (t,), whether a window at a first place covers it.
    """

    places: NDArray[np.int64]
    windows: NDArray[np.int64]
    is_first: NDArray[np.bool_]
    is_earliest: NDArray[np.bool_]
    covered: NDArray[np.bool_]
    kept: NDArray[np.bool_]


def find_repeated(
    offsets: NDArray[np.int64], hashes: NDArray[np.uint64], ranks: NDArray[np.int64], length: int, *, within: bool
) -> RepeatedWindows:
    """Find all repeated windows.

    `nddup check` compares passages and cuts with it. A window's hash is made of those of its halves, mixed at each
    step, so it has nothing in common with the rolling fingerprints by which passages are found. Windows are taken to be
    equal if their 64-bit hashes are: among a hundred million windows there is a wrong pair once in some 3,700
    collections.

    Args:
        offsets: (n + 1,), the tokens of document i are `hashes[offsets[i]:offsets[i + 1]]`.
        hashes: (t,), the hash of each token.
        ranks: (n,), the place of each document in the order of preference.
        within: whether places in one document are a repetition too.

    Cost: log2(length) passes over the tokens and three sorts of the windows; some 100 bytes a token.
    """
    sizes = np.diff(offsets)
    documents = np.repeat(np.arange(len(sizes)), sizes)
    tokens = np.arange(len(hashes))
    places = tokens[tokens + length <= offsets[1:][documents]]
    _, windows = np.unique(_hash_windows(hashes, length)[places], return_inverse=True)
    homes = documents[places]
    n_windows = int(windows.max(initial=-1)) + 1

    # The first place of each window, then whether another counts beside it.
    order = np.lexsort((places, ranks[homes], windows))
    _, starts = np.unique(windows[order], return_index=True)
    firsts = order[starts]
    first_place, first_home = places[firsts], homes[firsts]
    counts = np.bincount(windows, minlength=n_windows)
    elsewhere = np.bincount(windows[homes != first_home[windows]], minlength=n_windows)
    is_repeated = (elsewhere > 0) | (within & (counts > 1))

    mask = is_repeated[windows]
    places, windows, homes = places[mask], windows[mask], homes[mask]
    is_earliest = places == first_place[windows]
    is_first = is_earliest if within else homes == first_home[windows]
    return RepeatedWindows(
        places,
        windows,
        is_first,
        is_earliest,
        cover(places, length, len(hashes)),
        cover(places[is_first], length, len(hashes)),
    )


def cover(places: NDArray[np.int64], length: int, tokens: int) -> NDArray[np.bool_]:
    """Return whether a window at one of the places covers each of `tokens` tokens."""
    return cover_runs(places, places + length, tokens) > 0


def cover_runs(begins: NDArray[np.int64], ends: NDArray[np.int64], tokens: int) -> NDArray[np.int64]:
    """Return how many of the runs from `begins` to `ends` hold each of `tokens` tokens."""
    steps = np.bincount(begins, minlength=tokens + 1) - np.bincount(ends, minlength=tokens + 1)
    return np.cumsum(steps)[:tokens]


def _hash_windows(hashes: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """Return the hash of the `length` tokens from each token; at the end, of as many as there are."""
    power, size = _mix(hashes), 1
    whole, done = None, 0
    while done < length:
        if length & size:
            whole = power if whole is None else _mix(whole * _LEFT + _shifted(power, done))
            done += size
        power = _mix(power * _LEFT + _shifted(power, size))
        size *= 2
    return np.empty(0, np.uint64) if whole is None else whole


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = (values ^ (values >> _SHIFT)) * _MIX
    return np.asarray(mixed ^ (mixed >> _SHIFT))


def _shifted(values: NDArray[np.uint64], by: int) -> NDArray[np.uint64]:
    """Return the values `by` places later, zeros after the last."""
    shifted = np.zeros_like(values)
    if by < len(values):
        shifted[: len(values) - by] = values[by:]
    return shifted
