"""Proofs about sets of sketches, against Python's sets and the definition of a pair."""

from functools import reduce

import numpy as np
import pytest

from nddup.verifying.cluster_proofs import Members, find_extensions, prepare_sets, prove_clusters
from nddup.verifying.definitions import Definition, Sample, bound_of, compare, gather, is_near
from tests.counted_rows import once

RULES = [
    Definition(3, 10, is_count=False, is_resemblance=True, sample=Sample(8)),
    Definition(1, 2, is_count=False, is_resemblance=False, sample=Sample(8)),
    Definition(2, 1, is_count=True, is_resemblance=False, sample=Sample(8)),
]


def are_near(one: np.ndarray, other: np.ndarray, rule: Definition) -> bool:
    """Return whether two sketches are near-duplicates by definition."""
    return is_near(compare(one, other, rule.sample, np.uint64(0)), rule)


@pytest.mark.parametrize("rule", RULES)
def test_sets_are_measured_and_extended_by_definition(rule: Definition) -> None:
    """What sets share, must share and lack, and which sketches near their first member could be added to them."""
    random, added = np.random.default_rng(1), 0
    for _ in range(150):
        drawn = [np.sort(random.choice(9, random.integers(2, 8), replace=False)).astype(np.uint64) for _ in range(9)]
        some, batch = drawn[:6], np.sort(random.integers(0, 9, 40))  # the last three are in no set
        sets = [np.sort(random.choice(6, random.integers(1, 4), replace=False)).tolist() for _ in range(4)]
        members = Members(np.cumsum([0, *map(len, sets)]), np.concatenate(sets).astype(np.int64))
        firsts = random.choice([one[0] for one in sets], 40).astype(np.int64)
        nodes = gather(some)

        proved = prove_clusters(nodes, members, rule)
        indexed = prepare_sets(nodes, members, *proved[:2])
        rows = gather([drawn[place] for place in batch])
        extended = find_extensions(rows, np.where(batch < 6, batch, -1), firsts, indexed, rule)

        shared = [reduce(np.intersect1d, [some[place] for place in one]) for one in sets]
        bounds = [max(bound_of(len(some[place]), rule) for place in one) for one in sets]
        assert [proved.joints.row(s).tolist() for s in range(4)] == [joint.tolist() for joint in shared]
        assert proved.bounds.tolist() == bounds
        lacks = [not all(are_near(some[a], some[b], rule) for a in one for b in one) for one in sets]
        assert proved.has_bad_pair.tolist() == lacks
        due = {
            (row, s)
            for row, (place, first) in enumerate(zip(batch.tolist(), firsts.tolist(), strict=True))
            for s, one in enumerate(sets)
            if one[0] == first and place not in one and all(are_near(drawn[place], some[at], rule) for at in one)
            and len(np.intersect1d(drawn[place], shared[s])) >= max(bounds[s], bound_of(len(drawn[place]), rule))
        }  # fmt: skip
        assert once(map(tuple, extended.tolist())) == due
        added += len(due)
    assert added > 100
