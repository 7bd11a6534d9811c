"""The frame of a search through the sets of one neighbourhood: nodes on a stack of its own, no recursion.

A node holds members S, their common features I within the sketch of the pivot, candidates P and rejecters X, with the
invariant that every e in P ∪ X is a near-duplicate of ALL of S and |I ∩ b_e| >= max(tau(S), alpha_e). Below a node the
branches are taken in ascending order; each becomes a rejecter when it has been searched. What to branch on, and which
sets to keep, is decided by `pivots` and by `closed`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.mining.bitsets import (
    Bits,
    add_slot,
    copy_bits,
    count_bits,
    count_common,
    count_outside,
    has_slot,
    keep_common,
    keep_outside,
    list_slots,
    remove_slot,
)
from nddup.mining.neighbourhoods import Neighbourhood


class Node(NamedTuple):
    """One node of the search, as views of one row of the stack."""

    common: Bits  # I
    candidates: Bits  # P
    rejecters: Bits  # X
    branches: Bits  # candidates still to branch on
    members: Bits  # S without the pivot


class Scratch(NamedTuple):
    """Room for one neighbourhood, used within a node only."""

    slots: NDArray[np.int64]
    ranked: NDArray[np.int64]
    kept: NDArray[np.int64]  # |I ∩ b_e| of every candidate and rejecter of the node filtered last
    stopper: NDArray[np.int64]  # shape (1,), the rejecter that stopped a node last, or -1
    accepted: Bits  # S ∪ Q
    left_out: Bits  # P minus Q
    allowed: Bits  # candidates near all of Q
    joint: Bits  # features common to S ∪ Q


@compiled
def node_at(stack: Bits, depth: int, n_features: int, width: int) -> Node:
    """View one row of the stack as a node; the first two arguments after `depth` are counts of words."""
    row = stack[depth]
    at = n_features
    return Node(
        row[:at],
        row[at : at + width],
        row[at + width : at + 2 * width],
        row[at + 2 * width : at + 3 * width],
        row[at + 3 * width : at + 4 * width],
    )


@compiled
def filter_slots(place: Neighbourhood, slots: Bits, common: Bits, tau: int, scratch: Scratch) -> None:
    """Restore the invariant: keep in `slots` the e with |I ∩ b_e| >= max(tau, alpha_e)."""
    for i in range(list_slots(slots, scratch.slots)):
        slot = scratch.slots[i]
        kept = count_common(common, place.shared[slot])
        if kept < tau or kept < place.bounds[slot]:
            remove_slot(slots, slot)
        scratch.kept[slot] = kept


@compiled
def stops(place: Neighbourhood, node: Node, slot: int, tau: int) -> bool:
    """Tell whether a rejecter holds all of I, demands no more than tau, and is near every candidate."""
    return bool(
        place.bounds[slot] <= tau
        and count_outside(node.common, place.shared[slot]) == 0
        and count_outside(node.candidates, place.near[slot]) == 0
    )


@compiled
def descend(place: Neighbourhood, node: Node, child: Node, slot: int, tau: int, scratch: Scratch) -> bool:
    """
    Make the child that adds `slot` to a node, whose bounds now demand `tau`.

    Returns:
        False, and the child is not finished, where it is seen that a rejecter stops it: it can be added to every
        maximal set of the subtree. Most children end so, and most by the rejecter that stopped the one before.
    """
    copy_bits(child.common, node.common)
    copy_bits(child.candidates, node.candidates)
    copy_bits(child.rejecters, node.rejecters)
    keep_common(child.common, place.shared[slot])
    keep_common(child.candidates, place.near[slot])
    keep_common(child.rejecters, place.near[slot])
    stopper = scratch.stopper[0]
    if stopper >= 0 and has_slot(child.rejecters, stopper) and stops(place, child, stopper, tau):
        return False
    for i in range(list_slots(child.rejecters, scratch.slots)):
        rejecter = scratch.slots[i]
        kept = count_common(child.common, place.shared[rejecter])
        scratch.kept[rejecter] = kept
        if kept < tau or kept < place.bounds[rejecter]:
            remove_slot(child.rejecters, rejecter)
        elif stops(place, child, rejecter, tau):
            scratch.stopper[0] = rejecter
            return False
    filter_slots(place, child.candidates, child.common, tau, scratch)
    copy_bits(child.members, node.members)
    add_slot(child.members, slot)
    return True


@compiled
def deepen(stack: Bits, taus: NDArray[np.int64]) -> tuple[Bits, NDArray[np.int64]]:
    """Return the same nodes in a stack twice as deep."""
    deeper = np.empty((2 * taus.size, stack.shape[1]), np.uint64)
    deeper_taus = np.empty(2 * taus.size, np.int64)
    for depth in range(taus.size):
        copy_bits(deeper[depth], stack[depth])
        deeper_taus[depth] = taus[depth]
    return deeper, deeper_taus


@compiled
def make_scratch(place: Neighbourhood) -> Scratch:
    """Make room for one neighbourhood."""
    width, n_slots = place.neighbours.size, place.documents.size
    return Scratch(
        np.empty(n_slots, np.int64),
        np.empty(n_slots, np.int64),
        np.empty(n_slots, np.int64),
        np.full(1, -1, np.int64),
        np.empty(width, np.uint64),
        np.empty(width, np.uint64),
        np.empty(width, np.uint64),
        np.empty(place.pivot_features.size, np.uint64),
    )


@compiled
def make_root(place: Neighbourhood, later: Bits, pivot_bound: int, scratch: Scratch) -> tuple[Bits, NDArray[np.int64]]:
    """Make the stack of nodes, with the pivot alone as the first, and tau of each."""
    width, n_features = place.neighbours.size, place.pivot_features.size
    stack = np.empty((8, n_features + 4 * width), np.uint64)
    taus = np.empty(8, np.int64)
    taus[0] = pivot_bound
    root = node_at(stack, 0, n_features, width)
    copy_bits(root.common, place.pivot_features)
    copy_bits(root.candidates, later)
    copy_bits(root.rejecters, place.neighbours)
    keep_outside(root.rejecters, later)
    keep_outside(root.members, root.members)
    filter_slots(place, root.candidates, root.common, pivot_bound, scratch)
    filter_slots(place, root.rejecters, root.common, pivot_bound, scratch)
    return stack, taus


@compiled
def step(
    place: Neighbourhood, stack: Bits, taus: NDArray[np.int64], depth: int, scratch: Scratch
) -> tuple[Bits, NDArray[np.int64], int]:
    """Go one node down, to the next branch, or stay where a rejecter stops it; one node up where none is left."""
    width, n_features = place.neighbours.size, place.pivot_features.size
    node = node_at(stack, depth, n_features, width)
    slot = -1
    for i in range(width):
        if node.branches[i] != 0:
            slot = (i << 6) + count_bits(~node.branches[i] & (node.branches[i] - np.uint64(1)))
            break
    if slot < 0:
        return stack, taus, depth - 1
    if depth + 1 == taus.size:
        stack, taus = deepen(stack, taus)
        node = node_at(stack, depth, n_features, width)
    child = node_at(stack, depth + 1, n_features, width)
    taus[depth + 1] = max(taus[depth], place.bounds[slot])
    remove_slot(node.branches, slot)
    remove_slot(node.candidates, slot)
    is_open = descend(place, node, child, slot, taus[depth + 1], scratch)
    add_slot(node.rejecters, slot)
    return stack, taus, depth + 1 if is_open else depth
