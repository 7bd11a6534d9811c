"""Closed frequent itemsets: the sets to which no item can be added without losing a transaction.

The search is that of `maximal_sets` over a plain context: every bound is the least support. Each closed set is found
once, at its first member d. A node has members S and their common transactions I. Its rejecters are the items before d
and the items already branched on. If a rejecter is in all of I, every closed set below the node holds it too and has
already been found. A candidate that is in all of I belongs to S; with all such candidates added, S is closed.

Sources:
    Pasquier, Bastide, Taouil, Lakhal 1999, Discovering frequent closed itemsets for association rules.
    Uno, Kiyomi, Arimura 2004, LCM ver. 2 (each closed set once, from its own closure).
"""

import numpy as np

from nddup.arrays import compiled
from nddup.mining.bitsets import Bits, add_slot, count_all, keep_outside, list_slots, remove_slot
from nddup.mining.found_sets import FoundSets, SearchLimits, add_found, empty_found, is_past
from nddup.mining.neighbourhoods import Neighbourhood, find_later, make_lookup, visit_neighbourhood, write_row
from nddup.mining.packed_component import Component
from nddup.mining.search_tree import Node, Scratch, make_scratch, make_stack, node_at, step


@compiled
def mine_closed(component: Component, least: int, limits: SearchLimits) -> FoundSets:
    """
    Find the closed sets of items with at least `least` common transactions, single items included.

    Args:
        component: the items, each with all its transactions, and the pairs with `least` in common; all bounds `least`.
        least: at least 1.
        limits: of sets and member rows; the search stops when it passes one, which the counts show.

    Returns:
        The sets, by first member. Cost: for every closed set, and for every frequent extension of it by one item, the
        bitmaps of the neighbours left.
    """
    lookup = make_lookup(component)
    found = empty_found()
    for pivot in range(component.bounds.size):
        neighbourhood = visit_neighbourhood(component, pivot, lookup)
        later = np.empty(neighbourhood.neighbours.size, np.uint64)
        write_row(neighbourhood, find_later(component, pivot), later)
        found = search_closed(neighbourhood, later, least, found, limits)
        if is_past(found.counts, limits):
            break
    return found


@compiled
def search_closed(
    neighbourhood: Neighbourhood, later: Bits, least: int, found: FoundSets, limits: SearchLimits
) -> FoundSets:
    """Add every closed set whose first member is the pivot; stop soon after a limit is passed."""
    scratch = make_scratch(neighbourhood)
    stack = make_stack(neighbourhood, later, least, scratch)
    found = close(neighbourhood, node_at(stack, 0), found, scratch)
    depth = 0
    while depth >= 0 and not is_past(found.counts, limits):
        above = depth
        stack, depth = step(neighbourhood, stack, depth, scratch)
        if depth > above:
            found = close(neighbourhood, node_at(stack, depth), found, scratch)
    return found


@compiled
def close(neighbourhood: Neighbourhood, node: Node, found: FoundSets, scratch: Scratch) -> FoundSets:
    """Add the closure of a node, unless it was found before, and branch on all remaining candidates."""
    support = count_all(node.common)
    keep_outside(node.branches, node.branches)

    # A rejecter in all common transactions is in the closure, which was found at that rejecter.
    for i in range(list_slots(node.rejecters, scratch.slots)):
        if scratch.kept[scratch.slots[i]] == support:
            return found

    # A candidate in all common transactions belongs to the closure; the others are branches.
    for i in range(list_slots(node.candidates, scratch.slots)):
        slot = scratch.slots[i]
        if scratch.kept[slot] == support:
            add_slot(node.members, slot)
            remove_slot(node.candidates, slot)
        else:
            add_slot(node.branches, slot)
    return add_found(found, neighbourhood, node.members, support, scratch.slots)
