"""Shingles of items and their places in texts, compared with tuples of tokens."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.against.find_hits import find_hits
from nddup.against.shingle_table import ALL_BITS, Known, make_known, open_known
from nddup.scanning.found import text_buffers
from nddup.sketching.tokens import tokenise

WORDS = ["a", "B", "b", "é", "É", "薔薇", "İ", "K", "zz-", "", "\u0301", "ﬁ"]
texts = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)
masks = st.sampled_from([ALL_BITS, 7, 0])
"""Masks of the fingerprint; with few bits most fingerprints are equal, and only comparing characters separates them."""


def shingles_of(text: str, length: int) -> list[tuple[str, ...]]:
    tokens = tokenise(text)
    return [tuple(tokens[t : t + length]) for t in range(len(tokens) - length + 1)]


def numbers_of(known: Known, items: list[str]) -> dict[tuple[str, ...], int]:
    """Return the number of each shingle, as the table gives it item by item."""
    found: dict[tuple[str, ...], int] = {}
    for item, text in enumerate(items):
        told = known.numbers[known.firsts[item] : known.firsts[item + 1]].tolist()
        here = shingles_of(text, known.length)
        assert len(told) == len(tokenise(text))
        assert told[len(here) :] == [-1] * (len(told) - len(here))
        for shingle, number in zip(here, told, strict=False):
            assert found.setdefault(shingle, number) == number
    return found


@settings(max_examples=150, deadline=None)
@given(items=st.lists(texts, max_size=6), others=st.lists(texts, max_size=6), length=st.integers(1, 4), mask=masks)
def test_hits_are_those_of_token_tuples(items: list[str], others: list[str], length: int, mask: int) -> None:
    """Exactly the places of known shingles are found, with their characters, even where fingerprints collide."""
    known = make_known(*text_buffers(items), length, mask=mask)
    numbers = numbers_of(known, items)

    hits = find_hits(*text_buffers(others), known, counts=True)

    assert sorted(numbers.values()) == list(range(len(known.keys)))
    for row, text in enumerate(others):
        here = shingles_of(text, length)
        rows = slice(hits.offsets[row], hits.offsets[row + 1])
        found = zip(hits.tokens[rows].tolist(), hits.numbers[rows].tolist(), strict=True)
        assert list(found) == [(t, numbers[shingle]) for t, shingle in enumerate(here) if shingle in numbers]
        assert hits.n_shingles[row] == (len(set(here)) if set(here) & set(numbers) else 0)
        for token, begin, end in zip(hits.tokens[rows], hits.begins[rows], hits.ends[rows], strict=True):
            assert tuple(tokenise(text[begin:end])) == here[token]


@pytest.mark.parametrize("items", [[], [""], ["too short"]])
def test_items_without_shingles_know_nothing(items: list[str]) -> None:
    """A text with fewer tokens than a shingle has no shingle."""
    known = make_known(*text_buffers(items), 3)

    assert len(known.keys) == 0
    assert len(find_hits(*text_buffers(["too short", "", "a b c d"]), known).tokens) == 0


def test_a_saved_table_finds_the_same(tmp_path: Path) -> None:
    """A saved and mapped table equals the table itself and gives the same hits."""
    known = make_known(*text_buffers(["one two three four"]), 2)
    known.save(tmp_path)

    opened = open_known(str(tmp_path))

    assert all(np.array_equal(getattr(known, name), getattr(opened, name)) for name in Known._fields)
    assert find_hits(*text_buffers(["zero one two three"]), opened).tokens.tolist() == [1, 2]
