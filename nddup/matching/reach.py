"""Which stored sketches new ones may be near to: those that have enough ids in common with all new ones together.

    mark_new     new sketches           -> Reach: a Bloom filter of their ids, and what a pair with one of them needs
    marks_of     some of them           -> their marks, where each is one task's
    Reach.find   stored sketches        -> whether each has as many marked ids as a pair needs

A near-duplicate of a new sketch shares with it as many ids as `Threshold.needs` says, and all of these are marked. So
none is missed; a sketch that is reached by chance costs a comparison. Nothing of the stored sketches is kept for it.

Source: Bloom 1970, Space/time trade-offs in hash coding with allowable errors; Putze, Sanders, Singler 2007, whose
blocked filter has all bits of an id in one word.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.ground.kernels import Written, compiled
from nddup.matching.bitmaps import scatter
from nddup.matching.threshold import Threshold

BITS_OF_ID = 32
"""Bits of the filter for each id, of which three are set: one in a thousand other ids seems marked."""

MOST_WORDS = 1 << 23
"""Most words of the filter, 64 MB: above some 17 million ids more of the others seem marked."""

LOW = np.uint64(63)

Keys = Callable[[Ragged], Ragged]
"""Makes the keys of each sketch."""


class Reach(NamedTuple):
    """What the new sketches reach."""

    words: NDArray[np.uint64]
    """A Bloom filter of their ids or keys: 64-bit words, a power of two of them."""

    totals: NDArray[np.int32]
    """The distinct ones of their `Threshold.totals`, ascending."""

    threshold: Threshold
    keys: Keys | None
    """Makes the keys by which sketches meet; None: they meet by their ids."""

    def find(self, sketches: Ragged, totals: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return whether each stored sketch may be near to a new one, (n,).

        Args:
            sketches: n rows of ids.
            totals: (n,), their `Threshold.totals`.

        Cost: one access to the filter for each id, until the answer is known.
        """
        needs = np.ones(len(totals), np.int32)  # one key; of what contains a small sketch, little may be in common
        if self.keys is not None:
            sketches = self.keys(sketches)
        elif not self.threshold.is_containment:
            needs = np.maximum(self.threshold.needs(totals, self.totals), 1).astype(np.int32)
        return _find_reached(sketches.offsets, sketches.values, needs, self.words)


def mark_new(sketches: Ragged, totals: NDArray[np.int32], threshold: Threshold, keys: Keys | None) -> Reach:
    """Mark the ids of the new sketches, or the keys by which they meet, in 4 bytes each, at most 64 MB.

    Args:
        sketches: m rows of ids.
        totals: (m,), their `Threshold.totals`.
        threshold: when two are near-duplicates.
        keys: makes the keys by which sketches meet; None: they meet by their ids.
    """
    ids = sketches.values if keys is None else keys(sketches).values
    words = np.zeros(words_for(len(ids)), np.uint64)
    _mark(words, ids)
    return Reach(words, np.unique(totals), threshold, keys)


def words_for(ids: int) -> int:
    """Return how many words the filter of as many ids has."""
    needed = max(ids * BITS_OF_ID // 64, 1)
    return min(1 << (needed - 1).bit_length(), MOST_WORDS)


def marks_of(sketches: Ragged, words: int, keys: Keys | None) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the words of the filter that these sketches mark, (k,), and the bits that each sets there, (k,).

    Args:
        sketches: rows of ids.
        words: how many the filter has.
        keys: as of `mark_new`.
    """
    return _list_marks(sketches.values if keys is None else keys(sketches).values, words)


@compiled
def _bits_of(value: np.uint64) -> np.uint64:
    one = np.uint64(1)
    first, second, third = value & LOW, value >> np.uint64(6) & LOW, value >> np.uint64(12) & LOW
    return one << first | one << second | one << third


@compiled
def _mark(words: Written[np.uint64], ids: NDArray[np.uint64]) -> None:
    last = np.uint64(len(words) - 1)
    for value in ids:
        mixed = scatter(value)
        words[mixed >> np.uint64(20) & last] |= _bits_of(mixed)


@compiled
def _list_marks(ids: NDArray[np.uint64], words: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    places, bits = np.empty(len(ids), np.int64), np.empty(len(ids), np.uint64)
    last = np.uint64(words - 1)
    for i in range(len(ids)):
        mixed = scatter(ids[i])
        places[i] = np.int64(mixed >> np.uint64(20) & last)
        bits[i] = _bits_of(mixed)
    return places, bits


@compiled
def _find_reached(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    needs: NDArray[np.int32],
    words: NDArray[np.uint64],
) -> NDArray[np.bool_]:
    is_reached = np.zeros(len(needs), np.bool_)
    last = np.uint64(len(words) - 1)
    for i in range(len(needs)):
        at, end, need = offsets[i], offsets[i + 1], np.int64(needs[i])
        while need > 0 and end - at >= need:
            mixed = scatter(ids[at])
            bits = _bits_of(mixed)
            if words[mixed >> np.uint64(20) & last] & bits == bits:
                need -= 1
            at += 1
        is_reached[i] = need <= 0
    return is_reached
