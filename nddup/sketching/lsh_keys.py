"""Keys by which alike sketches meet without counting what they share: LSH bands, and super-shingles.

    bands   the slots of a signature in groups of `rows`; the values of a group, and which group it is, are a key.
            Two documents of resemblance r have one in common with probability 1 - (1 - r**rows)**bands (`curves`).
    runs    `rows` ids next to each other in the sorted sketch are a key: a super-shingle, a shingle of shingles. Of two
            sketches about s r**rows are common. One in common suggests a resemblance; a short document, or one that
            is small inside another, has hardly any.

What meets by a key is compared; what does not meet is not found.

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
    """How keys are made of sketches: `bands` of `rows` slots, or where `bands` is 0, runs of `rows` ids."""

    bands: int
    rows: int

    def keys(self, sketches: Ragged) -> Ragged:
        """The keys of each sketch, ascending and distinct, uint64.

        A sketch of fewer than `rows` ids is one run of all of them; an empty one has no key. Cost: linear.
        """
        if self.bands:
            return _in_order(*_band_keys(sketches.offsets, sketches.values, self.bands, self.rows))
        return _in_order(*_run_keys(sketches.offsets, sketches.values, self.rows))


@compiled
def _band_keys(
    offsets: NDArray[np.int64], ids: NDArray[np.uint64], bands: int, rows: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """A key for each band of each sketch; the low bits of an id are its slot. A slot beyond the bands has no part."""
    starts = np.zeros(offsets.size, np.int64)
    keys = np.empty((offsets.size - 1) * bands, np.uint64)
    slots = np.zeros(bands * rows, np.uint64)
    at = 0
    for i in range(offsets.size - 1):
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
    """A key for each run of `rows` ids of each sketch."""
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


def _in_order(offsets: NDArray[np.int64], keys: NDArray[np.uint64]) -> Ragged:
    """The keys of each row sorted, repeated ones left out."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((keys, owners))
    keys, owners = keys[order], owners[order]
    is_new = np.ones(len(keys), np.bool_)
    is_new[1:] = (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1])
    counts = np.bincount(owners[is_new], minlength=len(offsets) - 1)
    return Ragged(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), keys[is_new])
