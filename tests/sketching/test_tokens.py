"""Normalising and tokens: `tokenise` and the kernels against the definition, made from the Unicode of the table."""

from functools import cache

import numpy as np
import pytest
import unicodedata2 as unicodedata
from hypothesis import given
from hypothesis import strategies as st

from nddup.scanning.found import text_buffers
from nddup.sketching.folding import PADDING, fold_text, folded_words
from nddup.sketching.rolling_hash import (
    hash_characters,
    hash_rows,
    hash_tokens,
    most_characters,
    most_tokens,
    unknown_bytes,
)
from nddup.sketching.tokens import (
    CLASS,
    CLASS_SHIFT,
    FACTS,
    JOINS,
    OF_ALONE,
    OF_MARK,
    OF_WORD,
    ORDER,
    WORD_TABLE,
    character_class,
    list_tokens,
    normalise,
    read_word_table,
    tokenise,
)
from tests.sketching.defined_min_s import texts
from tests.sketching.defined_tokens import (
    defined_characters,
    defined_hash,
    defined_normal_form,
    defined_tokens,
    ignorable,
    is_letter,
)


@cache
def everything() -> str:
    """Return every character but the halves of surrogate pairs."""
    return "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)


@cache
def marks() -> list[str]:
    """Return every mark."""
    return [c for c in everything() if unicodedata.category(c)[0] == "M"]


def hard_characters() -> st.SearchStrategy[str]:
    """Draw marks, characters that compose, those that fold to several, and those that are dropped."""
    decomposed = [c for c in everything() if unicodedata.normalize("NFD", c) != c and not "가" <= c <= "힣"]
    return (
        st.sampled_from(marks())
        | st.sampled_from(decomposed)
        | st.sampled_from("aiIİı天가각각α\u0345\u0307 =ßŉﬁ\u200d")
    )


hard_texts = st.text(st.deferred(hard_characters), max_size=30)


def fold(text: str | bytes, *, apart: bool = True) -> list[str]:
    """Return what `fold_text` writes, split at its zero bytes."""
    data = np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)
    words = np.full(folded_words(data.size), 2**64 - 1, np.uint64)
    folded = words.view(np.uint8)

    size = fold_text(data, 0, data.size, WORD_TABLE, apart, folded)

    assert not folded[size : size + PADDING].any()
    return [token.decode() for token in folded[:size].tobytes().split(b"\0") if token]


def hashes_of(text: str | bytes) -> list[int]:
    """Return what `hash_tokens` writes."""
    data = np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)
    hashes = np.zeros(most_tokens(data.size) + 1, np.uint64)
    found: list[int] = hashes[: hash_tokens(data, 0, data.size, WORD_TABLE, hashes)].tolist()
    return found


def test_classes_are_those_of_unicode() -> None:
    r"""A code point is a letter if and only if it is in `\w`, and a mark if and only if its category is M."""
    classes = WORD_TABLE[FACTS : FACTS + 0x110000] >> CLASS_SHIFT & CLASS
    letters = {ord(c) for c in everything() if is_letter(c)}

    assert set(np.flatnonzero((classes == OF_WORD) | (classes == OF_ALONE)).tolist()) == letters
    assert {chr(c) for c in np.flatnonzero(classes == OF_MARK).tolist()} == set(marks())


def test_marks_are_ordered_as_unicode_says() -> None:
    orders = (WORD_TABLE[FACTS : FACTS + 0x110000] & ORDER).tolist()

    assert [orders[ord(c)] for c in marks()] == [unicodedata.combining(c) for c in marks()]


JOINING_LETTERS = range(0x16D63, 0x16D6B)
"""Vowels of Kirat Rai, the only letters besides Hangul's that canonical composition joins with a letter after them. The
kernel joins letters with marks: a text that spells one vowel as two letters differs from one that spells it as one."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("between", "step"), [("", 1), ("天\u0301", 9), pytest.param("天\u0301", 1, marks=pytest.mark.nightly)]
)
def test_every_character_is_read_as_the_definition_says(between: str, step: int) -> None:
    """All of Unicode in order, alone and between letters and marks, but for the vowels of `JOINING_LETTERS`.

    Between letters, one of `step` characters: a class of characters has many.
    """
    text = between.join([character for character in everything() if ord(character) not in JOINING_LETTERS][::step])
    expected = defined_tokens(text)

    assert fold(text) == expected
    assert hashes_of(text) == [defined_hash(token) for token in expected]


def test_every_character_normalised() -> None:
    """One by one, separators apart: no token shows whether they are composed."""
    characters = [c for c in everything() if character_class(c) and c not in ignorable()]

    assert [normalise(c) for c in characters] == [defined_normal_form(c) for c in characters]


@given(st.one_of(texts, hard_texts, st.text(max_size=40)))
def test_tokens_are_those_of_the_definition(text: str) -> None:
    expected = defined_tokens(text)

    assert tokenise(text) == expected
    assert fold(text) == expected
    assert hashes_of(text) == [defined_hash(token) for token in expected]


@given(st.one_of(texts, hard_texts))
def test_characters_are_those_of_the_definition(text: str) -> None:
    """Characters with their marks, one blank between words, none at the ends."""
    data = np.frombuffer(text.encode(), np.uint8)
    hashes = np.zeros(most_characters(data.size), np.uint64)

    count = hash_characters(data, 0, data.size, WORD_TABLE, hashes)

    assert hashes[:count].tolist() == [defined_hash(character) for character in defined_characters(text)]
    assert hash_rows(data, np.array([0, 0, data.size]), "char").values.tolist() == hashes[:count].tolist()
    assert list_tokens(text, "char") == defined_characters(text)


@given(st.lists(st.one_of(st.binary(max_size=8), hard_texts.map(str.encode)), max_size=6).map(b"".join))
def test_malformed_bytes_are_separators(data: bytes) -> None:
    assert fold(data) == tokenise(data.decode("utf-8", "replace"))


@pytest.mark.parametrize("around", ["é", "ж", "文", "plain "])
def test_every_character_of_two_bytes_in_a_long_text(around: str) -> None:
    """Blocks of ASCII, Russian and Latin letters are normalised at once; any other character ends them."""
    text = "".join(f"Ж{code:c} {around * (code % 37)}{code:c}Ёж-À " for code in range(0x21, 0x800))

    assert fold(text) == tokenise(text)


@given(
    st.lists(
        st.sampled_from([b"\xd0", b"\xd1", b"\xc3", b"\xc2", b"\x90", b"\xb0", b"\xe2\x80", "Ж".encode(), b"Ab cd "]),
        min_size=30,
        max_size=90,
    ).map(b"".join)
)
def test_malformed_bytes_within_blocks(data: bytes) -> None:
    """The first and second bytes of Russian and Latin letters in any order."""
    assert fold(data) == tokenise(data.decode("utf-8", "replace"))


@pytest.mark.parametrize("letter", ["a", "ж", "天"])
@pytest.mark.parametrize("gap", range(9))
def test_tokens_of_any_length_at_any_place(letter: str, gap: int) -> None:
    """Words of one to thirty letters, many or few of them in 64 bytes."""
    text = " ".join(" " * gap + letter * length + " a" * (20 * (length % 2)) for length in range(1, 31))

    assert hashes_of(text) == [defined_hash(token) for token in tokenise(text)]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@given(text=st.one_of(texts, hard_texts))
def test_equivalent_texts_have_the_same_tokens(form: str, text: str) -> None:
    """Tokens do not depend on how a text is composed, nor on which form its letters have."""
    assert tokenise(unicodedata.normalize(form, text)) == tokenise(text)


@given(st.one_of(texts, hard_texts))
def test_normalising_is_done_once(text: str) -> None:
    """Tokens joined by blanks can be tokenised again: nothing changes."""
    tokens = tokenise(text)

    assert tokenise(" ".join(tokens)) == tokens


@pytest.mark.parametrize("marks", ["\u0316\u0301", "\u0301\u0316"])
def test_many_marks_on_one_letter(marks: str) -> None:
    """They are ordered in linear time; a quadratic sort would take hours."""
    n = 300_000

    tokens = fold("e" + marks * n + " i" + "\u0307" * n)

    assert tokens == ["é" + "\u0316" * n + "\u0301" * (n - 1), "i"]


@pytest.mark.parametrize("alone", "天〇々ひカーㄅกๆ๑ຂកမᥐᦀꪀ𗀀𠀀")
def test_characters_of_spaceless_scripts_stand_alone(alone: str) -> None:
    assert tokenise(f"a{alone}b{alone}{alone}") == ["a", alone, "b", alone, alone]


@pytest.mark.parametrize(
    "word", ["한국어", "слово", "λόγοσ", "كتاب", "123", "snake_case", "ⅷ", "𐐨𐐨", "लड़का", "كَتَبَ", "שָׁלוֹם"]
)
def test_other_words_are_runs(word: str) -> None:
    assert tokenise(f"-{word}-{word}") == [unicodedata.normalize("NFC", word)] * 2


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \n\t.,\u200b\ufffd", []),
        ("Don't 3.5 a:b", ["don", "t", "3", "5", "a", "b"]),
        ("ΟΔΟΣ οδος", ["οδοσ", "οδοσ"]),
        ("İstanbul IŞIK ISPARTA ısparta i\u0323\u0307", ["istanbul", "işik", "isparta", "isparta", "ị"]),
        ("Straße STRASSE ẞ ﬁn ½ 2⁵", ["strasse", "strasse", "ss", "fin", "½", "2⁵"]),
        ("cafe\u0301s co\u00adope\u200bra\u2060te \ufeffe\u200d\u0301", ["cafés", "cooperate", "é"]),
        ("หมู่บ้าน", ["ห", "มู่", "บ้", "า", "น"]),
        ("東京タワー2024年 か\u3099", ["東", "京", "タ", "ワ", "ー", "2024", "年", "が"]),
        ("ൺ ണ്\u200d ᾼ\u0301 ά\u0345", ["ണ്", "ണ്", "άι", "άι"]),
        ("# \u0301a #\u20e3 1\ufe0f\u20e3 =\u0338", ["a", "1\u20e3"]),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8 한국", ["한국", "한국"]),
        ("天\u0345", ["天", "ι"]),
        ("\ua7cb \ua7da \ua7dc\ua7dd", ["\u0264", "\ua7db", "\u019b\u0277"]),  # Latin letters of Unicode 16 and later
        ("\U00010d50\U00010d4e\U00010d70 \U00010d41", ["\U00010d70\U00010d4e\U00010d70", "\U00010d41"]),  # Garay
        ("\U000105d2\u0307 \U000105da\u0307", ["\U000105c9", "\U000105e4"]),  # Todhri
        ("\U00011bc0\U00011bc1-\U00011bf0", ["\U00011bc0\U00011bc1", "\U00011bf0"]),  # Sunuwar
        ("\U00011f12\U00011f34\U00011f13", ["\U00011f12\U00011f34\U00011f13"]),  # Kawi
        ("a\U00031350\U0002fffdb", ["a", "\U00031350", "\U0002fffd", "b"]),  # Extension H, and not assigned yet
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenise(text) == fold(text) == tokens


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("a", 0xBF6C734DA51D6513),
        ("rose", 0x21627ED97DE8D62E),
        ("eightlet", 0x50DB0290475EBBD7),
        ("ninelette", 0x911A794FEDA4A767),
        ("a_token_of_more_than_16", 0x55CC14CDF17EC067),
        ("слово", 0x6199B76FD4D8F7D6),
        ("लड़का", 0x5ACF72C01C2D172A),
        ("天", 0xB300DA420DB78DD5),
    ],
)
def test_hashes_never_change_unnoticed(token: str, expected: int) -> None:
    """Stored sketches depend on these. If this fails, raise `SKETCH_FORMAT`, then change the numbers."""
    assert hashes_of(token.upper()) == [expected]


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        WORD_TABLE[0] = 1


def test_joins_ascend() -> None:
    """The kernels find them by halving."""
    firsts, seconds = WORD_TABLE[JOINS : JOINS + 1024].reshape(2, -1).tolist()
    pairs = list(zip(firsts, seconds, strict=True))

    assert pairs == sorted(pairs)


def test_characters_of_a_later_unicode_are_counted() -> None:
    """By their bytes, in each text; not those that mean nothing in every version, nor reserved ideographs."""
    letters = "a\u0378", "b\U0001fffd\U000effff c \u038b", "\ue000\ufdd0\uffff\U0002fffd\u00ad\u05d0"
    data, bounds = text_buffers(["", *letters, "plain"])

    assert unknown_bytes(data, bounds).tolist() == [0, 2, 6, 0, 0]
    free = {
        c for c in everything()
        if unicodedata.category(c) == "Cn" and ord(c) & 0xFFFE != 0xFFFE and ord(c) >> 16 not in (2, 3)
    } - ignorable() - {chr(code) for code in range(0xFDD0, 0xFDF0)}  # fmt: skip
    known = "".join(c for c in everything() if c not in free)
    assert unknown_bytes(*text_buffers([known, *free])).tolist() == [0, *(len(c.encode()) for c in free)]


def test_refuses_an_unknown_line() -> None:
    with pytest.raises(ValueError, match="'sometimes'"):
        read_word_table("sometimes 41 5A")
