"""The pairs of distinct sketches, against a comparison of every two by definition."""

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from nddup.embedded.match import Matches, PairingOptions, match
from nddup.embedded.workers import Workers
from nddup.errors import CapacityError
from nddup.ground.arrays import Ragged
from nddup.matching.overlap_join import NO_LIMIT, ComparisonLimits
from nddup.matching.prune import number_shared
from nddup.matching.threshold import Threshold
from nddup.verifying import definitions, near_pairs

SIZE = 24
WHOLE = 1 << 30

CASES = {
    "resemblance": Threshold("resemblance", 4, 5, is_count=False, size=SIZE),
    "low resemblance": Threshold("resemblance", 11, 20, is_count=False, size=SIZE),
    "count": Threshold("overlap", 12, 1, is_count=True, size=SIZE),
    "share": Threshold("overlap", 3, 5, is_count=False, size=SIZE),
    "containment": Threshold("containment", 7, 10, is_count=False, size=WHOLE, shows_containment=True),
}


def draw_sketches(seed: int) -> list[NDArray[np.uint64]]:
    """Draw distinct sketches in families: copies of a base of ids, some of them replaced or left out."""
    random = np.random.default_rng(seed)
    drawn = set()
    for family in range(6):
        base = random.integers(0, 400, SIZE, dtype=np.uint64) + np.uint64(50 * family)
        for _ in range(12):
            ids = np.where(random.random(SIZE) < 0.05, random.integers(0, 2**63, SIZE, dtype=np.uint64), base)
            drawn.add(tuple(np.unique(ids)[: random.integers(SIZE // 2, SIZE + 1)].tolist()))
    return [np.array(ids, np.uint64) for ids in sorted(drawn)]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_every_near_duplicate_is_found_once(case: str, count: int) -> None:
    """For any number of workers, pairs, overlaps, resemblances and containments are those of the definition."""
    threshold = CASES[case]
    rule = definitions.Definition(
        threshold.numerator,
        threshold.denominator,
        threshold.is_count,
        threshold.measure == "resemblance",
        definitions.Sample(threshold.size, by_slots=threshold.by_slots),
        is_containment=threshold.is_containment,
    )
    for seed in range(5):
        rows = definitions.gather(draw_sketches(seed))
        near = near_pairs.find_near(rows, near_pairs.Probes(rows), rule)
        due = {
            (int(a), int(b)): (int(overlap), resemblance, within, around)
            for a, b, overlap, resemblance, within, around in zip(*near, strict=True)
            if a < b
        }

        nodes = np.arange(len(rows.offsets) - 1, dtype=np.int32)
        sketches = Ragged(rows.offsets, rows.ids)
        with Workers(count) as workers:
            found = match(nodes, sketches, nodes, PairingOptions(threshold, None, 10_000, None), workers)

        assert sorted(due) == list(map(tuple, found.ends.tolist()))
        assert [value[0] for _, value in sorted(due.items())] == found.overlap.tolist()
        assert [value[1] for _, value in sorted(due.items())] == found.resemblance.tolist()
        if threshold.shows_containment:
            assert [value[2:] for _, value in sorted(due.items())] == list(map(tuple, found.containments.T.tolist()))
        assert len(due) > 10


def test_long_lists_are_linked_or_compared_in_full() -> None:
    """With leaders, fewer pairs are found, none false, and links; without leaders, all pairs, or the run fails."""
    threshold = CASES["low resemblance"]
    rows = definitions.gather(draw_sketches(1))
    nodes = np.arange(len(rows.offsets) - 1, dtype=np.int32)

    def find(max_postings: int, limits: ComparisonLimits | None, max_comparisons: int = NO_LIMIT) -> Matches:
        rule = PairingOptions(threshold, None, max_postings, limits, max_comparisons=max_comparisons)
        with Workers(2) as workers:
            return match(nodes, Ragged(rows.offsets, rows.ids), nodes, rule, workers)

    whole, linked, compared = find(10_000, None), find(2, ComparisonLimits(10**6, 10**6)), find(2, None)

    assert set(map(tuple, linked.ends.tolist())) < set(map(tuple, whole.ends.tolist()))
    assert (linked.heavy > 0, len(linked.links) > 0) == (True, True)
    assert compared.ends.tolist() == whole.ends.tolist()
    assert [(found.heavy, len(found.links)) for found in (whole, compared)] == [(0, 0), (0, 0)]
    with pytest.raises(CapacityError, match=r"more than pairs\.max_comparisons \(9\) comparisons"):
        find(2, None, 9)


@pytest.mark.parametrize(("group", "together"), [(1 << 19, 1 << 26), (64, 1 << 26), (64, 500), (1, 1)])
def test_ids_that_occur_twice_are_numbered(monkeypatch: pytest.MonkeyPatch, group: int, together: int) -> None:
    """Each id that two looked-at rows hold has one number, whatever the groups and rounds in which ids are counted."""
    monkeypatch.setattr("nddup.matching.prune.GROUP", group)
    monkeypatch.setattr("nddup.matching.prune.ROUND", together)
    random = np.random.default_rng(1)
    rows = [np.unique(random.integers(0, 1 << random.integers(8, 40), 20)).astype(np.uint64) for _ in range(300)]
    sketches, possible = Ragged(*definitions.gather(rows)[:2]), random.random(300) < 0.9
    owners = np.repeat(possible, np.diff(sketches.offsets))
    known, held = np.unique(sketches.values[owners], return_counts=True)

    with Workers(2) as two:
        numbers, count, shared = number_shared(sketches, possible, partial(two.work, "prune"))

    is_shared = owners & np.isin(sketches.values, known[held > 1])
    assert np.array_equal(numbers >= 0, is_shared)
    assert count == np.count_nonzero(held > 1)
    assert shared == np.count_nonzero(is_shared)
    named = np.unique(np.stack([numbers[is_shared].astype(np.uint64), sketches.values[is_shared]]), axis=1)
    assert named.shape == (2, count)
    assert np.array_equal(named[0], np.arange(count))
