"""The pivot miner: every maximal set of a component, each found once, at its first member.

A set S is valid iff every two of its documents are near-duplicates and the features common to all number at
least tau(S) = max(min_support, max of alpha_d over S). Adding a document can only break these conditions, so
a valid set is maximal iff no single document can be added.

For each document d as first member the miner searches sets of neighbours after d. A node of the search
holds members S, their common features I within the sketch of d, candidates P (after d) and rejecters X
(before d, or branched on already), with the invariant that every e in P ∪ X is a near-duplicate of
ALL of S and |I ∩ b_e| >= max(tau(S), alpha_e). So S is maximal iff P and X are empty.
Three theorems prune below a node:

    Dominance.  Let u in P ∪ X have I ⊆ b_u and alpha_u <= tau. Adding u to a set of the subtree can break only
                the pair condition, so every maximal set there holds u itself or a candidate that is not a
                near-duplicate of u. If there is no such candidate, u in X stops the search and u in P is absorbed.
    Acceptance. Let S ∪ Q be a valid set, Q ⊆ P, to which no candidate can be added. It is maximal iff no
                rejecter can be added, and every other maximal set of the subtree holds a candidate outside Q.
    Order.      If c1, c2, ... are branched on in turn, each joining X afterwards, every maximal set that holds
                one of them is found once, at the first one it holds.

Each node uses dominance or acceptance, whichever leaves fewer branches. The pair graph is given, never
derived from counts: for shares and resemblance, enough common features do not make a pair.

Sources:
    Ignatov, Kuznetsov 2009, Frequent itemset mining for clustering near duplicate web documents (the sets).
    Tomita, Tanaka, Takahashi 2006, The worst-case time complexity for generating all maximal cliques: the
    dominant document plays the part of its pivot, with documents for vertices.
    Burdick, Calimlim, Gehrke 2001, MAFIA: absorbing an item that keeps the support, accepting a whole tail.
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.mining.bitsets import (
    Bits,
    add_slot,
    copy_bits,
    count_all,
    count_common,
    count_outside,
    has_slot,
    keep_common,
    keep_outside,
    list_slots,
    remove_slot,
)
from nddup.mining.found_sets import SETS, WORK, FoundSets, SearchLimits, add_found, empty_found, is_past
from nddup.mining.neighbourhoods import (
    Neighbourhood,
    count_visit,
    find_later,
    make_lookup,
    visit_neighbourhood,
    write_row,
)
from nddup.mining.packed_component import Component
from nddup.mining.search_tree import Node, Scratch, make_scratch, make_stack, node_at, step


@compiled
def find_dominant(neighbourhood: Neighbourhood, node: Node, tau: int, branches: Bits, scratch: Scratch) -> int:
    """
    Absorb candidates by dominance, and find the document that leaves the fewest branches by dominance.

    Returns:
        The number of branches left, which are written into `branches`. 0 stops the search; 1 + the number of
        candidates means that no document has I ⊆ b_u and alpha_u <= tau, and nothing is written.
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
def accept_greedily(neighbourhood: Neighbourhood, node: Node, tau: int, branches: Bits, scratch: Scratch) -> int:
    """
    Choose Q greedily, candidates with most common features first; write S ∪ Q, its joint features and P minus Q.

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
def expand(neighbourhood: Neighbourhood, node: Node, tau: int, found: FoundSets, scratch: Scratch) -> FoundSets:
    """Choose what to branch on below a node, and add the accepted set if it is maximal."""
    fewest = find_dominant(neighbourhood, node, tau, node.branches, scratch)
    if fewest == 0:
        return found

    # Acceptance leaves the candidates outside Q as branches. Where dominance leaves no more than that, it is used.
    tau = accept_greedily(neighbourhood, node, tau, scratch.left_out, scratch)
    if fewest <= count_all(scratch.left_out):
        return found

    copy_bits(node.branches, scratch.left_out)
    if count_all(scratch.accepted) > 0 and not is_rejected(neighbourhood, node, tau, scratch):
        return add_found(found, neighbourhood, scratch.accepted, count_all(scratch.joint), scratch.slots)
    return found


@compiled
def search_pivot(
    neighbourhood: Neighbourhood, later: Bits, pivot_bound: int, found: FoundSets, limits: SearchLimits
) -> FoundSets:
    """Add every maximal set whose first member is the pivot; stop soon after a limit is passed."""
    scratch = make_scratch(neighbourhood)
    stack = make_stack(neighbourhood, later, pivot_bound, scratch)
    found = expand(neighbourhood, node_at(stack, 0), pivot_bound, found, scratch)
    depth = 0
    while depth >= 0 and not is_past(found.counts, limits):
        above = depth
        stack, depth = step(neighbourhood, stack, depth, scratch)
        found.counts[WORK] += stack.width if depth >= above else 0
        if depth > above:
            found = expand(neighbourhood, node_at(stack, depth), stack.taus[depth], found, scratch)
    return found


@compiled
def note_largest(found: FoundSets, first: int, largest: NDArray[np.int64]) -> None:
    """Update `largest`, the number of the largest set that holds each document, with the sets from `first` on."""
    for i in range(first, found.counts[SETS]):
        start = found.ends[i - 1] if i > 0 else 0
        for j in range(start, found.ends[i]):
            best = largest[found.members[j]]
            size = 0
            if best >= 0:
                size = found.ends[best] - (found.ends[best - 1] if best > 0 else 0)
            if found.ends[i] - start > size:
                largest[found.members[j]] = i


@compiled
def is_inside(
    component: Component, pivot: int, later: Bits, found: FoundSets, which: int, seen: NDArray[np.int64]
) -> bool:
    """Tell whether set `which`, -1 for none, holds all neighbours after the pivot; `seen` marks documents by pivot."""
    if which < 0:
        return False

    # The mark is the pivot, so no mark has to be cleared.
    for j in range(found.ends[which - 1] if which > 0 else 0, found.ends[which]):
        seen[found.members[j]] = pivot

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
        component: sketches, bounds and pair graph.
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
    found = empty_found()
    for pivot in pivots:
        later = find_later(component, pivot)
        if count_all(later) == 0 or is_inside(component, pivot, later, found, largest[pivot], seen):
            continue

        # The work is counted before it is done: one neighbourhood may cost more than all earlier ones together.
        found.counts[WORK] += count_visit(component, pivot)
        if is_past(found.counts, limits):
            break

        neighbourhood = visit_neighbourhood(component, pivot, lookup)
        later_slots = np.empty(neighbourhood.neighbours.size, np.uint64)
        write_row(neighbourhood, later, later_slots)

        before = found.counts[SETS]
        found = search_pivot(neighbourhood, later_slots, max(min_support, component.bounds[pivot]), found, limits)
        if is_past(found.counts, limits):
            break
        note_largest(found, before, largest)
    return found
