"""Containment: pairs, keep-list and the form of sketches against brute force."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged
from nddup.matching.bitmaps import make_bitmaps
from nddup.matching.overlap_join import Prefixes, Probes, join_prefixes, post_prefixes
from nddup.matching.threshold import Threshold
from nddup.mining.pair_graph import keep_first
from nddup.sketching.recipe import level_of
from nddup.verifying.definitions import Form, Rows, damaged_sketches, gather, level_due
from tests.matching.pruned_postings import count_holders, order_by_rarity

sets = st.lists(st.sets(st.integers(0, 14), min_size=1, max_size=8), min_size=2, max_size=8)
shares = st.sampled_from([Fraction(1, 5), Fraction(1, 2), Fraction(2, 3), Fraction(4, 5), Fraction(1)])


@given(sketches=sets, share=shares, parts=st.integers(1, 3), pruned=st.booleans())
def test_finds_whatever_contains_enough(sketches: list[set[int]], share: Fraction, parts: int, *, pruned: bool) -> None:
    """Each pair in which one lies in the other to this share is found once, for any pruning and division."""
    rows = [np.array(sorted(ids), np.uint64) for ids in sorted(sketches, key=len)]
    threshold = Threshold("containment", share.numerator, share.denominator, is_count=False, size=1 << 30)
    sizes = np.array([len(row) for row in rows], np.int32)
    features = np.concatenate(rows)
    holders = count_holders(features)
    left = holders > 1 if pruned else np.ones(len(features), np.bool_)
    owners = np.repeat(np.arange(len(rows)), sizes)[left]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(rows)))]).astype(np.int64)
    features, holders = features[left], holders[left]
    order = order_by_rarity(offsets, features, holders)
    bounds = threshold.bounds(sizes)
    whole = Ragged(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.concatenate(rows))
    probes = Probes(
        sketches=whole,
        prefixes=Prefixes(offsets, features[order].astype(np.int32), 15),
        totals=sizes,
        bounds=bounds,
        probed=np.diff(offsets).astype(np.int32),
        posted=np.maximum(np.diff(offsets) - bounds + 1, 0).astype(np.int32),
        heavy=np.zeros(len(rows), np.bool_),
        bitmaps=make_bitmaps(*whole),
    )
    found, cuts = [], np.linspace(0, len(rows), parts + 1).astype(int).tolist()
    for low, high in pairwise(cuts):
        matches = join_prefixes(probes, post_prefixes(probes), range(low, high), threshold=threshold)
        found += list(zip(matches.first.tolist(), matches.second.tolist(), matches.overlap.tolist(), strict=True))

    expected = []
    for i, j in combinations(range(len(rows)), 2):
        overlap = len(set(rows[i].tolist()) & set(rows[j].tolist()))
        if overlap and Fraction(overlap, min(len(rows[i]), len(rows[j]))) >= share:
            expected.append((i, j, overlap))
    assert sorted(found) == expected


@given(sketches=sets, share=shares, seed=st.integers(0, 5))
@example(sketches=[{0, 1, 3, 6, 7}, {0, 1, 2, 4, 5}, {0, 1, 2, 3, 4}, {0}, {0}], share=Fraction(1, 2), seed=0)
def test_a_document_goes_when_an_earlier_kept_one_contains_it(
    sketches: list[set[int]], share: Fraction, seed: int
) -> None:
    """Documents are taken largest first; a removed one is a duplicate of the kept one before it that contains most."""
    n, policy = len(sketches), np.random.default_rng(seed).permutation(len(sketches)).tolist()
    order = sorted(range(n), key=lambda i: (-len(sketches[i]), policy[i]))

    def within(i: int, j: int) -> float:
        return len(sketches[i] & sketches[j]) / len(sketches[i])

    edges = [(i, j) for i, j in combinations(range(n), 2) if max(within(i, j), within(j, i)) >= share]
    kept: list[int] = []
    for i in order:
        if not any(within(i, j) >= share for j in kept):
            kept.append(i)
    likeness = np.array([[within(i, j) for i, j in edges], [within(j, i) for i, j in edges]])
    ranks = np.array([order.index(i) for i in range(n)], np.int32)

    choice = keep_first(np.array(edges, np.int32).reshape(-1, 2), likeness, ranks, float(share))

    assert np.flatnonzero(choice.kept).tolist() == sorted(kept)
    for i in set(range(n)) - set(kept):
        able = [j for j in kept if within(i, j) >= share and ranks[j] < ranks[i]]
        assert choice.duplicate_of[i] == min(able, key=lambda j: (-within(i, j), ranks[j]))


def rows_of(*ids: list[int]) -> Rows:
    return gather([np.array(row, np.uint64) for row in ids])


@pytest.mark.parametrize(
    ("form", "ids", "n_features", "is_wrong"),
    [
        (Form("min-s", 3), [1, 2, 3], 9, False),
        (Form("min-s", 3), [1, 2], 9, True),
        (Form("super", 3), [1, 2], 2, False),
        (Form("min-s", 4, growth="linear", modulus=5), [1, 2], 9, False),
        (Form("min-s", 4, growth="linear", modulus=5), [1, 2, 3], 9, True),
        (Form("min-s", 4, growth="logarithmic"), list(range(8)), 12, False),
        (Form("min-s", 4, growth="logarithmic"), list(range(7)), 12, True),
        (Form("mod-m", 200, modulus=3), [3, 9], 9, False),
        (Form("mod-m", 200, modulus=3), [3, 10], 9, True),
        (Form("mod-pow2", 4), [4, 8], 9, False),
        (Form("mod-pow2", 4), [2, 8], 9, True),
        (Form("mod-pow2", 4), [2, 8], 8, False),
        (Form("min-perm", 2), [2 << 17, 3 << 17 | 1], 9, False),
        (Form("min-perm", 2), [2 << 17, 3 << 17], 9, True),
        (Form("minhash", 2), [2 << 17], 9, True),
        (Form("minhash", 2), [], 0, False),
        (Form("min-perm", 2, is_tagged=False), [5], 9, False),
        (Form("min-perm", 2, is_tagged=False), [5, 6, 7], 9, True),
        (Form("mod-m", 200, modulus=3), [9, 3], 9, True),
        (Form("i-match", 3), [5, 6, 7], 1, False),
        (Form("i-match", 3), [], 9, False),
        (Form("i-match", 3), [5], 0, True),
        (Form("i-match", 3), [5, 6, 7, 8], 9, True),
    ],
)
def test_a_sketch_of_another_form_is_damaged(form: Form, ids: list[int], n_features: int, *, is_wrong: bool) -> None:
    assert damaged_sketches(rows_of(ids), np.array([n_features]), form).tolist() == [is_wrong]


@given(n=st.integers(0, 10**6), size=st.integers(1, 1000))
def test_levels_by_trying_are_levels_by_digits(n: int, size: int) -> None:
    assert level_due(n, size) == level_of(n, size)
