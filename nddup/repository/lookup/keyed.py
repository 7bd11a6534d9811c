"""Rows found by a key: ascending keys, and the row of each. A look-up is a binary search.

The keys are memory-mapped from files, so a look-up reads only a few pages, however many keys there are.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.sketching.permutations import GOLDEN, ONE, mix_id

FNV_OFFSET, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


class KeyHits(NamedTuple):
    """The f rows that have one of some wanted keys."""

    which: NDArray[np.int64]  # (f,), the place of the key among the wanted ones, ascending
    rows: NDArray[np.int64]  # (f,)

    def only(self, chosen: NDArray[np.bool_]) -> "KeyHits":
        """Return the chosen rows."""
        return KeyHits(self.which[chosen], self.rows[chosen])


class Keyed(NamedTuple):
    """Rows by a key; several rows may have one key."""

    keys: NDArray[np.int64] | NDArray[np.uint64]  # (n,), ascending
    rows: NDArray[np.int32]  # (n,)

    def find(self, wanted: NDArray[np.int64] | NDArray[np.uint64]) -> KeyHits:
        """Find the rows of wanted keys, which may be in any order."""
        found = find_rows(self.keys, wanted)
        return KeyHits(found.which, self.rows[found.rows].astype(np.int64))


def key_rows(keys: NDArray[np.int64] | NDArray[np.uint64]) -> Keyed:
    """Index rows by their keys, (n,). Cost: a sort."""
    order = np.argsort(keys, kind="stable")
    return Keyed(keys[order], order.astype(np.int32))


def find_rows(
    ascending: NDArray[np.int64] | NDArray[np.uint64], wanted: NDArray[np.int64] | NDArray[np.uint64]
) -> KeyHits:
    """Find the places of wanted keys, in any order, among ascending ones.

    Example:
        >>> find_rows(np.array([2, 3, 3, 9]), np.array([3, 5, 2])).rows.tolist()
        [1, 2, 0]
    """
    low = np.searchsorted(ascending, wanted, "left")
    counts = np.searchsorted(ascending, wanted, "right") - low
    which = np.repeat(np.arange(len(wanted)), counts)
    return KeyHits(which, np.arange(len(which)) + np.repeat(low - np.cumsum(counts) + counts, counts))


def is_among(values: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each value is among some ascending ones, (n,). Cost: a binary search each."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.searchsorted(ascending, values)
    at[at == len(ascending)] = 0
    return np.asarray(ascending[at] == values)


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct values, ascending, by a sort: `np.unique` hashes, and is ten times slower for a million."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def hash_strings(column: pa.Array) -> NDArray[np.uint64]:
    """Hash each string, (n,); none may be null. Two strings may have one hash, so compare the rows found by it."""
    strings = column.cast(pa.large_string())
    if not len(strings):
        return np.empty(0, np.uint64)
    _, offsets, data = strings.buffers()
    ends = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    return _hash_strings(np.frombuffer(data or b"", np.uint8), ends)


@compiled
def _hash_strings(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
    found = np.empty(len(ends) - 1, np.uint64)
    for i in range(len(found)):
        value = FNV_OFFSET
        for at in range(ends[i], ends[i + 1]):
            value = (value ^ np.uint64(data[at])) * FNV_PRIME
        found[i] = mix_id(value, ONE, GOLDEN)
    return found
