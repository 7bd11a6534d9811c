"""What the resemblance of all shingles asks of sketches: no pair that reaches it is ruled out, however they meet."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.embedded.match import PairingOptions, match
from nddup.embedded.workers import Workers
from nddup.ground.arrays import Ragged
from nddup.matching.bitmaps import make_bitmaps, most_common
from nddup.matching.overlap_join import ComparisonLimits
from nddup.matching.threshold import Side, Threshold, common_needed
from nddup.sketching.minhash import Finder

SIZE = 8
SHARES = (Fraction(1, 2), Fraction(7, 10), Fraction(9, 10))


def rule_at(share: Fraction, margin: Fraction = Fraction(1, 4)) -> Threshold:
    """The threshold of candidates, `margin` below the share that the texts must reach."""
    least = share - margin
    return Threshold(
        "resemblance", least.numerator, least.denominator, is_count=False, size=SIZE, by_text=True, exact=share
    )  # fmt: skip


def sketch_of(document: frozenset[int]) -> list[int]:
    return sorted(document)[:SIZE]


def resemblance(a: frozenset[int], b: frozenset[int]) -> Fraction:
    return Fraction(len(a & b), len(a | b))


documents = st.frozensets(st.integers(0, 30), min_size=1, max_size=24)


@given(documents, documents, st.sampled_from(SHARES))
def test_no_near_duplicate_has_less_in_common(a: frozenset[int], b: frozenset[int], share: Fraction) -> None:
    """Two documents that reach the share have at least the ids in common that their numbers of shingles ask for."""
    first, second = sketch_of(a), sketch_of(b)
    common, need = len({*first} & {*second}), common_needed(len(a), len(b), rule_at(share).rule)

    if resemblance(a, b) >= share:
        assert common >= need
    elif max(len(a), len(b)) <= SIZE:
        assert common < need


@given(st.lists(st.integers(1, 3 * SIZE), min_size=1, max_size=20), st.sampled_from(SHARES), st.booleans())
def test_needs_are_the_least_of_all_partners(totals: list[int], share: Fraction, whole: bool) -> None:  # noqa: FBT001
    """Each total needs what its easiest partner asks: of any size, or of those on one side; of some, or of all."""
    threshold, own = rule_at(share), np.array(totals, np.int32)
    partners = list(range(1, 6 * SIZE + 1)) if whole else totals
    bounds = threshold.bounds(np.minimum(own, SIZE)).tolist()
    given_partners = None if whole else own

    def least(total: int, bound: int, side: Side) -> int:
        sides = {"any": True, "smaller": False, "larger": False}
        met = [other for other in partners if sides[side] or (other <= total if side == "smaller" else other >= total)]
        possible = [other for other in met if Fraction(min(total, other), max(total, other)) >= share]
        return max(bound, min([common_needed(total, other, threshold.rule) for other in possible], default=total + 1))

    sides: tuple[Side, ...] = ("any", "smaller", "larger")
    for side in sides:
        expected = [least(total, bound, side) for total, bound in zip(totals, bounds, strict=True)]
        assert threshold.needs(own, given_partners, side).tolist() == expected
    if whole:  # whatever other sketches a task holds
        assert [threshold.needs(own[at : at + 1])[0] for at in range(len(own))] == threshold.needs(own).tolist()


def runs_of(sketch: list[int], rows: int) -> set[tuple[int, ...]]:
    """Return the runs of so many ids, of which one in common lets sketches meet."""
    return {tuple(sketch[at : at + rows]) for at in range(max(len(sketch) - rows, 0) + 1)}


collections = st.lists(documents, min_size=1, max_size=14, unique_by=lambda document: tuple(sketch_of(document)))


@given(collections, st.sampled_from(SHARES), st.sampled_from([None, 1, 3]))
def test_the_candidates_are_those_of_the_definition(
    texts: list[frozenset[int]], share: Fraction, run: int | None
) -> None:
    """A search finds exactly the pairs whose estimate reaches the threshold and whose ids allow the share.

    Where sketches meet by runs of ids (`super`), those that have one in common.
    """
    threshold = rule_at(share)
    rows = [sketch_of(text) for text in texts]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    sketches = Ragged(offsets, np.array([value for row in rows for value in row], np.uint64))
    finder = None if run is None else Finder(0, run)
    options = PairingOptions(threshold, finder, 100, ComparisonLimits(10_000, 10_000))
    nodes, n_features = np.arange(len(rows), dtype=np.int32), np.array([*map(len, texts)], np.int32)
    with Workers(1) as workers:
        found = match(nodes, sketches, n_features, options, workers)

    least = Fraction(threshold.numerator, threshold.denominator)
    expected = set()
    for a, b in combinations(range(len(rows)), 2):
        union = sorted({*rows[a], *rows[b]})
        union = union if max(len(rows[a]), len(rows[b])) < SIZE else union[:SIZE]
        shared = len({*union} & {*rows[a]} & {*rows[b]})
        common = len({*rows[a]} & {*rows[b]})
        enough = max(1, common_needed(len(texts[a]), len(texts[b]), threshold.rule))
        meet = run is None or runs_of(rows[a], run) & runs_of(rows[b], run)
        if meet and Fraction(shared, len(union)) >= least and common >= enough:
            expected.add((a, b))
    assert set(map(tuple, found.ends.tolist())) == expected


@pytest.mark.parametrize("words", ["few", "many"])
def test_a_bitmap_never_says_less_than_is_common(words: str) -> None:
    """The bound of two bitmaps is at least the overlap, and for a set and itself its size."""
    random = np.random.default_rng(1)
    rows = [np.unique(random.integers(0, 60 if words == "few" else 10**6, random.integers(1, 90))) for _ in range(60)]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    bitmaps = make_bitmaps(offsets, np.concatenate(rows).astype(np.uint64))

    for a, b in combinations(range(len(rows)), 2):
        assert most_common(bitmaps, a, b) >= len(np.intersect1d(rows[a], rows[b]))
    assert [most_common(bitmaps, a, a) for a in range(len(rows))] == [len(row) for row in rows]
