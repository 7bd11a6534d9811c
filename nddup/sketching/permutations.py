"""Permutations of the 64-bit numbers: a seed decides which shingles of a document become its smallest ids.

    mix, gf2, affine            values, seed   -> permuted values, (n,)
    mix_id, gf2_id, affine_id   value, keys    -> one permuted value, inside compiled loops
    mix_keys, gf2_tables, affine_keys   seed   -> the keys of these
    draw_words                  seed, count    -> 64-bit numbers; `rank` and `linear_tables` serve `gf2`

The s smallest ids under a random permutation are MIN_s (Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of
the Web, WWW6).
"""

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import compiled

MIX_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
MIX_SECOND: Final = np.uint64(0x94D049BB133111EB)
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, odd: the step between a seed's keys
SHIFT_30: Final = np.uint64(30)
SHIFT_27: Final = np.uint64(27)
SHIFT_31: Final = np.uint64(31)
ONE: Final = np.uint64(1)
PRIME: Final = 2**61 - 1  # a Mersenne prime: remainders by shifts and sums
MERSENNE: Final = np.uint64(PRIME)
SHIFT_61: Final = np.uint64(61)
SHIFT_32: Final = np.uint64(32)
SHIFT_29: Final = np.uint64(29)
SHIFT_3: Final = np.uint64(3)
LOW_32: Final = np.uint64(2**32 - 1)
LOW_29: Final = np.uint64(2**29 - 1)
BYTE: Final = np.uint64(255)

Tables = NDArray[np.uint64]
"""A linear map as tables: what each byte of a number adds to its image, (8, 256)."""


class MixKeys(NamedTuple):
    """The keys of `mix_id`; the multiplier is odd."""

    multiplier: np.uint64
    increment: np.uint64


@compiled
def mix_id(value: np.uint64, multiplier: np.uint64, increment: np.uint64) -> np.uint64:
    """Permute one 64-bit number; `multiplier` is odd (see `mix_keys`).

    Example:
        >>> int(mix_id(np.uint64(7), *mix_keys(1))) == int(mix(np.array([7], dtype=np.uint64), seed=1)[0])
        True
    """
    value = value * multiplier + increment
    value = (value ^ (value >> SHIFT_30)) * MIX_FIRST
    value = (value ^ (value >> SHIFT_27)) * MIX_SECOND
    return value ^ (value >> SHIFT_31)


@compiled
def _mix_all(values: NDArray[np.uint64], multiplier: np.uint64, increment: np.uint64) -> NDArray[np.uint64]:
    mixed = np.empty(values.size, dtype=np.uint64)
    for i in range(values.size):
        mixed[i] = mix_id(values[i], multiplier, increment)
    return mixed


def mix_keys(seed: int) -> MixKeys:
    """Derive the keys of `mix_id` from a seed, by SplitMix64.

    Args:
        seed: any integer, taken modulo 2**64.

    Example:
        >>> multiplier, increment = mix_keys(1)
        >>> int(multiplier) % 2, mix_keys(1) == mix_keys(2)
        (1, False)
    """
    state = seed % 2**64
    first = mix_id(np.uint64(state), ONE, GOLDEN)
    second = mix_id(np.uint64((state + int(GOLDEN)) % 2**64), ONE, GOLDEN)
    return MixKeys(np.uint64(first) | ONE, np.uint64(second))


def mix(values: NDArray[np.uint64], *, seed: int) -> NDArray[np.uint64]:
    """Permute 64-bit numbers.

    An affine step keyed by the seed, then fixed multiplications and shifts. Each step can be undone, so different
    fingerprints keep different ids.

    Args:
        values: shape (n,), any order, e.g. fingerprints of shingles.
        seed: chooses the permutation; any integer, taken modulo 2**64. Only 2**64 of the (2**64)! permutations can be
            chosen, so samples are nearly unbiased, not unbiased.

    Returns:
        Shape (n,), in the order of `values`; distinct where `values` are distinct. Empty for no values.

    Cost: about 1 ns per value.

    Example:
        >>> len(set(mix(np.arange(1000, dtype=np.uint64), seed=1).tolist()))
        1000

    Source: Steele, Lea, Flood 2014, Fast splittable pseudorandom number generators, OOPSLA (SplitMix64); the constants
    of its finaliser are D. Stafford's variant 13 of MurmurHash3's.
    """
    multiplier, increment = mix_keys(seed)
    mixed: NDArray[np.uint64] = _mix_all(values, multiplier, increment)
    return mixed


def draw_words(seed: int, count: int, *, stream: int = 0) -> list[int]:
    """Draw `count` 64-bit numbers from a seed, by SplitMix64; each `stream` of a seed gives other numbers."""
    start = int(mix_id(np.uint64(seed % 2**64), *mix_keys(stream)))
    states = np.array([(start + i * int(GOLDEN)) % 2**64 for i in range(1, count + 1)], np.uint64)
    words: list[int] = _mix_all(states, ONE, np.uint64(0)).tolist()
    return words


def linear_tables(columns: list[int]) -> Tables:
    """Make the tables of a linear map.

    Args:
        columns: at most 64; `columns[j]` is the image of the number 2**j.

    Returns:
        Shape (8, 256), uint64: the image of x is the exclusive or of `tables[i, byte i of x]`.
    """
    tables = np.zeros((8, 256), np.uint64)
    for j, column in enumerate(columns):
        byte, bit = divmod(j, 8)
        has_bit = (np.arange(256) >> bit & 1).astype(np.bool_)
        tables[byte, has_bit] ^= np.uint64(column)
    return tables


@compiled
def gf2_id(value: np.uint64, tables: Tables) -> np.uint64:
    """Return the image of one number under a linear map (see `linear_tables`)."""
    image = np.uint64(0)
    for i in range(8):
        image ^= tables[i, value & BYTE]
        value >>= np.uint64(8)
    return image


def gf2_columns(seed: int, *, slot: int = 0) -> list[int]:
    """Draw the columns of an invertible 64 x 64 matrix over GF(2), as numbers; each `slot` of a seed has its own.

    Singular matrices, 71 of 100, are rejected and drawn again, so the result is uniform over the invertible matrices,
    as far as the generator is random.
    """
    stream = slot << 20
    while True:
        stream += 1
        columns = draw_words(seed, 64, stream=stream)
        if rank(columns) == len(columns):
            return columns


def rank(vectors: list[int]) -> int:
    """Return the rank over GF(2) of numbers, read as vectors of bits.

    Example:
        >>> rank([1, 2, 3]), rank([1, 2, 4]), rank([])
        (2, 3, 0)
    """
    reduced: list[int] = []
    for vector in vectors:
        rest = vector
        for pivot in reduced:
            rest = min(rest, rest ^ pivot)
        if rest:
            reduced.append(rest)
    return len(reduced)


@lru_cache(maxsize=256)
def gf2_tables(seed: int, *, slot: int = 0) -> Tables:
    """Make the tables of `gf2_columns`, shape (8, 256). They are cached: do not write to them."""
    return linear_tables(gf2_columns(seed, slot=slot))


@compiled
def _gf2_all(values: NDArray[np.uint64], tables: Tables) -> NDArray[np.uint64]:
    images = np.empty(values.size, np.uint64)
    for i in range(values.size):
        images[i] = gf2_id(values[i], tables)
    return images


def gf2(values: NDArray[np.uint64], *, seed: int) -> NDArray[np.uint64]:
    """Permute 64-bit numbers by a random invertible binary matrix; arguments and result as for `mix`.

    The 64 bits as a vector, times a random invertible binary matrix, by eight table look-ups of a byte each. The
    papers' permutation. It is linear: 0 stays 0, and on {a, b, a ^ b, c} the chance that c is the smallest is 3/14, not
    1/4. So it is nearly unbiased, and tested to be.

    Cost: about 4 ns per value, and some milliseconds for the matrix.

    Example:
        >>> images = gf2(np.array([0, 1, 2, 3], np.uint64), seed=1)
        >>> int(images[0]), bool(images[1] ^ images[2] == images[3]), len(set(images.tolist()))
        (0, True, 4)

    Source: Kuznetsov, Ignatov et al. 2005; Ignatov, Kuznetsov 2009 (the product with a random binary matrix).
    """
    images: NDArray[np.uint64] = _gf2_all(values, gf2_tables(seed))
    return images


@compiled
def affine_id(value: np.uint64, multiplier: np.uint64, increment: np.uint64) -> np.uint64:
    """Return (multiplier x value + increment) mod 2**61 - 1, exactly; all three are below 2**61.

    The product has up to 122 bits. It is computed from four products of 32-bit halves. Modulo the prime, 2**64 = 8 and
    2**61 = 1, so each product is folded before it can exceed 64 bits.
    """
    low, high = value & LOW_32, value >> SHIFT_32
    by_low, by_high = multiplier & LOW_32, multiplier >> SHIFT_32
    lowest = low * by_low
    middle = low * by_high + high * by_low

    total = (high * by_high << SHIFT_3) + (middle >> SHIFT_29) + ((middle & LOW_29) << SHIFT_32)
    total += (lowest & MERSENNE) + (lowest >> SHIFT_61) + increment
    total = (total & MERSENNE) + (total >> SHIFT_61)
    return total - MERSENNE if total >= MERSENNE else total


@compiled
def _affine_all(values: NDArray[np.uint64], multiplier: np.uint64, increment: np.uint64) -> NDArray[np.uint64]:
    images = np.empty(values.size, np.uint64)
    for i in range(values.size):
        images[i] = affine_id(values[i] % MERSENNE, multiplier, increment)
    return images


def affine_keys(seed: int, *, slot: int = 0) -> tuple[np.uint64, np.uint64]:
    """Draw a, from 1 to p - 1, and b, from 0 to p - 1, of an affine map; each `slot` of a seed has its own."""
    multiplier, increment = draw_words(seed, 2, stream=slot << 20)
    return np.uint64(multiplier % (PRIME - 1) + 1), np.uint64(increment % PRIME)


def affine(values: NDArray[np.uint64], *, seed: int) -> NDArray[np.uint64]:
    """Return (a x + b) mod p of 64-bit numbers, p = 2**61 - 1; arguments and result as for `mix`, results below p.

    After x mod p, a bijection of the numbers below p, exact in 64 bits.

    Source: Manaa, Abdulameer 2017, Web documents similarity using k-shingle tokens and MinHash technique (a x + b mod
    p).

    Values that are equal modulo p get the same id: a million random values contain such a pair once in some 5 million
    collections.

    Example:
        >>> a, b = affine_keys(7)
        >>> x = 2**61 - 2
        >>> int(affine(np.array([x], np.uint64), seed=7)[0]) == (int(a) * x + int(b)) % (2**61 - 1)
        True
    """
    images: NDArray[np.uint64] = _affine_all(values, *affine_keys(seed))
    return images
