"""The pivot miner: every maximal set of a component, each found once, at its first member.

    mine_pivots     component, pivots                   -> FoundSets: the maximal sets whose first member is a pivot
    search_pivot    neighbourhood, later neighbours     -> FoundSets, by nodes on an explicit Stack, without recursion
    step, expand    a Node of that search               -> the next one; the sets accepted below it
    FoundSets, add_found, is_past, SearchLimits            the sets so far, and where the search stops

A set S is valid iff every two of its documents are near-duplicates and their common features number at least tau(S) =
max(min_support, max of alpha_d over S). Adding a document can only break this, so a valid set is maximal iff no single
document can be added (Ignatov, Kuznetsov 2009). `frequent_sets` runs the same search with closures for acceptance.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled
from nddup.mining.neighbourhoods import (
    Bits,
    Component,
    Neighbourhood,
    add_slot,
    copy_bits,
    count_all,
    count_bits,
    count_common,
    count_outside,
    count_visit,
    find_later,
    has_slot,
    keep_common,
    keep_outside,
    list_slots,
    make_lookup,
    remove_slot,
    visit_neighbourhood,
    write_row,
)

SETS, ROWS, WORK = 0, 1, 2
"""Positions in `FoundSets.counts`: sets, member rows, and the work of the search (`itemsets.mine_component`)."""


class FoundSets(NamedTuple):
    """Sets found so far, with room for more: set i is `members[ends[i - 1]:ends[i]]`."""

    ends: NDArray[np.int64]
    members: NDArray[np.int32]
    supports: NDArray[np.int32]
    counts: Written[np.int64]  # shape (3,)


class SearchLimits(NamedTuple):
    """Exact limits of one search."""

    sets: int
    rows: int
    work: int


@compiled
def empty_found() -> FoundSets:
    """Return no sets, with a little room."""
    return FoundSets(np.empty(16, np.int64), np.empty(256, np.int32), np.empty(16, np.int32), np.zeros(3, np.int64))


@compiled
def make_room(sets: FoundSets, size: int) -> FoundSets:
    """Return the same sets with room for one more of `size` members; full arrays are at least doubled."""
    ends, members, supports, counts = sets
    if counts[SETS] == ends.size:
        ends = np.empty(2 * sets.ends.size, np.int64)
        supports = np.empty(2 * sets.ends.size, np.int32)
        for i in range(counts[SETS]):
            ends[i] = sets.ends[i]
            supports[i] = sets.supports[i]

    if counts[ROWS] + size > members.size:
        members = np.empty(2 * (sets.members.size + size), np.int32)
        for i in range(counts[ROWS]):
            members[i] = sets.members[i]
    return FoundSets(ends, members, supports, counts)


@compiled
def add_found(
    sets: FoundSets, neighbourhood: Neighbourhood, members: Bits, support: int, slots: Written[np.int64]
) -> FoundSets:
    """Add the pivot and `members` as one set, ascending; return the sets, maybe in new arrays. `slots` is scratch."""
    size = list_slots(members, slots)
    sets = make_room(sets, size + 1)
    ends, rows, supports, counts = sets

    # Slots ascend by document; the pivot, which has no slot, goes before the first greater document.
    at = counts[ROWS]
    pivot_written = False
    for i in range(size):
        document = neighbourhood.documents[slots[i]]
        if document > neighbourhood.pivot and not pivot_written:
            rows[at] = neighbourhood.pivot
            at += 1
            pivot_written = True
        rows[at] = document
        at += 1
    if not pivot_written:
        rows[at] = neighbourhood.pivot
        at += 1

    counts[ROWS] = at
    ends[counts[SETS]] = at
    supports[counts[SETS]] = support
    counts[SETS] += 1
    return sets


@compiled
def is_past(counts: NDArray[np.int64], limits: SearchLimits) -> bool:
    """Tell whether the sets, the member rows or the work are past their limit."""
    return bool(counts[SETS] > limits.sets or counts[ROWS] > limits.rows or counts[WORK] > limits.work)


class Stack(NamedTuple):
    """The nodes from the root to the current one, by depth."""

    rows: Bits  # shape (room, n_features + 4 * width), one node each
    taus: Written[np.int64]  # shape (room,), tau(S) of each
    n_features: int  # words of a set of the pivot's features
    width: int  # words of a set of neighbours


class Node(NamedTuple):
    """One node of the search, as views of one row of the stack.

    A node holds members S, their common features I within the sketch of the pivot d, candidates P (after d) and
    rejecters X (before d, or branched on already). The invariant: every e in P ∪ X is a near-duplicate of ALL of S, and
    |I ∩ b_e| >= max(tau(S), alpha_e). So S is maximal iff P and X are empty. The pair graph is given, never derived
    from counts: for shares and resemblance, enough common features do not make a pair.

    Source: Bron, Kerbosch 1973, Algorithm 457: finding all cliques of an undirected graph (candidates and rejecters).
    """

    common: Bits  # I
    candidates: Bits  # P
    rejecters: Bits  # X
    branches: Bits  # candidates still to branch on
    members: Bits  # S without the pivot


class Scratch(NamedTuple):
    """Working memory for one neighbourhood; all but `stopper` is used within a node only."""

    slots: NDArray[np.int64]
    ranked: Written[np.int64]
    kept: Written[np.int64]  # |I ∩ b_e| of every candidate and rejecter of the node filtered last
    stopper: Written[np.int64]  # shape (1,), the rejecter that stopped a node last, or -1
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

    Branches are taken in ascending order, and each becomes a rejecter once it has been searched. So every maximal set
    that holds one of the branches c1, c2, ... is found once, at the first one it holds.

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
def filter_slots(
    neighbourhood: Neighbourhood, slots: Written[np.uint64], common: Bits, tau: int, scratch: Scratch
) -> None:
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


@compiled
def find_dominant(
    neighbourhood: Neighbourhood, node: Node, tau: int, branches: Written[np.uint64], scratch: Scratch
) -> int:
    """
    Absorb candidates by dominance, and find the document that leaves the fewest branches by dominance.

    Let u in P ∪ X have I ⊆ b_u and alpha_u <= tau. Adding u to a set of the subtree can break only the pair condition,
    so every maximal set there holds u itself or a candidate that is not a near-duplicate of u. If there is no such
    candidate, u in X stops the search and u in P is absorbed.

    Returns:
        The number of branches left, which are written into `branches`. 0 stops the search; 1 + the number of
        candidates means that no document has I ⊆ b_u and alpha_u <= tau, and nothing is written.

    Sources:
        Tomita, Tanaka, Takahashi 2006, The worst-case time complexity for generating all maximal cliques: the dominant
        document plays the part of its pivot, with documents for vertices.
        Burdick, Calimlim, Gehrke 2001, MAFIA: absorbing an item that keeps the support.
    """
    support = count_all(node.common)
    fewest, dominant = count_all(node.candidates) + 1, -1

    for i in range(list_slots(node.candidates, scratch.slots)):
        slot = scratch.slots[i]
        if scratch.kept[slot] == support and neighbourhood.bounds[slot] <= tau:
            outside = count_outside(node.candidates, neighbourhood.near[slot])
            if outside == 1:
                # It is near every other candidate, so its removal does not change the count for the others.
                add_slot(node.members, slot)
                remove_slot(node.candidates, slot)
                keep_common(node.rejecters, neighbourhood.near[slot])
            elif outside < fewest:
                fewest, dominant = outside, slot

    for i in range(list_slots(node.rejecters, scratch.slots)):
        slot = scratch.slots[i]
        if scratch.kept[slot] == support and neighbourhood.bounds[slot] <= tau:
            outside = count_outside(node.candidates, neighbourhood.near[slot])
            if outside < fewest:
                fewest, dominant = outside, slot

    # By dominance, only candidates that are not near the dominant document need a branch.
    if dominant >= 0:
        copy_bits(branches, node.candidates)
        keep_outside(branches, neighbourhood.near[dominant])
    return fewest


@compiled
def rank_candidates(node: Node, scratch: Scratch) -> int:
    """Rank the candidates in `scratch.ranked`, most features in I first, then by slot; return their number."""
    count = list_slots(node.candidates, scratch.slots)

    # A counting sort: the numbers of features kept are small.
    starts = np.zeros((node.common.size << 6) + 1, np.int64)
    for i in range(count):
        starts[scratch.kept[scratch.slots[i]]] += 1
    for kept in range(starts.size - 2, -1, -1):
        starts[kept] += starts[kept + 1]

    for i in range(count - 1, -1, -1):
        slot = scratch.slots[i]
        starts[scratch.kept[slot]] -= 1
        scratch.ranked[starts[scratch.kept[slot]]] = slot
    return count


@compiled
def accept_greedily(
    neighbourhood: Neighbourhood, node: Node, tau: int, branches: Written[np.uint64], scratch: Scratch
) -> int:
    """
    Choose Q greedily, candidates with most common features first; write S ∪ Q, its joint features and P minus Q.

    Let S ∪ Q be a valid set, Q ⊆ P, to which no candidate can be added. It is maximal iff no rejecter can be added, and
    every other maximal set of the subtree holds a candidate outside Q (MAFIA: accepting a whole tail).

    Returns:
        tau(S ∪ Q).
    """
    copy_bits(scratch.accepted, node.members)
    copy_bits(scratch.joint, node.common)
    copy_bits(scratch.allowed, node.candidates)
    copy_bits(branches, node.candidates)

    for i in range(rank_candidates(node, scratch)):
        slot = scratch.ranked[i]
        if not has_slot(scratch.allowed, slot):
            continue

        needed = max(tau, neighbourhood.bounds[slot])
        if count_common(scratch.joint, neighbourhood.shared[slot]) >= needed:
            tau = needed
            add_slot(scratch.accepted, slot)
            remove_slot(branches, slot)
            keep_common(scratch.allowed, neighbourhood.near[slot])
            keep_common(scratch.joint, neighbourhood.shared[slot])
    return tau


@compiled
def is_rejected(neighbourhood: Neighbourhood, node: Node, tau: int, scratch: Scratch) -> bool:
    """Tell whether some rejecter can be added to S ∪ Q; by the invariant it is near all of S."""
    for i in range(list_slots(node.rejecters, scratch.slots)):
        slot = scratch.slots[i]
        enough = count_common(scratch.joint, neighbourhood.shared[slot]) >= max(tau, neighbourhood.bounds[slot])
        # By the invariant the members of S in `accepted` are near the rejecter, so only those of Q can be outside.
        if enough and count_outside(scratch.accepted, neighbourhood.near[slot]) == 0:
            return True
    return False


@compiled
def expand(neighbourhood: Neighbourhood, node: Node, tau: int, sets: FoundSets, scratch: Scratch) -> FoundSets:
    """Choose what to branch on below a node, and add the accepted set if it is maximal.

    The node uses dominance or acceptance, whichever leaves fewer branches.
    """
    fewest = find_dominant(neighbourhood, node, tau, node.branches, scratch)
    if fewest == 0:
        return sets

    # Acceptance leaves the candidates outside Q as branches. Where dominance leaves no more than that, it is used.
    tau = accept_greedily(neighbourhood, node, tau, scratch.left_out, scratch)
    if fewest <= count_all(scratch.left_out):
        return sets

    copy_bits(node.branches, scratch.left_out)
    if count_all(scratch.accepted) > 0 and not is_rejected(neighbourhood, node, tau, scratch):
        return add_found(sets, neighbourhood, scratch.accepted, count_all(scratch.joint), scratch.slots)
    return sets


@compiled
def search_pivot(
    neighbourhood: Neighbourhood, later: Bits, pivot_bound: int, sets: FoundSets, limits: SearchLimits
) -> FoundSets:
    """Add every maximal set whose first member is the pivot; stop soon after a limit is passed."""
    scratch = make_scratch(neighbourhood)
    stack = make_stack(neighbourhood, later, pivot_bound, scratch)
    sets = expand(neighbourhood, node_at(stack, 0), pivot_bound, sets, scratch)
    depth = 0
    while depth >= 0 and not is_past(sets.counts, limits):
        above = depth
        stack, depth = step(neighbourhood, stack, depth, scratch)
        sets.counts[WORK] += stack.width if depth >= above else 0
        if depth > above:
            sets = expand(neighbourhood, node_at(stack, depth), stack.taus[depth], sets, scratch)
    return sets


@compiled
def note_largest(sets: FoundSets, first: int, largest: Written[np.int64]) -> None:
    """Update `largest`, the number of the largest set that holds each document, with the sets from `first` on."""
    for i in range(first, sets.counts[SETS]):
        start = sets.ends[i - 1] if i > 0 else 0
        for j in range(start, sets.ends[i]):
            best = largest[sets.members[j]]
            size = 0
            if best >= 0:
                size = sets.ends[best] - (sets.ends[best - 1] if best > 0 else 0)
            if sets.ends[i] - start > size:
                largest[sets.members[j]] = i


@compiled
def is_inside(
    component: Component, pivot: int, later: Bits, sets: FoundSets, which: int, seen: Written[np.int64]
) -> bool:
    """Tell whether set `which`, -1 for none, holds all neighbours after the pivot; `seen` marks documents by pivot."""
    if which < 0:
        return False

    # The mark is the pivot, so no mark has to be cleared.
    for j in range(sets.ends[which - 1] if which > 0 else 0, sets.ends[which]):
        seen[sets.members[j]] = pivot

    scratch = np.empty(64, np.int64)
    first = component.word_offsets[pivot]
    for i in range(later.size):
        for k in range(list_slots(later[i : i + 1], scratch)):
            if seen[(component.words[first + i] << 6) + scratch[k]] != pivot:
                return False
    return True


@compiled
def mine_pivots(component: Component, pivots: NDArray[np.int64], min_support: int, limits: SearchLimits) -> FoundSets:
    """
    Find the maximal sets whose first member is one of `pivots`.

    Each maximal set is found from its first member only, so pivots are independent: any partition of the pivots gives
    the same sets. A pivot that lies, with all its later neighbours, in one set already found is first in no other
    maximal set, and is not searched.

    Args:
        pivots: shape (p,), ascending.
        min_support: least joint support, 0 for none.
        limits: of sets, member rows and work; the search stops when it passes one, which the counts show.

    Returns:
        The sets, by first member. Cost: `count_visit` for every pivot searched, and for every node of its search the
        bitmaps of candidates and rejecters.
    """
    lookup = make_lookup(component)
    largest = np.full(component.bounds.size, -1, np.int64)  # by document, the largest set found that holds it
    seen = np.full(component.bounds.size, -1, np.int64)
    sets = empty_found()
    for pivot in pivots:
        later = find_later(component, pivot)
        if count_all(later) == 0 or is_inside(component, pivot, later, sets, largest[pivot], seen):
            continue

        # The work is counted before it is done: one neighbourhood may cost more than all earlier ones together.
        sets.counts[WORK] += count_visit(component, pivot)
        if is_past(sets.counts, limits):
            break

        neighbourhood = visit_neighbourhood(component, pivot, lookup)
        later_slots = np.empty(neighbourhood.neighbours.size, np.uint64)
        write_row(neighbourhood, later, later_slots)

        before = sets.counts[SETS]
        sets = search_pivot(neighbourhood, later_slots, max(min_support, component.bounds[pivot]), sets, limits)
        if is_past(sets.counts, limits):
            break
        note_largest(sets, before, largest)
    return sets
