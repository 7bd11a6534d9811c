"""Packed sketches: what two have in common, and the comparison that follows from it, are those of the sketches."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.embedded.match import PairingOptions, match
from nddup.embedded.workers import Workers
from nddup.ground.arrays import Ragged
from nddup.matching import probes
from nddup.matching.bitmaps import MOST_BITS, Packed, count_packed, pack
from nddup.matching.threshold import Threshold, compare_by_overlap, compare_sketches

ids = st.lists(st.integers(0, 40), max_size=12, unique=True).map(sorted)
THRESHOLDS = [
    Threshold("resemblance", 11, 20, is_count=False, size=8),
    Threshold("resemblance", 11, 20, is_count=False, size=8, by_slots=True),
    Threshold("overlap", 1, 2, is_count=False, size=8),
    Threshold("overlap", 2, 1, is_count=True, size=8),
    Threshold("containment", 3, 4, is_count=False, size=8),
]


def ragged(rows: list[list[int]], kind: type[np.generic]) -> Ragged:
    offsets = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    return Ragged(offsets, np.array([id_ for row in rows for id_ in row], kind))


@given(rows=st.lists(ids, min_size=1, max_size=6), first=st.integers(0, 41), seed=st.integers(0, 9))
def test_packed_sets_have_in_common_what_sets_have(rows: list[list[int]], first: int, seed: int) -> None:
    """Whatever is a bit and whatever is not, in any order of the sets."""
    order, sets = np.random.default_rng(seed).permutation(len(rows)), ragged(rows, np.int32)

    packed = pack(sets.offsets, sets.values.view(np.int32), order, first, 41)

    for a, one in enumerate(order):
        for b, other in enumerate(order):
            assert count_packed(packed, a, b) == len(set(rows[one]) & set(rows[other]))


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=lambda one: f"{one.measure} {one.by_slots} {one.is_count}")
@given(one=ids, other=ids)
def test_a_known_overlap_gives_the_same_comparison(threshold: Threshold, one: list[int], other: list[int]) -> None:
    """From the largest ids down as from the smallest up, for whole documents and for their smallest ids."""
    rows, common = [one[:8], other[:8]], len({*one[:8]} & {*other[:8]})
    sketches = ragged(rows, np.uint64)

    for need in range(common + 1):
        expected = compare_sketches(sketches, 0, 1, need, threshold.rule)
        assert compare_by_overlap(sketches, 0, 1, common, threshold.rule) == expected


def test_crowded_collections_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two families, or of one with more features than have a bit, pairs are those found without packing."""
    random, rows = np.random.default_rng(5), list[list[int]]()
    for family, size in enumerate((60, 200)):
        base = random.choice(5_000, 150, replace=False) + 10_000 * family
        for _ in range(size):
            lost = random.random(150) < 0.12
            rows.append(sorted(np.where(lost, random.integers(10**6, 10**7, 150), base).tolist()[:120]))
    rows += [sorted(random.choice(20_000, 120, replace=False).tolist()) for _ in range(200)]
    sketches = ragged(rows, np.uint64)
    options = PairingOptions(Threshold("resemblance", 7, 10, is_count=False, size=100), None, 10**6, None)
    nodes, sizes = np.arange(len(rows), dtype=np.int32), np.full(len(rows), 120, np.int32)
    found, packs = dict[int, list[tuple[object, ...]]](), list[int]()

    def note(*given: Any) -> Packed:  # noqa: ANN401
        packs.append(given[4] - given[3])
        return pack(*given)

    monkeypatch.setattr(probes, "pack", note)

    with Workers(2) as workers:
        for most in (0, 64, MOST_BITS):
            monkeypatch.setattr(probes, "MOST_BITS", most)
            one = match(nodes, sketches, sizes, options, workers)
            found[most] = [*zip(one.first, one.second, one.overlap, one.resemblance, strict=True)]

    assert len(packs) == 1
    assert 64 < packs[0] < MOST_BITS
    assert found[0] == found[64] == found[MOST_BITS]
    assert 1_000 < len(found[0]) < 30_000
