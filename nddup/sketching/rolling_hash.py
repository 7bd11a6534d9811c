# ruff: noqa: PLR2004 (the numbers are those of UTF-8)
"""Rolling fingerprints: UTF-8 text -> token hashes -> 64-bit fingerprints of shingles.

    hash of a token    h = SEED; for each lower-cased code point c: h = (h ^ c) * FACTOR; then one shift and one
                       product, so that every bit depends on every character.
    fingerprint        t1*BASE**(n-1) + ... + tn of the n token hashes of a shingle, modulo 2**64. The next
                       fingerprint takes two products, whatever the length.

A shingle is `length` consecutive tokens. Shingles start at tokens 0, `offset`, 2 `offset`, ...; tokens after the last
whole shingle are left out. A text with at least one token but fewer than `length` is one shingle of all its tokens.

Distinct shingles get the same fingerprint about as often as random 64-bit numbers do: a million distinct shingles
contain such a pair once in 37 million collections.

The kernels here are called from `min_s` and `recipe`, which allocate their arrays.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.sketching.tokens import ALONE, LOWER

TOKEN_SEED: Final = np.uint64(0xCBF29CE484222325)  # FNV-1a's basis
TOKEN_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)  # odd, with bits set throughout
TOKEN_FINISH: Final = np.uint64(0xFF51AFD7ED558CCD)  # of MurmurHash3's finaliser
SHINGLE_BASE: Final = np.uint64(0x9FB21C651E98DF25)  # odd; BASE - 1 is 4 times an odd number: order counts
BEYOND_ASCII: Final = 0x80
SHIFT_32: Final = np.uint64(32)
SHIFT_29: Final = np.uint64(29)
BLANK: Final = np.uint64(0x20)
NO_LIMIT: Final = 2**62
"""More than any number of tokens, and small enough to be added to one without overflow."""

_ALONE: Final = np.uint32(ALONE)
_LOWER: Final = np.uint32(LOWER)


class Shingling(NamedTuple):
    """How tokens make shingles: `length` tokens each, `offset` tokens apart; `leaving` is SHINGLE_BASE**length."""

    length: int
    offset: int
    leaving: np.uint64


def shingling(length: int, offset: int) -> Shingling:
    """Make the rule for the kernels; `length` and `offset` are at least 1."""
    leaving = np.uint64(pow(int(SHINGLE_BASE), length, 2**64))
    return Shingling(min(length, NO_LIMIT), min(offset, NO_LIMIT), leaving)


@compiled
def finish_token(state: np.uint64) -> np.uint64:
    """Turn the state after the last code point into the token's hash."""
    state = (state ^ (state >> SHIFT_32)) * TOKEN_FINISH
    return state ^ (state >> SHIFT_29)


@compiled
def most_tokens(n_bytes: int) -> int:
    """Return the most tokens in `n_bytes` bytes: each has a separator after it, or three bytes of its own."""
    return (n_bytes + 1) // 2


@compiled
def byte_at(data: NDArray[np.uint8], i: int) -> int:
    """Read one byte as a signed number: numba makes floats of arithmetic that mixes unsigned and signed numbers."""
    return np.int64(data[i])  # type: ignore[return-value]


@compiled
def decode(data: NDArray[np.uint8], i: int, end: int) -> tuple[int, int]:  # noqa: PLR0911 (one per length and fault)
    """Decode the character of two to four bytes at `i`: its code point and its length.

    If no well-formed character that ends before `end` begins at `i`, the result is (0, 1): U+0000, a separator.
    """
    lead = byte_at(data, i)
    if lead < 0xC2 or lead > 0xF4 or i + 1 >= end:  # not the first byte of a character, or the last byte of the text
        return 0, 1
    second = byte_at(data, i + 1)
    if second & 0xC0 != 0x80:
        return 0, 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (second & 0x3F), 2

    # Three bytes; below U+0800 they would be an overlong form.
    if i + 2 >= end or byte_at(data, i + 2) & 0xC0 != 0x80:
        return 0, 1
    code = (lead & 0x0F) << 12 | (second & 0x3F) << 6 | (byte_at(data, i + 2) & 0x3F)
    if lead < 0xF0:
        return (code, 3) if code >= 0x800 else (0, 1)

    # Four bytes; the lead has three bits of the code point.
    if i + 3 >= end or byte_at(data, i + 3) & 0xC0 != 0x80:
        return 0, 1
    code = (code & 0x7FFF) << 6 | (byte_at(data, i + 3) & 0x3F)
    return (code, 4) if 0x10000 <= code < 0x110000 else (0, 1)


@compiled
def hash_tokens(
    data: NDArray[np.uint8], start: int, end: int, table: NDArray[np.uint32], hashes: NDArray[np.uint64]
) -> int:
    """Hash the tokens of the UTF-8 text `data[start:end]` into the front of `hashes`; return their number.

    Args:
        data: UTF-8, (b,).
        start: first byte of the text.
        end: the byte after the text.
        table: `tokens.WORD_TABLE`.
        hashes: written; room for `most_tokens(end - start) + 1`.

    The loop does not branch on where words end, because a processor cannot predict it. The state is written after
    every character, and the count goes up where a word has ended.
    """
    n_tokens = 0
    inside = 0  # 1 within a word
    state = TOKEN_SEED
    i = start
    while i < end:
        width = 1
        code = byte_at(data, i)
        if code >= BEYOND_ASCII:
            code, width = decode(data, i, end)
        i += width
        entry = table[code]
        hashes[n_tokens] = state

        # A character that is a token by itself also ends the word before it.
        if entry >= _ALONE:
            n_tokens += inside
            hashes[n_tokens] = (TOKEN_SEED ^ np.uint64(entry & _LOWER)) * TOKEN_FACTOR
            n_tokens += 1
            inside = 0
            state = TOKEN_SEED
            continue

        is_word = 1 if entry else 0
        n_tokens += inside & (1 - is_word)
        inside = is_word
        extended = (state ^ np.uint64(entry)) * TOKEN_FACTOR
        state = extended if is_word else TOKEN_SEED

    # The end of the text ends a word too.
    hashes[n_tokens] = state
    n_tokens += inside
    for t in range(n_tokens):
        hashes[t] = finish_token(hashes[t])
    return n_tokens


@compiled
def roll(
    hashes: NDArray[np.uint64],
    n_tokens: int,
    length: int,
    offset: int,
    leaving: np.uint64,
    fingerprints: NDArray[np.uint64],
) -> int:
    """Write the fingerprints of the shingles of `hashes[:n_tokens]`, with room for one per token; return how many.

    `leaving` is SHINGLE_BASE**length. The arguments are plain numbers instead of a `Shingling`, because numba takes
    several microseconds to unpack a tuple in a call from Python.
    """
    if n_tokens == 0:
        return 0

    rolling = np.uint64(0)
    first = min(length, n_tokens)
    for i in range(first):
        rolling = rolling * SHINGLE_BASE + hashes[i]
    fingerprints[0] = rolling

    # Every window is computed; those that begin at a multiple of `offset` are written.
    n_shingles = 1
    following = offset
    for i in range(first, n_tokens):
        rolling = rolling * SHINGLE_BASE + hashes[i] - leaving * hashes[i - length]
        if i + 1 - length == following:
            fingerprints[n_shingles] = rolling
            n_shingles += 1
            following += offset
    return n_shingles


@compiled
def most_characters(n_bytes: int) -> int:
    """Return the most tokens in `n_bytes` bytes when each is a character: every one has a byte of its own."""
    return n_bytes + 1


@compiled
def hash_characters(
    data: NDArray[np.uint8], start: int, end: int, table: NDArray[np.uint32], hashes: NDArray[np.uint64]
) -> int:
    """Hash the characters of a text into the front of `hashes`; return their number.

    A token is a lower-cased word character, or one blank for everything between two words. There is no blank before
    the first word or after the last. A character gets the hash of a word that consists of it alone.

    Arguments as for `hash_tokens`; `hashes` has room for `most_characters(end - start)`.
    """
    n_tokens = 0
    is_after_gap = False
    i = start
    while i < end:
        width = 1
        code = byte_at(data, i)
        if code >= BEYOND_ASCII:
            code, width = decode(data, i, end)
        i += width
        entry = table[code]
        if not entry:
            is_after_gap = n_tokens > 0
            continue

        # The blank is written only when a word follows it.
        if is_after_gap:
            hashes[n_tokens] = finish_token((TOKEN_SEED ^ BLANK) * TOKEN_FACTOR)
            n_tokens += 1
            is_after_gap = False
        hashes[n_tokens] = finish_token((TOKEN_SEED ^ np.uint64(entry & _LOWER)) * TOKEN_FACTOR)
        n_tokens += 1
    return n_tokens
