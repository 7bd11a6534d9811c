"""Rolling fingerprints: UTF-8 text -> token hashes -> 64-bit fingerprints of shingles.

    hash_tokens, hash_characters    one text         -> the hashes of its words, or characters, in order
    hash_rows                       texts            -> a row of token hashes each
    fingerprint_rows                rows of hashes   -> a BLAKE2b-128 digest of each
    unknown_bytes                   texts            -> the bytes of each that are characters of a later Unicode
    roll                            token hashes     -> the fingerprints of the shingles
    shingling                       length, offset   -> Shingling, the rule for `roll`

Tokens are normalised as `tokens` says, by `folding`. `min_s` and `recipe` call these kernels, and allocate their
arrays.
"""

from hashlib import blake2b
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.ground.kernels import Written, compiled
from nddup.sketching.block_folding import BEYOND_ASCII
from nddup.sketching.folding import byte_at, decode, fold_text, folded_words, signed
from nddup.sketching.tokens import CLASS, CLASS_SHIFT, FACTS, OF_MARK, UNKNOWN, WORD_TABLE, word_table

TOKEN_SEED: Final = np.uint64(0xCBF29CE484222325)  # FNV-1a's basis
TOKEN_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)  # odd, with bits set throughout
TOKEN_FINISH: Final = np.uint64(0xFF51AFD7ED558CCD)  # of MurmurHash3's finaliser
SHINGLE_BASE: Final = np.uint64(0x9FB21C651E98DF25)  # odd; BASE - 1 is 4 times an odd number: order counts
LOWEST: Final = np.uint64(0x0101010101010101)
HIGHEST: Final = np.uint64(0x8080808080808080)
SEVENS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
GATHER: Final = np.uint64(0x0102040810204080)  # a product moves the lowest bit of each byte to the highest byte
PAIRS, FOURS, NIBBLES = (np.uint64(bits) for bits in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
NONE, ONE, TWO, THREE, FOUR, SEVEN, EIGHT = (np.uint64(n) for n in (0, 1, 2, 3, 4, 7, 8))
SHIFT_29: Final = np.uint64(29)
SHIFT_32: Final = np.uint64(32)
SHIFT_56: Final = np.uint64(56)
SHIFT_63: Final = np.uint64(63)
SHIFT_64: Final = np.uint64(64)
FIRST_UNKNOWN: Final = 0xCD
"""No character that begins with a lesser byte is unknown: the first gap is U+0378."""

WAITING: Final = 256
"""Tokens that are hashed together."""

MOST_WAITING: Final = np.uint64(WAITING - 32)
"""Tokens that wait when those of 64 more bytes still have room."""

BLANK: Final = np.uint64(0x20)
NO_LIMIT: Final = 2**62
"""More than any number of tokens, and small enough to be added to one without overflow."""


class Shingling(NamedTuple):
    """How tokens make shingles: `length` tokens each, `offset` tokens apart; `leaving` is SHINGLE_BASE**length.

    Shingles start at tokens 0, `offset`, 2 `offset`, ...; tokens after the last whole shingle are left out. A text with
    at least one token but fewer than `length` is one shingle of all its tokens.
    """

    length: int
    offset: int
    leaving: np.uint64


def shingling(length: int, offset: int) -> Shingling:
    """Make the rule for the kernels; `length` and `offset` are at least 1."""
    leaving = np.uint64(pow(int(SHINGLE_BASE), length, 2**64))
    return Shingling(min(length, NO_LIMIT), min(offset, NO_LIMIT), leaving)


@compiled
def read_token(words: NDArray[np.uint64], at: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Hash the token that begins at byte `at` of a folded text; return the hash and the place after its zero byte.

    h = SEED; for each eight bytes of its UTF-8 as a little-endian number e, the last ones filled up with one to eight
    zero bytes: h = (h ^ e) * FACTOR, h = h ^ (h >> 32). Then its length in bytes: h = (h ^ length) * FINISH, h = h ^ (h
    >> 29). So every bit depends on every byte, and tokens of the same length below eight bytes never have the same
    hash.

    Args:
        words: the bytes that `folding.fold_text` wrote, eight to a word.
        at: the first byte of a token. At a zero byte the token is empty, and the place is the next byte.
    """
    state = TOKEN_SEED
    begin = at
    while True:
        # Eight bytes from two words.
        shift = (at & SEVEN) << THREE
        place = at >> THREE
        eight = words[place] >> shift | words[place + ONE] << (SHIFT_63 - shift) << ONE

        # A zero byte borrows in the difference: its highest bit is the lowest that is set.
        zeros = (eight - LOWEST) & ~eight & HIGHEST
        if zeros:
            break
        state = (state ^ eight) * TOKEN_FACTOR
        state ^= state >> SHIFT_32
        at += EIGHT

    # The bytes before the zero byte; they and the zero byte are counted by a product.
    before = (zeros - ONE) & ~zeros
    after = at + ((before & LOWEST) * LOWEST >> SHIFT_56)
    state = (state ^ (eight & before)) * TOKEN_FACTOR
    return finish_token(state, after - begin - ONE), after


@compiled
def finish_token(state: np.uint64, length: np.uint64) -> np.uint64:
    """Turn the state after the last bytes into the token's hash."""
    state = (state ^ (state >> SHIFT_32) ^ length) * TOKEN_FINISH
    return state ^ (state >> SHIFT_29)


@compiled
def most_tokens(n_bytes: int) -> int:
    """Return the most tokens in `n_bytes` bytes: each has a separator after it, or two bytes of its own."""
    return (n_bytes + 1) // 2


@compiled
def hash_tokens(
    data: NDArray[np.uint8], start: int, end: int, table: NDArray[np.uint32], hashes: Written[np.uint64]
) -> int:
    """Hash the tokens of the UTF-8 text `data[start:end]` into the front of `hashes`; return their number.

    Args:
        data: UTF-8, (b,).
        start: first byte of the text.
        end: the byte after the text.
        table: of `tokens.word_table`.
        hashes: written; room for `most_tokens(end - start) + 1`.

    Cost: some 2 ns per byte of English text; scratch of 2 bytes per byte, of which those that are used are touched.
    """
    room = folded_words(end - start)
    scratch = np.empty(room + 3 * WAITING, np.uint64)
    words = scratch[:room]
    firsts, seconds, places = scratch[room : room + WAITING], scratch[room + WAITING : -WAITING], scratch[-WAITING:]
    size = np.uint64(fold_text(data, start, end, table, True, words.view(np.uint8)))  # noqa: FBT003 - a kernel takes none
    n_tokens, waiting = 0, NONE
    base, before = NONE, NONE
    while base < size:
        inside = _nonzero_bytes(words, base >> THREE)
        if size - base < SHIFT_64:
            inside &= (ONE << (size - base)) - ONE
        starts = inside & ~(inside << ONE | before)
        before = inside >> SHIFT_63
        while starts:
            # The first sixteen bytes of the token, from three words.
            at = base + _lowest_bit(starts)
            shift = (at & SEVEN) << THREE
            up = SHIFT_63 - shift
            second = words[(at >> THREE) + ONE]
            firsts[waiting] = words[at >> THREE] >> shift | second << up << ONE
            seconds[waiting] = second >> shift | words[(at >> THREE) + TWO] << up << ONE
            places[waiting] = at
            waiting += ONE
            starts &= starts - ONE
        base += SHIFT_64
        if base >= size or waiting > MOST_WAITING:
            count = signed(waiting)
            if _hash_front(firsts, seconds, count, hashes[n_tokens:]):
                for i in range(count):
                    if not _zeros_in(firsts[i]) | _zeros_in(seconds[i]):
                        hashes[n_tokens + i] = read_token(words, places[i])[0]
            n_tokens += count
            waiting = NONE
    return n_tokens


@compiled
def _zeros_in(eight: np.uint64) -> np.uint64:
    """Return the highest bit of the first zero byte, with some of later bytes; 0 if no byte is zero."""
    return (eight - LOWEST) & ~eight & HIGHEST


@compiled
def _nonzero_bytes(words: NDArray[np.uint64], place: np.uint64) -> np.uint64:
    """Return which of the 64 bytes of eight words are not zero: bit i for byte i."""
    inside = NONE
    for k in range(8):
        word = words[place + np.uint64(k)]
        bits = (((word & SEVENS) + SEVENS | word) >> SEVEN & LOWEST) * GATHER >> SHIFT_56
        inside |= bits << np.uint64(8 * k)
    return inside


@compiled
def _count_bits(bits: np.uint64) -> np.uint64:
    """Return how many bits are set, in the way that compilers know as one instruction."""
    bits -= bits >> ONE & PAIRS
    bits = (bits & FOURS) + (bits >> TWO & FOURS)
    return ((bits + (bits >> FOUR)) & NIBBLES) * LOWEST >> SHIFT_56


@compiled
def _lowest_bit(bits: np.uint64) -> np.uint64:
    return _count_bits((bits - ONE) & ~bits)


@compiled
def _hash_front(firsts: NDArray[np.uint64], seconds: NDArray[np.uint64], count: int, hashes: Written[np.uint64]) -> int:
    """Hash tokens of less than 16 bytes as `read_token` does, given their first sixteen; return how many are longer.

    No step depends on the length of a token, so that LLVM makes vector instructions of the loop.
    """
    n_long = 0
    for i in range(count):
        eight, more = firsts[i], seconds[i]
        zeros, more_zeros = _zeros_in(eight), _zeros_in(more)
        n_long += 0 if zeros | more_zeros else 1

        # The bytes up to the zero byte; all eight if there is none.
        upto, more_upto = zeros ^ (zeros - ONE), more_zeros ^ (more_zeros - ONE)
        state = (TOKEN_SEED ^ (eight & upto)) * TOKEN_FACTOR
        longer = (state ^ (state >> SHIFT_32) ^ (more & more_upto)) * TOKEN_FACTOR
        length = ((upto if zeros else more_upto) >> SEVEN & LOWEST) * LOWEST >> SHIFT_56
        hashes[i] = finish_token(state if zeros else longer, length - ONE + (NONE if zeros else EIGHT))
    return n_long


@compiled
def roll(
    hashes: NDArray[np.uint64],
    n_tokens: int,
    length: int,
    offset: int,
    leaving: np.uint64,
    fingerprints: Written[np.uint64],
) -> int:
    """Write the fingerprints of the shingles of `hashes[:n_tokens]`, with room for one per token; return how many.

    A fingerprint is t1*BASE**(n-1) + ... + tn of the n token hashes of a shingle, modulo 2**64. The next one takes two
    products, whatever the length. Distinct shingles get the same fingerprint about as often as random 64-bit numbers
    do: a million distinct shingles contain such a pair once in 37 million collections.

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
        change = hashes[i] - leaving * hashes[i - length]
        rolling = rolling * SHINGLE_BASE + change
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
def hash_characters(  # noqa: C901 - one pass over the bytes
    data: NDArray[np.uint8], start: int, end: int, table: NDArray[np.uint32], hashes: Written[np.uint64]
) -> int:
    """Hash the characters of a text into the front of `hashes`; return their number.

    A token is a normalised word character with its marks, or one blank for everything between two words. There is no
    blank before the first word or after the last. A character gets the hash of a word that consists of it alone.

    Arguments as for `hash_tokens`; `hashes` has room for `most_characters(end - start)`.
    """
    words = np.empty(folded_words(end - start), np.uint64)
    folded = words.view(np.uint8)
    size = fold_text(data, start, end, table, False, folded)  # noqa: FBT003 - a kernel takes no keywords
    n_tokens = 0
    inside = False  # a word has begun, and the blank after it has not been written
    at = 0
    while at < size:
        # ASCII, of which no character is a mark; there are zero bytes after the text. A blank is the first zero byte.
        while at < size and folded[at] < BEYOND_ASCII and folded[at + 1] < BEYOND_ASCII:
            code = folded[at]
            hashes[n_tokens] = _finish_eight(TOKEN_SEED, np.uint64(code) if code else BLANK, ONE)
            n_tokens += 1 if code or inside else 0
            inside = code != 0
            at += 1
        if at >= size:
            break
        if folded[at] == 0:
            hashes[n_tokens] = _finish_eight(TOKEN_SEED, BLANK, ONE)
            n_tokens += 1 if inside else 0
            inside = False
            at += 1
            continue

        # A character ends before the next one that is no mark.
        begin, eight, shift, state = at, NONE, NONE, TOKEN_SEED
        while True:
            lead = byte_at(folded, at)
            width = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4  # noqa: PLR2004 - UTF-8
            for place in range(at, at + width):
                if shift == SHIFT_64:
                    state = (state ^ eight) * TOKEN_FACTOR
                    state ^= state >> SHIFT_32
                    eight, shift = NONE, NONE
                eight |= np.uint64(folded[place]) << shift
                shift += EIGHT
            at += width

            if folded[at] < BEYOND_ASCII:
                break
            if np.int64(table[FACTS + decode(folded, at, size)[0]]) >> CLASS_SHIFT & CLASS != OF_MARK:
                break
        if shift == SHIFT_64:  # as for words, a zero byte follows the last byte
            state = (state ^ eight) * TOKEN_FACTOR
            state ^= state >> SHIFT_32
            eight = NONE
        hashes[n_tokens] = _finish_eight(state, eight, np.uint64(at - begin))
        n_tokens += 1
        inside = True
    return n_tokens if inside or not n_tokens else n_tokens - 1


@compiled
def _finish_eight(state: np.uint64, eight: np.uint64, length: np.uint64) -> np.uint64:
    """Return the hash of a token whose last bytes, fewer than eight, are `eight`."""
    return finish_token((state ^ eight) * TOKEN_FACTOR, length)


def hash_rows(
    data: NDArray[np.uint8], bounds: NDArray[np.int64], unit: str = "word", ignore: tuple[str, ...] = ()
) -> Ragged:
    """
    Hash the tokens of texts.

    Two texts have equal rows iff they are the same sequence of tokens, as far as 64-bit hashes tell tokens apart: two
    distinct tokens get the same hash once in about 2**64 pairs.

    Args:
        data: the texts as UTF-8, one after another.
        bounds: (n + 1,), text i is `data[bounds[i]:bounds[i + 1]]`.
        unit: what a token is, `word` or `char`.
        ignore: names of `respelling.IGNORED`.

    Returns:
        n rows, the token hashes of each text in order; the row of a text without tokens is empty.

    Cost: some 5 ns per byte. Memory: 4 bytes per byte for words, 8 for characters.
    """
    return Ragged(*_hash_rows(data, bounds, word_table(ignore), unit == "char"))


def fingerprint_rows(rows: Ragged) -> list[bytes]:
    """Return the BLAKE2b-128 digest of each row: digests are equal iff the rows are."""
    data, ends = np.ascontiguousarray(rows.values).view(np.uint8).data, (8 * rows.offsets).tolist()
    return [blake2b(data[start:end], digest_size=16).digest() for start, end in pairwise(ends)]


def unknown_bytes(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes of each text that are characters of a later Unicode: perhaps letters, and in no token, (n,).

    Arguments as for `hash_rows`. Private characters count as separators, which they are in every version.

    Cost: under 1 ns per byte of English text, some 2 of other scripts.
    """
    return np.asarray(_unknown_bytes(data, bounds, WORD_TABLE))


@compiled
def _unknown_bytes(data: NDArray[np.uint8], bounds: NDArray[np.int64], table: NDArray[np.uint32]) -> NDArray[np.int64]:
    counts = np.zeros(len(bounds) - 1, np.int64)
    for i in range(len(counts)):
        at, end = bounds[i], bounds[i + 1]
        while at < end:
            if data[at] < FIRST_UNKNOWN:
                at += 1
                continue
            code, size = decode(data, at, end)
            if table[FACTS + code] & UNKNOWN:
                counts[i] += size
            at += size
    return counts


@compiled
def _hash_rows(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    characters: bool,  # noqa: FBT001 - a kernel takes no keywords
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    n = len(bounds) - 1
    offsets = np.zeros(n + 1, np.int64)
    room = n
    for i in range(n):
        size = bounds[i + 1] - bounds[i]
        room += most_characters(size) if characters else most_tokens(size)
    hashes = np.empty(room, np.uint64)
    for i in range(n):
        rest = hashes[offsets[i] :]
        if characters:
            count = hash_characters(data, bounds[i], bounds[i + 1], table, rest)
        else:
            count = hash_tokens(data, bounds[i], bounds[i + 1], table, rest)
        offsets[i + 1] = offsets[i] + count
    return offsets, hashes[: offsets[n]].copy()
