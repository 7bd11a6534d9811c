"""Pairs that the resemblance of all shingles confirms, against Python sets; the margin, against the binomial law."""

from fractions import Fraction
from functools import partial
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged, take_rows
from nddup.matching.confirm_texts import (
    SetRule,
    compare_one,
    compare_sets,
    confirms_any,
    divide_pairs,
    join_compared,
    least_common,
)
from nddup.sketching.accuracy import chance_missed, least_equal
from tests.samples_by_night import first

SETS = st.sets(st.integers(0, 2**64 - 1) | st.integers(0, 12), max_size=14)
SHARES = st.fractions(Fraction(1, 10**9), 1, max_denominator=10**9)


def rows_of(sets: list[set[int]]) -> Ragged:
    """Return the sets as ascending rows."""
    values = np.array([value for one in sets for value in sorted(one)], np.uint64)
    return Ragged(np.cumsum([0, *map(len, sets)]).astype(np.int64), values)


@pytest.mark.thorough
@given(st.lists(SETS, min_size=2, max_size=5), SHARES | st.sampled_from([Fraction(1, 2), Fraction(7, 10), Fraction(1)]))
def test_pairs_are_those_whose_sets_reach_the_threshold(sets: list[set[int]], share: Fraction) -> None:
    """A pair is confirmed iff it shares an id and |A & B| / |A | B| is at least the exact threshold."""
    ends = [(a, b) for a in range(len(sets)) for b in range(len(sets))]
    rule = SetRule(share.numerator, share.denominator)

    found = compare_sets(rows_of(sets), np.array(ends), rule)

    for place, (a, b) in enumerate(ends):
        common, united = len(sets[a] & sets[b]), len(sets[a] | sets[b])
        is_near = common > 0 and Fraction(common, united) >= share
        assert found.common[place] == (common if is_near else 0)
        assert found.is_near[place] == is_near
        assert not is_near or found.similarity[place] == common / united


@given(SETS, SETS, SHARES)
def test_sizes_alone_never_rule_out_a_pair(first: set[int], second: set[int], share: Fraction) -> None:
    """The smaller set has at least the least common part of every pair that reaches the threshold."""
    common, united = len(first & second), len(first | second)
    need = least_common(np.array([len(first) + len(second)]), SetRule(share.numerator, share.denominator))[0]

    if common and Fraction(common, united) >= share:
        assert need <= common <= min(len(first), len(second))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.data())
def test_pairs_are_divided_into_portions_of_bounded_rows(sizes: list[int], data: st.DataObject) -> None:
    """Every pair is in one portion; the rows of a portion have few values more than asked."""
    ends = st.tuples(st.integers(0, len(sizes) - 1), st.integers(0, len(sizes) - 1))
    pairs = np.array(data.draw(st.lists(ends, max_size=30)), np.int64).reshape(-1, 2)
    most = data.draw(st.integers(1, 100))

    portions = list(divide_pairs(pairs, np.array(sizes), most))

    assert sorted(np.concatenate([np.empty(0, np.int64), *portions]).tolist()) == list(range(len(pairs)))
    for portion in portions:
        held = sum(sizes[row] for row in set(pairs[portion].ravel().tolist()))
        assert held <= 2 * most + 2 * max(sizes)


def test_one_of_several_is_enough() -> None:
    """A set is confirmed with others if one of them is near, wherever it stands; no others confirm nothing."""
    sets = [{1, 2, 3}, *({10 * n} for n in range(1, 40)), {1, 2, 3, 4}]

    take = partial(take_rows, rows_of(sets))

    assert confirms_any(partial(compare_one, take, SetRule(3, 4)), 0, np.arange(1, 41))
    assert not confirms_any(partial(compare_one, take, SetRule(4, 5)), 0, np.arange(1, 41))
    assert not confirms_any(partial(compare_one, take, SetRule(3, 4)), 0, np.arange(0))
    assert join_compared([]).common.size == 0


@pytest.mark.thorough
@pytest.mark.parametrize("size", first(5, [1, 7, 64, 100, 200, 1000]))
@pytest.mark.parametrize("share", ["0.01", "0.5", "0.7", "0.8", "0.9", "0.999999999", "1"])
def test_the_margin_is_the_largest_that_misses_fewer_than_one_in_a_thousand(size: int, share: str) -> None:
    """P(Bin(s, t) < c) is below 1 / 1000, and for c + 1 it is not; with every id equal nothing is missed."""
    t = Fraction(share)

    def below(least: int) -> Fraction:
        return sum((comb(size, x) * t**x * (1 - t) ** (size - x) for x in range(least)), Fraction(0))

    c = least_equal(size, t)

    assert below(c) < Fraction(1, 1000)
    assert c == size or below(c + 1) >= Fraction(1, 1000)
    assert chance_missed(size, t) == float(below(c))
    assert c < size or below(size) < Fraction(1, 1000)


def test_a_large_sketch_takes_the_margin_in_floating_point() -> None:
    """Beyond the exact numbers, the margin goes on as before: some 3.1 standard errors."""
    errors = [(0.7 * s - least_equal(s, Fraction(7, 10))) / (s * 0.21) ** 0.5 for s in (2_000, 2_001, 50_000, 100_000)]

    assert all(3.05 < error < 3.15 for error in errors)
