"""Where all shingles decide, the pairs of a family are those by its shingles and its sketches, and only these count."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged
from nddup.matching.confirm_texts import SetRule, compare_held
from nddup.matching.overlap_join import ComparisonLimits
from nddup.matching.threshold import Threshold, compare_sketches
from nddup.mining import family_join
from nddup.mining.family_join import FamilyTexts
from nddup.mining.family_pairs import pair_family
from tests.embedded.drawn_collections import connect

SIZE = 6
RULE = SetRule(7, 10)
THRESHOLD = Threshold("resemblance", 5, 6, is_count=False, size=SIZE, by_text=True, exact=Fraction(7, 10))


def ragged(rows: list[list[int]]) -> Ragged:
    """Return the rows as arrays."""
    offsets = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    return Ragged(offsets, np.array([value for row in rows for value in row], np.uint64))


@pytest.mark.parametrize("way", ["shingles", "sketches", "known"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), number=st.integers(2, 40), most=st.integers(0, 9), beside=st.integers(-1, 1))
def test_pairs_by_both(way: str, seed: int, number: int, most: int, beside: int) -> None:
    """Of near-equal documents whose few smallest shingles differ or not: the pairs, and which components are large.

    The limit is beside the number of pairs; more have nearly equal shingles.
    """
    random = np.random.default_rng(seed)
    text, rows = random.choice(1000, 30, replace=False), []
    for _ in range(number):
        own = text.copy()
        changed = int(random.integers(0, most + 1))
        own[random.choice(30, changed, replace=False)] = random.choice(1000, changed, replace=False)
        rows.append(sorted(set(own.tolist())))
    shingles, sketches = ragged(rows), ragged([row[:SIZE] for row in rows])
    totals = np.array([len(row) for row in rows], np.int32)

    def is_near(a: int, b: int) -> bool:
        both = set(rows[a]) & set(rows[b])
        alike = len(both) * RULE.denominator >= RULE.numerator * len({*rows[a], *rows[b]})
        return alike and bool(compare_sketches(sketches, a, b, 1, THRESHOLD.rule)[0] >= 0)

    near = {frozenset(pair) for pair in combinations(range(number), 2) if is_near(*pair)}
    max_edges = max(len(near) + beside, 1)
    of_shingles = np.array(sorted(map(sorted, near)), np.int32).reshape(-1, 2)
    texts = FamilyTexts(lambda one, others: compare_held(shingles, RULE, one, others), shingles, RULE)
    if way == "known":
        texts = texts._replace(shingles=None, pairs=of_shingles)
    with pytest.MonkeyPatch.context() as patch:
        if way == "sketches":
            patch.setattr(family_join, "FAMILY_HELD", 0)
        limits = ComparisonLimits(max_edges, 10**6)
        found = pair_family(sketches, totals, np.arange(number), THRESHOLD, limits, texts=texts)

    components = connect(range(number), near)
    large = {one for names in components if sum(pair <= names for pair in near) > max_edges for one in names}
    assert set(np.flatnonzero(found.by_leaders).tolist()) == large
    listed = {frozenset(pair) for pair in found.ends.tolist()}
    assert {pair for pair in listed if not pair <= large} == {pair for pair in near if not pair <= large}
