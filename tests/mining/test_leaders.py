"""Leaders: the kept documents of the whole pair graph, every pair with a leader, and clusters as promised."""

from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged
from nddup.matching.threshold import Threshold
from nddup.mining import leader_clusters
from nddup.mining.bounded_keeping import choose_freely
from nddup.mining.family_pairs import Component, FamilyPairs, lead
from nddup.mining.itemsets import Itemsets
from nddup.mining.leader_clusters import Known, follow_leaders
from nddup.mining.pair_graph import keep_first
from tests.samples_by_night import examples, first

Sketches = list[list[int]]
Pairs = dict[tuple[int, int], Fraction]


class Led(NamedTuple):
    """What leaders give of a family."""

    kept: np.ndarray
    duplicate_of: np.ndarray
    found: FamilyPairs
    itemsets: Itemsets


def follow(
    sketches: Ragged, bounds: np.ndarray, by_policy: np.ndarray, threshold: Threshold, *, min_support: int = 0
) -> Led:
    """List the pairs of leaders; choose from these what is kept, which is what leads, and make the clusters."""
    n = len(bounds)
    sizes = np.diff(sketches.offsets).astype(np.int32)
    found = lead(Component(sketches, sizes, by_policy), threshold, 10**9, choose_freely(n))
    ranks = np.empty(n, np.int32)
    ranks[by_policy] = np.arange(n)
    edges = np.sort(found.ends, axis=1)
    choice = keep_first(edges, found.resemblance, ranks)
    known = Known(edges, ranks, choice.kept, is_whole=False)
    itemsets = follow_leaders(sketches, bounds, known, threshold.rule, min_support=min_support)
    return Led(choice.kept, choice.duplicate_of, found, itemsets)


def as_ragged(sketches: Sketches) -> Ragged:
    offsets = np.concatenate(([0], np.cumsum([len(sketch) for sketch in sketches]))).astype(np.int64)
    return Ragged(offsets, np.array([i for sketch in sketches for i in sorted(sketch)], np.uint64))


def sizes_of(sketches: Sketches) -> np.ndarray:
    return np.array([len(sketch) for sketch in sketches], np.int32)


def resemble(a: set[int], b: set[int], size: int) -> Fraction:
    """Return the resemblance of two min-s sketches, by the definition."""
    union = sorted(a | b)
    if len(a) >= size or len(b) >= size:
        union = union[:size]
    return Fraction(len(a & b & set(union)), max(len(union), 1))


def find_pairs(sketches: Sketches, threshold: Threshold) -> Pairs:
    """Return all near-duplicate pairs with their resemblance, comparing every two."""
    sets = [set(sketch) for sketch in sketches]
    limit = Fraction(threshold.numerator, threshold.denominator)
    found = {}
    for a, b in combinations(range(len(sets)), 2):
        common, likeness = len(sets[a] & sets[b]), resemble(sets[a], sets[b], threshold.size)
        if threshold.is_count:
            is_pair = common >= limit
        elif threshold.measure == "overlap":
            is_pair = common >= 1 and common >= limit * max(len(sets[a]), len(sets[b]))
        else:
            is_pair = common >= 1 and likeness >= limit
        if is_pair:
            found[a, b] = likeness
    return found


def as_lists(itemsets: Itemsets) -> list[tuple[list[int], int]]:
    rows = np.split(itemsets.members, itemsets.offsets[1:-1]) if itemsets.supports.size else []
    return [(row.tolist(), support) for row, support in zip(rows, itemsets.supports.tolist(), strict=True)]


def check_kept(led: Led, sketches: Sketches, pairs: Pairs, by_policy: list[int]) -> None:
    """Assert that kept documents, `duplicate_of` and pairs follow from the whole pair graph."""
    ranks = np.empty(len(sketches), np.int32)
    ranks[by_policy] = np.arange(len(sketches))
    edges = np.array(sorted(pairs), np.int32).reshape(-1, 2)
    expected = keep_first(edges, np.array([float(pairs[a, b]) for a, b in edges.tolist()]), ranks)

    assert led.kept.tolist() == expected.kept.tolist()
    assert led.duplicate_of.tolist() == expected.duplicate_of.tolist()
    with_kept_end = {
        (a, b) if led.kept[b] else (b, a): likeness for (a, b), likeness in pairs.items() if led.kept[a] or led.kept[b]
    }
    assert [tuple(pair) for pair in led.found.ends.tolist()] == sorted(with_kept_end)
    for (document, kept), overlap, likeness in zip(*led.found[:3], strict=True):
        assert overlap == len(set(sketches[document]) & set(sketches[kept]))
        assert likeness == float(with_kept_end[document, kept])


def check_sets(led: Led, sketches: Sketches, pairs: Pairs, bounds: list[int], min_support: int) -> None:
    """Assert every promise about the sets."""
    found = as_lists(led.itemsets)
    enough = {pair for pair in pairs if len(set(sketches[pair[0]]) & set(sketches[pair[1]])) >= min_support}
    in_sets = {member for members, _ in found for member in members}

    assert led.itemsets.coverage == "documents"
    assert [members for members, _ in found] == sorted(members for members, _ in found)
    for members, support in found:
        assert sum(led.kept[member] for member in members) == 1
        assert set(combinations(members, 2)) <= set(pairs)
        assert support == len(set.intersection(*(set(sketches[member]) for member in members)))
        assert support >= max([min_support, *(bounds[member] for member in members)])
    assert in_sets == {end for a, b in enough if led.kept[a] or led.kept[b] for end in (a, b)}
    if min_support == 0:
        assert in_sets == {end for pair in pairs for end in pair}
    as_sets = [set(members) for members, _ in found]
    assert not any(a <= b for a in as_sets for b in as_sets if a is not b)


def draw_family(rng: np.random.Generator) -> Sketches:
    """Draw short and full sketches around one to three originals, so that bounds are often just met or missed."""
    size = int(rng.integers(4, 14))
    families = int(rng.integers(1, 4))
    sketches = []
    for _ in range(int(rng.integers(1, 25))):
        base = int(rng.integers(families)) * size // 2
        original = np.flatnonzero(rng.random(size) < rng.uniform(0.6, 1)) + base
        extra = rng.choice(np.arange(40, 90), int(rng.integers(0, 3)), replace=False)
        sketches.append(sorted({*original.tolist(), *extra.tolist()}))
    return [list(sketch) for sketch in dict.fromkeys(map(tuple, sketches))]


def draw_threshold(rng: np.random.Generator, form: str) -> Threshold:
    size = int(rng.integers(4, 16))
    if form == "count":
        return Threshold("overlap", int(rng.integers(1, 9)), 1, is_count=True, size=size)
    return Threshold(form, int(rng.integers(6, 20)), 20, is_count=False, size=size)


@pytest.mark.parametrize("form", ["count", "overlap", "resemblance"])
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_leaders_keep_every_promise(form: str, seed: int) -> None:
    """Kept documents, pairs and sets are as promised on 250 families per seed, for every measure."""
    rng = np.random.default_rng(seed)
    for _ in range(250):
        threshold, min_support = draw_threshold(rng, form), int(rng.choice([0, 0, 3, 6]))
        sketches = [sketch[: threshold.size] for sketch in draw_family(rng)]
        by_policy, bounds = rng.permutation(len(sketches)), threshold.bounds(sizes_of(sketches))

        led = follow(as_ragged(sketches), bounds, by_policy, threshold, min_support=min_support)

        pairs = find_pairs(sketches, threshold)
        check_kept(led, sketches, pairs, by_policy.tolist())
        check_sets(led, sketches, pairs, bounds.tolist(), min_support)


id_lists = st.lists(st.frozensets(st.integers(0, 11), min_size=1, max_size=10), min_size=1, max_size=12, unique=True)


@pytest.mark.thorough
@settings(max_examples=examples(100, 300))
@given(
    sets=id_lists,
    numerator=st.integers(5, 20),
    form=st.sampled_from(["count", "overlap", "resemblance"]),
    size=st.integers(3, 10),
    seed=st.integers(0, 99),
)
def test_leaders_meet_the_definition(
    sets: list[frozenset[int]], numerator: int, form: str, size: int, seed: int
) -> None:
    """Kept documents, pairs and sets are as promised on any sketches that hypothesis draws."""
    threshold = Threshold(form, numerator, 20, is_count=False, size=size)
    if form == "count":
        threshold = Threshold("overlap", numerator // 4, 1, is_count=True, size=size)
    sketches = [sorted(ids)[:size] for ids in sets]
    by_policy, bounds = np.random.default_rng(seed).permutation(len(sketches)), threshold.bounds(sizes_of(sketches))

    led = follow(as_ragged(sketches), bounds, by_policy, threshold)

    pairs = find_pairs(sketches, threshold)
    check_kept(led, sketches, pairs, by_policy.tolist())
    check_sets(led, sketches, pairs, bounds.tolist(), 0)


@pytest.mark.thorough
@pytest.mark.parametrize("form", first(1, ["resemblance", "overlap"]))
@pytest.mark.parametrize(("changed", "threshold"), [(0.08, 14), (0.02, 10)])
def test_leaders_of_many_keep_every_promise(form: str, changed: float, threshold: int) -> None:
    """Leaders keep every promise for stars with more clusters than `OPEN`, or with larger ones than `CHECKED`."""
    rng = np.random.default_rng(3)
    kept_slots = rng.random((400, 70)) >= changed
    kept_slots[0] = True
    sketches = [
        sorted([*np.flatnonzero(row).tolist(), *(1000 + 100 * i + np.flatnonzero(~row)).tolist()])
        for i, row in enumerate(kept_slots)
    ]
    given = Threshold(form, threshold, 20, is_count=False, size=70)
    bounds = given.bounds(sizes_of(sketches))

    led = follow(as_ragged(sketches), bounds, np.arange(400), given)

    pairs = find_pairs(sketches, given)
    check_kept(led, sketches, pairs, list(range(400)))
    check_sets(led, sketches, pairs, bounds.tolist(), 0)
    sizes, led_by_first = np.diff(led.itemsets.offsets), np.count_nonzero(led.itemsets.members == 0)
    assert sizes.max() > leader_clusters.CHECKED + 1 if threshold == 10 else led_by_first > leader_clusters.OPEN


def draw_giant(n: int) -> Ragged:
    """Draw documents of 100 slots; each slot is the original's with probability 0.97, else a unique feature."""
    rng = np.random.default_rng(7)
    kept = rng.random((n, 100)) < 0.97
    ids = np.where(kept, np.arange(100), 1000 + np.arange(100 * n).reshape(n, 100)).astype(np.uint64)
    return Ragged(np.arange(n + 1) * 100, np.sort(ids, axis=1).ravel())


@pytest.mark.parametrize("n", [100, 4_000, 20_000])
def test_one_family_has_one_leader(n: int) -> None:
    """A family has one leader whatever its size; all pairs of 20,000 documents would be 200 million."""
    by_count = Threshold("overlap", 50, 1, is_count=True, size=100)

    led = follow(draw_giant(n), np.full(n, 50, np.int32), np.arange(n), by_count)

    assert np.flatnonzero(led.kept).tolist() == [0]
    assert led.duplicate_of.tolist() == [-1] + [0] * (n - 1)
    assert np.diff(led.itemsets.offsets).sum() == n - 1 + led.itemsets.supports.size


@pytest.mark.parametrize("n", [0, 1, 3])
def test_strangers_are_all_kept(n: int) -> None:
    """If no two documents are near, all are kept, and there are no pairs and no sets."""
    threshold = Threshold("resemblance", 4, 5, is_count=False, size=5)
    sketches = as_ragged([[10 * i, 10 * i + 1] for i in range(n)])

    led = follow(sketches, np.full(n, 2, np.int32), np.arange(n), threshold)

    assert led.kept.tolist() == [True] * n
    assert led.found.ends.shape == (0, 2)
    assert as_lists(led.itemsets) == []


def test_documents_without_enough_features_are_kept() -> None:
    """Empty sketches, and equal ones smaller than the count, are kept: they are not even near each other."""
    by_count = Threshold("overlap", 3, 1, is_count=True, size=5)

    led = follow(as_ragged([[], [1, 2], [], [1, 2]]), np.full(4, 3, np.int32), np.arange(4), by_count)

    assert led.kept.all()
    assert as_lists(led.itemsets) == []
