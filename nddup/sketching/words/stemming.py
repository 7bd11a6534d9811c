"""Terms: the stem of each word, and nothing for a stop word.

    documents, document's -> document;   the -> nothing;   документами -> документ

Stems are Snowball's (PyStemmer), stop words those of the package stop-words; both name the languages alike. A
word is stemmed by the first of the chosen languages that is written in its script. The stop words of all chosen
languages are left out. A stop word such as `don't` is several tokens here, and each of them counts as a stop word.

Sources:
    Porter 2001, Snowball: a language for stemming algorithms.
    Pamulaparty, Rao, Rao 2014, A near-duplicate detection algorithm to facilitate document clustering (keywords).
"""

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import Stemmer
import stop_words
from numpy.typing import NDArray

from nddup.sketching.tokens import OF_MARK, character_class, decompose, tokenise

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


class Terms:
    """The mapping from words to terms for the chosen languages.

    Args:
        languages: from `LANGUAGES`, in order; with none, every word is its own term.
        stems: whether words are stemmed.
        stops: whether stop words are left out.

    Raises:
        ValueError: for an unknown language.

    Example:
        >>> Terms(("english", "russian"))(["the", "documents", "документами", "и", "1999"])
        ['', 'document', 'документ', '', '1999']
    """

    def __init__(self, languages: Iterable[str], *, stems: bool = True, stops: bool = True) -> None:
        chosen = tuple(languages)
        for language in chosen:
            if language not in LANGUAGES:
                raise ValueError(f"unknown language {language!r}; there are {', '.join(LANGUAGES)}")
        self.stop_words = frozenset().union(*(_stop_words(language) for language in chosen)) if stops else frozenset()
        first = {LANGUAGES[language]: language for language in reversed(chosen)} if stems else {}
        self._stemmers: list[tuple[str, str, Any]] = [
            (*SCRIPTS[script], Stemmer.Stemmer(language, 0)) for script, language in first.items()
        ]

    def __call__(self, words: list[str]) -> list[str]:
        """Return the term of each word, `NO_TERM` for a stop word. Cost: about a microsecond per word."""
        found = [NO_TERM if word in self.stop_words else word for word in words]
        for low, high, stemmer in self._stemmers:
            own = [i for i, word in enumerate(found) if low <= word[:1] <= high]
            for i, stem in zip(own, stemmer.stemWords([found[i] for i in own]), strict=True):
                found[i] = stem
        return found


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
def _stop_words(language: str) -> frozenset[str]:
    return frozenset(token for entry in stop_words.get_stop_words(language) for token in tokenise(entry))
