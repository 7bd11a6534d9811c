"""Locate and compare tokens in a text; tokens are those of `nddup.sketching.tokens`.

locate_tokens      the bytes at which each token begins and ends
same_tokens        compares two runs of tokens, character by character, lower-cased
count_characters   bytes -> characters
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.sketching.rolling_hash import BEYOND_ASCII, byte_at, decode
from nddup.sketching.tokens import ALONE

_ALONE: Final = np.uint32(ALONE)
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

    They are the tokens that `rolling_hash.hash_tokens` hashes, in the same order.

    Args:
        data: UTF-8, (b,).
        start: first byte of the text.
        end: the byte after the text.
        table: `tokens.WORD_TABLE`.
        starts: output, the first byte of each token; needs room for `most_tokens(end - start)`.
        ends: output, the byte after each token; needs the same room.
    """
    n_tokens = 0
    is_inside = False
    i = start
    while i < end:
        width = 1
        code = byte_at(data, i)
        if code >= BEYOND_ASCII:
            code, width = decode(data, i, end)
        entry = table[code]

        # A separator, or a character that is a token by itself, ends the word before it.
        if is_inside and (entry == 0 or entry >= _ALONE):
            ends[n_tokens] = i
            n_tokens += 1
            is_inside = False
        if entry >= _ALONE:
            starts[n_tokens] = i
            ends[n_tokens] = i + width
            n_tokens += 1
        elif entry and not is_inside:
            starts[n_tokens] = i
            is_inside = True
        i += width

    if is_inside:
        ends[n_tokens] = end
        n_tokens += 1
    return n_tokens


@compiled
def same_tokens(
    data: NDArray[np.uint8],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    first: int,
    other_data: NDArray[np.uint8],
    other_starts: NDArray[np.int32],
    other_ends: NDArray[np.int32],
    other_first: int,
    count: int,
    table: NDArray[np.uint32],
) -> bool:
    """Return whether `count` tokens from `first` equal those of the other text from `other_first`, lower-cased."""
    for t in range(count):
        i, end = int(starts[first + t]), int(ends[first + t])
        j, other_end = int(other_starts[other_first + t]), int(other_ends[other_first + t])
        while i < end and j < other_end:
            width, other_width = 1, 1
            code, other_code = byte_at(data, i), byte_at(other_data, j)
            if code >= BEYOND_ASCII:
                code, width = decode(data, i, end)
            if other_code >= BEYOND_ASCII:
                other_code, other_width = decode(other_data, j, other_end)
            if table[code] != table[other_code]:
                return False
            i += width
            j += other_width
        if i < end or j < other_end:
            return False
    return True


@compiled
def count_characters(data: NDArray[np.uint8], start: int, end: int) -> int:
    """Count the characters of the UTF-8 text `data[start:end]`: all bytes except continuation bytes."""
    count = 0
    for i in range(start, end):
        count += 1 if byte_at(data, i) & _NOT_FIRST != _FOLLOWS else 0
    return count
