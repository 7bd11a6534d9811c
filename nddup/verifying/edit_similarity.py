"""The edit similarity of texts: 1 - d / n.

d is the Levenshtein distance (characters inserted, deleted or replaced), n the length of the longer text. Runs of
blanks count as one, and a text is compared by its first `CHARACTERS`.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

CHARACTERS = 200_000
"""Of a text; what follows is not compared: a comparison of two such texts takes about a second at worst."""

BLANKS = r"[ \t\n\x0b\f\r]+"


class Spelled(NamedTuple):
    """Texts as they are compared, their lengths in characters, and whether each was cut."""

    texts: pa.Array
    lengths: pa.Array
    is_cut: pa.Array


def spell_out(texts: pa.Array) -> Spelled:
    """Texts with runs of blanks as one, none at either end, cut at `CHARACTERS`; (n,) each."""
    plain = pc.utf8_trim(pc.replace_substring_regex(texts, BLANKS, " "), " ")
    lengths = pc.utf8_length(plain)
    is_cut = pc.greater(lengths, CHARACTERS)
    cut = pc.utf8_slice_codeunits(plain, 0, CHARACTERS)
    return Spelled(cut, pc.min_element_wise(lengths, pa.scalar(CHARACTERS, pa.int32())), is_cut)


def can_reach(first: NDArray[np.int32], second: NDArray[np.int32], similarity: float) -> NDArray[np.bool_]:
    """Whether texts of these lengths may be so similar: a distance is at least their difference; (n,).

    Empty texts are similar to none.
    """
    shorter, longer = np.minimum(first, second), np.maximum(first, second)
    return np.asarray((shorter > 0) & (shorter >= longer * similarity - 1), np.bool_)


def measure(first: list[str], second: list[str], *, similarity: float, threads: int = 1) -> NDArray[np.float64]:
    """The similarity of each text of the first list and that at its place in the second; 0 below `similarity`; (n,).

    Cost: the product of both lengths / 64 steps for a pair at worst, less where texts differ soon. The threads run
    without the interpreter's lock.
    """
    return np.asarray(
        cpdist(first, second, scorer=Levenshtein.normalized_similarity, score_cutoff=similarity, dtype=np.float64,
               workers=threads)
    )  # fmt: skip
