"""The kinds of sketches, each declared once: what it keeps, what it can show, and how its pairs are found.

    estimate    how the resemblance of two sketches is taken
                  smallest   of the s smallest ids of both together (Broder's MIN_s)
                  whole      |A & B| / |A | B| of the two sets
                  slots      equal slots / n
                  levels     as `whole`, after the finer set is reduced to the coarser one's modulus
    finder      how candidates are found
                  prefix     every pair with enough in common, exactly (`overlap`)
                  bands      pairs that agree in all rows of a band of slots (`banding`)
                  runs       pairs with a run of ids of the sorted sketch in common: super-shingles (`banding`)
                  levels     as `prefix`, at every modulus two sketches may be compared at (`levels`)

Whoever makes, compares, finds or proves asks the declaration. Where two kinds differ otherwise, it is in how ids are
selected (`recipes`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

FIXED_SIZE: Final = "keeps as many ids of a short document as of a long one: it shows a resemblance, not a containment"
NO_TEXT: Final = MappingProxyType({"containment": "is of words without their order: common ones are no common text"})
NO_CLUSTERS: Final = "its pairs do not make maximal sets"

WHOLE: Final = 1 << 30
"""Above the size of any sketch: the sample that is all of two sets."""


@dataclass(frozen=True)
class Kind:
    """One kind of sketch.

    Attributes:
        name: as in `sketch.kind`.
        says: what it is, in a line.
        estimate: how two are compared.
        finder: how pairs are found.
        options: the keys of the section `sketch` that it takes beside size, seed, fingerprint and permutation.
        refused: measures it cannot show, each with the reason; `overlap` is always shown.
        is_mined: whether its near-duplicates make maximal sets: both conditions of a cluster only break as documents
            are added.
        is_of_shingles: whether each id is one shingle's, so that a shingle can be left out.
        is_of_words: whether its features are words (`word_sketches`): then it takes no shingles.
    """

    name: str
    says: str
    estimate: Literal["smallest", "whole", "slots", "levels"]
    finder: Literal["prefix", "bands", "runs", "levels"] = "prefix"
    options: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({"containment": FIXED_SIZE}))
    is_mined: bool = True
    is_of_shingles: bool = True
    is_of_words: bool = False

    @property
    def shows_containment(self) -> bool:
        """Whether a share of one sketch estimates a share of its document."""
        return "containment" not in self.refused

    @property
    def is_exact(self) -> bool:
        """Whether every pair of sketches that is near by the measure is found."""
        return self.finder in {"prefix", "levels"}

    def sample(self, size: int) -> int:
        """How many ids or slots a resemblance is estimated from: `sketch.size`, or `WHOLE` for plain sets.

        Example:
            >>> [KINDS[name].sample(100) for name in ("min-s", "min-perm", "mod-m")] == [100, 100, WHOLE]
            True
        """
        return size if self.estimate in {"smallest", "slots"} else WHOLE

    @property
    def by_slots(self) -> bool:
        """Whether a resemblance is the share of equal slots, not that of common ids among the smallest."""
        return self.estimate == "slots"


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind(
                "min-s",
                "the s smallest shingle ids under one permutation",
                "smallest",
                options=frozenset({"growth", "modulus"}),
            ),
            Kind(
                "super",
                "min-s, its pairs found by super-shingles of the sorted sketch: one in common is a candidate",
                "smallest",
                finder="runs",
                options=frozenset({"rows"}),
            ),
            Kind(
                "min-perm",
                "the smallest under each of n permutations",
                "slots",
                options=frozenset({"tagged"}),
                is_of_shingles=False,
            ),
            Kind(
                "minhash",
                "signature of n slots, as datasketch's; candidates by LSH",
                "slots",
                finder="bands",
                options=frozenset({"bands", "rows", "verify"}),
                is_of_shingles=False,
            ),
            Kind(
                "mod-m",
                "the ids that m divides: a sample that grows with the document",
                "whole",
                options=frozenset({"modulus"}),
                refused=MappingProxyType({}),
            ),
            Kind(
                "mod-pow2",
                "the ids that 2^i divides, i by the document's length, compared at the coarser of two",
                "levels",
                finder="levels",
                refused=MappingProxyType({}),
                is_mined=False,
            ),
            Kind(
                "lexicon",
                "the words whose frequency in the collection lies in an interval, stemmed, stop words removed",
                "whole",
                refused=NO_TEXT,
                is_of_shingles=False,
                is_of_words=True,
            ),
            Kind(
                "i-match",
                "one signature of the words of the lexicon, and one for each of K randomised lexicons",
                "whole",
                refused=NO_TEXT,
                is_of_shingles=False,
                is_of_words=True,
            ),
            Kind(
                "keywords",
                "stemmed keywords, each as the positions of its first letters in the alphabet",
                "whole",
                refused=NO_TEXT,
                is_of_shingles=False,
                is_of_words=True,
            ),
        )
    }
)
"""Every kind, by name."""
