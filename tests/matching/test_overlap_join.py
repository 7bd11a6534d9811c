"""The join of prefixes: every near pair once, with overlap and resemblance by definition."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.matching.bitmaps import make_bitmaps
from nddup.matching.overlap_join import (
    NO_LIMIT,
    JoinResult,
    LongLists,
    Prefixes,
    Probes,
    begin_count,
    count_pairs,
    find_large,
    find_root,
    join_prefixes,
    link_heavy,
    longest_list,
    post_prefixes,
)
from nddup.matching.threshold import Threshold
from tests.counted_rows import once
from tests.matching.prepared_sketches import Sketch, documents, ragged, resemblance
from tests.matching.pruned_postings import count_holders, keep_possible, order_by_rarity

ALL = LongLists(1 << 30, 0)
FAR = 2**63 + 11
"""Added to each id: beyond 2**63 none fits a signed integer. With the largest scale some ids wrap to small ones."""


# The definitions.


@dataclass(frozen=True)
class Rule:
    """The rule by which two sketches of at most `size` ids are near-duplicates."""

    measure: str
    threshold: Fraction
    size: int = 8

    def alpha(self, size: int) -> int:
        """Return the least overlap that a sketch of this size needs."""
        if self.measure == "count":
            return int(self.threshold)
        return next(o for o in range(1, size + 2) if Fraction(o, max(size, 1)) >= self.threshold)

    def is_near(self, a: Sketch, b: Sketch) -> bool:
        """Return whether two sketches are near-duplicates by the definition of the measure."""
        common = len(set(a) & set(b))
        if self.measure == "count":
            return common >= self.threshold
        if self.measure == "share":
            return common > 0 and Fraction(common, max(len(a), len(b))) >= self.threshold
        return common > 0 and resemblance(a, b, self.size) >= self.threshold

    def pairs(self, sketches: Sequence[Sketch]) -> set[tuple[int, int]]:
        """Return the near-duplicate pairs, by comparing all pairs."""
        return {(a, b) for a, b in combinations(range(len(sketches)), 2) if self.is_near(sketches[a], sketches[b])}


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
scales = st.sampled_from([1, 7, 0x1234567890ABCDEF])


def sketches_of(texts: Sequence[frozenset[int]], size: int, scale: int = 1) -> list[Sketch]:
    """Reduce documents to distinct sketches, ordered by size as the join needs them."""
    distinct = {tuple(sorted((feature * scale + FAR) % 2**64 for feature in text))[:size] for text in texts}
    return sorted(distinct, key=lambda sketch: (len(sketch), sketch))


@dataclass(frozen=True)
class Prepared:
    """The input of the join: the sketches that pruning left, in order of size, with their prefixes."""

    names: NDArray[np.int64]
    prefixes: Prefixes
    bounds: NDArray[np.int32]


def prepare(sketches: Sequence[Sketch], rule: Rule, *, rounds: int, shorter: int = 0) -> Prepared:
    """Prune for some rounds, order by rarity and cut the prefixes, as the stage does, on one partition."""
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
    numbers = rank(features[flat])
    return Prepared(names[ranked], Prefixes(starts, numbers, len(numbers)), bounds[names[ranked]])


def rank(features: NDArray[np.uint64]) -> NDArray[np.int32]:
    return np.unique(features, return_inverse=True)[1].astype(np.int32)


def probe(
    sketches: Sequence[Sketch], ready: Prepared, rule: Rule, heavy: NDArray[np.bool_] | None = None
) -> tuple[Probes, Threshold]:
    measure = "resemblance" if rule.measure == "resemblance" else "overlap"
    exact, is_count = rule.threshold, rule.measure == "count"
    threshold = Threshold(measure, exact.numerator, exact.denominator, is_count=is_count, size=rule.size)
    whole = ragged([sketches[name] for name in ready.names])
    posted = np.diff(ready.prefixes.offsets).astype(np.int32)
    heavy = np.zeros(len(posted), np.bool_) if heavy is None else heavy
    sizes = np.diff(whole.offsets).astype(np.int32)
    return Probes(whole, ready.prefixes, sizes, ready.bounds, posted, posted, heavy, make_bitmaps(*whole)), threshold


def join(probes: Probes, threshold: Threshold, parts: int) -> list[JoinResult]:
    """Join each part of the sketches with all before it."""
    postings, cuts = post_prefixes(probes), np.linspace(0, len(probes.bounds), parts + 1).astype(int).tolist()
    return [join_prefixes(probes, postings, range(low, high), threshold=threshold) for low, high in pairwise(cuts)]


def find_all(
    sketches: Sequence[Sketch], rule: Rule, *, parts: int = 1, rounds: int = 2, shorter: int = 0
) -> list[tuple[int, int, int, float]]:
    """Join in parts and return the pairs of all, sorted: (a, b, overlap, resemblance)."""
    ready = prepare(sketches, rule, rounds=rounds, shorter=shorter)
    found = []
    for pairs in join(*probe(sketches, ready, rule), parts):
        names = zip(ready.names[pairs.first].tolist(), ready.names[pairs.second].tolist(), strict=True)
        values = zip(pairs.overlap.tolist(), pairs.resemblance.tolist(), strict=True)
        found += [(a, b, *both) for (a, b), both in zip(names, values, strict=True)]
        assert pairs.candidates >= len(pairs.first)
    return sorted(found)


# The join.


@given(documents, rules, scales, st.sampled_from([1, 2, 7]), st.integers(0, 3))
def test_finds_every_near_pair_once(
    texts: list[frozenset[int]], rule: Rule, scale: int, parts: int, rounds: int
) -> None:
    """Each near-duplicate pair is found once over all parts, and no other pair, after any number of prunings."""
    sketches = sketches_of(texts, rule.size, scale)

    found = find_all(sketches, rule, parts=parts, rounds=rounds)

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
    """Return the sketches of families of changed copies, some short and some full."""
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
    """In families of changed copies the join finds the pairs that comparing all pairs finds."""
    sketches = families(rule.size)
    expected = rule.pairs(sketches)

    assert len(expected) > 100
    assert {len(sketch) == rule.size for sketch in sketches} == {True, False}
    for parts in (1, 2, 7):
        assert once((a, b) for a, b, _, _ in find_all(sketches, rule, parts=parts)) == expected


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("rule", FAMILY_RULES, ids=lambda rule: rule.measure)
def test_heavy_sketches_are_linked_and_meet_all_others(rule: Rule, parts: int) -> None:
    """Heavy sketches are not compared with each other but joined by links; all other near pairs are found."""
    limit = 8
    sketches, ready = families(rule.size), prepare(families(rule.size), rule, rounds=2)
    is_long = np.bincount(ready.prefixes.ranks)[ready.prefixes.ranks] > limit
    heavy_ones = np.array([is_long[low:high].any() for low, high in pairwise(ready.prefixes.offsets)])
    label = {name: name for name in ready.names.tolist()}

    probes, threshold = probe(sketches, ready, rule, heavy_ones)
    links = ready.names[link_heavy(probes)].tolist()
    found = once(
        pair for part in join(probes, threshold, parts)
        for pair in zip(ready.names[part.first].tolist(), ready.names[part.second].tolist(), strict=True)
    )  # fmt: skip
    postings = post_prefixes(probes)
    assert longest_list(probes, postings, LongLists(limit, 0)) == 0
    rows = np.split(ready.prefixes.ranks, ready.prefixes.offsets[1:-1])
    met = [len(np.intersect1d(rows[i], rows[j])) for i in range(len(rows)) for j in range(i)
           if not (heavy_ones[i] and heavy_ones[j])]  # fmt: skip
    assert postings.meetings.sum() == sum(met)

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
    Two sketches may meet only at the last feature of a prefix of (features left) - alpha + 1: all of it is needed.

    Each has five features and needs three in common, so its prefix has three. The rarest come first:

        1 2 | 10        3 4 | 10
    """
    rule, sketches = Rule("count", Fraction(3)), [(1, 2, 10, 11, 12), (3, 4, 10, 11, 12)]

    assert [pair[:2] for pair in find_all(sketches, rule, rounds=0)] == [(0, 1)]
    assert find_all(sketches, rule, rounds=0, shorter=1) == []


def test_overlap_is_taken_on_the_original_sketches() -> None:
    """
    Resemblance counts 1 and 2, although pruning drops them because one sketch holds each; so 0.7 is not reached.

    Without 1 and 2 the two sketches would be equal.
    """
    sketches = [(1, 10, 11, 12), (2, 10, 11, 12)]

    assert find_all(sketches, Rule("resemblance", Fraction("0.7"))) == []
    assert find_all(sketches, Rule("resemblance", Fraction("0.6"))) == [(0, 1, 3, 0.6)]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_large_component_has_enough_pairs_to_connect_it(parts: int) -> None:
    """
    With at most two pairs a component, two families of six and strangers who hold the same features are told apart.

    A component with more pairs has at least one more than the limit, and enough to connect it; others have all.
    """
    rule, random = Rule("share", Fraction("0.6"), 20), np.random.default_rng(1)
    texts = [frozenset([family * 100 + k for k in range(8)] + [999 + k for k in range(2)] + [5_000 + 9 * family + n])
             for n in range(6) for family in range(2)]  # fmt: skip
    texts += [frozenset([999, 1_000, *(7_000 + 20 * n + k for k in range(7 + n))]) for n in range(5)]
    sketches = sketches_of([texts[place] for place in random.permutation(len(texts))], rule.size)
    probes, threshold = probe(sketches, prepare(sketches, rule, rounds=0), rule)
    names, postings = prepare(sketches, rule, rounds=0).names, post_prefixes(probes)
    expected, connected = rule.pairs(sketches), begin_count(len(probes.bounds), 2)
    cuts = np.linspace(0, len(probes.bounds), parts + 1).astype(int).tolist()

    found = [
        join_prefixes(probes, postings, range(low, high), threshold=threshold, connected=connected)
        for low, high in pairwise(cuts)
    ]

    pairs = once((int(names[a]), int(names[b])) for part in found for a, b in zip(part.first, part.second, strict=True))
    large = find_large(connected)
    assert (len(expected), pairs < expected, np.bincount(large[large >= 0]).max()) == (30, True, 6)
    assert len(pairs) < len(expected) / 2
    for a, b in combinations(range(len(names)), 2):
        is_near = (min(names[a], names[b]), max(names[a], names[b])) in expected
        assert (large[a] == large[b] >= 0) == is_near, (names[a], names[b])


def test_the_pairs_of_a_family_connect_it_however_many_there_are() -> None:
    """Of 200 near-equal sketches over 1,000 pairs are found; then one each joins the others, and none is forgotten."""
    rule = Rule("share", Fraction("0.6"), 20)
    sketches = sketches_of([frozenset([*range(8), 100 + n]) for n in range(200)], rule.size)
    probes, threshold = probe(sketches, prepare(sketches, rule, rounds=0), rule)
    connected, again = begin_count(200, 1_000), begin_count(200, NO_LIMIT)

    found = join_prefixes(probes, post_prefixes(probes), range(200), threshold=threshold, connected=connected)

    count_pairs(again, found.first, found.second)
    assert len(found.first) > 1_024
    assert [find_root(again.above, sketch) for sketch in range(200)] == [0] * 200


def test_the_first_sketch_that_is_large_enough_is_met() -> None:
    """In both lists in which (1, 2) is met, a sketch stands before it that is too small for the last."""
    sketches = [(1,), (2,), (1, 2), (1, 2, 5, 6)]

    assert [pair[:2] for pair in find_all(sketches, Rule("share", Fraction("0.5")), rounds=0)] == [
        (0, 2), (1, 2), (2, 3),
    ]  # fmt: skip


def test_only_a_run_of_one_component_is_passed_over() -> None:
    """
    Of more than two pairs in a component, a sketch near two components connects them.

    Four sketches with 1, 2 and 3 are a large component. The list of 10 holds one of them, a stranger, then another of
    them, which notes that the first may be passed over. The last sketch, already known to be in the component by its 9,
    meets the stranger in this list only.
    """
    rule = Rule("count", Fraction(3))
    sketches = sorted(
        [(1, 2, 3, 9), (1, 2, 3, 10), (1, 2, 3, 11), (10, 12, 20, 21), *((20, 21, n, n + 50) for n in range(30, 34)),
         (1, 2, 3, 9, 10), (1, 2, 3, 9, 10, 20, 21)],
        key=lambda sketch: (len(sketch), sketch),
    )  # fmt: skip
    ready = prepare(sketches, rule, rounds=0)
    probes, threshold = probe(sketches, ready, rule)
    connected = begin_count(len(probes.bounds), 2)

    found = join_prefixes(probes, post_prefixes(probes), range(len(sketches)), threshold=threshold, connected=connected)

    stranger, last = sketches.index((10, 12, 20, 21)), len(sketches) - 1
    large = dict(zip(ready.names.tolist(), find_large(connected).tolist(), strict=True))
    assert large[stranger] == large[last] >= 0
    assert found.candidates < 20


def test_a_long_list_is_compared_in_full_or_not_at_all() -> None:
    """
    A list of six holders, two above the limit, is compared in full if 12 more comparisons are allowed, else not at all.

    All six sketches look for the two holders beyond the first four: 12 comparisons.
    """
    rule = Rule("count", Fraction(3))
    sketches = [(1, 2, 3, extra) for extra in range(10, 16)]
    prefixes = Prefixes(np.arange(7), np.zeros(6, np.int32), 1)
    probes, threshold = probe(sketches, Prepared(np.arange(6), prefixes, np.full(6, 3, np.int32)), rule)

    lengths = [longest_list(probes, post_prefixes(probes), LongLists(4, most)) for most in (12, 11)]
    (whole,) = join(probes, threshold, 1)

    assert lengths == [0, 6]
    assert once(zip(whole.first.tolist(), whole.second.tolist(), strict=True)) == set(combinations(range(6), 2))
    assert whole.candidates == 15


def test_no_sketches_give_no_pairs() -> None:
    """Without sketches there are no pairs and no candidates."""
    nothing, none = Ragged(np.zeros(1, np.int64), np.empty(0, np.uint64)), np.empty(0, np.int32)
    whole = make_bitmaps(*nothing)
    prefixes = Prefixes(nothing.offsets, none, 0)
    probes = Probes(nothing, prefixes, none, none, none, none, np.empty(0, np.bool_), whole)

    (found,) = join(probes, Threshold("overlap", 3, 1, is_count=True, size=8), 1)

    assert (len(found.first), found.candidates, len(link_heavy(probes))) == (0, 0, 0)
