"""Proofs about sets of sketches: that a set is a cluster, and that nothing can be added to it.

    prove_clusters    sets   -> features that each shares, support it needs, whether some pair is not near-duplicate
    find_extensions   Sets   -> the sketches that could be added to a set
    label_parts       edges  -> the connected parts of a graph, by union-find, to recount components

The first two follow the definition of a cluster: a maximal set in which every pair is a near-duplicate and all sketches
share at least the largest alpha among them. None of the miners' code is used.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled
from nddup.verifying.definitions import Definition, Rows, bound_of, judge
from nddup.verifying.near_pairs import find_slot, number_ids


class Members(NamedTuple):
    """Sets of sketches: set i holds rows `places[offsets[i]:offsets[i + 1]]` of some `Rows`."""

    offsets: NDArray[np.int64]
    places: NDArray[np.int64]


class Proved(NamedTuple):
    """For each of n sets: the features all members share, the largest alpha of a member, whether a pair is not near."""

    joints: Rows
    bounds: NDArray[np.int64]  # (n,)
    has_bad_pair: NDArray[np.bool_]  # (n,)


def prove_clusters(nodes: Rows, members: Members, rule: Definition) -> Proved:
    """Measure what sets of distinct sketches share, what they must share, and whether some pair is not near-duplicate.

    Cost: a merge for each pair in a set, each sketch with itself included.
    """
    shared, joints, bounds, bad = _prove_clusters(nodes.offsets, nodes.ids, *members, rule)
    return Proved(Rows(shared, joints), bounds, bad)


@compiled
def _prove_clusters(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    starts: NDArray[np.int64],
    places: NDArray[np.int64],
    rule: Definition,
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_]]:
    count = len(starts) - 1
    shared, bounds, bad = np.zeros(count + 1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.bool_)
    for s in range(count):  # a set shares no more than the features of its first member
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
            for j in range(i, len(mine)):  # also with itself: a group of equal documents
                one = ids[offsets[mine[i]] : offsets[mine[i] + 1]]
                other = ids[offsets[mine[j]] : offsets[mine[j] + 1]]
                bad[s] |= not judge(one, other, np.uint64(0), rule)[1]
    return shared, joints[:n], bounds, bad


class Sets(NamedTuple):
    """Sets of sketches as `prove_clusters` measured them, indexed by first member for `find_extensions`."""

    nodes: Rows
    members: Members
    """The rows of each set in `nodes`; no set is empty."""

    joints: Rows
    """The features that each set shares."""

    bounds: NDArray[np.int64]
    """The support that each set must have, (n,)."""

    begun: Members
    """For each node, the sets whose first member it is."""

    slots: NDArray[np.int32]
    """The hash table of the features of `joints` (`near_pairs.Index`)."""

    features: NDArray[np.uint64]
    """The distinct features of `joints`, by number."""

    numbers: NDArray[np.int32]
    """The number of each feature of `joints`."""


def prepare_sets(nodes: Rows, members: Members, joints: Rows, bounds: NDArray[np.int64]) -> Sets:
    """Index sets by first member for `find_extensions`; see `Sets`."""
    firsts = members.places[members.offsets[:-1]]
    order = np.argsort(firsts, kind="stable")
    begun = Members(np.searchsorted(firsts[order], np.arange(len(nodes.offsets))), order)
    return Sets(nodes, members, joints, bounds, begun, *number_ids(joints.ids))


def find_extensions(
    batch: Rows, places: NDArray[np.int64], firsts: NDArray[np.int64], sets: Sets, rule: Definition
) -> NDArray[np.int64]:
    """Find the sketches that could be added to a set: near to all its members, and preserving enough joint support.

    Args:
        batch: n sketches, each near to a first member of a set; levels are ignored.
        places: place of each in `sets.nodes`, -1 if it is not there; (n,).
        firsts: place in `sets.nodes` of the first member that each is near to; (n,).
        sets: from `prepare_sets`.

    Returns:
        Rows (place in the batch, set), (k, 2). A set is maximal if no sketch near to its first member extends it: a
        sketch that could be added is near to every member.

    Cost: for each sketch and each set that begins with its first member, a step for each joint feature; where it holds
        enough of them, a merge a member, but each member once for neighbouring rows of one sketch.
    """
    rows, nodes = (batch.offsets, batch.ids), (sets.nodes.offsets, sets.nodes.ids)
    offsets, bounds = sets.joints.offsets, sets.bounds
    slots, features, numbers = sets.slots, sets.features, sets.numbers
    members, begun = sets.members, sets.begun
    return _extend(*rows, places, firsts, *nodes, *members, offsets, slots, features, numbers, bounds, *begun, rule)


@compiled
def _mark(
    sketch: NDArray[np.uint64],
    slots: NDArray[np.int32],
    features: NDArray[np.uint64],
    marks: Written[np.int32],
    row: int,
) -> None:
    """Write the row of a sketch to `marks` at the number of each feature that it holds."""
    for id_ in sketch:
        number = slots[find_slot(id_, slots, features)]
        if number >= 0:
            marks[number] = row


@compiled
def _extend(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    places: NDArray[np.int64],
    firsts: NDArray[np.int64],
    node_offsets: NDArray[np.int64],
    node_ids: NDArray[np.uint64],
    starts: NDArray[np.int64],
    members: NDArray[np.int64],
    joint_offsets: NDArray[np.int64],
    slots: NDArray[np.int32],
    features: NDArray[np.uint64],
    numbers: NDArray[np.int32],
    bounds: NDArray[np.int64],
    begun_starts: NDArray[np.int64],
    begun: NDArray[np.int64],
    rule: Definition,
) -> NDArray[np.int64]:
    extensions, k = np.empty((16, 2), np.int64), 0
    compared, near = np.full(len(node_offsets) - 1, -1, np.int64), np.zeros(len(node_offsets) - 1, np.bool_)
    marks, owner = np.full(len(features), -1, np.int32), -1
    for row in range(len(places)):
        sketch = ids[offsets[row] : offsets[row + 1]]
        before = ids[offsets[max(row - 1, 0)] : offsets[row]]
        if owner < 0 or places[row] != places[row - 1] or not np.array_equal(sketch, before):
            owner = row  # the first of neighbouring rows of one sketch, which is compared with a member once
            _mark(sketch, slots, features, marks, owner)
        bound = bound_of(len(sketch), rule)
        for s in begun[begun_starts[firsts[row]] : begun_starts[firsts[row] + 1]]:
            # The overlap of the sketch with the joint features is the support of the extended set.
            shared = 0
            for number in numbers[joint_offsets[s] : joint_offsets[s + 1]]:
                shared += marks[number] == owner
            is_addable = shared >= max(bounds[s], bound)
            for member in members[starts[s] : starts[s + 1]]:
                if not is_addable:
                    break
                if compared[member] != owner:
                    other = node_ids[node_offsets[member] : node_offsets[member + 1]]
                    compared[member] = owner
                    near[member] = places[row] != member and judge(sketch, other, np.uint64(0), rule)[1]
                is_addable = near[member]
            if not is_addable:
                continue

            if k == len(extensions):
                grown = np.empty((2 * k, 2), np.int64)
                grown[:k] = extensions
                extensions = grown
            extensions[k, 0], extensions[k, 1] = row, s
            k += 1
    return extensions[:k]


@compiled
def label_parts(first: NDArray[np.int64], second: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Label each node with the smallest node of its connected part, (nodes,).

    Args:
        first: one end of each edge, (m,).
        second: the other end, (m,).
        nodes: number of nodes; one without an edge is its own part.

    Cost: nearly linear: paths are halved, and the smaller root stays the root.

    Example:
        >>> label_parts(np.array([4, 1]), np.array([2, 4]), 5).tolist()
        [0, 1, 1, 3, 1]
    """
    parent = np.arange(nodes)
    for edge in range(len(first)):
        a, b = first[edge], second[edge]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        parent[max(a, b)] = min(a, b)

    for node in range(nodes):  # a parent is never larger than its node
        parent[node] = parent[parent[node]]
    return parent
