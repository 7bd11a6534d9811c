"""The token hashes of texts, and a fingerprint of each text's sequence of them.

Two texts have equal rows iff they are the same sequence of tokens, as far as 64-bit hashes tell tokens apart: two
distinct tokens get the same hash once in about 2**64 pairs.
"""

from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled
from nddup.sketching.rolling_hash import hash_tokens, most_tokens
from nddup.sketching.tokens import WORD_TABLE


def hash_rows(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> Ragged:
    """
    Hash the tokens of texts.

    Args:
        data: the texts as UTF-8, one after another.
        bounds: (n + 1,), text i is `data[bounds[i]:bounds[i + 1]]`.

    Returns:
        n rows, the token hashes of each text in order; the row of a text without tokens is empty.

    Cost: some 5 ns per byte.
    """
    return Ragged(*_hash_rows(data, bounds, WORD_TABLE))


def fingerprint_rows(rows: Ragged) -> list[bytes]:
    """Return the BLAKE2b-128 digest of each row: digests are equal iff the rows are."""
    data = memoryview(np.ascontiguousarray(rows.values).tobytes())
    return [blake2b(data[low:high], digest_size=16).digest() for low, high in pairwise((8 * rows.offsets).tolist())]


@compiled
def _hash_rows(
    data: NDArray[np.uint8], bounds: NDArray[np.int64], table: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the offsets, (n + 1,), and the hashes of all texts."""
    n = len(bounds) - 1
    offsets = np.zeros(n + 1, np.int64)
    room = n
    for i in range(n):
        room += most_tokens(bounds[i + 1] - bounds[i])
    hashes = np.empty(room, np.uint64)
    for i in range(n):
        offsets[i + 1] = offsets[i] + hash_tokens(data, bounds[i], bounds[i + 1], table, hashes[offsets[i] :])
    return offsets, hashes[: offsets[n]].copy()
