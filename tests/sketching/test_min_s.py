"""Sketching: the compiled pass against the definition in plain Python, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.sketching.min_s import sketch_texts
from nddup.sketching.tokens import SKETCH_FORMAT, TOKEN_TABLE_VERSION, tokenise
from tests.sketching.defined_min_s import defined_id, defined_sketch, sketch, sketch_one, split, texts

ALL = 2**40
lengths = st.integers(1, 7)
offsets_between = st.integers(1, 4)
sizes = st.one_of(st.integers(1, 8), st.just(200))
seeds = st.integers(0, 2**64 - 1)


@given(documents=st.lists(texts, max_size=4), length=lengths, offset=offsets_between, size=sizes, seed=seeds)
def test_is_what_the_definition_says(documents: list[str], length: int, offset: int, size: int, seed: int) -> None:
    expected = [defined_sketch(document, length, offset, size, seed) for document in documents]

    actual = sketch(documents, length=length, offset=offset, size=size, seed=seed)

    assert actual.n_tokens.tolist() == [n_tokens for n_tokens, _, _ in expected]
    assert actual.n_features.tolist() == [n_features for _, n_features, _ in expected]
    assert (split(actual) if documents else []) == [ids for _, _, ids in expected]


@pytest.mark.thorough
def test_every_character_is_read_as_the_definition_says() -> None:
    """Unicode in order without its last planes, and some of its characters between letters, are read as defined.

    `test_tokens` has all of them.
    """
    everything = "".join(chr(c) for c in [*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200)])

    for text in (everything, "x".join(everything[::5])):
        n_tokens, n_features, ids = defined_sketch(text, 2, 1, 500, 3)
        actual = sketch([text], length=2, size=500, seed=3)
        assert (actual.n_tokens[0], actual.n_features[0], actual.ids.tolist()) == (n_tokens, n_features, ids)


@given(texts)
def test_reads_the_tokens_that_tokenise_shows(text: str) -> None:
    expected = sorted({defined_id((token,), 1) for token in tokenise(text)})

    assert sketch_one(text, length=1, size=ALL) == expected


@given(st.lists(st.one_of(st.binary(max_size=12), texts.map(str.encode)), max_size=5).map(b"".join))
def test_a_malformed_byte_parts_words(document: bytes) -> None:
    """A malformed byte separates words, as does the U+FFFD that Python puts in its place."""
    _, _, expected = defined_sketch(document.decode("utf-8", "replace"), 2, 1, 200, 1)

    assert sketch_one(document, length=2) == expected


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_does_not_read_beyond_a_cut_character(cut: int) -> None:
    """The last character of a document, if cut, is not completed with the bytes of the next document."""
    whole = "a \U00020000".encode()
    ends = np.array([0, 2 + cut, len(whole)])

    sketches = sketch_texts(np.frombuffer(whole, dtype=np.uint8), ends, length=1)

    assert sketches.n_tokens.tolist() == [1, 0]


@pytest.mark.parametrize(("length", "shared", "union"), [(1, 3, 5), (2, 3, 6), (3, 3, 7)])
def test_roses(length: int, shared: int, union: int) -> None:
    """Broder's example: r1 = 3/5, r2 = 3/6, r3 = 3/7."""
    a, b = split(sketch(["a rose is a rose is a rose", "a rose is a flower which is a rose"], length=length, size=ALL))

    assert (len(set(a) & set(b)), len(set(a) | set(b))) == (shared, union)


@given(a=texts, b=texts, size=st.integers(1, 6), seed=seeds)
def test_the_sketch_of_a_union_needs_only_the_sketches(a: str, b: str, size: int, seed: int) -> None:
    """MIN_s(A u B) = MIN_s(MIN_s(A) u MIN_s(B)); shingles are single words, so that A u B is the text of both."""
    of_both = sketch_one(f"{a}\n{b}", length=1, size=size, seed=seed)

    parts = {*sketch_one(a, length=1, size=size, seed=seed), *sketch_one(b, length=1, size=size, seed=seed)}

    assert of_both == sorted(parts)[:size]


def test_the_seed_chooses_the_sample() -> None:
    text = " ".join(map(str, range(1000)))

    assert not set(sketch_one(text, seed=1)) & set(sketch_one(text, seed=2))
    assert sketch_one(text, seed=-1) == sketch_one(text, seed=2**64 - 1)


@pytest.mark.parametrize(
    ("text", "n_features", "ids"),
    [
        ("", 0, []),
        (
            "Rose",
            1,
            [0x4A172604AE1A2CD7],
        ),
        (
            "A rose is a rose is a rose.",
            3,
            [0x145EECB541191E6C, 0x2AAA65F4C9D7B059, 0xC1C789E9B85BFBE0],
        ),
        (
            "The quick brown fox jumps over the lazy dog, the 2nd time.",
            8,
            [0x09894398C8ACE914, 0x0A697AD330C75683, 0x1DD76DDBA633B546],
        ),
        (
            "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.",
            9,
            [0x18E863229545E478, 0x3F3DF869A01307E1, 0x43FB3C99633CDF5D],
        ),
        (
            "天地玄黃，宇宙洪荒。",
            4,
            [0x1F2282ABAA282EC9, 0x467014E1376B08ED, 0x5BFA545EE3E04835],
        ),
        (
            "ΟΔΟΣ οδος หมู่บ้าน İ_1",
            4,
            [0x7DE3600BA1070F9E, 0xCD0C92B874DCCFDE, 0xD1CD5647DA9B85D5],
        ),
    ],
)
def test_ids_never_change_unnoticed(text: str, n_features: int, ids: list[int]) -> None:
    """Stored sketches hold these ids. If this fails, raise `SKETCH_FORMAT`, then change the numbers."""
    sketches = sketch([text], size=3)

    assert SKETCH_FORMAT == 4
    assert TOKEN_TABLE_VERSION == "18.0.0"  # noqa: S105 (no password)
    assert (sketches.n_features.tolist(), sketches.ids.tolist()) == ([n_features], ids)
