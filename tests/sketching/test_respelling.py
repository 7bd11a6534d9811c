"""What `tokens.ignore` leaves out: the map against the Unicode of the table, the kernels against the map."""

from collections.abc import Callable

import numpy as np
import pytest
import unicodedata2 as unicodedata
from hypothesis import given
from hypothesis import strategies as st

from nddup.against.spans import locate_tokens
from nddup.scanning.found import text_buffers
from nddup.sketching.recipe import Recipe, digest_texts, make_sketches
from nddup.sketching.respelling import IGNORED, respelt
from nddup.sketching.rolling_hash import fingerprint_rows, hash_rows
from nddup.sketching.tokens import OF_MARK, WORD_TABLE, character_class, list_tokens, tokenise, word_table
from nddup.sketching.vocabulary import LexiconRule
from nddup.sketching.word_sketches import WordRule, WordSketcher
from tests.sketching.defined_tokens import defined_hash

choices = st.sets(st.sampled_from(list(IGNORED))).map(lambda some: tuple(name for name in IGNORED if name in some))
spelt = st.text(
    st.one_of(
        st.sampled_from("4711, a-٤٧١١۴۷१๑๒ＡＢａ１ｶﾞｶﾟｱﾡￂ￥ـــכָּתַבשׁשּׂבּﬠסאُّكِتَابآأإئ薔ば\u0301\u200d\u0653\u0655\uff9e\ufb2c"),
        st.sampled_from([chr(code) for name in IGNORED for code in respelt((name,))]),
        st.characters(codec="utf-8"),
    ),
    max_size=40,
)


def every(holds: Callable[[str], object]) -> list[int]:
    return [code for code in range(0x110000) if holds(chr(code))]


def is_of_a_letter(mark: str) -> bool:
    """Return whether a mark composes with Arabic letters, as hamza and madda do; U+065F is the hamza of Kashmiri."""
    return (
        any(unicodedata.normalize("NFC", letter + mark) != letter + mark for letter in "اويهۀهےە") or mark == "\u065f"
    )


def test_digits_are_those_of_unicode() -> None:
    """Every decimal digit of the Unicode of the word table becomes its value, and nothing else does."""
    digits = every(lambda c: unicodedata.decimal(c, None) is not None and not c.isascii())

    assert respelt(("digits",)) == {code: ord(str(unicodedata.digit(chr(code)))) for code in digits}
    assert respelt(("numbers",)) == respelt(("digits",))


def test_widths_are_those_of_unicode() -> None:
    """Exactly the full and half width forms become others, which have the compatibility form they had."""
    forms = every(lambda c: unicodedata.decomposition(c).startswith(("<wide>", "<narrow>")) and not c.isspace())
    found = respelt(("width",))

    assert sorted(found) == forms
    for code, other in found.items():
        assert other is not None
        assert unicodedata.normalize("NFKC", chr(other)) == unicodedata.normalize("NFKC", chr(code))
        assert chr(other) not in map(chr, forms)


def test_points_are_the_marks_of_two_scripts() -> None:
    """All marks of the blocks of Hebrew and Arabic are dropped but those that make letters; of pointed letters too."""
    blocks = [*range(0x590, 0x700), *range(0x870, 0x900), *range(0xFB1D, 0xFB50)]
    marks = {c for c in blocks if unicodedata.category(chr(c))[0] == "M" and not is_of_a_letter(chr(c))}
    pointed = {c for c in blocks if len(unicodedata.normalize("NFD", chr(c))) > 1 and c > 0x700}
    found = respelt(("points",))

    assert {code for code, other in found.items() if other is None} == marks
    assert {code for code, other in found.items() if other is not None} == pointed
    for code in pointed:
        letters = [c for c in unicodedata.normalize("NFD", chr(code)) if not unicodedata.combining(c)]
        assert [chr(found[code] or 0)] == letters


def test_no_character_becomes_one_that_becomes_another() -> None:
    found = respelt(tuple(IGNORED))

    assert not found.keys() & set(found.values())
    assert respelt(("tatweel",)) == {0x640: None}
    assert respelt(()) == {}


@given(text=spelt, ignore=choices, unit=st.sampled_from(["word", "char"]))
def test_kernels_hash_what_is_listed(text: str, ignore: tuple[str, ...], unit: str) -> None:
    """The kernels, by the table, hash the tokens that `list_tokens` makes, by the map."""
    hashes = hash_rows(*text_buffers([text]), unit, ignore).values.tolist()

    assert hashes == [defined_hash(token) for token in list_tokens(text, unit, ignore)]


@given(text=spelt, ignore=choices)
def test_tokens_lie_where_they_are_hashed(text: str, ignore: tuple[str, ...]) -> None:
    """Where a token lies in the text as it is, there is that token."""
    data, bounds = text_buffers([text])
    starts, ends = np.empty(len(data) + 1, np.int32), np.empty(len(data) + 1, np.int32)
    number = locate_tokens(data, 0, int(bounds[1]), word_table(ignore), starts, ends)
    pieces = [bytes(data[low:high]).decode() for low, high in zip(starts[:number], ends[:number], strict=True)]

    assert [tokenise(piece, ignore) for piece in pieces] == [[token] for token in tokenise(text, ignore)]


EQUAL = {
    "numbers": ("Invoice 4711 of 3 May", "Invoice 12 of ٤ May"),
    "digits": ("room ٤٧ ۴ १२ ๑๒", "room 47 4 12 12"),
    "width": ("Ｎｏ．１ ｶﾞ", "No.1 ガ"),
    "tatweel": ("كتـــاب ـ", "كتاب"),
    "points": ("שָׁלוֹם כִתَابٌ \ufb2a", "שלום כתاب ש"),
}
"""Two texts that differ only in what a name ignores."""

APART = {
    "numbers": ("Invoice 3 of May mp3 9th v2", "Invoice of May mp4 8th v3"),
    "digits": ("room ٤٧ ½", "room 48 2"),
    "width": ("ﬁｶﾞ", "fiカ"),
    "tatweel": ("كتـاب", "كتتاب"),
    "points": ("آن أن é", "ان ان e"),
}
"""Two that differ in more: names with digits, a number that is not there, other forms, accents and letters."""


def fingerprints(texts: tuple[str, str], ignore: tuple[str, ...], unit: str) -> set[bytes]:
    return set(fingerprint_rows(hash_rows(*text_buffers(texts), unit, ignore)))


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize("name", IGNORED)
def test_ignored_differences_alone_make_equal_texts(name: str, unit: str) -> None:
    others = tuple(other for other in IGNORED if other != name and (name, other) != ("digits", "numbers"))

    assert len(fingerprints(EQUAL[name], (name,), unit)) == 1
    assert len(fingerprints(EQUAL[name], tuple(IGNORED), unit)) == 1
    assert len(fingerprints(EQUAL[name], others, unit)) == 2
    assert len(fingerprints(EQUAL[name], (), unit)) == 2
    assert len(fingerprints(APART[name], tuple(IGNORED), unit)) == 2
    for text in (*EQUAL[name], *APART[name]):
        hashes = hash_rows(*text_buffers([text]), unit, (name,)).values.tolist()
        assert hashes == [defined_hash(token) for token in list_tokens(text, unit, (name,))]


@given(text=spelt, other=spelt)
def test_texts_of_other_letters_stay_apart(text: str, other: str) -> None:
    """Texts are equal iff they are after the ignored characters are written as one, the numbers as one token."""
    ignore = tuple(IGNORED)
    same = list_tokens(text, "word", ignore) == list_tokens(other, "word", ignore)

    assert (len(fingerprints((text, other), ignore, "word")) == 1) == same


@pytest.mark.parametrize("kind", ["min-s", "whole", "mod-m", "minhash"])
def test_every_kind_of_sketch_ignores(kind: str) -> None:
    texts = tuple(" ".join(pair[side] for pair in EQUAL.values()) for side in (0, 1))
    by = {
        ignore: make_sketches(*text_buffers(texts), Recipe(kind, modulus=1, ignore=ignore))
        for ignore in ((), tuple(IGNORED))
    }

    for ignore, made in by.items():
        rows = [made.ids[low:high].tolist() for low, high in zip(made.offsets, made.offsets[1:], strict=False)]
        assert (rows[0] == rows[1]) == bool(ignore)


def test_sketches_of_words_ignore() -> None:
    """Also their stop words: those of Arabic are written with points in texts with points."""
    texts = tuple(" ".join(pair[side] for pair in EQUAL.values()) for side in (0, 1))
    for ignore in ((), tuple(IGNORED)):
        rule = LexiconRule(("arabic",), stems=False, stops=True, low="0", high="1", ignore=ignore)
        made = WordSketcher(WordRule("keywords", rule), np.empty(0, np.uint64)).sketch(*text_buffers(texts))
        rows = [made.ids[low:high].tolist() for low, high in zip(made.offsets, made.offsets[1:], strict=False)]
        assert (rows[0] == rows[1]) == bool(ignore)


def test_by_default_nothing_is_ignored() -> None:
    """The table, and the key of a recipe, are those of earlier versions."""
    assert word_table(()) is WORD_TABLE
    assert "ignore" not in Recipe().key
    assert Recipe(ignore=("numbers", "width")).key.replace(" ignore=numbers+width", "") == Recipe().key
    assert (
        digest_texts(*text_buffers(["a"])).ids.tolist()
        == make_sketches(*text_buffers(["a"]), Recipe("whole")).ids.tolist()
    )
    assert character_class("\u05b0") == OF_MARK
