"""The frame of a search through the sets of one neighbourhood: nodes on an explicit stack, no recursion.

A node holds members S, their common features I within the sketch of the pivot, candidates P and rejecters X, with the
invariant that every e in P ∪ X is a near-duplicate of ALL of S and |I ∩ b_e| >= max(tau(S), alpha_e). The branches of a
node are taken in ascending order; each becomes a rejecter once it has been searched. `maximal_sets` and `closed_sets`
decide what to branch on and which sets to keep.

Source:
    Bron, Kerbosch 1973, Algorithm 457: finding all cliques of an undirected graph (candidates and rejecters).
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


class Stack(NamedTuple):
    """The nodes from the root to the current one, by depth."""

    rows: Bits  # shape (room, n_features + 4 * width), one node each
    taus: NDArray[np.int64]  # shape (room,), tau(S) of each
    n_features: int  # words of a set of the pivot's features
    width: int  # words of a set of neighbours


class Node(NamedTuple):
    """One node of the search, as views of one row of the stack."""

    common: Bits  # I
    candidates: Bits  # P
    rejecters: Bits  # X
    branches: Bits  # candidates still to branch on
    members: Bits  # S without the pivot


class Scratch(NamedTuple):
    """Working memory for one neighbourhood; all but `stopper` is used within a node only."""

    slots: NDArray[np.int64]
    ranked: NDArray[np.int64]
    kept: NDArray[np.int64]  # |I ∩ b_e| of every candidate and rejecter of the node filtered last
    stopper: NDArray[np.int64]  # shape (1,), the rejecter that stopped a node last, or -1
    accepted: Bits  # S ∪ Q
    left_out: Bits  # P minus Q
    allowed: Bits  # candidates near all of Q
    joint: Bits  # features common to S ∪ Q


@compiled
def make_scratch(neighbourhood: Neighbourhood) -> Scratch:
    """Allot the working memory for one neighbourhood."""
    width, n_slots = neighbourhood.neighbours.size, neighbourhood.documents.size
    return Scratch(
        np.empty(n_slots, np.int64),
        np.empty(n_slots, np.int64),
        np.empty(n_slots, np.int64),
        np.full(1, -1, np.int64),
        np.empty(width, np.uint64),
        np.empty(width, np.uint64),
        np.empty(width, np.uint64),
        np.empty(neighbourhood.pivot_features.size, np.uint64),
    )


@compiled
def make_stack(neighbourhood: Neighbourhood, later: Bits, pivot_bound: int, scratch: Scratch) -> Stack:
    """Make the stack with the root: S is the pivot alone, P the `later` neighbours, X those before it."""
    width, n_features = neighbourhood.neighbours.size, neighbourhood.pivot_features.size
    stack = Stack(np.empty((8, n_features + 4 * width), np.uint64), np.empty(8, np.int64), n_features, width)
    stack.taus[0] = pivot_bound

    root = node_at(stack, 0)
    copy_bits(root.common, neighbourhood.pivot_features)
    copy_bits(root.candidates, later)
    copy_bits(root.rejecters, neighbourhood.neighbours)
    keep_outside(root.rejecters, later)
    keep_outside(root.members, root.members)

    filter_slots(neighbourhood, root.candidates, root.common, pivot_bound, scratch)
    filter_slots(neighbourhood, root.rejecters, root.common, pivot_bound, scratch)
    return stack


@compiled
def node_at(stack: Stack, depth: int) -> Node:
    """View one row of the stack as a node."""
    row, at, width = stack.rows[depth], stack.n_features, stack.width
    return Node(
        row[:at],
        row[at : at + width],
        row[at + width : at + 2 * width],
        row[at + 2 * width : at + 3 * width],
        row[at + 3 * width : at + 4 * width],
    )


@compiled
def step(neighbourhood: Neighbourhood, stack: Stack, depth: int, scratch: Scratch) -> tuple[Stack, int]:
    """Go down to the next branch, or stay where a rejecter stops it, or go up where no branch is left.

    Returns the stack, maybe in new arrays, and the depth of the current node; -1 ends the search.
    """
    node = node_at(stack, depth)
    slot = first_slot(node.branches)
    if slot < 0:
        return stack, depth - 1

    if depth + 1 == stack.taus.size:
        stack = deepen(stack)
        node = node_at(stack, depth)
    child = node_at(stack, depth + 1)
    tau = max(stack.taus[depth], neighbourhood.bounds[slot])
    stack.taus[depth + 1] = tau

    # The branch is not a candidate below itself, and is a rejecter for all branches after it.
    remove_slot(node.branches, slot)
    remove_slot(node.candidates, slot)
    is_open = descend(neighbourhood, node, child, slot, tau, scratch)
    add_slot(node.rejecters, slot)
    return stack, depth + 1 if is_open else depth


@compiled
def first_slot(bits: Bits) -> int:
    """Return the lowest slot of a set, -1 of an empty one."""
    for i in range(bits.size):
        if bits[i] != 0:
            return (i << 6) + count_bits(~bits[i] & (bits[i] - np.uint64(1)))
    return -1


@compiled
def deepen(stack: Stack) -> Stack:
    """Return the same nodes in a stack of twice the depth."""
    rows = np.empty((2 * stack.taus.size, stack.rows.shape[1]), np.uint64)
    taus = np.empty(2 * stack.taus.size, np.int64)
    for depth in range(stack.taus.size):
        copy_bits(rows[depth], stack.rows[depth])
        taus[depth] = stack.taus[depth]
    return Stack(rows, taus, stack.n_features, stack.width)


@compiled
def descend(neighbourhood: Neighbourhood, node: Node, child: Node, slot: int, tau: int, scratch: Scratch) -> bool:
    """
    Make the child that adds `slot` to a node; `tau` is that of the child.

    Returns:
        False, with the child unfinished, if a rejecter stops it: that rejecter could be added to every set of the
        subtree. Most children end this way, and most of them by the rejecter that stopped the previous one.
    """
    copy_bits(child.common, node.common)
    copy_bits(child.candidates, node.candidates)
    copy_bits(child.rejecters, node.rejecters)
    keep_common(child.common, neighbourhood.shared[slot])
    keep_common(child.candidates, neighbourhood.near[slot])
    keep_common(child.rejecters, neighbourhood.near[slot])

    stopper = scratch.stopper[0]
    if stopper >= 0 and has_slot(child.rejecters, stopper) and stops(neighbourhood, child, stopper, tau):
        return False

    # Restore the invariant for the rejecters, and look for one that stops the child.
    for i in range(list_slots(child.rejecters, scratch.slots)):
        rejecter = scratch.slots[i]
        kept = count_common(child.common, neighbourhood.shared[rejecter])
        scratch.kept[rejecter] = kept
        if kept < tau or kept < neighbourhood.bounds[rejecter]:
            remove_slot(child.rejecters, rejecter)
        elif stops(neighbourhood, child, rejecter, tau):
            scratch.stopper[0] = rejecter
            return False

    filter_slots(neighbourhood, child.candidates, child.common, tau, scratch)
    copy_bits(child.members, node.members)
    add_slot(child.members, slot)
    return True


@compiled
def filter_slots(neighbourhood: Neighbourhood, slots: Bits, common: Bits, tau: int, scratch: Scratch) -> None:
    """Restore the invariant: keep in `slots` the e with |I ∩ b_e| >= max(tau, alpha_e)."""
    for i in range(list_slots(slots, scratch.slots)):
        slot = scratch.slots[i]
        kept = count_common(common, neighbourhood.shared[slot])
        if kept < tau or kept < neighbourhood.bounds[slot]:
            remove_slot(slots, slot)
        scratch.kept[slot] = kept


@compiled
def stops(neighbourhood: Neighbourhood, node: Node, slot: int, tau: int) -> bool:
    """Tell whether a rejecter holds all of I, needs no more than tau, and is near every candidate."""
    return bool(
        neighbourhood.bounds[slot] <= tau
        and count_outside(node.common, neighbourhood.shared[slot]) == 0
        and count_outside(node.candidates, neighbourhood.near[slot]) == 0
    )
