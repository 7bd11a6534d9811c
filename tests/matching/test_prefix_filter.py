"""The overlap join on arrays against all pairs, and the claims that make it exact."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nddup.arrays import Ragged, group_rows
from nddup.matching.compare import overlap_or_less, resemblance_parts
from nddup.matching.overlap_join import Found, Probes, join_prefixes
from nddup.matching.prefix_filter import count_holders, keep_possible, order_by_rarity, partition_of
from nddup.matching.threshold import Rule as KernelRule
from nddup.matching.threshold import Threshold, least_overlaps

Sketch = tuple[int, ...]
NEVER_CUT = 1 << 30
FAR = 2**63 + 11
"""Added to ids, it puts them on both sides of the sign bit once they are spread."""


# The definitions.


@dataclass(frozen=True)
class Rule:
    """When two sketches of at most `size` ids are near-duplicates."""

    measure: str
    threshold: Fraction
    size: int = 8

    def alpha(self, size: int) -> int:
        """Find the least overlap that a sketch of this size needs."""
        if self.measure == "count":
            return int(self.threshold)
        return next(o for o in range(1, size + 2) if Fraction(o, max(size, 1)) >= self.threshold)

    def is_near(self, a: Sketch, b: Sketch) -> bool:
        """Tell by the definition of the measure whether two sketches are near-duplicates."""
        common = len(set(a) & set(b))
        if self.measure == "count":
            return common >= self.threshold
        if self.measure == "share":
            return common > 0 and Fraction(common, max(len(a), len(b))) >= self.threshold
        return common > 0 and resemblance(a, b, self.size) >= self.threshold

    def pairs(self, sketches: Sequence[Sketch]) -> set[tuple[int, int]]:
        """Compare all pairs."""
        return {(a, b) for a, b in combinations(range(len(sketches)), 2) if self.is_near(sketches[a], sketches[b])}


def resemblance(a: Sketch, b: Sketch, size: int) -> Fraction:
    """Estimate by MIN_s of the union; two sketches with fewer than s ids are the documents themselves."""
    union = sorted({*a, *b})
    if len(a) >= size or len(b) >= size:
        union = union[:size]
    return Fraction(len(set(union) & set(a) & set(b)), max(len(union), 1))


# Random sketches: the smallest ids of small documents, short and full mixed, many near each other.

documents = st.lists(st.frozensets(st.integers(0, 13), min_size=1), min_size=1, max_size=14)
rules = st.one_of(
    st.builds(Rule, st.just("count"), st.integers(1, 8).map(Fraction)),
    st.builds(Rule, st.just("share"), st.sampled_from(["0.2", "0.5", "0.55", "0.7", "0.9", "1"]).map(Fraction)),
    st.builds(
        Rule,
        st.just("resemblance"),
        st.sampled_from(["0.2", "0.5", "0.55", "0.7", "0.9", "1"]).map(Fraction),
        st.integers(1, 10),
    ),
)
scales = st.sampled_from([1, 7, 0x1234567890ABCDEF >> 4])


def sketches_of(texts: Sequence[frozenset[int]], size: int, scale: int = 1) -> list[Sketch]:
    """Reduce documents to distinct sketches, ordered by size as the join needs them."""
    distinct = {tuple(sorted((feature * scale + FAR) % 2**64 for feature in text))[:size] for text in texts}
    return sorted(distinct, key=lambda sketch: (len(sketch), sketch))


def ragged(rows: Sequence[Sketch]) -> Ragged:
    ends = np.cumsum([0, *map(len, rows)])
    return Ragged(ends.astype(np.int64), np.array([value for row in rows for value in row], np.uint64))


@dataclass(frozen=True)
class Prepared:
    """What the stage hands to the join: sketches that pruning left, their prefixes, in order of size."""

    names: NDArray[np.int64]
    prefixes: Ragged
    holders: NDArray[np.int32]
    bounds: NDArray[np.int32]


def prepare(sketches: Sequence[Sketch], rule: Rule, *, rounds: int, shorter: int = 0) -> Prepared:
    """Prune for some rounds, order by rarity, cut the prefixes: the steps of the stage, on one partition."""
    whole = ragged(sketches)
    lengths = np.diff(whole.offsets)
    bounds = np.array([rule.alpha(length) for length in lengths], np.int32)
    nodes, features = np.repeat(np.arange(len(sketches)), lengths), whole.values
    for _ in range(rounds):
        shared = count_holders(features) > 1
        nodes, features = nodes[shared], features[shared]
        order, _ = keep_possible(nodes.astype(np.uint64), bounds[nodes])
        nodes, features = nodes[order], features[order]
    holders = count_holders(features)
    order, offsets = keep_possible(nodes.astype(np.uint64), bounds[nodes])
    nodes, features, holders = nodes[order], features[order], holders[order]
    by_rarity = order_by_rarity(offsets, features, holders)
    names = nodes[offsets[:-1]]
    ranked = np.argsort(names)
    ends = np.diff(offsets) - bounds[names] + 1 - shorter
    chosen = [by_rarity[offsets[i] : offsets[i] + ends[i]] for i in ranked]
    flat = np.concatenate([*chosen, np.empty(0, np.int64)]).astype(np.int64)
    starts = np.cumsum([0, *map(len, chosen)]).astype(np.int64)
    return Prepared(names[ranked], Ragged(starts, features[flat]), holders[flat], bounds[names[ranked]])


def join(  # noqa: PLR0913, PLR0917 - the arguments of the kernel
    sketches: Sequence[Sketch],
    ready: Prepared,
    rule: Rule,
    owned: NDArray[np.bool_],
    cut: int,
    heavy: NDArray[np.bool_] | None = None,
) -> Found:
    measure = "resemblance" if rule.measure == "resemblance" else "overlap"
    exact, is_count = rule.threshold, rule.measure == "count"
    threshold = Threshold(measure, exact.numerator, exact.denominator, is_count=is_count, size=rule.size)
    whole = ragged([sketches[name] for name in ready.names])
    posted = np.diff(ready.prefixes.offsets).astype(np.int32)
    heavy = np.zeros(len(posted), np.bool_) if heavy is None else heavy
    probes = Probes(whole, ready.prefixes, ready.holders, ready.bounds, posted, heavy)
    return join_prefixes(probes, owned, threshold=threshold, max_postings=cut)


def find_all(
    sketches: Sequence[Sketch], rule: Rule, *, partitions: int = 1, rounds: int = 2, shorter: int = 0
) -> list[tuple[int, int, int, float]]:
    """Join in each partition and put the pairs of all together: (a, b, overlap, resemblance)."""
    ready = prepare(sketches, rule, rounds=rounds, shorter=shorter)
    found = []
    for partition in range(partitions):
        owned = partition_of(ready.prefixes.values, partitions) == partition
        pairs = join(sketches, ready, rule, owned, NEVER_CUT)
        names = zip(ready.names[pairs.first].tolist(), ready.names[pairs.second].tolist(), strict=True)
        values = zip(pairs.overlap.tolist(), pairs.resemblance.tolist(), strict=True)
        found += [(a, b, *both) for (a, b), both in zip(names, values, strict=True)]
        assert (pairs.cut_features, pairs.cut_postings) == (0, 0)
        assert pairs.candidates >= len(pairs.first)
    return sorted(found)


# The bounds.


@given(st.lists(st.integers(0, 100_000)), st.integers(1, 10**6), st.integers(1, 10**6))
@example([100], 11, 20)
def test_bounds_are_exact_integers(sizes: list[int], numerator: int, denominator: int) -> None:
    """The bound is the least o >= 1 with o / size >= the share: o reaches it and o - 1 does not."""
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
    """A count does not follow the size, so a sketch may need more than it has."""
    sizes = np.array([0, 3, 200], np.int32)

    assert least_overlaps(sizes, numerator=85, denominator=1, is_count=True).tolist() == [85, 85, 85]


def test_no_sketch_can_resemble_another_beyond_its_bound() -> None:
    """
    The overlap is at least r * |A| and r * |B|, whatever s: so a near-duplicate pair reaches the larger alpha.

    All pairs of subsets of six ids, as sketches of s = 1 ... 7. Since alpha is the least integer reaching t * |d|, it
    is enough to try t = r itself.
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
    """Keys come in the order of their first appearance, the rows of each as they came."""
    first_seen = list(dict.fromkeys(values))
    expected = [[row for row, value in enumerate(values) if value == key] for key in first_seen]

    order, offsets = group_rows(np.array(values, np.uint64))

    assert offsets[0] == 0
    assert [rows.tolist() for rows in np.split(order, offsets[1:-1])][: len(offsets) - 1] == expected


@given(keys)
def test_holders_count_equal_features(values: list[int]) -> None:
    """Each feature is told how often it occurs."""
    assert count_holders(np.array(values, np.uint64)).tolist() == [values.count(value) for value in values]


@given(st.lists(st.integers(0, 4), max_size=30), st.lists(st.integers(1, 6), min_size=5, max_size=5))
def test_keeps_the_sketches_with_enough_features_left(nodes: list[int], needs: list[int]) -> None:
    """A sketch stays with all its postings iff they number at least its bound."""
    expected = [
        [row for row, other in enumerate(nodes) if other == node]
        for node in dict.fromkeys(nodes)
        if nodes.count(node) >= needs[node]
    ]

    bounds = np.array([needs[node] for node in nodes], np.int32)
    order, offsets = keep_possible(np.array(nodes, np.uint64), bounds)

    assert offsets[0] == 0
    assert [order[low:high].tolist() for low, high in pairwise(offsets)] == expected


@given(st.lists(st.dictionaries(st.integers(0, 2**64 - 1), st.integers(1, 3), max_size=8), max_size=6))
def test_orders_by_holders_and_then_by_unsigned_id(rows: list[dict[int, int]]) -> None:
    """Each sketch's features stand in ONE total order: fewest holders first, ties by id as unsigned."""
    features = [list(row) for row in rows]
    flat = np.array([feature for row in features for feature in row], np.uint64)
    holders = np.array([count for row in rows for count in row.values()], np.int32)
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)

    order = order_by_rarity(offsets, flat, holders)

    sorted_rows = [flat[order[low:high]].tolist() for low, high in pairwise(offsets)]
    expected = [[feature for _, feature in sorted((count, feature) for feature, count in row.items())] for row in rows]
    assert sorted_rows == expected


@given(st.lists(st.integers(0, 2**64 - 1)), st.integers(1, 1000))
def test_every_id_has_one_owner(ids: list[int], partitions: int) -> None:
    """The owner of an id is a partition, the same wherever the id is seen."""
    owners = partition_of(np.array(ids, np.uint64), partitions)

    assert ((owners >= 0) & (owners < partitions)).all()
    assert owners.tolist() == [int(partition_of(np.array([i], np.uint64), partitions)[0]) for i in ids]


def test_small_ids_are_spread_over_the_partitions() -> None:
    """The ids a sketch keeps are the smallest, so their high bits are all zero; no partition gets them all."""
    owners = partition_of(np.arange(70_000, dtype=np.uint64), 7)

    assert np.abs(np.bincount(owners, minlength=7) - 10_000).max() < 1_000


# Two sketches.

two = st.tuples(*[st.frozensets(st.integers(0, 20), max_size=14)] * 2)


@given(two, st.integers(0, 15))
def test_overlap_is_counted_or_given_up(sets: tuple[frozenset[int], frozenset[int]], need: int) -> None:
    """The overlap where it reaches the need, else -1."""
    a, b = (tuple(sorted(one)) for one in sets)
    both, common = ragged([a, b]), len(set(a) & set(b))

    found = overlap_or_less(both.values, 0, len(a), len(a), len(a) + len(b), need)

    assert found == (common if common >= need else -1)


def by_smallest(size: int) -> KernelRule:
    """Estimate a resemblance from so many of the smallest ids."""
    return Threshold("resemblance", 1, 2, is_count=False, size=size).rule


@given(two, st.integers(1, 15))
@example((frozenset(), frozenset()), 3)
def test_resemblance_is_the_definition(sets: tuple[frozenset[int], frozenset[int]], size: int) -> None:
    """Both numbers are those of MIN_s of the union, or of the whole union where both sketches are short."""
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
    """Common ids over the number of slots, whatever the size of the union."""
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


# The join.


@given(documents, rules, scales, st.sampled_from([1, 2, 7]), st.integers(0, 3))
def test_finds_every_near_pair_once(
    texts: list[frozenset[int]], rule: Rule, scale: int, partitions: int, rounds: int
) -> None:
    """Over all partitions each near-duplicate pair is found exactly once, no other is, after any round of pruning."""
    sketches = sketches_of(texts, rule.size, scale)

    found = find_all(sketches, rule, partitions=partitions, rounds=rounds)

    assert [(a, b) for a, b, _, _ in found] == sorted(rule.pairs(sketches))
    for a, b, overlap, likeness in found:
        assert overlap == len(set(sketches[a]) & set(sketches[b]))
        assert likeness == float(resemblance(sketches[a], sketches[b], rule.size))


FAMILY_RULES = [
    Rule("count", Fraction(14), 20),
    Rule("share", Fraction("0.7"), 20),
    Rule("resemblance", Fraction("0.7"), 20),
]


def families(size: int) -> list[Sketch]:
    """Families of changed copies, short and full sketches mixed."""
    random = np.random.default_rng(4)
    texts = []
    for _ in range(12):
        base = random.choice(2_000, random.integers(5, 40), replace=False)
        for _ in range(12):
            changed = np.where(random.random(len(base)) < 0.08, random.integers(0, 2_000, len(base)), base)
            texts.append(frozenset(changed[: random.integers(len(base) * 3 // 4, len(base) + 1)].tolist()))
    return sketches_of(texts, size)


@pytest.mark.parametrize("rule", FAMILY_RULES, ids=lambda rule: rule.measure)
def test_finds_every_near_pair_of_families(rule: Rule) -> None:
    """Families give what comparing all pairs gives."""
    sketches = families(rule.size)
    expected = rule.pairs(sketches)

    assert len(expected) > 100
    assert {len(sketch) == rule.size for sketch in sketches} == {True, False}
    for partitions in (1, 2, 7):
        assert {(a, b) for a, b, _, _ in find_all(sketches, rule, partitions=partitions)} == expected


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("rule", FAMILY_RULES, ids=lambda rule: rule.measure)
def test_heavy_sketches_are_linked_and_meet_all_others(rule: Rule, partitions: int) -> None:
    """No two heavy ones are compared, every other near pair is found, and links join all near pairs of heavy ones."""
    limit = 8
    sketches, ready = families(rule.size), prepare(families(rule.size), rule, rounds=2)
    is_long = count_holders(ready.prefixes.values) > limit
    heavy_ones = np.array([is_long[low:high].any() for low, high in pairwise(ready.prefixes.offsets)])
    found, label = set(), {name: name for name in ready.names.tolist()}

    links = []
    for partition in range(partitions):
        owned = partition_of(ready.prefixes.values, partitions) == partition
        part = join(sketches, ready, rule, owned, limit, heavy_ones)
        found |= set(zip(ready.names[part.first].tolist(), ready.names[part.second].tolist(), strict=True))
        links += ready.names[part.links].tolist()
        assert (part.cut_features, part.cut_postings) == (0, 0)

    inside = set(ready.names[heavy_ones].tolist())
    expected = rule.pairs(sketches)
    both = {pair for pair in expected if inside.issuperset(pair)}
    assert min(len(both), len(expected - both)) > 10
    assert found == expected - both
    assert inside.issuperset(np.array(links).ravel().tolist())
    for _ in label:
        for first, second in links:
            label[first] = label[second] = min(label[first], label[second])
    assert all(label[first] == label[second] for first, second in both)


def test_a_prefix_one_shorter_loses_pairs() -> None:
    """
    The prefix of (features left) - alpha + 1 is needed in full: two sketches may meet at its last feature only.

    Five features each, three needed, so a prefix of three. First stand the rarest, 1 2 and 3 4, then 10 11 12:

        1 2 | 10        3 4 | 10
    """
    rule, sketches = Rule("count", Fraction(3)), [(1, 2, 10, 11, 12), (3, 4, 10, 11, 12)]

    assert [pair[:2] for pair in find_all(sketches, rule, rounds=0)] == [(0, 1)]
    assert find_all(sketches, rule, rounds=0, shorter=1) == []


def test_overlap_is_taken_on_the_original_sketches() -> None:
    """
    Pruning drops 1 and 2, which one sketch holds each; resemblance still counts them, and refuses the pair.

    On what pruning leaves, the two would be equal.
    """
    sketches = [(1, 10, 11, 12), (2, 10, 11, 12)]

    assert find_all(sketches, Rule("resemblance", Fraction("0.7"))) == []
    assert find_all(sketches, Rule("resemblance", Fraction("0.6"))) == [(0, 1, 3, 0.6)]


def test_a_cut_is_counted_and_leaves_the_smallest() -> None:
    """
    Six sketches share their rarest feature; a list of at most four is cut by two postings.

    The first four by (size, name) stay in the list and are met by all that come later, so only the pair of the last
    two is lost.
    """
    rule = Rule("count", Fraction(3))
    sketches = [(1, 2, 3, extra) for extra in range(10, 16)]
    ready = Prepared(
        np.arange(6), ragged([(1,)] * 6), np.full(6, 6, np.int32), np.full(6, 3, np.int32)
    )  # fmt: skip

    cut, whole = (join(sketches, ready, rule, np.ones(6, np.bool_), limit) for limit in (4, 6))

    pairs, every = (set(zip(found.first.tolist(), found.second.tolist(), strict=True)) for found in (cut, whole))
    assert every == set(combinations(range(6), 2))
    assert every - pairs == {(4, 5)}
    assert (cut.cut_features, cut.cut_postings) == (1, 2)
    assert (whole.cut_features, whole.cut_postings) == (0, 0)


def test_no_sketches_give_no_pairs() -> None:
    """An empty partition is an empty answer."""
    nothing = Ragged(np.zeros(1, np.int64), np.empty(0, np.uint64))
    none = np.empty(0, np.int32)

    probes = Probes(nothing, nothing, none, none, none, np.empty(0, np.bool_))
    threshold = Threshold("overlap", 3, 1, is_count=True, size=8)

    found = join_prefixes(probes, np.empty(0, np.bool_), threshold=threshold, max_postings=NEVER_CUT)

    assert len(found.first) == 0
    assert found.candidates == 0
