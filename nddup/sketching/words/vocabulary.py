"""Words: the distinct ones of a task's texts get numbers, and whoever asks is told each word once.

    UTF-8 text --number_words--> a number per token        and where each new word stands, the first time

A word is a token of `normalising`, known by its 64-bit hash (`fingerprints.hash_tokens`: the same). So what a word
stands for (its stem, its place in a lexicon) is decided once a word, and each token costs one look into a table.

All but `Vocabulary` and `pieces` are kernels over flat arrays.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, compiled
from nddup.sketching.min_s import read_only
from nddup.sketching.rolling_hash import (
    BEYOND_ASCII,
    TOKEN_FACTOR,
    TOKEN_SEED,
    byte_at,
    decode,
    finish_token,
    most_tokens,
)
from nddup.sketching.tokens import ALONE, LOWER, WORD_TABLE

WORD_BITS: Final = np.uint64(64)
FREE: Final = np.int32(-1)
FIRST_BITS: Final = 12

MOST_WORDS: Final = 1 << 20
"""Distinct words a vocabulary holds before it starts again: some 150 MB with what they stand for."""

PIECE: Final = 1 << 20
"""Bytes of texts numbered at a time; one longer text is taken whole."""

_ALONE: Final = np.uint32(ALONE)
_LOWER: Final = np.uint32(LOWER)

Numbered = tuple[NDArray[np.int32], NDArray[np.int64]]
"""A number per token, (t,), and the offsets of the texts in it, (d + 1,)."""


@compiled
def grow_table(keys: NDArray[np.uint64], numbers: NDArray[np.int32]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The same words in a table of twice the slots."""
    wider = np.zeros(2 * keys.size, np.uint64)
    renumbered = np.full(2 * keys.size, FREE, np.int32)
    mask = np.int64(wider.size - 1)
    bits = WORD_BITS - np.uint64(np.log2(wider.size))
    for i in range(keys.size):
        if numbers[i] != FREE:
            slot = np.int64((keys[i] * HASH_MULTIPLIER) >> bits)
            while renumbered[slot] != FREE:
                slot = (slot + 1) & mask
            wider[slot] = keys[i]
            renumbered[slot] = numbers[i]
    return wider, renumbered


@compiled
def number_words(  # noqa: C901 - one pass over the bytes, its state in local variables
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int64],
    places: NDArray[np.int64],
    state: NDArray[np.int64],
) -> bool:
    """Number the tokens of texts; a word that is not in the table gets the next number and enters it.

    Args:
        data: UTF-8, (b,); text i is `data[bounds[i]:bounds[i + 1]]`.
        bounds: (d + 1,).
        table: `normalising.WORD_TABLE`.
        keys: hashes of the words in the table, a power of two slots.
        numbers: of these words, `FREE` where a slot is free.
        tokens: written: the number of each token; room for `most_tokens` of the bytes.
        offsets: written: (d + 1,), where each text's tokens begin.
        places: written: (slots / 2, 2), where each word that was new stands in `data`, by number.
        state: (4,): the text and the byte to go on from, tokens so far, words in the table.

    Returns:
        Whether all is done. If not, the table is half full: it must grow, and the call be made again.
    """
    mask = np.int64(keys.size - 1)
    bits = WORD_BITS - np.uint64(np.log2(keys.size))
    text, at, written, count = state[0], state[1], state[2], state[3]
    for d in range(text, bounds.size - 1):
        end = bounds[d + 1]
        i = max(at, bounds[d])
        if i == bounds[d]:
            offsets[d] = written
        while i < end:
            begin = i
            width = 1
            code = byte_at(data, i)
            if code >= BEYOND_ASCII:
                code, width = decode(data, i, end)
            entry = table[code]
            i += width
            if entry == 0:
                continue
            hashed = (TOKEN_SEED ^ np.uint64(entry & _LOWER)) * TOKEN_FACTOR
            while entry < _ALONE and i < end:
                width = 1
                code = byte_at(data, i)
                if code >= BEYOND_ASCII:
                    code, width = decode(data, i, end)
                entry = table[code]
                if entry == 0 or entry >= _ALONE:
                    break
                i += width
                hashed = (hashed ^ np.uint64(entry)) * TOKEN_FACTOR
            key = finish_token(hashed)
            slot = np.int64((key * HASH_MULTIPLIER) >> bits)
            while numbers[slot] != FREE and keys[slot] != key:
                slot = (slot + 1) & mask
            number = numbers[slot]
            if number == FREE:
                if count == places.shape[0]:
                    state[0], state[1], state[2], state[3] = d, begin, written, count
                    return False
                places[count, 0] = begin
                places[count, 1] = i
                keys[slot] = key
                numbers[slot] = count
                number = np.int32(count)
                count += 1
            tokens[written] = number
            written += 1
    offsets[bounds.size - 1] = written
    state[2], state[3] = written, count
    return True


class _Lower(dict[int, int]):
    """Lower case by the one table, looked up once a character: for `str.translate`."""

    def __missing__(self, code: int) -> int:
        self[code] = int(WORD_TABLE[code]) & LOWER
        return self[code]


_LOWER_CASE: Final = _Lower()


class Vocabulary:
    """The distinct words met so far, each numbered, and what the new ones are.

    Args:
        introduce: told of new words, lower-cased, in the order of their numbers, each once.
        forget: told that numbers begin at 0 again, because there were more than `most` words.
        most: distinct words above which the vocabulary starts again, at the next piece of text.
    """

    def __init__(
        self, introduce: Callable[[list[str]], None], forget: Callable[[], None], most: int = MOST_WORDS
    ) -> None:
        self._introduce = introduce
        self._forget = forget
        self._most = most
        self.clear()

    def clear(self) -> None:
        """Forget all words."""
        self._keys = np.zeros(1 << FIRST_BITS, np.uint64)
        self._numbers = np.full(1 << FIRST_BITS, FREE, np.int32)
        self._count = 0

    def number(self, data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> Numbered:
        """Number the tokens of texts that lie in `data` at `bounds`, (d + 1,); new words are introduced first."""
        if self._count > self._most:
            self.clear()
            self._forget()
        room = most_tokens(int(bounds[-1] - bounds[0])) + bounds.size  # the last token of a text needs no separator
        tokens = np.empty(room, np.int32)
        offsets = np.zeros(bounds.size, np.int64)
        places = np.empty((self._keys.size // 2, 2), np.int64)
        known = self._count
        state = np.array([0, bounds[0], 0, known], np.int64)
        while not number_words(data, bounds, WORD_TABLE, self._keys, self._numbers, tokens, offsets, places, state):
            self._keys, self._numbers = grow_table(self._keys, self._numbers)
            places = np.concatenate([places, np.empty_like(places)])
        self._count = int(state[3])
        if self._count > known:
            raw, first = data[bounds[0] : bounds[-1]].tobytes(), int(bounds[0])
            new = places[known : self._count] - first
            words = [raw[a:b].decode() for a, b in new.tolist()]
            self._introduce([word.lower() if word.isascii() else word.translate(_LOWER_CASE) for word in words])
        return tokens[: offsets[-1]], offsets


def pieces(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> list[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Texts in runs of at most `PIECE` bytes, or of one longer text: what is numbered at a time.

    Example:
        >>> [b.tolist() for _, b in pieces(np.zeros(3 << 20, np.uint8), np.array([0, 9, 2 << 20, 3 << 20]))]
        [[0, 9], [9, 2097152], [2097152, 3145728]]
    """
    text, found, first = read_only(data), [], 0
    while first < bounds.size - 1:
        last = int(np.searchsorted(bounds, bounds[first] + PIECE, side="right")) - 1
        last = max(last, first + 1)
        found.append((text, read_only(bounds[first : last + 1])))
        first = last
    return found
