"""What is counted without a comparison are near-duplicates, by the definition, and a family of near-equals is found."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged, number_keys
from nddup.matching.bitmaps import make_bitmaps
from nddup.matching.cliques import _differences, _radius, connect_cliques
from nddup.matching.overlap_join import NO_LIMIT, ConnectedPairs, Prefixes, Probes, begin_count, find_large
from nddup.matching.threshold import Threshold, compare_sketches
from tests.samples_by_night import examples

RULES = {
    "resemblance": Threshold("resemblance", 7, 10, is_count=False, size=40),
    "slots": Threshold("resemblance", 7, 10, is_count=False, size=40, by_slots=True),
    "share": Threshold("overlap", 4, 5, is_count=False, size=40),
    "count": Threshold("overlap", 25, 1, is_count=True, size=40),
}
ANY = st.integers(0, 2**32)
by_rule = pytest.mark.parametrize("rule", RULES)


def family(random: np.random.Generator, number: int, changes: int, *, ids: int = 60, size: int = 40) -> list[list[int]]:
    """Return sketches of the smallest ids of texts that differ from one text by up to `changes` ids, and lack some."""
    text, made = random.choice(10**6, ids, replace=False), []
    for _ in range(number):
        own = text.copy()
        changed = int(random.integers(0, changes + 1))
        own[random.choice(ids, changed, replace=False)] = random.choice(10**6, changed, replace=False)
        lost = int(random.integers(0, changes // 3 + 1))
        made.append(sorted(set(own[lost:].tolist()))[:size])
    return made


def ragged(rows: list[list[int]]) -> Ragged:
    """Return the rows as arrays."""
    return Ragged(np.append(0, np.cumsum([len(row) for row in rows])), np.concatenate(rows).astype(np.uint64))


def connect(sketches: Ragged, threshold: Threshold, max_edges: int) -> ConnectedPairs:
    """Find cliques where sketches meet at all their ids."""
    connected = begin_count(len(sketches.offsets) - 1, max_edges)
    sizes = np.diff(sketches.offsets).astype(np.int32)
    prefixes = Prefixes(sketches.offsets, *number_keys(sketches.values))
    none, bitmaps = np.zeros(len(sizes), np.bool_), make_bitmaps(*sketches)
    probes = Probes(sketches, prefixes, sizes, threshold.bounds(sizes), sizes, sizes, none, bitmaps)
    connect_cliques(connected, probes, threshold.rule)
    return connected


def is_pair(sketches: Ragged, a: int, b: int, threshold: Threshold) -> bool:
    """Compare two sketches."""
    need = threshold.bounds(np.diff(sketches.offsets).astype(np.int32))[[a, b]].max()
    return bool(compare_sketches(sketches, a, b, need, threshold.rule)[0] >= 0)


@by_rule
@settings(max_examples=examples(25, 60), deadline=None)
@given(seed=ANY, changes=st.integers(0, 20), ids=st.integers(30, 80), max_edges=st.integers(1, 100))
def test_all_pairs_of_a_clique_are_pairs(rule: str, seed: int, changes: int, ids: int, max_edges: int) -> None:
    """Two families and single sketches, loose or tight: what is connected is counted, and each two of it are a pair."""
    random = np.random.default_rng(seed)
    rows = [family(random, n, c, ids=ids) for n, c in ((20, changes), (15, 2), *[(1, 0)] * 9)]
    sketches = ragged([row for rows_of in rows for row in rows_of])
    connected = connect(sketches, RULES[rule], max_edges)
    roots = find_large(connected)
    for root in set(roots[roots >= 0].tolist()):
        members = np.flatnonzero(roots == root).tolist()
        assert members[0] == root
        assert connected.pairs[root] == len(members) * (len(members) - 1) // 2 > max_edges
        assert all(is_pair(sketches, a, b, RULES[rule]) for a, b in combinations(members, 2))


@by_rule
@settings(max_examples=examples(80, 200), deadline=None)
@given(seed=ANY, ids=st.integers(20, 60), least=st.integers(20, 40))
def test_the_radius_holds_for_any_two(rule: str, seed: int, ids: int, least: int) -> None:
    """Two sketches that lose their smallest ids, or others, and gain ids, each within the radius, are a pair."""
    random, threshold = np.random.default_rng(seed), RULES[rule]
    centre = np.sort(random.choice(10**6, ids, replace=False) + 10**6).astype(np.uint64)
    rows = []
    for number in range(2):
        size = min(least, ids, 40)
        radius = _radius(size, int(threshold.bounds(np.array([min(ids + least, 40)], np.int32))[0]), threshold.rule)
        lost = int(random.integers(0, max(radius, 0) + 1))
        others = np.delete(centre, random.choice(ids, min(lost, ids), replace=False))
        kept = centre[lost:] if random.integers(2) else others
        gained = number + 2 * random.choice(10**6, max(radius - lost, 0), replace=False) // 2
        rows.append(sorted({*kept.tolist(), *gained.tolist()})[:40])
    sketches = ragged(rows)
    sizes = np.diff(sketches.offsets).astype(np.int32)
    radius = _radius(int(sizes.min()), int(threshold.bounds(sizes).max()), threshold.rule)
    if (_differences(sketches, np.arange(2), centre) <= radius).all():
        assert is_pair(sketches, 0, 1, threshold)


def test_the_radius_of_a_resemblance_is_exact() -> None:
    """Of 60 ids two sketches lose different small ones and gain others below: each 8 are few enough, 10 are not."""
    threshold, centre = Threshold("resemblance", 7, 10, is_count=False, size=60), list(range(100, 160))
    assert _radius(60, 42, threshold.rule) == 9
    for changed in (4, 5):
        low, high = centre[:changed], centre[changed : 2 * changed]
        rows = [sorted({*centre, *range(first, first + changed)} - {*lost}) for first, lost in ((0, low), (50, high))]
        sketches = ragged(rows)
        assert _differences(sketches, np.arange(2), np.array(centre, np.uint64)).tolist() == [2 * changed] * 2
        assert is_pair(sketches, 0, 1, threshold) == (changed == 4)


@by_rule
def test_a_family_of_near_equals_is_found(rule: str) -> None:
    """Two families are each connected whole, and a loose one and a small one are not; no limit, no clique."""
    random = np.random.default_rng(3)
    rows = [*family(random, 50, 2), *family(random, 30, 2), *family(random, 50, 40), *family(random, 5, 1)]
    sketches = ragged([rows[at] for at in random.permutation(len(rows))])
    connected = connect(sketches, RULES[rule], 300)
    assert sorted(connected.pairs[connected.pairs > 0].tolist()) == [435, 1225]
    assert not connect(sketches, RULES[rule], 1225).pairs.any()
    assert not connect(sketches, RULES[rule], NO_LIMIT).pairs.any()


def test_a_clique_of_as_many_pairs_as_allowed_is_none() -> None:
    """Ten equal-sized sketches have 45 pairs: more than 44, not more than 45."""
    sketches = ragged(family(np.random.default_rng(1), 10, 1))
    assert connect(sketches, RULES["resemblance"], 44).pairs.max() == 45
    assert not connect(sketches, RULES["resemblance"], 45).pairs.any()
    assert not connect(Ragged(np.zeros(1, np.int64), np.empty(0, np.uint64)), RULES["count"], 1).pairs.any()
