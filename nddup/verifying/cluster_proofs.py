"""Proofs about sets of sketches: that one is a cluster, and that nothing can be added to it.

    prove_clusters    what each set shares, what it must share, and whether a pair of it is no near-duplicate
    find_extensions   the sketches that could be added to a set

Both follow the definition of a cluster: a maximal set in which every pair is a near-duplicate and all sketches share at
least the largest alpha among them. Nothing of the miners is used.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.verifying.definitions import Rows, Rule, bound_of, judge
from nddup.verifying.near_pairs import Index, Probes, count_overlaps


class Members(NamedTuple):
    """Sets of sketches: set i has the places `places[offsets[i]:offsets[i + 1]]` of some `Rows`."""

    offsets: NDArray[np.int64]
    places: NDArray[np.int64]


class Proved(NamedTuple):
    """Of each of n sets: the features all members share; the largest alpha of a member; whether a pair is not near."""

    joints: Rows
    bounds: NDArray[np.int64]  # (n,)
    has_bad_pair: NDArray[np.bool_]  # (n,)


def prove_clusters(nodes: Rows, members: Members, rule: Rule) -> Proved:
    """What sets of distinct sketches share, what they must share, and whether all their pairs are near-duplicates.

    Args:
        nodes: the sketches; levels are not looked at.
        members: the sets, none empty.
        rule: the definition.

    Cost: a merge for each pair of a set.
    """
    shared, joints, bounds, bad = _prove_clusters(nodes.offsets, nodes.ids, *members, rule)
    return Proved(Rows(shared, joints), bounds, bad)


@compiled
def _prove_clusters(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    starts: NDArray[np.int64],
    places: NDArray[np.int64],
    rule: Rule,
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_]]:
    count = len(starts) - 1
    shared, bounds, bad = np.zeros(count + 1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.bool_)
    for s in range(count):  # a set shares no more than its first member has
        first = places[starts[s]]
        shared[s + 1] = shared[s] + offsets[first + 1] - offsets[first]
    joints, n = np.empty(shared[count], np.uint64), 0

    for s in range(count):
        mine = places[starts[s] : starts[s + 1]]
        joint = ids[offsets[mine[0]] : offsets[mine[0] + 1]].copy()
        for place in mine:
            sketch = ids[offsets[place] : offsets[place + 1]]
            bounds[s] = max(bounds[s], bound_of(len(sketch), rule))
            at = np.searchsorted(sketch, joint)
            size = 0
            for i in range(len(joint)):
                if at[i] < len(sketch) and sketch[at[i]] == joint[i]:
                    joint[size] = joint[i]
                    size += 1
            joint = joint[:size]
        joints[n : n + len(joint)] = joint
        n += len(joint)
        shared[s + 1] = n

        for i in range(len(mine)):
            for j in range(i, len(mine)):  # with itself: a group of equal documents
                one = ids[offsets[mine[i]] : offsets[mine[i] + 1]]
                other = ids[offsets[mine[j]] : offsets[mine[j] + 1]]
                bad[s] |= not judge(one, other, np.uint64(0), rule)[1]
    return shared, joints[:n], bounds, bad


class Sets(NamedTuple):
    """Proved sets of sketches: their places in `nodes`, the features each shares, the support each must have."""

    nodes: Rows
    members: Members
    joints: Probes
    bounds: NDArray[np.int64]


def find_extensions(batch: Rows, places: NDArray[np.int64], sets: Sets, rule: Rule) -> NDArray[np.int64]:
    """The sketches that could be added to a set: near to all its members, and keeping the joint support.

    Args:
        batch: n sketches.
        places: where each is in `sets.nodes`, -1 where it is not; (n,).
        sets: what `prove_clusters` said of each set.
        rule: the definition.

    Returns:
        (place in the batch, set) of each, (k, 2); none means that every set is maximal as far as this batch goes.

    Cost: a step for each feature of a sketch and each set whose members share it; a merge a member where the support
        is kept.
    """
    nodes = sets.nodes.offsets, sets.nodes.ids
    return _extend(batch.offsets, batch.ids, places, *nodes, *sets.members, sets.joints.index, sets.bounds, rule)


@compiled
def _extend(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    places: NDArray[np.int64],
    node_offsets: NDArray[np.int64],
    node_ids: NDArray[np.uint64],
    starts: NDArray[np.int64],
    members: NDArray[np.int64],
    joints: Index,
    bounds: NDArray[np.int64],
    rule: Rule,
) -> NDArray[np.int64]:
    counts, touched = np.zeros(len(bounds), np.int32), np.empty(len(bounds), np.int32)
    found, k = np.empty((16, 2), np.int64), 0
    for row in range(len(offsets) - 1):
        sketch = ids[offsets[row] : offsets[row + 1]]
        own = bound_of(len(sketch), rule)
        for t in range(count_overlaps(sketch, joints, -1, counts, touched)):
            # The overlap of a sketch with the joint features is the support that the set would keep with it.
            s = touched[t]
            overlap = counts[s]
            counts[s] = 0
            if overlap < max(bounds[s], own):
                continue

            is_addable = True
            for member in members[starts[s] : starts[s + 1]]:
                other = node_ids[node_offsets[member] : node_offsets[member + 1]]
                if places[row] == member or not judge(sketch, other, np.uint64(0), rule)[1]:
                    is_addable = False
                    break
            if not is_addable:
                continue

            if k == len(found):
                grown = np.empty((2 * k, 2), np.int64)
                grown[:k] = found
                found = grown
            found[k, 0], found[k, 1] = row, s
            k += 1
    return found[:k]
