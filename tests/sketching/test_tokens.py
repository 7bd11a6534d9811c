"""Normalising: the committed word table against Python's words and lower case."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.sketching.tokens import ALONE, LOWER, TOKEN_TABLE_VERSION, WORD_TABLE, read_word_table, tokenise

same_unicode = pytest.mark.skipif(
    unicodedata.unidata_version != TOKEN_TABLE_VERSION, reason="another Unicode than the table's"
)


def lower(character: str) -> str:
    """Lower one character by the rule: it stays if its lower case has several characters; both small sigmas are one."""
    small = character.lower()
    return (small if len(small) == 1 else character).replace("ς", "σ")


@same_unicode
def test_words_are_those_of_re() -> None:
    r"""Every code point is in the table if and only if it is in `\w`."""
    words = {ord(c) for c in re.findall(r"\w", "".join(map(chr, range(0x110000))))}

    assert set(np.flatnonzero(WORD_TABLE).tolist()) == words


@same_unicode
def test_lower_case_is_that_of_str() -> None:
    entries = {code: int(WORD_TABLE[code]) & LOWER for code in np.flatnonzero(WORD_TABLE).tolist()}

    assert entries == {code: ord(lower(chr(code))) for code in entries}


def test_lower_case_is_stable() -> None:
    """A lower-case character is its own lower case, of the same class: tokens can be tokenised again."""
    entries = WORD_TABLE[WORD_TABLE > 0]

    assert np.array_equal(WORD_TABLE[entries & LOWER], entries)


@pytest.mark.parametrize("alone", "天〇々ひカーㄅกๆ๑ຂកမᥐᦀꪀ𗀀𠀀")
def test_characters_of_spaceless_scripts_stand_alone(alone: str) -> None:
    assert tokenise(f"a{alone}b{alone}{alone}") == ["a", alone, "b", alone, alone]


@pytest.mark.parametrize("word", ["한국어", "слово", "λόγοσ", "كتاب", "123", "snake_case", "ⅷ", "𐐨𐐨"])
def test_other_words_are_runs(word: str) -> None:
    assert tokenise(f"-{word}-{word}") == [word, word]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \n\t.,\u200b\ufffd", []),
        ("Don't", ["don", "t"]),
        ("ΟΔΟΣ οδος", ["οδοσ", "οδοσ"]),
        ("İstanbul IŞIK", ["İstanbul", "işik"]),
        ("Straße STRASSE", ["straße", "strasse"]),
        ("cafe\u0301s", ["cafe", "s"]),
        ("หมู่บ้าน", ["ห", "ม", "บ", "า", "น"]),
        ("東京タワー2024年", ["東", "京", "タ", "ワ", "ー", "2024", "年"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenise(text) == tokens


@same_unicode
@given(st.text())
def test_without_spaceless_scripts_tokens_are_those_of_re(text: str) -> None:
    text = "".join(" " if WORD_TABLE[ord(c)] & ALONE else c for c in text)

    assert tokenise(text) == ["".join(map(lower, word)) for word in re.findall(r"\w+", text)]


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        WORD_TABLE[0] = 1


def test_refuses_an_unknown_line() -> None:
    with pytest.raises(ValueError, match="'sometimes'"):
        read_word_table("sometimes 41 5A")
