"""Tokens of real texts in some 90 languages: copies that look alike are equal, and words are those of UAX #29."""

import re
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nddup.against.spans import locate_tokens
from nddup.sketching.tokens import OF_ALONE, OF_MARK, WORD_TABLE, character_class
from tests.sketching.defined_min_s import sketch, split

ALL = 10**6
SPLIT_BY_APOSTROPHES = 1.1  # tokens per word above which one changed word changes more than one token

BOUNDARIES = Path(__file__).with_name("word_boundaries.txt")


def read_declarations(shared: Path) -> Iterator[tuple[str, str]]:
    """Yield the languages and texts that are in UTF-8; the last character of some is cut."""
    with zipfile.ZipFile(shared / "encodings" / "udhr.zip") as archive:
        for name in sorted(archive.namelist()):
            if "UTF8" in name:
                yield name, archive.read(name).decode("utf-8", "ignore")


def test_copies_that_look_alike_have_resemblance_one(shared: Path) -> None:
    """Decomposed, composed, in capitals, with soft hyphens, with zero-width characters, with joiners everywhere."""
    for name, text in read_declarations(shared):
        forms = [unicodedata.normalize(form, text) for form in ("NFD", "NFC")]
        copies = [
            text,
            *forms,
            text.upper(),
            text.lower(),
            *(between.join(text) for between in "\u00ad\u200b\u200d\u034f"),
        ]

        first, *others = split(sketch(copies, size=ALL))

        assert all(ids == first for ids in others), name


def test_one_word_in_ten_changed_means_the_same_in_each_language(shared: Path) -> None:
    """With five-word shingles the resemblance is 0.9^5 / (2 - 0.9^5) = 0.42 on average, however words are written."""
    drawn = np.random.default_rng(1)
    seen = {}
    for name, text in read_declarations(shared):
        words = text.split()
        n_tokens = int(sketch([text]).n_tokens[0])
        if any(character_class(c) == OF_ALONE for c in text) or n_tokens > SPLIT_BY_APOSTROPHES * len(words):
            continue
        found = []
        for _ in range(5):
            changed = set(drawn.choice(len(words), len(words) // 10, replace=False).tolist())
            copy = " ".join(f"zq{place}" if place in changed else word for place, word in enumerate(words))
            one, other = map(set, split(sketch([text, copy], size=ALL)))
            found.append(len(one & other) / len(one | other))
        seen[name] = float(np.mean(found))

    assert len(seen) > 70
    assert all(abs(value - 0.42) < 0.05 for value in seen.values()), seen


@pytest.mark.parametrize(
    "line", BOUNDARIES.read_text(encoding="utf-8").splitlines(), ids=lambda line: line.split("\t")[0]
)
def test_tokens_end_where_words_do(line: str) -> None:
    """Two differences: punctuation inside a word separates, and characters of spaceless scripts stand alone."""
    words = line.split("\t")[1].split("\u2016")
    text = "".join(words)
    pieces = [part for word in words for part in divide(word)]
    data = np.frombuffer(text.encode(), np.uint8)
    starts, ends = np.zeros(data.size, np.int32), np.zeros(data.size, np.int32)

    count = locate_tokens(data, 0, data.size, WORD_TABLE, starts, ends)

    assert [bytes(data[i:j]).decode() for i, j in zip(starts[:count], ends[:count], strict=True)] == pieces


def divide(word: str) -> list[str]:
    """Return the tokens of a word of UAX #29.

    It ends at a character that is no letter, and around one that stands alone. Marks, and what nobody sees, belong to
    what is before them.
    """
    pieces: list[str] = []
    is_open = stands = False
    for character in word:
        kind = character_class(character)
        if kind == OF_MARK or unicodedata.category(character) == "Cf":
            if is_open:
                pieces[-1] += character
            continue
        if not is_open or not kind or stands or kind == OF_ALONE:
            pieces += [character] if kind else []
        else:
            pieces[-1] += character
        is_open, stands = kind > 0, kind == OF_ALONE
    return [re.sub("[\u00ad\u200b-\u200f\u2060\ufeff]+$", "", piece) for piece in pieces]
