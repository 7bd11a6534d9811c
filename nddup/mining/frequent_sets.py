"""All maximal, or all closed, frequent itemsets of a plain context: the only condition is a least support.

    find_pairs     items as rows of transactions, least  -> all pairs of items with enough transactions in common
    mine_closed    component, least                      -> closed sets: an item more loses a transaction
    mine_context   Context, support                      -> Mined: maximal or closed sets, by the two above

Items are documents and transactions their shingles (Ignatov, Kuznetsov 2009). So an item's transactions are its sketch,
every bound is the least support, and two items are near-duplicates if they have that many transactions in common: the
search is that of `maximal_sets`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled
from nddup.mining.fimi import Context, ItemRows, number_rows, take_rows, transpose_context
from nddup.mining.itemsets import NO_LIMIT, Itemsets, sort_canonically
from nddup.mining.maximal_sets import (
    ROWS,
    SETS,
    WORK,
    FoundSets,
    Node,
    Scratch,
    SearchLimits,
    add_found,
    empty_found,
    is_past,
    make_scratch,
    make_stack,
    mine_pivots,
    node_at,
    step,
)
from nddup.mining.neighbourhoods import (
    Bits,
    Component,
    Neighbourhood,
    add_slot,
    count_all,
    count_common,
    find_later,
    keep_outside,
    list_slots,
    make_component,
    make_lookup,
    remove_slot,
    visit_neighbourhood,
    write_row,
)

MEETING = 3
"""Cost of one meeting in a list, in words of bits compared."""

MAX_BITS = 1 << 23
"""Maximum number of words of bits for all items together: 64 MB."""


@compiled
def mine_closed(component: Component, least: int, limits: SearchLimits) -> FoundSets:
    """
    Find the closed sets of items with at least `least` common transactions, single items included.

    Each closed set is found once, at its first member d. A node has members S and their common transactions I. Its
    rejecters are the items before d and the items already branched on. If a rejecter is in all of I, every closed set
    below the node holds it too and has already been found. A candidate that is in all of I belongs to S; with all such
    candidates added, S is closed.

    Args:
        component: the items, each with all its transactions, and the pairs with `least` in common; all bounds `least`.
        least: at least 1.
        limits: of sets and member rows; the search stops when it passes one, which the counts show.

    Returns:
        The sets, by first member. Cost: for every closed set, and for every frequent extension of it by one item, the
        bitmaps of the neighbours left.

    Sources:
        Pasquier, Bastide, Taouil, Lakhal 1999, Discovering frequent closed itemsets for association rules.
        Uno, Kiyomi, Arimura 2004, LCM ver. 2 (each closed set once, from its own closure).
    """
    lookup = make_lookup(component)
    sets = empty_found()
    for pivot in range(component.bounds.size):
        neighbourhood = visit_neighbourhood(component, pivot, lookup)
        later = np.empty(neighbourhood.neighbours.size, np.uint64)
        write_row(neighbourhood, find_later(component, pivot), later)
        sets = search_closed(neighbourhood, later, least, sets, limits)
        if is_past(sets.counts, limits):
            break
    return sets


@compiled
def search_closed(
    neighbourhood: Neighbourhood, later: Bits, least: int, sets: FoundSets, limits: SearchLimits
) -> FoundSets:
    """Add every closed set whose first member is the pivot; stop soon after a limit is passed."""
    scratch = make_scratch(neighbourhood)
    stack = make_stack(neighbourhood, later, least, scratch)
    sets = close(neighbourhood, node_at(stack, 0), sets, scratch)
    depth = 0
    while depth >= 0 and not is_past(sets.counts, limits):
        above = depth
        stack, depth = step(neighbourhood, stack, depth, scratch)
        if depth > above:
            sets = close(neighbourhood, node_at(stack, depth), sets, scratch)
    return sets


@compiled
def close(neighbourhood: Neighbourhood, node: Node, sets: FoundSets, scratch: Scratch) -> FoundSets:
    """Add the closure of a node, unless it was found before, and branch on all remaining candidates."""
    support = count_all(node.common)
    keep_outside(node.branches, node.branches)

    # A rejecter in all common transactions is in the closure, which was found at that rejecter.
    for i in range(list_slots(node.rejecters, scratch.slots)):
        if scratch.kept[scratch.slots[i]] == support:
            return sets

    # A candidate in all common transactions belongs to the closure; the others are branches.
    for i in range(list_slots(node.candidates, scratch.slots)):
        slot = scratch.slots[i]
        if scratch.kept[slot] == support:
            add_slot(node.members, slot)
            remove_slot(node.candidates, slot)
        else:
            add_slot(node.branches, slot)
    return add_found(sets, neighbourhood, node.members, support, scratch.slots)


def find_pairs(
    offsets: NDArray[np.int64], transactions: NDArray[np.int32], n_transactions: int, least: int
) -> NDArray[np.int32]:
    """
    Find all pairs of items with enough common transactions.

    Most transactions are short. A few, such as the shingles of a template, hold a large part of all items, and would
    cost most of the counting. So the longest transactions become columns of bits, in which an item's row is a few
    words, and the rest become lists of the items they hold. A pair is counted along the lists; its bits are counted
    only if it was met there, or if both items have enough transactions in bits alone. `choose_columns` finds the number
    of columns of least estimated cost.

    Args:
        offsets: shape (m+1,); item i is in `transactions[offsets[i]:offsets[i + 1]]`.
        transactions: numbers 0 ... n_transactions-1, distinct within an item.
        least: number of transactions that a pair must have in common, at least 1.

    Returns:
        Shape (e, 2), int32, the lower item first, each pair once, ascending by the higher item.

    Cost:
        At most half the sum of the squares of the transactions' lengths; less where `choose_columns` finds it cheaper.
        Memory: a copy of the transactions, at most 64 MB of bits, and 8 bytes a pair, twice that while they grow.

    Example:
        >>> find_pairs(np.array([0, 3, 5, 8]), np.array([0, 1, 2, 1, 2, 0, 1, 2], np.int32), 3, 3).tolist()
        [[0, 2]]

    Sources:
        Agrawal, Srikant 1994, Fast algorithms for mining association rules (counting pairs).
        Sarawagi, Kirpal 2004, Efficient set joins on similarity predicates (long lists are handled apart).
    """
    lengths = np.bincount(transactions, minlength=n_transactions)
    columns = choose_columns(lengths, offsets.size - 1)
    slots = np.full(n_transactions, -1, np.int32)
    slots[columns] = np.arange(columns.size)

    listed = np.where(slots < 0, lengths, 0)
    starts = np.concatenate(([0], np.cumsum(listed))).astype(np.int64)
    return count_pairs(offsets, transactions, Split(slots, starts, (columns.size + 63) >> 6), least)


def choose_columns(lengths: NDArray[np.int64], n_items: int) -> NDArray[np.int64]:
    """Choose the transactions to hold as columns of bits, the longest ones, so that the total cost is least.

    Args:
        lengths: shape (t,), items of each transaction.
        n_items: number of items.

    Returns:
        Numbers of transactions, longest first; they fill at most `MAX_BITS` words for all items, 64 columns a word.
    """
    by_length = np.argsort(-lengths, kind="stable")
    meetings = np.concatenate(([0], np.cumsum(lengths[by_length].astype(np.float64) ** 2))) / 2

    # costs[w]: with w words of bits an item, the cost of the meetings in the other lists and of the words of all pairs.
    most = min((lengths.size + 63) >> 6, MAX_BITS // max(n_items, 1))
    taken = np.minimum(64 * np.arange(most + 1), lengths.size)
    costs = MEETING * (meetings[-1] - meetings[taken]) + np.arange(most + 1) * (n_items**2 / 2)
    return by_length[: taken[np.argmin(costs)]]


class Split(NamedTuple):
    """The division of t transactions into columns of bits and lists."""

    slots: NDArray[np.int32]  # shape (t,), the column of a transaction, or -1
    starts: NDArray[np.int64]  # shape (t+1,), where its list starts; the list of a column is empty
    width: int  # words of bits of an item


class Items(NamedTuple):
    """The items counted so far, of m."""

    bits: Bits  # shape (m, width), the columns that each is in
    in_bits: Written[np.int32]  # shape (m,), the number of those columns
    posted: Written[np.int32]  # the lists: the items of each other transaction, ascending
    ends: Written[np.int64]  # shape (t,), the present end of each list


class Meetings(NamedTuple):
    """The items that one item meets in its lists."""

    counts: Written[np.int32]  # shape (m,), common transactions with each item; reset to 0 after each item
    items: Written[np.int32]  # shape (m,), room for the items met


@compiled
def count_pairs(
    offsets: NDArray[np.int64], transactions: NDArray[np.int32], split: Split, least: int
) -> NDArray[np.int32]:
    """Count each item against the items before it, first along the lists, then in bits; return the pairs, (e, 2)."""
    m = offsets.size - 1
    n_posted, ends = split.starts[-1], split.starts[:-1].copy()
    items = Items(np.zeros((m, split.width), np.uint64), np.zeros(m, np.int32), np.empty(n_posted, np.int32), ends)
    met = Meetings(np.zeros(m, np.int32), np.empty(m, np.int32))
    heavy, n_heavy = np.empty(m, np.int32), 0  # items with `least` transactions in bits alone
    pairs, count = np.empty((1024, 2), np.int32), 0

    for a in range(m):
        n_met = meet_in_lists(transactions[offsets[a] : offsets[a + 1]], split, items, met, a)

        # Two heavy items that met in no list may still have enough in common in their bits.
        if items.in_bits[a] >= least:
            for i in range(n_heavy):
                b = heavy[i]
                if met.counts[b] == 0 and count_common(items.bits[a], items.bits[b]) >= least:
                    pairs = add_pair(pairs, count, b, a)
                    count += 1
            heavy[n_heavy] = a
            n_heavy += 1

        # The bits of items that met are compared only if they can make up the number still missing.
        for i in range(n_met):
            b = met.items[i]
            more = least - met.counts[b]
            if more <= min(items.in_bits[a], items.in_bits[b]) and count_common(items.bits[a], items.bits[b]) >= more:
                pairs = add_pair(pairs, count, b, a)
                count += 1
            met.counts[b] = 0
    return pairs[:count].copy()


@compiled
def meet_in_lists(transactions: NDArray[np.int32], split: Split, items: Items, met: Meetings, a: int) -> int:
    """Enter item `a` into bits and lists, and count its meetings in the lists; return the number of items it met."""
    n_met = 0
    for i in range(transactions.size):
        at = transactions[i]
        slot = split.slots[at]
        if slot >= 0:
            add_slot(items.bits[a], int(slot))
            items.in_bits[a] += 1
            continue

        for j in range(split.starts[at], items.ends[at]):
            b = items.posted[j]
            if met.counts[b] == 0:
                met.items[n_met] = b
                n_met += 1
            met.counts[b] += 1
        items.posted[items.ends[at]] = a
        items.ends[at] += 1
    return n_met


@compiled
def add_pair(pairs: Written[np.int32], count: int, a: int, b: int) -> NDArray[np.int32]:
    """Write a pair at `count`, doubling the room if there is none left; return the pairs."""
    if count == len(pairs):
        longer = np.empty((2 * count, 2), np.int32)
        longer[:count] = pairs
        pairs = longer
    pairs[count, 0] = a
    pairs[count, 1] = b
    return pairs


@dataclass(frozen=True)
class Mined:
    """Sets of items, and whether the search found them all."""

    itemsets: Itemsets
    is_complete: bool


def mine_context(
    context: Context, support: int, *, closed: bool = False, min_size: int = 1, max_sets: int | None = None
) -> Mined:
    """
    Find the maximal, or the closed, sets of items that are together in at least `support` transactions.

    Args:
        support: least number of transactions, at least 1.
        closed: find all sets to which no item can be added without losing a transaction, not only the maximal ones.
            The items that every transaction holds, the closure of the empty set, are left out unless maximal.
        min_size: smaller sets are left out at the end. With 1, a frequent item in no larger set is a set.
        max_sets: the search stops when there are more sets, of any size; None: it never stops.

    Returns:
        The sets in ascending order, each ascending; their `coverage` is `all`. Where the search stopped, `max_sets` of
        them, each maximal (or closed), and `is_complete` is false. The same context gives the same sets.

    Raises:
        ValueError: if `support` is less than 1.

    Cost:
        That of `find_pairs`, then that of the search. Memory, beside the context and the sets: 12
        bytes for every frequent item of every transaction, 24 for every pair of items with enough in common, and one
        neighbourhood.

    Example:
        >>> context = Context(np.array([0, 2, 5, 7, 8]), np.array([0, 1, 0, 1, 2, 1, 2, 3], np.int32), 4)
        >>> sets = mine_context(context, 2).itemsets
        >>> [row.tolist() for row in np.split(sets.members, sets.offsets[1:-1])], sets.supports.tolist()
        ([[0, 1], [1, 2]], [2, 2])
        >>> sets = mine_context(context, 2, closed=True).itemsets
        >>> [row.tolist() for row in np.split(sets.members, sets.offsets[1:-1])], sets.supports.tolist()
        ([[0, 1], [1], [1, 2]], [2, 3, 2])
    """
    if support < 1:
        raise ValueError(f"a support is at least 1, got {support}")
    support = min(support, context.offsets.size)  # any support above the number of transactions gives no sets
    counts = np.bincount(context.items, minlength=context.n_items)
    limit = NO_LIMIT if max_sets is None else max_sets

    # Items with equal rows are in the same sets: one of them is searched, and replaced by all of them in the sets.
    rows = list_rows(context, counts >= support, support, shortest=1 if closed else 2)
    groups, n_groups = number_rows(rows.offsets, rows.transactions)
    component = relate_rows(take_rows(rows, np.unique(groups, return_index=True)[1]), support)
    limits = SearchLimits(limit, NO_LIMIT, NO_LIMIT)
    if closed:
        sets = expand_groups(mine_closed(component, support, limits), groups, rows.items)
        sets = drop_root(sets, context.offsets.size - 1)
    else:
        sets = add_lone_rows(mine_pivots(component, np.arange(n_groups), support, limits), component)
        sets = expand_groups(sets, groups, rows.items)

    unpaired = np.setdiff1d(np.flatnonzero(counts >= support), rows.items).astype(np.int32)
    return choose_sets(sets, unpaired, counts, min_size, limit)


def list_rows(context: Context, is_frequent: NDArray[np.bool_], support: int, *, shortest: int) -> ItemRows:
    """Return the transactions of each frequent item that still has at least `support` of them, rare items first.

    Transactions of fewer than `shortest` frequent items are left out beforehand. The search looks at the neighbours
    after an item; rare items have few neighbours, so they come first.
    """
    rows = transpose_context(context, is_frequent, shortest=shortest)
    rows = take_rows(rows, np.flatnonzero(np.diff(rows.offsets) >= support))
    return take_rows(rows, np.argsort(np.diff(rows.offsets), kind="stable"))


def relate_rows(rows: ItemRows, least: int) -> Component:
    """Make the component to mine: the rows are its sketches, all bounds are `least`, pairs have `least` in common."""
    m = rows.items.size
    edges = find_pairs(rows.offsets, rows.transactions, rows.n_transactions, least)
    return make_component(rows.offsets, rows.transactions, rows.n_transactions, np.full(m, least, np.int32), edges)


def add_lone_rows(sets: FoundSets, component: Component) -> FoundSets:
    """Add the rows without a neighbour to the maximal sets; each stands for one item, or for several equal ones."""
    n_sets, n_rows = int(sets.counts[SETS]), int(sets.counts[ROWS])
    lone = np.flatnonzero(np.diff(component.word_offsets) == 0)
    supports = np.diff(component.feature_offsets)[lone]
    return FoundSets(
        np.append(sets.ends[:n_sets], n_rows + 1 + np.arange(lone.size)),
        np.append(sets.members[:n_rows], lone.astype(np.int32)),
        np.append(sets.supports[:n_sets], supports.astype(np.int32)),
        np.array([n_sets + lone.size, n_rows + lone.size, sets.counts[WORK]]),
    )


def expand_groups(sets: FoundSets, groups: NDArray[np.int64], items: NDArray[np.int32]) -> FoundSets:
    """
    Replace every member, a group of equal rows, by the items of the group.

    Args:
        sets: sets of group numbers.
        groups: shape (n,), the group of each item.
        items: shape (n,), the items.

    Returns:
        The same sets of items, in the same order, each ascending.
    """
    n_sets, n_rows = int(sets.counts[SETS]), int(sets.counts[ROWS])
    members, ends = sets.members[:n_rows], sets.ends[:n_sets]

    sizes = np.bincount(groups)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    by_group = items[np.argsort(groups, kind="stable")]
    lengths = sizes[members]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    expanded = by_group[np.repeat(starts[members] - offsets[:-1], lengths) + np.arange(offsets[-1])]

    owners = np.repeat(np.arange(n_sets), np.diff(offsets[ends], prepend=0))
    in_order = expanded[np.lexsort((expanded, owners))].astype(np.int32)
    return FoundSets(offsets[ends], in_order, sets.supports[:n_sets], np.array([n_sets, in_order.size, 0]))


def drop_root(sets: FoundSets, n_transactions: int) -> FoundSets:
    """Remove the set of the items that every transaction holds, unless it is the only set found.

    It is the closure of the empty set, and all other closed sets contain it.
    """
    n_sets = int(sets.counts[SETS])
    sizes = np.diff(sets.ends, prepend=0)
    stays = (sets.supports < n_transactions) | (n_sets == 1)
    members = sets.members[np.repeat(stays, sizes)]
    ends = np.cumsum(sizes[stays])
    return FoundSets(ends, members, sets.supports[stays], np.array([ends.size, members.size, 0]))


def choose_sets(
    sets: FoundSets, unpaired: NDArray[np.int32], counts: NDArray[np.int64], min_size: int, limit: int
) -> Mined:
    """Add the frequent items that are in no pair, drop the sets that are past the limit or too small, sort the rest."""
    sizes = np.append(np.diff(sets.ends, prepend=0), np.ones(unpaired.size, np.int64))
    members = np.append(sets.members, unpaired)
    supports = np.append(sets.supports, counts[unpaired]).astype(np.int32)

    first = np.cumsum(sizes) - sizes
    # The row of a single item may lack the transactions that hold no other frequent item.
    supports[sizes == 1] = counts[members[first[sizes == 1]]]

    is_chosen = (sizes >= min_size) & (np.arange(sizes.size) < limit)
    members = members[np.repeat(is_chosen, sizes)]
    ends = np.cumsum(sizes[is_chosen])
    chosen = FoundSets(ends, members, supports[is_chosen], np.array([ends.size, members.size, 0]))
    return Mined(sort_canonically(chosen, "all"), sizes.size <= limit)
