"""The words of a collection: their numbers in a task, the terms they stand for, and how often each term occurs.

    Vocabulary      UTF-8 text        -> a number per token; each new word once (`number_words`)
    Terms           words             -> terms: the stem of a word, nothing for a stop word
    letter_number   keyword, letters  -> the number that a keyword stands for; `term_ids` hashes terms
    TermCounts      texts             -> partial counts of a task, summed for the collection
    LexiconRule     counts            -> the interval of frequencies whose terms are the lexicon

A token is a word as `tokens` defines it, identified by its 64-bit hash (`rolling_hash.read_token`). What a word stands
for is looked up once per distinct word of a task; each token then costs one table look-up.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Final, NamedTuple

import numpy as np
import Stemmer
import stop_words
from numpy.typing import NDArray

from nddup.errors import CapacityError
from nddup.ground.arrays import HASH_MULTIPLIER
from nddup.ground.kernels import Written, compiled
from nddup.sketching.folding import fold_text, folded_words, signed
from nddup.sketching.rolling_hash import ONE, most_tokens, read_token
from nddup.sketching.tokens import OF_MARK, TOKEN_TABLE_VERSION, character_class, decompose, tokenise, word_table

WORD_BITS: Final = np.uint64(64)
FREE: Final = np.int32(-1)
FIRST_BITS: Final = 12

MOST_WORDS: Final = 1 << 20
"""Distinct words that a vocabulary holds before it starts again: some 150 MB, with what they stand for."""

PIECE: Final = 1 << 20
"""Bytes of text numbered in one call; a longer text is numbered as a whole."""

Numbered = tuple[NDArray[np.int32], NDArray[np.int64]]
"""A number per token, (t,), and the offsets of the texts in that array, (d + 1,)."""


class Numbering(NamedTuple):
    """The arrays that `number_words` writes.

    Attributes:
        tokens: the number of each token; room for `most_tokens` of the bytes.
        offsets: (d + 1,), where the tokens of each text begin.
        places: (slots / 2, 2), first byte and end of each new word in `letters`, by its number.
        letters: the new words, normalised, as UTF-8; room for the folded texts.
    """

    tokens: Written[np.int32]
    offsets: Written[np.int64]
    places: Written[np.int64]
    letters: Written[np.uint8]


class Position(NamedTuple):
    """The progress of `number_words`: the next text and its next folded byte, the tokens, words and letters so far."""

    text: int
    at: int
    tokens: int
    words: int
    letters: int


SCRIPTS: Final[dict[str, tuple[str, str]]] = {
    "latin": ("a", "\u024f"),
    "greek": ("\u0370", "\u03ff"),
    "cyrillic": ("\u0400", "\u052f"),
    "arabic": ("\u0600", "\u06ff"),
    "devanagari": ("\u0900", "\u097f"),
}
"""First and last lower-case letter of each script that a language below uses."""

LANGUAGES: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "catalan", "czech", "danish", "dutch", "english", "finnish", "french", "german", "hungarian",
            "indonesian", "italian", "norwegian", "polish", "portuguese", "romanian", "spanish", "swedish", "turkish",
        ),
        "latin",
    ),
    "greek": "greek",
    "russian": "cyrillic",
    "arabic": "arabic",
    "persian": "arabic",
    "hindi": "devanagari",
}  # fmt: skip
"""The languages that have both a stemmer and stop words, each with its script."""

ALPHABETS: Final = ("abcdefghijklmnopqrstuvwxyz", "абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "0123456789")
"""The alphabets of `letter_number`: letters count from 1; a digit is its own number."""

MOST_DIGITS: Final = 18

NO_TERM: Final = ""

TERM_FORMAT: Final = 2
"""Raise it whenever the id of a term changes: saved lexicons would then stand for other words."""

COUNTED: Final = ("counted", "occurrences", "commonest")
"""Counts of the collection: distinct terms, all their occurrences, those of the commonest term."""

MOST_TERMS: Final = 10_000_000
"""Maximum number of terms of a lexicon: it is sent to every worker, 8 bytes per term."""


@compiled
def grow_table(keys: NDArray[np.uint64], numbers: NDArray[np.int32]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Copy the words into a table with twice as many slots."""
    wider = np.zeros(2 * keys.size, np.uint64)
    renumbered = np.full(2 * keys.size, FREE, np.int32)
    shift = _home_shift(wider.size)
    for i in range(keys.size):
        if numbers[i] != FREE:
            slot = _find_slot(wider, renumbered, keys[i], shift)
            wider[slot] = keys[i]
            renumbered[slot] = numbers[i]
    return wider, renumbered


@compiled
def _home_shift(slots: int) -> np.uint64:
    """Return by how many bits to shift a multiplied hash to get its first slot; `slots` is a power of two."""
    return WORD_BITS - np.uint64(np.log2(slots))


@compiled
def _find_slot(keys: NDArray[np.uint64], numbers: NDArray[np.int32], key: np.uint64, shift: np.uint64) -> int:
    """Return the slot of a word in an open-addressing table, or the free slot where it belongs."""
    mask = np.int64(keys.size - 1)
    slot = np.int64((key * HASH_MULTIPLIER) >> shift)
    while numbers[slot] != FREE and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot  # type: ignore[return-value]


@compiled
def number_words(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    words: tuple[NDArray[np.uint64], NDArray[np.int32]],
    numbering: Numbering,
    progress: Position,
) -> Position:
    """Number the tokens of texts; a word that is not in the table is added with the next number.

    Args:
        data: UTF-8, (b,); text i is `data[bounds[i]:bounds[i + 1]]`.
        bounds: (d + 1,).
        table: of `tokens.word_table`.
        words: a hash table: hashes of words, with a power of two slots; and their numbers, `FREE` in a free slot.
        numbering: written.
        progress: where to continue.

    Returns:
        The progress. Its `text` is d when all texts are done. If it is less, the table is half full: grow it and
        call again.
    """
    keys, numbers = words
    tokens, offsets, places, letters = numbering
    shift = _home_shift(keys.size)
    written, count, spelt = progress.tokens, progress.words, progress.letters
    for d in range(progress.text, bounds.size - 1):
        lines = np.empty(folded_words(bounds[d + 1] - bounds[d]), np.uint64)
        folded = lines.view(np.uint8)
        size = np.uint64(fold_text(data, bounds[d], bounds[d + 1], table, True, folded))  # noqa: FBT003
        at = np.uint64(progress.at if d == progress.text else 0)
        if at == 0:
            offsets[d] = written

        while at < size:
            if folded[at] == 0:
                at += ONE
                continue

            # A new word takes the free slot at which the search ended.
            begin = at
            key, at = read_token(lines, at)
            slot = _find_slot(keys, numbers, key, shift)
            number = numbers[slot]
            if number == FREE:
                if count == places.shape[0]:
                    return Position(d, signed(begin), written, count, spelt)
                places[count, 0] = spelt
                for place in range(signed(begin), signed(at) - 1):
                    letters[spelt] = folded[place]
                    spelt += 1
                places[count, 1] = spelt
                keys[slot] = key
                numbers[slot] = count
                number = np.int32(count)
                count += 1
            tokens[written] = number
            written += 1

    offsets[bounds.size - 1] = written
    return Position(bounds.size - 1, 0, written, count, spelt)


class Vocabulary:
    """The distinct words met so far, each with a number.

    Args:
        introduce: called with new words, normalised, in the order of their numbers; each word comes once.
        forget: called when numbering starts again at 0, because there were more than `most` words.
        most: number of distinct words above which the vocabulary starts again at the next piece of text.
        ignore: names of `respelling.IGNORED`, what tokens leave out.
    """

    def __init__(
        self,
        introduce: Callable[[list[str]], None],
        forget: Callable[[], None],
        most: int = MOST_WORDS,
        ignore: tuple[str, ...] = (),
    ) -> None:
        self._introduce = introduce
        self._table = word_table(ignore)
        self._forget = forget
        self._most = most
        self.clear()

    def clear(self) -> None:
        """Forget all words."""
        self._keys = np.zeros(1 << FIRST_BITS, np.uint64)
        self._numbers = np.full(1 << FIRST_BITS, FREE, np.int32)
        self._count = 0

    def number(self, data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> Numbered:
        """Number the tokens of the texts in `data` at `bounds`, (d + 1,); new words are introduced before it ends."""
        if self._count > self._most:
            self.clear()
            self._forget()

        room = most_tokens(int(bounds[-1] - bounds[0])) + bounds.size  # the last token of a text needs no separator
        places = np.empty((self._keys.size // 2, 2), np.int64)
        letters = np.empty(8 * folded_words(int(bounds[-1] - bounds[0])), np.uint8)
        numbering = Numbering(np.empty(room, np.int32), np.zeros(bounds.size, np.int64), places, letters)
        known = self._count
        progress = Position(0, 0, 0, known, 0)
        while True:
            words = self._keys, self._numbers
            progress = Position(*number_words(data, bounds, self._table, words, numbering, progress))
            if progress.text == bounds.size - 1:
                break
            self._keys, self._numbers = grow_table(*words)
            numbering = numbering._replace(places=np.concatenate([numbering.places, np.empty_like(numbering.places)]))

        self._count = progress.words
        if self._count > known:
            raw = numbering.letters[: progress.letters].tobytes()
            self._introduce([raw[low:high].decode() for low, high in numbering.places[known : self._count].tolist()])
        return numbering.tokens[: numbering.offsets[-1]], numbering.offsets


def pieces(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> list[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Split texts into runs of at most `PIECE` bytes, or of one longer text; each is numbered in one call.

    Example:
        >>> [b.tolist() for _, b in pieces(np.zeros(3 << 20, np.uint8), np.array([0, 9, 2 << 20, 3 << 20]))]
        [[0, 9], [9, 2097152], [2097152, 3145728]]
    """
    runs, first = [], 0
    while first < bounds.size - 1:
        last = int(np.searchsorted(bounds, bounds[first] + PIECE, side="right")) - 1
        last = max(last, first + 1)
        runs.append((data, bounds[first : last + 1]))
        first = last
    return runs


class Terms:
    """The mapping from words to terms for the chosen languages.

        documents, document's -> document;   the -> nothing;   документами -> документ

    Stems are Snowball's (PyStemmer), stop words those of the package stop-words; both name the languages alike. A word
    is stemmed by the first of the chosen languages that is written in its script. The stop words of all chosen
    languages are left out. A stop word such as `don't` is several tokens here, and each of them counts as a stop word.

    Args:
        languages: from `LANGUAGES`, in order; with none, every word is its own term.
        stems: whether words are stemmed.
        stops: whether stop words are left out.
        ignore: what their tokens leave out.

    Raises:
        ValueError: for an unknown language.

    Example:
        >>> Terms(("english", "russian"))(["the", "documents", "документами", "и", "1999"])
        ['', 'document', 'документ', '', '1999']

    Sources:
        Porter 2001, Snowball: a language for stemming algorithms.
        Pamulaparty, Rao, Rao 2014, A near-duplicate detection algorithm to facilitate document clustering (keywords).
    """

    def __init__(
        self, languages: Iterable[str], *, stems: bool = True, stops: bool = True, ignore: tuple[str, ...] = ()
    ) -> None:
        chosen = tuple(languages)
        for language in chosen:
            if language not in LANGUAGES:
                raise ValueError(f"unknown language {language!r}; there are {', '.join(LANGUAGES)}")
        self.stop_words = (
            frozenset().union(*(_stop_words(language, ignore) for language in chosen)) if stops else frozenset()
        )
        first = {LANGUAGES[language]: language for language in reversed(chosen)} if stems else {}
        self._stemmers: list[tuple[str, str, Any]] = [
            (*SCRIPTS[script], Stemmer.Stemmer(language, 0)) for script, language in first.items()
        ]

    def __call__(self, words: list[str]) -> list[str]:
        """Return the term of each word, `NO_TERM` for a stop word. Cost: about a microsecond per word."""
        terms = [NO_TERM if word in self.stop_words else word for word in words]
        for low, high, stemmer in self._stemmers:
            places = [i for i, word in enumerate(terms) if low <= word[:1] <= high]
            for i, stem in zip(places, stemmer.stemWords([terms[i] for i in places]), strict=True):
                terms[i] = stem
        return terms


def versions_of_terms() -> str:
    """Return the versions of the stemmer and of the stop words: other versions may give other terms."""
    return f"snowball-{Stemmer.version()}/stop-words-{version('stop-words')}"


def term_ids(terms: Iterable[str]) -> NDArray[np.uint64]:
    """Return the 64-bit ids of terms, (n,): BLAKE2b of their UTF-8.

    Example:
        >>> term_ids(["document"]).tolist() == term_ids(["x", "document"]).tolist()[1:]
        True
    """
    digests = b"".join(blake2b(term.encode(), digest_size=8).digest() for term in terms)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def letter_number(keyword: str, *, letters: int) -> int:
    """Return the positions of a keyword's first letters in their alphabet, written one after another as one number.

    A letter is a character with its marks. Latin letters count from 1 to 26, without their accents, Russian letters
    from 1 to 33; a digit is its own number. If one of the first characters is any other, or the result has more than 18
    digits, the letters are hashed instead. Different keywords often get the same number: that is part of the method.

    Args:
        keyword: normalised, not empty.
        letters: how many letters are used, at least 1.

    Example:
        >>> [letter_number(word, letters=3) for word in ("computer", "elements", "government", "at", "ёлка")]
        [31513, 5125, 71522, 120, 71312]
    """
    places = [place for place, letter in enumerate(keyword) if character_class(letter) != OF_MARK]
    digits = "".join(_position(keyword[place]) for place in places[:letters])
    if "?" not in digits and len(digits) <= MOST_DIGITS:
        return int(digits)
    return int(term_ids([keyword[: places[letters]] if letters < len(places) else keyword])[0])


@cache
def _position(letter: str) -> str:
    """Return the digits of a letter's position; `?` for a character of no known alphabet."""
    for alphabet in ALPHABETS[:2]:
        if letter in alphabet:
            return str(alphabet.index(letter) + 1)
    if letter in ALPHABETS[2]:
        return letter
    base = chr(decompose(ord(letter))[0])
    return str(ALPHABETS[0].index(base) + 1) if base in ALPHABETS[0] else "?"


@cache
def _stop_words(language: str, ignore: tuple[str, ...]) -> frozenset[str]:
    return frozenset(token for entry in stop_words.get_stop_words(language) for token in tokenise(entry, ignore))


@dataclass(frozen=True)
class LexiconRule:
    """Everything that decides a lexicon except the collection; `low` and `high` are exact decimals, as written.

    A lexicon holds the terms that describe the documents of a collection: those whose frequency in the collection,
    relative to that of the most frequent term, lies in a closed interval. More frequent terms tell nothing about a
    document; rarer ones are misprints and names.

    Sources:
        Kuznetsov, Ignatov et al. 2005; Ignatov, Kuznetsov 2009 (the interval [0.00001, 0.5] of the commonest word's).
        Chowdhury, Frieder, Grossman, McCabe 2002, Collection statistics for fast duplicate document detection.
    """

    languages: tuple[str, ...]
    stems: bool
    stops: bool
    low: str
    high: str
    ignore: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The rule and the versions of its data as a line. If equal, the same texts give the same lexicon."""
        ignored = f" ignore={'+'.join(self.ignore)}" if self.ignore else ""
        return (
            f"languages={'+'.join(self.languages) or 'none'} stems={self.stems} stops={self.stops} low={self.low}"
            f" high={self.high} terms={TERM_FORMAT}/unicode-{TOKEN_TABLE_VERSION}/{versions_of_terms()}{ignored}"
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
        return Terms(self.languages, stems=self.stems, stops=self.stops, ignore=self.ignore)


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
        self._vocabulary = Vocabulary(self._introduce, self._put_aside, most, rule.ignore)
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
        parts, self._aside = self._aside, []
        return parts

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
    counts: Written[np.int64],
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
