"""The kinds of sketches, each declared once: what it keeps, what it can show, and how its pairs are found.

    Kind     one kind
    KINDS    all kinds by name; all code that depends on the kind reads this table

`recipe` selects the ids of each kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

FIXED_SIZE: Final = "keeps as many ids of a short document as of a long one: it shows a resemblance, not a containment"
NO_TEXT: Final = MappingProxyType({"containment": "holds words without their order: common words are no common text"})
EQUAL_ONLY: Final = MappingProxyType({"containment": "says only whether two texts are equal"})
NO_CLUSTERS: Final = "its pairs do not make maximal sets"

WHOLE: Final = 1 << 30
"""The sample size that means all ids of both sketches: it is above the size of any sketch."""


@dataclass(frozen=True)
class Kind:
    """One kind of sketch.

        estimate    how the resemblance of two sketches is estimated
                      smallest   from the s smallest ids of both together (Broder's MIN_s)
                      whole      |A & B| / |A | B| of the two sets
                      slots      equal slots / n
                      levels     as `whole`, after the finer set is reduced to the modulus of the coarser one
        finder      how candidate pairs are found
                      prefix     exactly: every pair with enough ids in common (prefix filter)
                      bands      pairs that agree in all rows of a band of slots (`minhash`)
                      runs       pairs with a common run of ids of the sorted sketch: a super-shingle (`minhash`)
                      levels     as `prefix`, at every modulus at which two sketches may be compared (`recipe`)

    Attributes:
        name: as in `sketch.kind`.
        says: description in one line.
        estimate: how two sketches are compared.
        finder: how candidate pairs are found.
        options: keys of the section `sketch` that it accepts besides size, seed, fingerprint and permutation.
        refused: measures it cannot show, each with the reason; every kind shows `overlap`.
        is_mined: whether its near-duplicates can be mined for maximal sets. It requires that no superset
            of a set that is not a cluster is one.
        is_of_shingles: whether each id stands for one shingle, so that a shingle can be left out.
        is_of_words: whether its features are words (`word_sketches`) instead of shingles.
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
        """Whether the share of a sketch that lies in another estimates the same share of the document."""
        return "containment" not in self.refused

    @property
    def is_exact(self) -> bool:
        """Whether every pair of sketches that reaches the threshold is found."""
        return self.finder in {"prefix", "levels"}

    def sample(self, size: int) -> int:
        """Return how many ids or slots a resemblance is estimated from: `sketch.size`, or `WHOLE` for plain sets.

        Example:
            >>> [KINDS[name].sample(100) for name in ("min-s", "min-perm", "mod-m")] == [100, 100, WHOLE]
            True
        """
        return size if self.estimate in {"smallest", "slots"} else WHOLE

    @property
    def by_slots(self) -> bool:
        """Whether a resemblance is the share of equal slots, not of common ids among the smallest."""
        return self.estimate == "slots"


_DECLARED = (
    Kind("min-s", "the s smallest shingle ids under one permutation", "smallest",
         options=frozenset({"growth", "modulus"})),
    Kind("super", "min-s; two sketches are compared if they share a super-shingle of the sorted sketch", "smallest",
         finder="runs", options=frozenset({"rows"})),
    Kind("min-perm", "the smallest shingle id under each of n permutations", "slots", options=frozenset({"tagged"}),
         is_of_shingles=False),
    Kind("minhash", "signature of n slots, as datasketch's; candidates by LSH", "slots", finder="bands",
         options=frozenset({"bands", "rows", "verify"}), is_of_shingles=False),
    Kind("mod-m", "the ids that m divides: a sample that grows with the document", "whole",
         options=frozenset({"modulus"}), refused=MappingProxyType({})),
    Kind("mod-pow2", "the ids that 2^i divides, i by the document's length; compared at the coarser modulus", "levels",
         finder="levels", refused=MappingProxyType({}), is_mined=False),
    Kind("whole", "two ids that only equal texts share, whatever their case, blanks and punctuation", "whole",
         refused=EQUAL_ONLY, is_of_shingles=False),
    Kind("lexicon", "the words whose frequency in the collection lies in an interval, stemmed, stop words removed",
         "whole", refused=NO_TEXT, is_of_shingles=False, is_of_words=True),
    Kind("i-match", "one signature of the words of the lexicon, and one for each of K randomised lexicons", "whole",
         refused=NO_TEXT, is_of_shingles=False, is_of_words=True),
    Kind("keywords", "stemmed keywords, each as the positions of its first letters in the alphabet", "whole",
         refused=NO_TEXT, is_of_shingles=False, is_of_words=True),
)  # fmt: skip

KINDS: Final[Mapping[str, Kind]] = MappingProxyType({kind.name: kind for kind in _DECLARED})
"""Every kind, by name."""
