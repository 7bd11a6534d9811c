"""Vocabulary: every distinct word of a task's texts gets a number, and each new word is reported once.

    UTF-8 text --number_words--> a number for each token, and the letters of each new word

A word is a token as defined in `tokens`, identified by its 64-bit hash from `rolling_hash.read_token`. What a word
stands for (its stem, its place in a lexicon) is looked up once per distinct word; each token then costs one table
look-up.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, compiled
from nddup.sketching.folding import fold_text, folded_words, signed
from nddup.sketching.min_s import read_only
from nddup.sketching.rolling_hash import ONE, most_tokens, read_token
from nddup.sketching.tokens import WORD_TABLE

WORD_BITS: Final = np.uint64(64)
FREE: Final = np.int32(-1)
FIRST_BITS: Final = 12

MOST_WORDS: Final = 1 << 20
"""Distinct words that a vocabulary holds before it starts again: some 150 MB, with what they stand for."""

PIECE: Final = 1 << 20
"""Bytes of text numbered in one call; a longer text is numbered as a whole."""

Numbered = tuple[NDArray[np.int32], NDArray[np.int64]]
"""A number per token, (t,), and the offsets of the texts in that array, (d + 1,)."""


class Written(NamedTuple):
    """The arrays that `number_words` writes.

    Attributes:
        tokens: the number of each token; room for `most_tokens` of the bytes.
        offsets: (d + 1,), where the tokens of each text begin.
        places: (slots / 2, 2), first byte and end of each new word in `letters`, by its number.
        letters: the new words, normalised, as UTF-8; room for the folded texts.
    """

    tokens: NDArray[np.int32]
    offsets: NDArray[np.int64]
    places: NDArray[np.int64]
    letters: NDArray[np.uint8]


class Position(NamedTuple):
    """The progress of `number_words`: the next text and its next folded byte, the tokens, words and letters so far."""

    text: int
    at: int
    tokens: int
    words: int
    letters: int


@compiled
def grow_table(keys: NDArray[np.uint64], numbers: NDArray[np.int32]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Copy the words into a table with twice as many slots."""
    wider = np.zeros(2 * keys.size, np.uint64)
    renumbered = np.full(2 * keys.size, FREE, np.int32)
    shift = _home_shift(wider.size)
    for i in range(keys.size):
        if numbers[i] != FREE:
            slot = _find_slot(wider, renumbered, keys[i], shift)
            wider[slot] = keys[i]
            renumbered[slot] = numbers[i]
    return wider, renumbered


@compiled
def _home_shift(slots: int) -> np.uint64:
    """Return by how many bits to shift a multiplied hash to get its first slot; `slots` is a power of two."""
    return WORD_BITS - np.uint64(np.log2(slots))


@compiled
def _find_slot(keys: NDArray[np.uint64], numbers: NDArray[np.int32], key: np.uint64, shift: np.uint64) -> int:
    """Return the slot of a word in an open-addressing table, or the free slot where it belongs."""
    mask = np.int64(keys.size - 1)
    slot = np.int64((key * HASH_MULTIPLIER) >> shift)
    while numbers[slot] != FREE and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot  # type: ignore[return-value]


@compiled
def number_words(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    words: tuple[NDArray[np.uint64], NDArray[np.int32]],
    found: Written,
    progress: Position,
) -> Position:
    """Number the tokens of texts; a word that is not in the table is added with the next number.

    Args:
        data: UTF-8, (b,); text i is `data[bounds[i]:bounds[i + 1]]`.
        bounds: (d + 1,).
        table: `tokens.WORD_TABLE`.
        words: a hash table: hashes of words, with a power of two slots; and their numbers, `FREE` in a free slot.
        found: written.
        progress: where to continue.

    Returns:
        The progress. Its `text` is d when all texts are done. If it is less, the table is half full: grow it and
        call again.
    """
    keys, numbers = words
    tokens, offsets, places, letters = found
    shift = _home_shift(keys.size)
    written, count, spelt = progress.tokens, progress.words, progress.letters
    for d in range(progress.text, bounds.size - 1):
        lines = np.empty(folded_words(bounds[d + 1] - bounds[d]), np.uint64)
        folded = lines.view(np.uint8)
        size = np.uint64(fold_text(data, bounds[d], bounds[d + 1], table, True, folded))  # noqa: FBT003
        at = np.uint64(progress.at if d == progress.text else 0)
        if at == 0:
            offsets[d] = written

        while at < size:
            if folded[at] == 0:
                at += ONE
                continue

            # A new word takes the free slot at which the search ended.
            begin = at
            key, at = read_token(lines, at)
            slot = _find_slot(keys, numbers, key, shift)
            number = numbers[slot]
            if number == FREE:
                if count == places.shape[0]:
                    return Position(d, signed(begin), written, count, spelt)
                places[count, 0] = spelt
                for place in range(signed(begin), signed(at) - 1):
                    letters[spelt] = folded[place]
                    spelt += 1
                places[count, 1] = spelt
                keys[slot] = key
                numbers[slot] = count
                number = np.int32(count)
                count += 1
            tokens[written] = number
            written += 1

    offsets[bounds.size - 1] = written
    return Position(bounds.size - 1, 0, written, count, spelt)


class Vocabulary:
    """The distinct words met so far, each with a number.

    Args:
        introduce: called with new words, normalised, in the order of their numbers; each word comes once.
        forget: called when numbering starts again at 0, because there were more than `most` words.
        most: number of distinct words above which the vocabulary starts again at the next piece of text.
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
        """Number the tokens of the texts in `data` at `bounds`, (d + 1,); new words are introduced before it ends."""
        if self._count > self._most:
            self.clear()
            self._forget()

        room = most_tokens(int(bounds[-1] - bounds[0])) + bounds.size  # the last token of a text needs no separator
        places = np.empty((self._keys.size // 2, 2), np.int64)
        letters = np.empty(8 * folded_words(int(bounds[-1] - bounds[0])), np.uint8)
        found = Written(np.empty(room, np.int32), np.zeros(bounds.size, np.int64), places, letters)
        known = self._count
        progress = Position(0, 0, 0, known, 0)
        while True:
            words = self._keys, self._numbers
            progress = Position(*number_words(data, bounds, WORD_TABLE, words, found, progress))
            if progress.text == bounds.size - 1:
                break
            self._keys, self._numbers = grow_table(*words)
            found = found._replace(places=np.concatenate([found.places, np.empty_like(found.places)]))

        self._count = progress.words
        if self._count > known:
            raw = found.letters[: progress.letters].tobytes()
            self._introduce([raw[low:high].decode() for low, high in found.places[known : self._count].tolist()])
        return found.tokens[: found.offsets[-1]], found.offsets


def pieces(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> list[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Split texts into runs of at most `PIECE` bytes, or of one longer text; each is numbered in one call.

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
