"""No stored sketch that is near to a new one is left out, and few others are reached."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.matching.reach import Reach, mark_new
from nddup.matching.threshold import Threshold, common_needed, compare_sketches
from nddup.sketching.minhash import Finder

THRESHOLDS = [
    Threshold("resemblance", 7, 10, is_count=False, size=8),
    Threshold("resemblance", 3, 5, is_count=False, size=8, by_text=True, exact=Fraction(7, 10)),
    Threshold("overlap", 3, 1, is_count=True, size=8),
    Threshold("containment", 4, 5, is_count=False, size=8),
]


def rows_of(sets: list[set[int]]) -> Ragged:
    ends = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    return Ragged(ends, np.array([one for some in sets for one in sorted(some)], np.uint64))


def reach_of(new: Ragged, threshold: Threshold, finder: Finder | None = None) -> Reach:
    return mark_new(new, sizes_of(new), threshold, finder and finder.keys)


def sizes_of(rows: Ragged) -> NDArray[np.int32]:
    return np.diff(rows.offsets).astype(np.int32)


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=lambda one: one.measure + str(one.exact or ""))
@given(sets=st.lists(st.sets(st.integers(1, 14), min_size=1, max_size=8), min_size=2, max_size=8), data=st.data())
def test_all_near_ones_are_reached(threshold: Threshold, sets: list[set[int]], data: st.DataObject) -> None:
    n_new = data.draw(st.integers(1, len(sets) - 1))
    both, rule = rows_of(sets), threshold.rule
    new, old = rows_of(sets[:n_new]), rows_of(sets[n_new:])
    is_reached = reach_of(new, threshold).find(old, sizes_of(old))
    sizes = sizes_of(both)
    bounds = threshold.bounds(sizes)
    for b in range(n_new, len(sets)):
        near = []
        for a in range(n_new):
            need = (min if threshold.is_containment else max)(bounds[a], bounds[b])
            need = max(need, common_needed(sizes[a], sizes[b], rule))
            near.append(compare_sketches(both, a, b, need, rule)[0] >= 0)
        assert is_reached[b - n_new] or not any(near)


def test_those_that_meet_by_keys_are_reached() -> None:
    chance, finder = np.random.default_rng(3), Finder(0, 4)
    sets = [set(chance.integers(1, 1 << 60, 40).tolist()) for _ in range(20)]
    new, old = rows_of(sets[:10]), rows_of(sets[5:])
    is_reached = reach_of(new, THRESHOLDS[0], finder).find(old, sizes_of(old))
    assert is_reached[:5].all()
    assert is_reached[5:].sum() <= 2, "by chance"


def test_others_are_not_reached() -> None:
    """Unrelated sketches have some marked ids by chance, not as many as a pair needs."""
    ids = np.random.default_rng(7).integers(0, 1 << 63, 2_000 * 100, np.int64).astype(np.uint64)
    rows = Ragged(np.arange(0, len(ids) + 1, 100), ids)
    reach, sizes = reach_of(rows, THRESHOLDS[0]), sizes_of(rows)
    assert reach.find(rows, sizes).all()
    assert not reach.find(Ragged(rows.offsets, ids ^ np.uint64(1 << 40)), sizes).any()


def test_nothing_new_reaches_nothing() -> None:
    nothing, old = rows_of([]), rows_of([{1, 2, 3}])
    assert not reach_of(nothing, THRESHOLDS[0]).find(old, sizes_of(old)).any()
