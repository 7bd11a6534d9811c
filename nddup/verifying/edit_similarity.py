"""The edit similarity of texts, 1 - d / n, and the longest common subsequence of two texts.

    measure        pairs of texts  -> their similarities, by the Levenshtein distance d and the longer length n
    can_reach      lengths         -> whether a similarity is possible
    count_common   two texts       -> the length of their longest common subsequence, by bit vectors

A run of blanks counts as one blank, and only the first `CHARACTERS` of a text are compared. `count_common` is for
`check`: independent of the library that a run uses.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

CHARACTERS = 200_000
"""Characters of a text that are compared: comparing two texts of this length takes about a second at worst."""

BLANKS = r"[ \t\n\x0b\f\r]+"


class Spelled(NamedTuple):
    """Texts as they are compared, their lengths in characters, and whether each was cut."""

    texts: pa.Array
    lengths: pa.Array
    is_cut: pa.Array


def spell_out(texts: pa.Array) -> Spelled:
    """Reduce runs of blanks to one, trim both ends, and cut texts at `CHARACTERS`; (n,) each."""
    plain = pc.utf8_trim(pc.replace_substring_regex(texts, BLANKS, " "), " ")
    lengths = pc.utf8_length(plain)
    is_cut = pc.greater(lengths, CHARACTERS)
    cut = pc.utf8_slice_codeunits(plain, 0, CHARACTERS)
    return Spelled(cut, pc.min_element_wise(lengths, pa.scalar(CHARACTERS, pa.int32())), is_cut)


def can_reach(first: Any, second: Any, similarity: float) -> Any:  # noqa: ANN401 - arrays, or columns of Spark
    """Return whether texts of these lengths may reach a similarity: d is at least their difference; (n,).

    An empty text is similar to none.
    """
    is_near = (first >= second * similarity - 1) & (second >= first * similarity - 1)
    return (first > 0) & (second > 0) & is_near


def measure(first: list[str], second: list[str], *, similarity: float, threads: int = 1) -> NDArray[np.float64]:
    """Return the similarity of texts at the same place of both lists, (n,); 0 where it is below `similarity`.

    Cost: per pair at most the product of both lengths / 64 steps, fewer if texts differ early. The threads run without
    the interpreter's lock.
    """
    return np.asarray(
        cpdist(first, second, scorer=Levenshtein.normalized_similarity, score_cutoff=similarity, dtype=np.float64,
               workers=threads)
    )  # fmt: skip


def count_common(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """
    Return the length of the longest common subsequence of two sequences.

    The vector is a Python integer. Each bit stands for a token of `first`, and is 0 where the LCS grows at that token.

    Cost: the product of both lengths / 64 steps.

    Example:
        >>> count_common("a rose is a rose".split(), "a rose was a red rose".split())
        4

    Source: Crochemore, Iliopoulos, Pinzon, Reid 2001, A fast and practical bit-vector algorithm for the longest common
    subsequence problem.
    """
    places: dict[Hashable, int] = {}
    for place, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << place

    whole = (1 << len(first)) - 1
    vector = whole
    for token in second:
        matched = vector & places.get(token, 0)
        vector = (vector + matched | vector - matched) & whole
    return len(first) - vector.bit_count()
