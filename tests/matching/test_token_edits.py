"""Token edit similarity: against its recurrence, at the threshold, and beyond the bound on the work."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged
from nddup.matching import confirm_texts
from nddup.matching.confirm_texts import EditRule, bound_common, compare_tokens, join_compared
from tests.embedded.confirmed_texts import longest_common

texts = st.lists(st.integers(0, 7), max_size=24)


def rows_of(*rows: list[int]) -> Ragged:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Ragged(offsets, np.array([value for row in rows for value in row], np.uint64))


@settings(max_examples=150, deadline=None)
@given(st.lists(texts, min_size=2, max_size=6), st.integers(1, 100))
def test_confirms_what_the_recurrence_does(rows: list[list[int]], per_cent: int) -> None:
    """The recurrence confirms the same pairs at any threshold, also exactly at it; a text without tokens is in none."""
    pairs = [(a, b) for a in range(len(rows)) for b in range(a)]
    common = [longest_common([*map(str, rows[a])], [*map(str, rows[b])]) for a, b in pairs]
    totals = [len(rows[a]) + len(rows[b]) for a, b in pairs]
    is_near = [c > 0 and Fraction(2 * c, n) >= Fraction(per_cent, 100) for c, n in zip(common, totals, strict=True)]

    found = compare_tokens(rows_of(*rows), np.array(pairs), EditRule(per_cent, 100))

    assert found.is_near.tolist() == is_near
    assert found.common.tolist() == [c if near else 0 for c, near in zip(common, is_near, strict=True)]
    told = found.similarity[found.is_near].tolist()
    assert told == [2 * c / n for c, n, near in zip(common, totals, is_near, strict=True) if near]


def test_a_pair_at_the_threshold_is_confirmed() -> None:
    """A pair exactly at 0.6, 12 of 20 tokens, is confirmed: the cut-off is a count, because a share loses some."""
    first, second = ([ord(letter) for letter in text] for text in ("bgabachaedfg", "agabedeg"))

    found = compare_tokens(rows_of(first, second), np.array([[0, 1]]), EditRule(3, 5))

    assert found.common.tolist() == [6]


@settings(max_examples=150, deadline=None)
@given(texts, texts, st.integers(0, 400), st.integers(1, 3))
def test_a_bound_is_never_above(first: list[int], second: list[int], cells: int, window: int) -> None:
    """The bound is never above the LCS, whatever work is allowed; a text in itself is found without any work."""
    exact = longest_common([*map(str, first)], [*map(str, second)])
    one, other = np.array(first, np.uint64), np.array(second, np.uint64)

    assert bound_common(one, other, cells, window) <= exact
    assert bound_common(one, one, 0, window) == len(first)


@settings(max_examples=150, deadline=None)
@given(texts, texts, st.integers(0, 400), st.integers(1, 3), st.integers(0, 40))
def test_a_need_loses_no_bound_that_reaches_it(
    first: list[int], second: list[int], cells: int, window: int, need: int
) -> None:
    """With a need the bound is the same where it reaches it, and too small where it does not."""
    one, other = np.array(first, np.uint64), np.array(second, np.uint64)
    whole, found = bound_common(one, other, cells, window), bound_common(one, other, cells, window, need)

    assert found == whole if whole >= need else found < need


@given(st.permutations(range(8)), st.integers(0, 8))
def test_anchors_are_a_longest_chain(order: list[int], absent: int) -> None:
    """Of tokens that occur once in both texts, as many as the longest ascending run of their places are common."""
    others = [number if number < absent else number + 100 for number in order]
    ascending = max(
        sum(1 for _ in chosen)
        for size in range(9)
        for chosen in combinations([number for number in others if number < 8], size)
        if list(chosen) == sorted(chosen)
    )

    assert bound_common(np.arange(8, dtype=np.uint64), np.array(others, np.uint64), 0) == ascending


def test_beyond_the_bound_a_pair_is_counted_and_never_confirmed_in_error() -> None:
    """Anchors confirm long texts with some words replaced; texts of repeated words have none and are not confirmed."""
    random = np.random.default_rng(0)
    words = random.permutation(5000)
    changed = np.where(random.random(5000) < 0.1, words + 10_000, words)
    first, second = [1, 2] * 400 + [3] * 5, [4] * 5 + [2, 1] * 400

    found = compare_tokens(
        rows_of(words.tolist(), changed.tolist(), first, second), np.array([[0, 1], [2, 3]]), EditRule(77, 100, 1000)
    )

    assert found.is_bounded.tolist() == [True, True]
    assert found.is_near.tolist() == [True, False]
    assert found.common[0] == np.count_nonzero(words == changed)


def test_long_texts_of_characters_have_anchors() -> None:
    """No character occurs once in a long text, 16 consecutive ones do: of 5 % noise the bound loses next to nothing."""
    random = np.random.default_rng(0)
    letters = random.integers(0, 27, 30_000)
    noisy = np.where(random.random(len(letters)) < 0.05, 27, letters)[random.random(len(letters)) >= 0.01]
    rows = rows_of(letters.tolist(), noisy.tolist(), random.permutation(letters).tolist())
    rule = EditRule(85, 100, cells=10_000_000, window=16)

    found = compare_tokens(rows, np.array([[0, 1], [0, 2]]), rule)

    exact = compare_tokens(rows, np.array([[0, 1]]), rule._replace(cells=1 << 40))
    assert found.is_bounded.all()
    assert found.is_near.tolist() == [True, False]
    assert 0.99 * exact.common[0] <= found.common[0] <= exact.common[0]


def test_blocks_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs compared in several blocks give the same results as in one; no blocks give no results."""
    rows = rows_of([1, 2, 3], [1, 2, 4], [9, 8, 3], [1, 2, 3])
    pairs = np.array([[0, 1], [0, 2], [0, 3], [1, 3]])
    whole = compare_tokens(rows, pairs, EditRule(1, 3))
    monkeypatch.setattr(confirm_texts, "BLOCK", 7)

    parts = [compare_tokens(rows, pairs[low : low + 2], EditRule(1, 3)) for low in (0, 2)]

    assert join_compared(parts).common.tolist() == whole.common.tolist() == [2, 1, 3, 2]
    assert join_compared([]).common.size == 0


def test_many_distinct_tokens_are_spelled() -> None:
    """There may be more distinct tokens than characters below the surrogates."""
    many = list(range(70_000))

    found = compare_tokens(rows_of(many, many[:65_000]), np.array([[0, 1]]), EditRule(77, 100, 1 << 40))

    assert found.common.tolist() == [65_000]
