"""MinHash signatures: the smallest shingle id of a document under each of n permutations, one per slot.

    mix         slot k uses the mixing permutation with the seed's k-th keys
    gf2         slot k uses the seed's k-th random invertible binary matrix
    affine      (a x + b) mod 2**61 - 1, as in the 2017 paper
    datasketch  the signature of datasketch 2 with `scheme="affine64"`: fmix64, then a x + b modulo 2**64, with a and b
                from NumPy's generator under the seed; its LeanMinHash and LSH accept these signatures

For random permutations, the chance that a slot is equal in two documents is their resemblance. So equal slots / n
estimates it, with variance r (1 - r) / n.

To make a signature a set of ids, slots are tagged: the low bits of an id hold its slot. Two documents then share an id
only if the same slot is equal (except for a chance of 2**-47). Untagged, the minima of all slots are one set, as in the
2005 paper. Its |A & B| / |A | B| is too small, about r / (2 - r) (0.7 for a resemblance of 0.818), and a shingle that
is the smallest in several slots counts once.

Sources:
    Broder 1997, On the resemblance and containment of documents; Broder, Charikar, Frieze, Mitzenmacher 1998,
    Min-wise independent permutations. Zhu et al., datasketch 2.0.0 (its documented scheme).
"""

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.sketching.permutations import (
    MERSENNE,
    Tables,
    affine_id,
    affine_keys,
    draw_words,
    gf2_id,
    gf2_tables,
    mix_id,
)

SLOT_BITS: Final = 17
SLOT_SHIFT: Final = np.uint64(SLOT_BITS)
MOST_SLOTS: Final = 1 << SLOT_BITS
DATASKETCH_SEEDS: Final = 1 << 32
GREATEST: Final = np.uint64(2**64 - 1)
SHIFT_33: Final = np.uint64(33)
FMIX_FIRST: Final = np.uint64(0xFF51AFD7ED558CCD)
FMIX_SECOND: Final = np.uint64(0xC4CEB9FE1A85EC53)


class Slots(NamedTuple):
    """n permutations: keys of shape (n,), or tables of shape (n, 8, 256); the arrays not used have no rows."""

    name: str
    multipliers: NDArray[np.uint64]
    increments: NDArray[np.uint64]
    tables: Tables


@lru_cache(maxsize=8)
def draw_slots(name: str, n: int, seed: int) -> Slots:
    """Draw the n permutations of a seed. They are cached: do not write to them.

    Args:
        name: `mix`, `gf2`, `affine` or `datasketch`.
        n: at least 1, at most MOST_SLOTS.
        seed: chooses them; for `datasketch`, at least 0 and below 2**32.

    Raises:
        ValueError: for an unknown name or a number out of range.

    Cost: `gf2` takes 16 KB and some milliseconds per slot.
    """
    if not 1 <= n <= MOST_SLOTS:
        raise ValueError(f"slots must be 1 to {MOST_SLOTS}, got {n}")

    nothing, no_tables = np.empty(0, np.uint64), np.empty((0, 8, 256), np.uint64)
    if name == "mix":
        words = np.array(draw_words(seed, 2 * n, stream=1), np.uint64)
        return Slots(name, words[:n] | np.uint64(1), words[n:], no_tables)
    if name == "affine":
        keys = np.array([affine_keys(seed, slot=slot) for slot in range(n)], np.uint64)
        return Slots(name, keys[:, 0].copy(), keys[:, 1].copy(), no_tables)
    if name == "gf2":
        return Slots(name, nothing, nothing, np.stack([gf2_tables(seed, slot=slot) for slot in range(n)]))
    if name == "datasketch":
        if not 0 <= seed < DATASKETCH_SEEDS:
            raise ValueError(f"a seed of datasketch is below 2**32, got {seed}")
        numbers = np.random.RandomState(seed)
        halves = numbers.randint(0, 1 << 63, n, dtype=np.uint64)
        increments = numbers.randint(0, 1 << 64, n, dtype=np.uint64)
        return Slots(name, halves * np.uint64(2) + np.uint64(1), increments, no_tables)
    raise ValueError(f"no permutations named {name!r}")


def find_minima(fingerprints: NDArray[np.uint64], slots: Slots) -> NDArray[np.uint64]:
    """Return the signature of a document: the smallest permuted fingerprint under each permutation.

    Args:
        fingerprints: (m,), m >= 1; repeated ones make no difference.
        slots: n permutations.

    Returns:
        (n,), uint64, in the order of the slots.

    Cost: m x n permuted values, 1 to 5 ns each.
    """
    if slots.name == "gf2":
        return _minima_by_tables(fingerprints, slots.tables)
    kernel = {"mix": _minima_mixed, "affine": _minima_modulo, "datasketch": _minima_wrapped}[slots.name]
    minima: NDArray[np.uint64] = kernel(fingerprints, slots.multipliers, slots.increments)
    return minima


@compiled
def _minima_mixed(
    fingerprints: NDArray[np.uint64], multipliers: NDArray[np.uint64], increments: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    minima = np.empty(multipliers.size, np.uint64)
    for k in range(multipliers.size):
        least = GREATEST
        for value in fingerprints:
            least = min(least, mix_id(value, multipliers[k], increments[k]))
        minima[k] = least
    return minima


@compiled
def _minima_modulo(
    fingerprints: NDArray[np.uint64], multipliers: NDArray[np.uint64], increments: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    reduced = np.empty(fingerprints.size, np.uint64)
    for i in range(fingerprints.size):
        reduced[i] = fingerprints[i] % MERSENNE

    minima = np.empty(multipliers.size, np.uint64)
    for k in range(multipliers.size):
        least = GREATEST
        for value in reduced:
            least = min(least, affine_id(value, multipliers[k], increments[k]))
        minima[k] = least
    return minima


@compiled
def _minima_wrapped(
    fingerprints: NDArray[np.uint64], multipliers: NDArray[np.uint64], increments: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    mixed = np.empty(fingerprints.size, np.uint64)
    for i in range(fingerprints.size):
        value = fingerprints[i]
        value = (value ^ (value >> SHIFT_33)) * FMIX_FIRST
        value = (value ^ (value >> SHIFT_33)) * FMIX_SECOND
        mixed[i] = value ^ (value >> SHIFT_33)

    minima = np.empty(multipliers.size, np.uint64)
    for k in range(multipliers.size):
        least = GREATEST
        for value in mixed:
            least = min(least, value * multipliers[k] + increments[k])
        minima[k] = least
    return minima


@compiled
def _minima_by_tables(fingerprints: NDArray[np.uint64], tables: Tables) -> NDArray[np.uint64]:
    minima = np.empty(len(tables), np.uint64)
    for k in range(len(tables)):
        least = GREATEST
        for value in fingerprints:
            least = min(least, gf2_id(value, tables[k]))
        minima[k] = least
    return minima


def tag_slots(signature: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a signature as a set of ids, ascending: the 47 low bits of a value, then the number of its slot.

    Example:
        >>> [(int(id_) >> SLOT_BITS, int(id_) % MOST_SLOTS) for id_ in tag_slots(np.array([9, 5, 9], np.uint64))]
        [(5, 1), (9, 0), (9, 2)]
    """
    return np.sort(signature << SLOT_SHIFT | np.arange(signature.size, dtype=np.uint64))
