"""Sketches of words: the set of terms that a document holds, in any order.

    WordRule                the kind (`lexicon`, `i-match`, `keywords`) and everything else that decides the sketches
    WordSketcher            texts -> sketches, with the term of each word remembered across batches
    sketcher_of             WordRule, ids of a lexicon -> the sketcher of this process
    select_terms, sign_sets the kernels: distinct terms of each text; signatures of each set

A sketch is the whole set of terms, so a resemblance has no sampling error. It ignores the order of the terms and how
often they occur: texts of different words with the same stems are equal.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled
from nddup.sketching.min_s import Sketches, check_texts
from nddup.sketching.permutations import mix_id, mix_keys
from nddup.sketching.vocabulary import MOST_WORDS, NO_TERM, LexiconRule, Vocabulary, letter_number, pieces, term_ids

SIGNATURE_SEED: Final = np.uint64(0x243F6A8885A308D3)
Kind = Literal["lexicon", "i-match", "keywords"]


@dataclass(frozen=True)
class WordRule:
    """How texts become sketches of words.

        lexicon    the ids of the document's terms that are in the lexicon
        i-match    signatures of that set: one for the whole lexicon, and one for each of K copies from which a random
                   share of the terms is left out. Documents that share a signature hold the same terms of one of these
                   lexicons
        keywords   the stemmed keywords, each as the positions of its first letters in the alphabet

    Sources:
        Kuznetsov, Ignatov et al. 2005; Ignatov, Kuznetsov 2009 (lexical images).
        Chowdhury, Frieder, Grossman, McCabe 2002 (I-Match); Kołcz, Chowdhury, Alspector 2004, Improved robustness of
        signature-based near-replica detection via lexicon randomization, KDD '04.
        Pamulaparty, Rao, Rao 2014 (keywords).

    Attributes:
        kind: as in `kinds.KINDS`.
        lexicon: what terms are and which are in the lexicon; `keywords` ignores its interval.
        letters: letters of a keyword that are used, for `keywords`.
        copies: K, the number of randomised lexicons besides the whole one, for `i-match`.
        left_out: share of the terms that each randomised lexicon omits.
        seed: chooses these terms.
    """

    kind: Kind
    lexicon: LexiconRule
    letters: int = 3
    copies: int = 10
    left_out: float = 0.3
    seed: int = 1

    @property
    def needs_lexicon(self) -> bool:
        """Whether the terms of the whole collection must be counted first."""
        return self.kind != "keywords"

    @property
    def key(self) -> str:
        """The rule as a line. Sketches can be compared only if their keys and the terms of their lexicons are equal."""
        settings = {
            "i-match": f" copies={self.copies} left_out={self.left_out} lexicon_seed={self.seed}",
            "keywords": f" letters={self.letters}",
        }
        return self.lexicon.key + settings.get(self.kind, "")


class WordSketcher:
    """Makes sketches by a rule, and remembers the term of each word across batches.

    Args:
        lexicon: ids of its terms, ascending, (n,), uint64; `keywords` does not use it.
        most: number of distinct words to remember.
    """

    def __init__(self, rule: WordRule, lexicon: NDArray[np.uint64], most: int = MOST_WORDS) -> None:
        self._rule = rule
        self._lexicon = lexicon
        self._terms = rule.lexicon.terms()
        self._vocabulary = Vocabulary(self._introduce, self._start, most, rule.lexicon.ignore)
        copies = [mix_keys(rule.seed + i) for i in range(rule.copies + 1)]
        self._keys = np.array(copies, np.uint64).reshape(-1, 2)
        self._from = np.uint64(int(rule.left_out * 2**64))
        self._start()

    def _start(self) -> None:
        self._number: dict[int, int] = {}
        self._term_of = np.empty(0, np.int32)
        self._ids = np.empty(0, np.uint64)
        self._kept = np.empty(0, np.bool_)
        self._last = np.empty(0, np.int64)

    def sketch(self, data: NDArray[np.uint8], offsets: NDArray[np.int32] | NDArray[np.int64]) -> Sketches:
        """Sketch texts.

        Args:
            data: UTF-8, as for `min_s.sketch_texts`.
            offsets: (d + 1,), as there.

        Returns:
            One sketch per text; `n_features` counts all its distinct terms, even those outside the lexicon. A text
            without a term of the lexicon has an empty sketch.

        Cost: one pass; each distinct word is stemmed once.
        """
        bounds = check_texts(data, offsets)
        parts = [self._sketch(*piece) for piece in pieces(data, bounds)]
        sizes = np.concatenate([np.zeros((3, 1), np.int64), *(part_sizes for part_sizes, _ in parts)], axis=1)
        ids = np.concatenate([np.empty(0, np.uint64), *(part_ids for _, part_ids in parts)])
        return Sketches(
            n_tokens=sizes[0, 1:].astype(np.int32),
            n_features=sizes[1, 1:].astype(np.int32),
            offsets=np.cumsum(sizes[2]),
            ids=ids,
        )

    def _sketch(
        self, data: NDArray[np.uint8], bounds: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return the numbers of tokens, distinct terms and ids of each text, (3, d), and the ids of all texts."""
        tokens, offsets = self._vocabulary.number(data, bounds)
        self._last[:] = 0
        ids, features, ends = select_terms(tokens, offsets, self._term_of, self._ids, self._kept, self._last)
        if self._rule.kind == "i-match":
            ids, ends = sign_sets(ids, ends, self._keys, self._from)
        return np.stack([np.diff(offsets), features, np.diff(ends)]), ids

    def _introduce(self, words: list[str]) -> None:
        """Number the terms of new words; a stop word gets -1."""
        terms = self._terms(words)
        pairs = [(place, term) for place, term in enumerate(terms) if term != NO_TERM]
        ids = self._ids_of([term for _, term in pairs])
        named = np.full(len(terms), -1, np.int32)
        numbers = self._number
        known = len(numbers)
        named[[place for place, _ in pairs]] = [numbers.setdefault(value, len(numbers)) for value in ids.tolist()]

        # The new terms are the last entries of the dictionary.
        new = np.array(list(islice(reversed(numbers), len(numbers) - known))[::-1], np.uint64)
        self._term_of = np.concatenate([self._term_of, named])
        self._ids = np.concatenate([self._ids, new])
        self._kept = np.concatenate([self._kept, self._is_kept(new)])
        self._last = np.concatenate([self._last, np.zeros(new.size, np.int64)])

    def _ids_of(self, terms: list[str]) -> NDArray[np.uint64]:
        if self._rule.needs_lexicon:
            return term_ids(terms)
        return np.array([letter_number(term, letters=self._rule.letters) for term in terms], np.uint64)

    def _is_kept(self, ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
        if not self._rule.needs_lexicon:
            return np.ones(ids.size, np.bool_)
        if not self._lexicon.size:
            return np.zeros(ids.size, np.bool_)
        at = np.minimum(np.searchsorted(self._lexicon, ids), self._lexicon.size - 1)
        is_listed: NDArray[np.bool_] = self._lexicon[at] == ids
        return is_listed


@lru_cache(maxsize=1)
def sketcher_of(rule: WordRule, lexicon: bytes) -> WordSketcher:
    """Return this process's sketcher for a rule and the ids of a lexicon; its words stay from task to task."""
    return WordSketcher(rule, np.frombuffer(lexicon, np.uint64))


@compiled
def select_terms(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int64],
    term_of: NDArray[np.int32],
    ids: NDArray[np.uint64],
    kept: NDArray[np.bool_],
    last: Written[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Select the distinct terms of each text that are in the lexicon.

    Args:
        tokens: numbers of words, text after text.
        offsets: (d + 1,), of the texts in `tokens`.
        term_of: the number of each word's term, -1 for a stop word.
        ids: of each term.
        kept: whether each term is in the lexicon.
        last: scratch: the text, from 1, in which each term was last seen; 0 at the start.

    Returns:
        The kept ids, ascending in each text; the number of distinct terms of each text; the offsets of the ids.
    """
    n_texts = offsets.size - 1
    values = np.empty(tokens.size, np.uint64)
    features = np.zeros(n_texts, np.int64)
    ends = np.zeros(n_texts + 1, np.int64)
    written = 0
    for d in range(n_texts):
        for t in range(offsets[d], offsets[d + 1]):
            term = term_of[tokens[t]]
            if term < 0 or last[term] == d + 1:
                continue
            last[term] = d + 1
            features[d] += 1
            if kept[term]:
                values[written] = ids[term]
                written += 1

        values[ends[d] : written] = np.sort(values[ends[d] : written])
        ends[d + 1] = written
    return values[:written].copy(), features, ends


@compiled
def sign_sets(
    ids: NDArray[np.uint64], ends: NDArray[np.int64], keys: NDArray[np.uint64], least: np.uint64
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the signatures of each set, ascending, and their offsets: one of all ids, one per randomised lexicon.

    Copy c >= 1 of the lexicon contains an id iff the id, permuted with the keys of the copy, is at least `least`.
    Signatures of different copies differ. A set that has no id in a copy has no signature for it.
    """
    n_texts = ends.size - 1
    copies = keys.shape[0]
    values = np.empty(n_texts * copies, np.uint64)
    starts = np.zeros(n_texts + 1, np.int64)
    written = 0
    for d in range(n_texts):
        for c in range(copies):
            state = mix_id(SIGNATURE_SEED + np.uint64(c), keys[c, 0], keys[c, 1])
            is_empty = True
            for i in range(ends[d], ends[d + 1]):
                if c == 0 or mix_id(ids[i], keys[c, 0], keys[c, 1]) >= least:
                    state = mix_id(state ^ ids[i], keys[c, 0], keys[c, 1])
                    is_empty = False
            if not is_empty:
                values[written] = state
                written += 1

        values[starts[d] : written] = np.sort(values[starts[d] : written])
        starts[d + 1] = written
    return values[:written].copy(), starts
