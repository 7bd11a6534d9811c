"""Repeated windows by another method: all windows are hashed and sorted, none is sampled.

`nddup check` compares passages and cuts with it. A window's hash is made of those of its halves, mixed at each step, so
it has nothing in common with the rolling fingerprints by which passages are found. Windows are taken to be equal if
their 64-bit hashes are: among a hundred million windows there is a wrong pair once in some 3,700 collections.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LEFT, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x94D049BB133111EB)
_SHIFT = np.uint64(29)


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

    Args:
        offsets: (n + 1,), the tokens of document i are `hashes[offsets[i]:offsets[i + 1]]`.
        hashes: (t,), the hash of each token.
        ranks: (n,), the place of each document in the order of preference.
        length: tokens of a window.
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

    some = is_repeated[windows]
    places, windows, homes = places[some], windows[some], homes[some]
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
    found, done = None, 0
    while done < length:
        if length & size:
            found = power if found is None else _mix(found * _LEFT + _shifted(power, done))
            done += size
        power = _mix(power * _LEFT + _shifted(power, size))
        size *= 2
    return np.empty(0, np.uint64) if found is None else found


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = (values ^ (values >> _SHIFT)) * _MIX
    return np.asarray(mixed ^ (mixed >> _SHIFT))


def _shifted(values: NDArray[np.uint64], by: int) -> NDArray[np.uint64]:
    """Return the values `by` places later, zeros after the last."""
    shifted = np.zeros_like(values)
    if by < len(values):
        shifted[: len(values) - by] = values[by:]
    return shifted
