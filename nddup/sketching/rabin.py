"""Rabin's fingerprints: a shingle as a polynomial over GF(2), modulo an irreducible polynomial, rolling over tokens.

A number stands for a polynomial: bit j is the coefficient of x**j. The polynomial of a shingle is the sequence of its
token hashes (`rolling_hash`), 64 bits each. Its fingerprint is the remainder of division by an irreducible polynomial
of degree `bits`, which a seed chooses. The next fingerprint follows from the last: multiply by x**64, add the new
token, subtract the token that leaves. All three are linear maps of at most 64 bits, so each takes eight table look-ups.

Over the choice of the polynomial, two different shingles get the same fingerprint with a chance of about
length x 64 / 2**bits. At 40 bits, as in 1997, half of all collections of a million distinct shingles contain such a
pair.

Sources:
    Rabin 1981, Fingerprinting by random polynomials, report TR-15-81, Harvard University.
    Broder 1993, Some applications of Rabin's fingerprinting method (windowed, by tables).
    Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of the Web (40 bits).
"""

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.sketching.permutations import Tables, draw_words, gf2_id, linear_tables

TOKEN_BITS: Final = 64
LEAST_BITS, MOST_BITS = 16, 63


def remainder(number: int, modulus: int) -> int:
    """Return the remainder of the division of one polynomial by another.

    Example:
        >>> remainder(0b1101, 0b11), remainder(0b101, 0b11)  # 1 + x**2 = (1 + x)**2
        (1, 0)
    """
    degree = modulus.bit_length()
    while number.bit_length() >= degree:
        number ^= modulus << (number.bit_length() - degree)
    return number


def product(first: int, second: int, modulus: int) -> int:
    """Multiply two polynomials modulo a third."""
    total = 0
    while second:
        if second & 1:
            total ^= first
        first, second = remainder(first << 1, modulus), second >> 1
    return remainder(total, modulus)


def power_of_x(exponent: int, modulus: int) -> int:
    """Return x**exponent modulo a polynomial."""
    result, base = 1, remainder(2, modulus)
    while exponent:
        if exponent & 1:
            result = product(result, base, modulus)
        base, exponent = product(base, base, modulus), exponent >> 1
    return remainder(result, modulus)


def is_irreducible(polynomial: int) -> bool:
    """Return whether a polynomial of degree n is irreducible, by Rabin's test.

    It is iff x**(2**n) = x modulo the polynomial, and x**(2**(n/q)) - x has no common factor with it for any prime
    divisor q of n.

    Example:
        >>> [polynomial for polynomial in range(4, 16) if is_irreducible(polynomial)]
        [7, 11, 13]
    """
    degree = polynomial.bit_length() - 1
    if degree < 1:
        return False
    x = remainder(2, polynomial)
    powers, power = {}, x  # powers[k] = x**(2**k)
    for step in range(1, degree + 1):
        power = product(power, power, polynomial)
        powers[step] = power
    if powers[degree] != x:
        return False

    primes = {q for q in range(2, degree + 1) if degree % q == 0 and all(q % d for d in range(2, q))}
    return all(_common_divisor(polynomial, powers[degree // q] ^ x) == 1 for q in primes)


def _common_divisor(first: int, second: int) -> int:
    while second:
        first, second = second, remainder(first, second)
    return first


def draw_polynomial(bits: int, seed: int) -> int:
    """Draw an irreducible polynomial of degree `bits` by a seed; about 2 in `bits` of those drawn are irreducible."""
    stream = 1 << 40
    while True:
        stream += 1
        polynomial: int = 1 << bits | draw_words(seed, 1, stream=stream)[0] % 2**bits | 1
        if is_irreducible(polynomial):
            return polynomial


class RabinTables(NamedTuple):
    """The linear maps of a polynomial, as tables.

    Attributes:
        entering: from a token to its remainder.
        shifted: from a fingerprint to its product with x**64.
        leaving: from a token to its product with x**(64 length).
    """

    entering: Tables
    shifted: Tables
    leaving: Tables


@lru_cache(maxsize=8)
def rabin_tables(bits: int, length: int, seed: int) -> RabinTables:
    """Make the tables for shingles of `length` tokens. They are cached: do not write to them.

    Args:
        bits: degree of the polynomial, 16 to 63.
        length: tokens per shingle, at least 1.
        seed: chooses the polynomial.

    Raises:
        ValueError: if `bits` is out of range.
    """
    if not LEAST_BITS <= bits <= MOST_BITS:
        raise ValueError(f"bits must lie in {LEAST_BITS} .. {MOST_BITS}, got {bits}")
    modulus = draw_polynomial(bits, seed)
    out = power_of_x(TOKEN_BITS * length, modulus)
    return RabinTables(
        linear_tables([power_of_x(j, modulus) for j in range(TOKEN_BITS)]),
        linear_tables([power_of_x(j + TOKEN_BITS, modulus) for j in range(bits)]),
        linear_tables([product(power_of_x(j, modulus), out, modulus) for j in range(TOKEN_BITS)]),
    )


@compiled
def roll_rabin(
    hashes: NDArray[np.uint64],
    n_tokens: int,
    length: int,
    offset: int,
    tables: RabinTables,
    fingerprints: NDArray[np.uint64],
) -> int:
    """Write the fingerprints of the shingles of `hashes[:n_tokens]`; return how many, as `rolling_hash.roll` does."""
    if n_tokens == 0:
        return 0

    rolling = np.uint64(0)
    first = min(length, n_tokens)
    for i in range(first):
        rolling = gf2_id(rolling, tables.shifted) ^ gf2_id(hashes[i], tables.entering)
    fingerprints[0] = rolling

    # Every window is computed; those that begin at a multiple of `offset` are written.
    n_shingles = 1
    following = offset
    for i in range(first, n_tokens):
        rolling = gf2_id(rolling, tables.shifted) ^ gf2_id(hashes[i], tables.entering)
        rolling ^= gf2_id(hashes[i - length], tables.leaving)
        if i + 1 - length == following:
            fingerprints[n_shingles] = rolling
            n_shingles += 1
            following += offset
    return n_shingles
