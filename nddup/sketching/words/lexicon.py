"""Lexicons: how often the terms of a collection occur, and which of them describe its documents.

    texts --TermCounts--> partial counts of a task --(summed)--> counts of the collection --interval--> lexicon

Terms are stemmed words without stop words (`vocabulary`). A lexicon holds the terms whose frequency in the collection,
relative to that of the most frequent term, lies in a closed interval. More frequent terms tell nothing about a
document; rarer ones are misprints and names.

Sources:
    Kuznetsov, Ignatov et al. 2005; Ignatov, Kuznetsov 2009 (the interval [0.00001, 0.5] of the commonest word's).
    Chowdhury, Frieder, Grossman, McCabe 2002, Collection statistics for fast duplicate document detection.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.errors import CapacityError
from nddup.sketching.tokens import TOKEN_TABLE_VERSION
from nddup.sketching.words.vocabulary import MOST_WORDS, NO_TERM, Terms, Vocabulary, pieces, term_ids, versions_of_terms

TERM_FORMAT: Final = 2
"""Raise it whenever the id of a term changes: saved lexicons would then stand for other words."""

COUNTED: Final = ("counted", "occurrences", "commonest")
"""Counts kept for the collection: distinct terms, all their occurrences, those of the commonest term."""

MOST_TERMS: Final = 10_000_000
"""Most terms of a lexicon: it is sent to every worker, 8 bytes per term."""


@dataclass(frozen=True)
class LexiconRule:
    """Everything that decides a lexicon except the collection; `low` and `high` are exact decimals, as written."""

    languages: tuple[str, ...]
    stems: bool
    stops: bool
    low: str
    high: str

    @property
    def key(self) -> str:
        """The rule and the versions of its data as a line. If equal, the same texts give the same lexicon."""
        return (
            f"languages={'+'.join(self.languages) or 'none'} stems={self.stems} stops={self.stops} low={self.low}"
            f" high={self.high} terms={TERM_FORMAT}/unicode-{TOKEN_TABLE_VERSION}/{versions_of_terms()}"
        )

    def interval(self, commonest: int) -> tuple[int, int]:
        """Return the lowest and the highest count of a term in the lexicon, given that of the most frequent term.

        Example:
            >>> LexiconRule((), True, True, "0.00001", "0.5").interval(1_234_567)
            (13, 617283)
        """
        return math.ceil(Fraction(self.low) * commonest), math.floor(Fraction(self.high) * commonest)

    def terms(self) -> Terms:
        """Make the mapping from words to terms."""
        return Terms(self.languages, stems=self.stems, stops=self.stops)


class Counted(NamedTuple):
    """Counts of n terms: the terms, their ids, their occurrences, and the documents that contain them, each (n,)."""

    terms: list[str]
    ids: NDArray[np.uint64]
    occurrences: NDArray[np.int64]
    documents: NDArray[np.int64]


class TermCounts:
    """Counts the terms of the texts of one task. Texts of fewer than `least_tokens` tokens are skipped.

    Memory: some 150 bytes per distinct word, for at most `most` words. Beyond that, the counts so far are put aside as
    one part of the result.
    """

    def __init__(self, rule: LexiconRule, most: int = MOST_WORDS, *, least_tokens: int = 0) -> None:
        self._terms = rule.terms()
        self._least_tokens = least_tokens
        self._vocabulary = Vocabulary(self._introduce, self._put_aside, most)
        self._aside: list[Counted] = []
        self._texts = 0
        self._start()

    def _start(self) -> None:
        self._number: dict[str, int] = {}
        self._term_of = np.empty(0, np.int32)
        self._counts = np.zeros((3, 0), np.int64)  # occurrences, documents, the last text (from 1)

    def add(self, data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> None:
        """Count the terms of texts: UTF-8, text i is `data[bounds[i]:bounds[i + 1]]`."""
        for text, part in pieces(data, bounds):
            tokens, offsets = self._vocabulary.number(text, part)
            count_terms(tokens, offsets, self._term_of, self._texts, self._least_tokens, self._counts)
            self._texts += part.size - 1

    def drain(self) -> list[Counted]:
        """Return all counts, in parts, and start again; a term may be in several parts."""
        self._put_aside()
        found, self._aside = self._aside, []
        return found

    def _introduce(self, words: list[str]) -> None:
        """Number the terms of new words; a stop word gets -1."""
        numbers = self._number
        named = [-1 if t == NO_TERM else numbers.setdefault(t, len(numbers)) for t in self._terms(words)]
        self._term_of = np.concatenate([self._term_of, np.array(named, np.int32)])

        missing = len(numbers) - self._counts.shape[1]
        if missing > 0:  # at least double the room, so that copying takes linear time in all
            room = np.zeros((3, max(missing, self._counts.shape[1])), np.int64)
            self._counts = np.concatenate([self._counts, room], axis=1)

    def _put_aside(self) -> None:
        terms = list(self._number)
        if terms:
            occurrences, documents = self._counts[:2, : len(terms)]
            self._aside.append(Counted(terms, term_ids(terms), occurrences, documents))
        self._start()
        self._vocabulary.clear()


@compiled
def count_terms(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int64],
    term_of: NDArray[np.int32],
    texts_before: int,
    least_tokens: int,
    counts: NDArray[np.int64],
) -> None:
    """Add the terms of texts to `counts`, (3, terms): occurrences, documents, and the last text, from 1, of a term."""
    for d in range(offsets.size - 1):
        text = texts_before + d + 1
        if offsets[d + 1] - offsets[d] < least_tokens:
            continue

        for t in range(offsets[d], offsets[d + 1]):
            term = term_of[tokens[t]]
            if term >= 0:
                counts[0, term] += 1
                if counts[2, term] != text:
                    counts[2, term] = text
                    counts[1, term] += 1


def sort_ids(ids: NDArray[np.int64]) -> bytes:
    """Return the ids of a lexicon's terms, (n,), as bytes of ascending uint64.

    Raises:
        CapacityError: if there are more than `MOST_TERMS`.
    """
    if len(ids) > MOST_TERMS:
        raise CapacityError(f"more than {MOST_TERMS:,} words in the lexicon; raise lexicon.low")
    return np.sort(ids.view(np.uint64)).tobytes()
