"""Keys that bring similar sketches together without counting what they share: LSH bands and super-shingles.

    bands   the slots of a signature in groups of `rows`; a key combines the values of a group and its number.
            Documents of resemblance r share a key with probability 1 - (1 - r**rows)**bands (`lsh_bands`).
    runs    `rows` consecutive ids of the sorted sketch are a key: a super-shingle, a shingle of shingles. Two sketches
            share about s r**rows of them. Short documents, and documents contained in longer ones, share hardly any.

Sketches that share a key are compared; pairs without a common key are missed.

Sources:
    Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of the Web (super-shingles, and where they fail).
    Indyk, Motwani 1998; Rajaraman, Ullman 2011, Mining of Massive Datasets, chapter 3 (bands).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled
from nddup.sketching.minhash import SLOT_BITS
from nddup.sketching.permutations import GOLDEN, ONE, mix_id

SLOT_MASK = np.uint64((1 << SLOT_BITS) - 1)


class Finder(NamedTuple):
    """How keys are made of sketches: `bands` bands of `rows` slots; if `bands` is 0, runs of `rows` ids."""

    bands: int
    rows: int

    def keys(self, sketches: Ragged) -> Ragged:
        """Return the keys of each sketch, ascending and distinct, uint64.

        A sketch of fewer than `rows` ids is one run of all of them. An empty sketch has no key.

        Cost: linear, and a sort of the keys.
        """
        if self.bands:
            return _sort_rows(*_band_keys(sketches.offsets, sketches.values, self.bands, self.rows))
        return _sort_rows(*_run_keys(sketches.offsets, sketches.values, self.rows))


@compiled
def _band_keys(
    offsets: NDArray[np.int64], ids: NDArray[np.uint64], bands: int, rows: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Make a key for each band of each sketch. An id's low bits are its slot; slots beyond the bands are not used."""
    starts = np.zeros(offsets.size, np.int64)
    keys = np.empty((offsets.size - 1) * bands, np.uint64)
    slots = np.zeros(bands * rows, np.uint64)
    at = 0
    for i in range(offsets.size - 1):
        # A sketch is sorted by value: bring its ids back into the order of the slots.
        for j in range(offsets[i], offsets[i + 1]):
            slot = np.int64(ids[j] & SLOT_MASK)
            if slot < slots.size:
                slots[slot] = ids[j]

        if offsets[i] < offsets[i + 1]:
            for band in range(bands):
                key = mix_id(np.uint64(band), ONE, GOLDEN)
                for row in range(rows):
                    key = mix_id(key ^ slots[band * rows + row], ONE, GOLDEN)
                keys[at] = key
                at += 1
        starts[i + 1] = at
    return starts, keys[:at].copy()


@compiled
def _run_keys(
    offsets: NDArray[np.int64], ids: NDArray[np.uint64], rows: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Make a key for each run of `rows` ids of each sketch."""
    starts = np.zeros(offsets.size, np.int64)
    keys = np.empty(ids.size, np.uint64)
    at = 0
    for i in range(offsets.size - 1):
        size = offsets[i + 1] - offsets[i]
        length = min(rows, size)

        for first in range(offsets[i], offsets[i + 1] - length + 1 if size else offsets[i]):
            key = mix_id(np.uint64(length), ONE, GOLDEN)
            for j in range(first, first + length):
                key = mix_id(key ^ ids[j], ONE, GOLDEN)
            keys[at] = key
            at += 1
        starts[i + 1] = at
    return starts, keys[:at].copy()


def _sort_rows(offsets: NDArray[np.int64], keys: NDArray[np.uint64]) -> Ragged:
    """Sort the keys of each row and leave out repeated ones."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((keys, owners))
    keys, owners = keys[order], owners[order]

    is_new = np.ones(len(keys), np.bool_)
    is_new[1:] = (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1])
    counts = np.bincount(owners[is_new], minlength=len(offsets) - 1)
    return Ragged(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), keys[is_new])
