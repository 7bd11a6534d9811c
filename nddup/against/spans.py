"""The runs of tokens that an item and its document have in common, and where tokens lie in a text.

    find_runs          shingle numbers of an item and a document  -> Runs
    locate_tokens      bytes  -> where each token begins and ends
    fold_tokens        bytes  -> the tokens, normalised
    same_tokens        two runs of normalised tokens  -> whether they are equal, byte by byte
    count_characters   bytes  -> characters

Tokens are those of `nddup.sketching.tokens`.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled
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

OCCURRENCES: Final = 64
"""Maximum number of places of one shingle in a document that are tried; without a limit, repetitive texts would cost
n²."""


class Runs(NamedTuple):
    """Common runs: the place of the first shingle in the item, the first hit of the document, and how many shingles."""

    item: NDArray[np.int32]
    hit: NDArray[np.int32]
    shingles: NDArray[np.int32]


KIND: Final = 0xFFFFFFFF - CODE

_NOT_FIRST: Final = 0xC0

_FOLLOWS: Final = 0x80


def find_runs(
    item: NDArray[np.int32], tokens: NDArray[np.int32], numbers: NDArray[np.int32], is_suppressed: NDArray[np.bool_]
) -> Runs:
    """Find the common runs of one item and one document.

    The search walks along the item. At each unsuppressed shingle that the document has, it takes the longest common run
    from there, the first in the document if several are equally long, and goes on after the last shingle of the run. A
    run may extend over suppressed shingles, as its tokens are equal. Only the first `OCCURRENCES` places of a shingle
    in the document are tried.

    Args:
        item: (t,), the number of the shingle that begins at each token of the item; -1 for none.
        tokens: (h,), the tokens of the document at which a known shingle begins, ascending.
        numbers: (h,), the numbers of these shingles.
        is_suppressed: (d,), whether each shingle is suppressed, by its number.

    Returns:
        The runs, in the order of the item; they overlap by fewer tokens than a shingle has. Empty if no unsuppressed
        shingle is shared.

    Cost: a sort of the hits, then linear in tokens and hits, times up to `OCCURRENCES` if the document repeats itself.

    Example:
        >>> item, places = np.array([0, 1, 2, 3, -1]), np.array([4, 5, 9])
        >>> runs = find_runs(item, places, np.array([1, 2, 3]), np.zeros(4, bool))
        >>> [values.tolist() for values in runs]
        [[1, 3], [0, 2], [2, 1]]
    """
    order = np.argsort(numbers, kind="stable")
    return Runs(*_walk(item, tokens, numbers, is_suppressed, order, numbers[order]))


@compiled
def _walk(
    item: NDArray[np.int32],
    tokens: NDArray[np.int32],
    numbers: NDArray[np.int32],
    is_suppressed: NDArray[np.bool_],
    order: NDArray[np.int64],
    ordered: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    values = np.empty((len(item), 3), np.int32)
    n_found = 0
    at = 0
    while at < len(item):
        number = item[at]
        longest, best = 0, -1
        if number >= 0 and not is_suppressed[number]:
            low = np.searchsorted(ordered, number)
            high = min(np.searchsorted(ordered, number, "right"), low + OCCURRENCES)
            for place in range(low, high):
                hit = order[place]
                size = _common(item, at, tokens, numbers, hit)
                if size > longest:
                    longest, best = size, hit
        if longest:
            values[n_found, 0], values[n_found, 1], values[n_found, 2] = at, best, longest
            n_found += 1
        at += max(longest, 1)
    return values[:n_found, 0].copy(), values[:n_found, 1].copy(), values[:n_found, 2].copy()


@compiled
def _common(item: NDArray[np.int32], at: int, tokens: NDArray[np.int32], numbers: NDArray[np.int32], hit: int) -> int:
    """Return how many shingles follow one another in both, including the first."""
    size = 1
    while (
        at + size < len(item)
        and hit + size < len(tokens)
        and tokens[hit + size] == tokens[hit] + size
        and numbers[hit + size] == item[at + size]
    ):
        size += 1
    return size


@compiled
def locate_tokens(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    table: NDArray[np.uint32],
    starts: Written[np.int32],
    ends: Written[np.int32],
) -> int:
    """Write where the tokens of the UTF-8 text `data[start:end]` begin and end; return their number.

    They are the tokens that `rolling_hash.hash_tokens` hashes, in the same order: normalising changes neither their
    number nor which characters belong to them, except that an iota below a letter is a letter.

    Args:
        data: UTF-8, (b,).
        start: first byte of the text.
        end: the byte after the text.
        table: of `tokens.word_table`.
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
    folded: Written[np.uint8],
    heads: Written[np.uint32],
) -> int:
    """Write the tokens of a text, normalised, with a zero byte after each, and where each begins; return the bytes.

    Args:
        data: UTF-8, (b,).
        start: first byte of the text.
        end: the byte after the text.
        table: of `tokens.word_table`.
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
