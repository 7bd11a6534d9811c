"""Permutations of the 64-bit numbers: the seed decides which shingles of a document are its smallest.

    mix    an affine step keyed by the seed, then fixed multiplications and shifts: each of them can be
           undone, so no two fingerprints ever become one, and documents sketched with different seeds cannot
           be compared.

`mix_id` is the same for one number, for use inside compiled loops.

Sources:
    Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of the Web, WWW6 (MIN_s under a random
    permutation).
    Steele, Lea, Flood 2014, Fast splittable pseudorandom number generators, OOPSLA
    (SplitMix64); the constants of its finaliser are D. Stafford's variant 13 of MurmurHash3's.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.algorithms.compiled import compiled

MIX_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
MIX_SECOND: Final = np.uint64(0x94D049BB133111EB)
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, odd: the step between a seed's keys
SHIFT_30: Final = np.uint64(30)
SHIFT_27: Final = np.uint64(27)
SHIFT_31: Final = np.uint64(31)
ONE: Final = np.uint64(1)


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


def mix_keys(seed: int) -> tuple[np.uint64, np.uint64]:
    """Derive the keys of `mix_id` from a seed, by SplitMix64.

    Args:
        seed: any integer; seeds equal modulo 2**64 are the same.

    Returns:
        The multiplier, made odd, and the increment.

    Example:
        >>> multiplier, increment = mix_keys(1)
        >>> int(multiplier) % 2, mix_keys(1) == mix_keys(2)
        (1, False)
    """
    state = seed % 2**64
    first = mix_id(np.uint64(state), ONE, GOLDEN)
    second = mix_id(np.uint64((state + int(GOLDEN)) % 2**64), ONE, GOLDEN)
    return np.uint64(first) | ONE, np.uint64(second)


def mix(values: NDArray[np.uint64], *, seed: int) -> NDArray[np.uint64]:
    """Permute 64-bit numbers.

    Args:
        values: shape (n,), any order, e.g. fingerprints of shingles.
        seed: chooses the permutation; any integer, taken modulo 2**64.

    Returns:
        Shape (n,), in the order of `values`; distinct where `values` are. Empty for none.

    Cost: about 1 ns a value. One seed's permutation is a fixed one, not drawn from all (2**64)! of them: say
    "nearly unbiased" of what it selects.

    Example:
        >>> len(set(mix(np.arange(1000, dtype=np.uint64), seed=1).tolist()))
        1000
    """
    multiplier, increment = mix_keys(seed)
    mixed: NDArray[np.uint64] = _mix_all(values, multiplier, increment)
    return mixed
