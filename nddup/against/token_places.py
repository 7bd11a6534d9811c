"""Locate and compare tokens in a text; tokens are those of `nddup.sketching.tokens`.

locate_tokens      the bytes at which each token begins and ends
fold_tokens        the tokens, normalised
same_tokens        compares two runs of normalised tokens, byte by byte
count_characters   bytes -> characters
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.sketching.folding import byte_at, decode_any, fold_text, signed
from nddup.sketching.tokens import (
    CLASS,
    CLASS_SHIFT,
    CODE,
    DROPPED,
    FACTS,
    IOTA_BELOW,
    OF_ALONE,
    OF_MARK,
    OF_WORD,
)

KIND: Final = 0xFFFFFFFF - CODE
_NOT_FIRST: Final = 0xC0
_FOLLOWS: Final = 0x80


@compiled
def locate_tokens(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    table: NDArray[np.uint32],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
) -> int:
    """Write where the tokens of the UTF-8 text `data[start:end]` begin and end; return how many there are.

    They are the tokens that `rolling_hash.hash_tokens` hashes, in the same order: normalising changes neither their
    number nor which characters belong to them, except that an iota below a letter is a letter.

    Args:
        data: UTF-8, (b,).
        start: first byte of the text.
        end: the byte after the text.
        table: `tokens.WORD_TABLE`.
        starts: output, the first byte of each token; needs room for `most_tokens(end - start)`.
        ends: output, the byte after the last character of each token; needs the same room.
    """
    n_tokens = 0
    last = 0  # the class of the last character, marks apart; 0 outside of tokens
    i = start
    while i < end:
        code, width = decode_any(data, i, end)
        if table[code] & KIND == DROPPED:
            i += width
            continue

        kind = signed(table[FACTS + code]) >> CLASS_SHIFT & CLASS
        kind = OF_WORD if code == IOTA_BELOW else kind
        if kind == OF_MARK:
            kind = last
        elif kind and (kind == OF_ALONE or kind != last):
            starts[n_tokens] = i
            n_tokens += 1
        i += width
        if kind:
            ends[n_tokens - 1] = i
        last = kind
    return n_tokens


@compiled
def fold_tokens(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    table: NDArray[np.uint32],
    folded: NDArray[np.uint8],
    heads: NDArray[np.uint32],
) -> int:
    """Write the tokens of a text, normalised, with a zero byte after each, and where each begins; return the bytes.

    Args:
        data: UTF-8, (b,).
        start: first byte of the text.
        end: the byte after the text.
        table: `tokens.WORD_TABLE`.
        folded: output, with room for `8 * folding.folded_words(end - start)`.
        heads: output, the first byte of each token in `folded`; needs room for `most_tokens(end - start)`.
    """
    size = fold_text(data, start, end, table, True, folded)  # noqa: FBT003 - a kernel takes no keywords
    n_tokens = 0
    before = 0
    for i in range(size):
        if before == 0 and folded[i]:
            heads[n_tokens] = i
            n_tokens += 1
        before = folded[i]
    return size + 1


@compiled
def same_tokens(
    folded: NDArray[np.uint8],
    heads: NDArray[np.uint32],
    first: int,
    other_folded: NDArray[np.uint8],
    other_heads: NDArray[np.uint32],
    other_first: int,
    count: int,
) -> bool:
    """Return whether `count` tokens from `first` equal those of the other text from `other_first`; both are folded."""
    for t in range(count):
        i, j = signed(heads[first + t]), signed(other_heads[other_first + t])
        while folded[i] == other_folded[j] and folded[i]:
            i += 1
            j += 1
        if folded[i] != other_folded[j]:
            return False
    return True


@compiled
def count_characters(data: NDArray[np.uint8], start: int, end: int) -> int:
    """Count the characters of the UTF-8 text `data[start:end]`: all bytes except continuation bytes."""
    count = 0
    for i in range(start, end):
        count += 1 if byte_at(data, i) & _NOT_FIRST != _FOLLOWS else 0
    return count
