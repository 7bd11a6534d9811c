"""The bounds, groups, owners and comparisons of the prefix filter against their definitions."""

from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from nddup.ground.arrays import group_rows
from nddup.matching.overlap_join import partition_of
from nddup.matching.threshold import Rule as KernelRule
from nddup.matching.threshold import Threshold, least_overlaps, overlap_or_less, resemblance_parts
from tests.matching.prepared_sketches import ragged, resemblance

# The bounds.


@given(st.lists(st.integers(0, 100_000)), st.integers(1, 10**6), st.integers(1, 10**6))
@example([100], 11, 20)
def test_bounds_are_exact_integers(sizes: list[int], numerator: int, denominator: int) -> None:
    """The bound is the least o >= 1 with o / size >= the share."""
    low, high = sorted((numerator, denominator))
    share = Fraction(low, high)

    bounds = least_overlaps(np.array(sizes, np.int32), numerator=low, denominator=high, is_count=False).tolist()

    for size, bound in zip(sizes, bounds, strict=True):
        assert bound >= 1
        assert bound >= share * size
        assert bound == 1 or bound - 1 < share * size


def test_floats_would_ask_for_one_feature_too_many() -> None:
    """0.55 of 100 is 55, although 0.55 * 100 in floats is a little more."""
    sizes = np.array([100], np.int32)

    assert np.ceil(0.55 * sizes).tolist() == [56]
    assert least_overlaps(sizes, numerator=11, denominator=20, is_count=False).tolist() == [55]


def test_a_count_is_the_bound_of_every_size() -> None:
    """A count is the same bound for every size, so a sketch may need more features than it has."""
    sizes = np.array([0, 3, 200], np.int32)

    assert least_overlaps(sizes, numerator=85, denominator=1, is_count=True).tolist() == [85, 85, 85]


def test_no_sketch_can_resemble_another_beyond_its_bound() -> None:
    """
    The overlap is at least r * |A| and r * |B| for any s, so a near-duplicate pair reaches the larger alpha.

    All pairs of subsets of six ids are tried, as sketches of s = 1 ... 7. Since alpha is the least integer reaching
    t * |d|, it is enough to try t = r itself.
    """
    documents = [tuple(i for i in range(6) if bits >> i & 1) for bits in range(1, 1 << 6)]
    for size in range(1, 8):
        sketches = sorted({document[:size] for document in documents})
        for a, b in combinations(sketches, 2):
            value, overlap = resemblance(a, b, size), len(set(a) & set(b))
            assert overlap >= value * max(len(a), len(b)), (size, a, b)
            assert value >= 2 * Fraction(overlap, max(len(a), len(b))) - 1, (size, a, b)


# Grouping, counting, ordering.


keys = st.lists(st.one_of(st.integers(0, 6), st.integers(2**64 - 4, 2**64 - 1)), max_size=60)


@given(keys)
def test_groups_are_the_rows_of_each_key(values: list[int]) -> None:
    """Groups come in the order in which their keys first appear, and the rows of a group in their own order."""
    first_seen = list(dict.fromkeys(values))
    expected = [[row for row, value in enumerate(values) if value == key] for key in first_seen]

    order, offsets = group_rows(np.array(values, np.uint64))

    assert offsets[0] == 0
    assert [rows.tolist() for rows in np.split(order, offsets[1:-1])][: len(offsets) - 1] == expected


@given(st.lists(st.integers(0, 2**64 - 1)), st.integers(1, 1000))
def test_every_id_has_one_owner(ids: list[int], partitions: int) -> None:
    """The owner of an id is one of the partitions, and the same wherever the id appears."""
    owners = partition_of(np.array(ids, np.uint64), partitions)

    assert ((owners >= 0) & (owners < partitions)).all()
    assert owners.tolist() == [int(partition_of(np.array([i], np.uint64), partitions)[0]) for i in ids]


def test_small_ids_are_spread_over_the_partitions() -> None:
    """A sketch keeps the smallest ids, whose high bits are all zero; they are still spread over all partitions."""
    owners = partition_of(np.arange(70_000, dtype=np.uint64), 7)

    assert np.abs(np.bincount(owners, minlength=7) - 10_000).max() < 1_000


# Two sketches.


two = st.tuples(*[st.frozensets(st.integers(0, 20), max_size=14)] * 2)


@given(two, st.integers(0, 15))
def test_overlap_is_counted_or_given_up(sets: tuple[frozenset[int], frozenset[int]], need: int) -> None:
    """The overlap is returned if it reaches `need`, else -1."""
    a, b = (tuple(sorted(one)) for one in sets)
    both, common = ragged([a, b]), len(set(a) & set(b))

    found = overlap_or_less(both.values, 0, len(a), len(a), len(a) + len(b), need)

    assert found == (common if common >= need else -1)


def by_smallest(size: int) -> KernelRule:
    """Return the rule that estimates a resemblance from `size` smallest ids."""
    return Threshold("resemblance", 1, 2, is_count=False, size=size).rule


@given(two, st.integers(1, 15))
@example((frozenset(), frozenset()), 3)
def test_resemblance_is_the_definition(sets: tuple[frozenset[int], frozenset[int]], size: int) -> None:
    """Both counts are those of MIN_s of the union, or of the whole union if both sketches are short."""
    a, b = (tuple(sorted(one))[:size] for one in sets)
    union = sorted({*a, *b})
    if len(a) == size or len(b) == size:
        union = union[:size]

    both = ragged([a, b])
    shared, united = resemblance_parts(both.values, 0, len(a), len(a), len(a) + len(b), by_smallest(size))

    assert (shared, united) == (len(set(union) & set(a) & set(b)), len(union))


@given(two, st.integers(1, 15))
def test_the_resemblance_of_slots_is_the_share_of_equal_ones(
    sets: tuple[frozenset[int], frozenset[int]], slots: int
) -> None:
    """The resemblance is the common ids over the number of slots, whatever the size of the union."""
    a, b = (tuple(sorted(one))[:slots] for one in sets)
    by_slots = Threshold("resemblance", 1, 2, is_count=False, size=slots, by_slots=True).rule

    parts = resemblance_parts(ragged([a, b]).values, 0, len(a), len(a), len(a) + len(b), by_slots)

    assert parts == (len(set(a) & set(b)), slots)


@given(two, st.integers(1, 15))
def test_resemblance_is_symmetric(sets: tuple[frozenset[int], frozenset[int]], size: int) -> None:
    """The order of the two sketches does not matter."""
    a, b = (tuple(sorted(one))[:size] for one in sets)
    ab, ba = ragged([a, b]), ragged([b, a])

    one = resemblance_parts(ab.values, 0, len(a), len(a), len(a) + len(b), by_smallest(size))
    other = resemblance_parts(ba.values, 0, len(b), len(b), len(a) + len(b), by_smallest(size))

    assert one == other
