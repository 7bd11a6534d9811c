"""Near-duplicates by definition, against Python's sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.verifying.definitions import Definition, Rows, Sample, compare, gather, is_near
from nddup.verifying.near_pairs import Probes, count_common, find_near, near_each
from tests.counted_rows import once


def rule(measure: str, numerator: int, denominator: int, size: int) -> Definition:
    """Return a rule of this measure with the threshold numerator / denominator."""
    return Definition(numerator, denominator, measure == "count", measure == "resemblance", Sample(size))


RULES = [rule("count", 3, 1, 12), rule("share", 1, 2, 12), rule("resemblance", 2, 5, 8)]
RULES += [RULES[2]._replace(exact_numerator=3, exact_denominator=5)]
sketches = st.lists(st.integers(0, 16), max_size=12, unique=True).map(lambda ids: np.array(sorted(ids), np.uint64))


@given(first=sketches, second=sketches, size=st.integers(1, 12))
def test_compares_by_definition(first: np.ndarray, second: np.ndarray, size: int) -> None:
    """Overlap and resemblance of two sketches are those of Python's sets."""
    first, second = first[:size], second[:size]
    both, union = set(first) & set(second), sorted(set(first) | set(second))
    sample = set(union if max(len(first), len(second)) < size else union[:size])

    measured = compare(first, second, Sample(size), np.uint64(0))

    assert measured == (len(both), len(both & sample), len(sample), len(first), len(second))
    assert compare(first, second, Sample(40, by_slots=True), np.uint64(0))[:3] == (len(both), len(both), 40)


@given(first=sketches, second=sketches)
def test_sketches_of_all_shingles_are_judged_exactly(first: np.ndarray, second: np.ndarray) -> None:
    """Fewer ids than the sample are all there are: the exact threshold decides; else the lower one of candidates."""
    measured, both, union = compare(first, second, Sample(8), np.uint64(0)), set(first) & set(second), {*first, *second}
    is_whole = max(len(first), len(second)) < 8

    near = is_near(measured, RULES[3])

    assert near == (5 * len(both) >= 3 * len(union) > 0 if is_whole else is_near(measured, RULES[2]))


def test_counts_what_is_near_and_what_meets() -> None:
    """The mean of drawn sketches is that of all; two probes meet once for each id that both hold."""
    some = [np.arange(i % 3, 9 + i % 3).astype(np.uint64) for i in range(1_000)]
    probes, everything = Probes(gather(some)), np.arange(1_000)

    near = near_each(probes.sketches, everything, probes, RULES[2])

    whole = len(find_near(probes.sketches, probes, RULES[2]).rows) / 1_000
    assert abs(near - whole) < 0.05 * whole
    assert Probes(gather(some[:5])).meetings == sum(len({*one} & {*other}) for one in some[:5] for other in some[:5])


@given(first=sketches, second=sketches, level=st.integers(0, 3))
def test_compares_at_a_common_modulus(first: np.ndarray, second: np.ndarray, level: int) -> None:
    """Only ids that 2**level divides are counted, in both sketches."""
    a, b = ({int(id_) for id_ in ids if id_ % 2**level == 0} for ids in (first, second))

    measured = compare(first, second, Sample(1 << 30), np.uint64(2**level - 1))

    assert measured == (len(a & b), len(a & b), len(a | b), len(a), len(b))


@pytest.mark.thorough
@given(
    batch=st.lists(sketches, max_size=6),
    probes=st.lists(sketches, max_size=6),
    rule=st.sampled_from(RULES),
    others=st.sampled_from([0, 16 * 40]),
)
def test_finds_what_is_near(batch: list[np.ndarray], probes: list[np.ndarray], rule: Definition, others: int) -> None:
    """The index finds exactly the pairs that are near by definition, among few probes or many, and each pair once."""
    left, right = ([ids[: rule.sample.size] for ids in side] for side in (batch, probes))
    right, left = [*right, *[np.empty(0, np.uint64)] * others], [*left, *[np.empty(0, np.uint64)] * (others // 40)]
    expected = set()
    for i, first in enumerate(left):
        for j, second in enumerate(right):
            if is_near(compare(first, second, rule.sample, np.uint64(0)), rule):
                expected.add((i, j))

    near = find_near(gather(left), Probes(gather(right)), rule)
    own = find_near(gather(left), Probes(gather(left)), rule, np.arange(len(left)))

    assert once(zip(near.rows.tolist(), near.probes.tolist(), strict=True)) == expected
    for i, j, *told in zip(*(part.tolist() for part in near), strict=True):
        overlap, shared, seen, of_left, of_right = compare(left[i], right[j], rule.sample, np.uint64(0))
        assert told == [overlap, shared / seen, overlap / of_left, overlap / of_right]
    whole = find_near(gather(left), Probes(gather(left)), rule)
    both = once(zip(whole.rows.tolist(), whole.probes.tolist(), strict=True))
    assert once(zip(own.rows.tolist(), own.probes.tolist(), strict=True)) == {
        pair for pair in both if pair[0] < pair[1]
    }


@pytest.mark.parametrize("rule", RULES)
def test_finds_what_is_just_near(rule: Definition) -> None:
    """Among 6,400 pairs of sketches of few ids, many are at the threshold exactly, and as many just below it."""
    random = np.random.default_rng(1)
    some = [np.sort(random.choice(17, random.integers(0, 9), replace=False)).astype(np.uint64) for _ in range(80)]

    near = find_near(gather(some), Probes(gather(some)), rule)

    found = once(zip(near.rows.tolist(), near.probes.tolist(), strict=True))
    for i, first in enumerate(some):
        for j, second in enumerate(some):
            measured = compare(first, second, rule.sample, np.uint64(0))
            assert ((i, j) in found) == is_near(measured, rule), (first, second)


@given(sets=st.lists(sketches, min_size=1, max_size=6), draw=st.data())
def test_counts_what_pairs_of_sets_share(sets: list[np.ndarray], draw: st.DataObject) -> None:
    """Common ids of pairs, also of a set with itself, in any order of pairs, are those of Python's sets."""
    place = st.integers(0, len(sets) - 1)
    pairs = draw.draw(st.lists(st.tuples(place, place), max_size=12))
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    offsets, ids, _ = gather(sets)

    common = count_common(offsets, ids, first, second)

    assert common.tolist() == [len({*sets[a].tolist()} & {*sets[b].tolist()}) for a, b in pairs]


def test_a_run_of_nothing_has_no_neighbours() -> None:
    """Without sketches or probes there are no pairs."""
    empty = Rows(np.zeros(1, np.int64), np.empty(0, np.uint64))

    assert len(find_near(empty, Probes(empty), rule("resemblance", 4, 5, 200)).rows) == 0
