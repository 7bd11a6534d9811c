"""Where tokens and sentences stand in the characters of a text.

find_characters    runs of tokens -> their first characters, and those after their last
find_sentences     a text         -> the first token and the first character of each sentence
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.against.spans import count_characters, locate_tokens
from nddup.ground.kernels import compiled
from nddup.scanning.found import join_encoded
from nddup.sketching.rolling_hash import most_tokens
from nddup.sketching.tokens import word_table

BLOCK = 8
"""Characters are counted once for each 2**8 bytes, and from there on for each requested place."""

_MARKS = r".!?\u2026\u203c\u203d\u2047-\u2049\u0589\u061f\u06d4\u0964\u0965\u1362"
_END = re.compile(
    rf"(?<![{_MARKS}])[{_MARKS}]++[\"'\u2019\u201d\u00bb\u203a)\]}}]*+\s++"
    r"|[\u3002\uff01\uff0e\uff1f\uff61]++[\"'\u2019\u201d\u300d\u300f\u3011\uff09)\]}]*+\s*+"
    r"|\n\s*+"
)
"""The end of a sentence, if no small letter follows: marks with what closes it and a blank, or a line that ends.

A match begins at the first of several marks: at each of them, a row of marks without a blank would cost its square."""


class Sentences(NamedTuple):
    """The k sentences of a text, in order.

    Attributes:
        tokens: (k,), the first token of each; the first is 0.
        chars: (k + 1,), where each begins, and the length of the text. What has no token is the end of a sentence.
    """

    tokens: NDArray[np.int64]
    chars: NDArray[np.int64]


def find_characters(
    texts: list[bytes],
    offsets: NDArray[np.int64],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    ignore: tuple[str, ...] = (),
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first character of runs of tokens, and the one after their last.

    Args:
        texts: n texts in UTF-8.
        offsets: (n + 1,), the runs of text i are those from `offsets[i]` to `offsets[i + 1]`.
        firsts: the first token of each run.
        ends: the token after the last of each run, greater than the first.
        ignore: what tokens leave out.

    Cost: each text with runs is read once more.
    """
    data, bounds = join_encoded(texts)
    return _find_characters(data, bounds, word_table(ignore), offsets, firsts, ends)


@compiled
def _find_characters(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    begins, stops = np.empty(len(firsts), np.int64), np.empty(len(firsts), np.int64)
    for text in range(len(bounds) - 1):
        if offsets[text] == offsets[text + 1]:
            continue
        start, end = bounds[text], bounds[text + 1]
        room = most_tokens(end - start) + 1
        heads, tails = np.empty(room, np.int32), np.empty(room, np.int32)
        locate_tokens(data, start, end, table, heads, tails)
        before = np.zeros((end - start >> BLOCK) + 1, np.int32)  # characters before each block
        for block in range(len(before) - 1):
            low = start + (block << BLOCK)
            before[block + 1] = before[block] + count_characters(data, low, low + (1 << BLOCK))
        for run in range(offsets[text], offsets[text + 1]):
            for places, at in ((begins, heads[firsts[run]]), (stops, tails[ends[run] - 1])):
                block = at - start >> BLOCK
                places[run] = before[block] + count_characters(data, start + (block << BLOCK), at)
    return begins, stops


def find_sentences(text: bytes, n_tokens: int, ignore: tuple[str, ...] = ()) -> Sentences:
    """Find the sentences of a text in UTF-8.

    A sentence ends with a full stop and the like before a blank, unless a small letter follows ("e.g. this"); with a
    line, unless a small letter follows, as in wrapped text; and with an empty line.

    Args:
        n_tokens: the number of its tokens, at least one.
        ignore: what tokens leave out.

    Cost: the text is read twice.
    """
    firsts = np.arange(n_tokens)
    begins, _ = find_characters([text], np.array([0, n_tokens]), firsts, firsts + 1, ignore)
    whole = text.decode()
    ends = [(end.end(), end[0].count("\n") > 1) for end in _END.finditer(whole)]
    places = np.array([place for place, _ in ends], np.int64)
    first = np.searchsorted(begins, places)
    is_one = [at < n_tokens and (is_parted or not whole[begins[at]].islower())
              for at, (_, is_parted) in zip(first.tolist(), ends, strict=True)]  # fmt: skip
    tokens, chars = np.append(0, first[is_one]), np.append(0, places[is_one])
    is_last = np.append(tokens[1:] != tokens[:-1], True)
    return Sentences(tokens[is_last], np.append(chars[is_last], len(whole)))
