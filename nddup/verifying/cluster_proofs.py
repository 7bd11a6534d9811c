"""Proofs about sets of sketches: that one is a cluster, and that nothing can be added to it.

    prove_cluster     what a set shares, what it must share, and its first pair that is no near-duplicate
    find_extensions   the sketches that could be added to a set

Both follow the definition of a cluster: a maximal set in which every pair is a near-duplicate and all sketches share at
least the largest alpha among them. Nothing of the miners is used.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.verifying.definitions import Rows, Rule, bounds_of, judge
from nddup.verifying.near_pairs import Probes


class Proof(NamedTuple):
    """A set of sketches: the features all share, ascending; the largest alpha of its members; its first bad pair."""

    joint: NDArray[np.uint64]
    bound: int
    bad_pair: tuple[int, int] | None


def prove_cluster(members: Rows, rule: Rule) -> Proof:
    """What a set of distinct sketches shares, what it must share, and whether all its pairs are near-duplicates.

    Args:
        members: the sketches, at least one.
        rule: the definition.

    Cost: a merge for each pair.
    """
    count = len(members.offsets) - 1
    joint = members.row(0)
    for i in range(1, count):
        joint = np.intersect1d(joint, members.row(i), assume_unique=True)

    bad = None
    for i in range(count):
        others = np.arange(i, count)  # with itself: a group of equal documents
        _, near = judge(members, np.full(len(others), i), members, others, rule)
        if not near.all():
            bad = (i, int(others[~near][0]))
            break

    return Proof(joint, int(bounds_of(np.diff(members.offsets), rule).max()), bad)


class Sets(NamedTuple):
    """Proved sets of sketches: their places in `nodes`, the features each shares, the largest alpha in each."""

    nodes: Rows
    members: list[NDArray[np.int64]]
    joints: Probes
    bounds: NDArray[np.int64]


def find_extensions(batch: Rows, places: NDArray[np.int64], sets: Sets, rule: Rule) -> list[tuple[int, int]]:
    """The sketches that could be added to a set: near to all its members, and keeping the joint support.

    Args:
        batch: n sketches.
        places: where each is in `sets.nodes`, -1 where it is not; (n,).
        sets: what `prove_cluster` said of each set.
        rule: the definition.

    Returns:
        (place in the batch, set) of each; none means that every set is maximal as far as this batch goes.

    Cost: that of `Probes.overlaps` on the joint features; a merge a member where the support is kept.
    """
    own = bounds_of(np.diff(batch.offsets), rule)
    found: list[tuple[int, int]] = []
    for rows, owners, overlaps in sets.joints.overlaps(batch):
        # The overlap of a sketch with the joint features is the support that the set would keep with it.
        for i in np.flatnonzero(overlaps >= np.maximum(sets.bounds[owners], own[rows])):
            members = sets.members[owners[i]]
            if places[rows[i]] not in members:
                _, near = judge(batch, np.full(len(members), rows[i]), sets.nodes, members, rule)
                if near.all():
                    found.append((int(rows[i]), int(owners[i])))
    return found
