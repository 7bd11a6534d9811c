"""All maximal, or all closed, frequent itemsets of a plain context: the only condition is a least support.

Items are documents and transactions their shingles. So an item's transactions are its sketch, every bound is the
least support, and two items are near-duplicates if they have that many transactions in common.

Source:
    Ignatov, Kuznetsov 2009, Frequent itemset mining for clustering near duplicate web documents (the orientation).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nddup.mining.closed_sets import mine_closed
from nddup.mining.found_sets import ROWS, SETS, WORK, FoundSets, SearchLimits
from nddup.mining.frequent_pairs import find_pairs
from nddup.mining.itemsets import NO_LIMIT, Itemsets, sort_canonically
from nddup.mining.maximal_sets import mine_pivots
from nddup.mining.packed_component import Component, make_component
from nddup.mining.transactions import Context, ItemRows, number_rows, take_rows, transpose_context


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
        context: the transactions.
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
        That of `find_pairs`, then that of `maximal_sets` or `closed_sets`. Memory, beside the context and the sets: 12
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
        found = expand_groups(mine_closed(component, support, limits), groups, rows.items)
        found = drop_root(found, context.offsets.size - 1)
    else:
        found = add_lone_rows(mine_pivots(component, np.arange(n_groups), support, limits), component)
        found = expand_groups(found, groups, rows.items)

    unpaired = np.setdiff1d(np.flatnonzero(counts >= support), rows.items).astype(np.int32)
    return choose_sets(found, unpaired, counts, min_size, limit)


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


def add_lone_rows(found: FoundSets, component: Component) -> FoundSets:
    """Add the rows without a neighbour to the maximal sets; each stands for one item, or for several equal ones."""
    n_sets, n_rows = int(found.counts[SETS]), int(found.counts[ROWS])
    lone = np.flatnonzero(np.diff(component.word_offsets) == 0)
    supports = np.diff(component.feature_offsets)[lone]
    return FoundSets(
        np.append(found.ends[:n_sets], n_rows + 1 + np.arange(lone.size)),
        np.append(found.members[:n_rows], lone.astype(np.int32)),
        np.append(found.supports[:n_sets], supports.astype(np.int32)),
        np.array([n_sets + lone.size, n_rows + lone.size, found.counts[WORK]]),
    )


def expand_groups(found: FoundSets, groups: NDArray[np.int64], items: NDArray[np.int32]) -> FoundSets:
    """
    Replace every member, a group of equal rows, by the items of the group.

    Args:
        found: sets of group numbers.
        groups: shape (n,), the group of each item.
        items: shape (n,), the items.

    Returns:
        The same sets of items, in the same order, each ascending.
    """
    n_sets, n_rows = int(found.counts[SETS]), int(found.counts[ROWS])
    members, ends = found.members[:n_rows], found.ends[:n_sets]

    sizes = np.bincount(groups)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    by_group = items[np.argsort(groups, kind="stable")]
    lengths = sizes[members]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    expanded = by_group[np.repeat(starts[members] - offsets[:-1], lengths) + np.arange(offsets[-1])]

    owners = np.repeat(np.arange(n_sets), np.diff(offsets[ends], prepend=0))
    in_order = expanded[np.lexsort((expanded, owners))].astype(np.int32)
    return FoundSets(offsets[ends], in_order, found.supports[:n_sets], np.array([n_sets, in_order.size, 0]))


def drop_root(found: FoundSets, n_transactions: int) -> FoundSets:
    """Remove the set of the items that every transaction holds, unless it is the only set found.

    It is the closure of the empty set, and all other closed sets contain it.
    """
    n_sets = int(found.counts[SETS])
    sizes = np.diff(found.ends, prepend=0)
    stays = (found.supports < n_transactions) | (n_sets == 1)
    members = found.members[np.repeat(stays, sizes)]
    ends = np.cumsum(sizes[stays])
    return FoundSets(ends, members, found.supports[stays], np.array([ends.size, members.size, 0]))


def choose_sets(
    found: FoundSets, unpaired: NDArray[np.int32], counts: NDArray[np.int64], min_size: int, limit: int
) -> Mined:
    """Add the frequent items that are in no pair, drop the sets that are past the limit or too small, sort the rest."""
    sizes = np.append(np.diff(found.ends, prepend=0), np.ones(unpaired.size, np.int64))
    members = np.append(found.members, unpaired)
    supports = np.append(found.supports, counts[unpaired]).astype(np.int32)

    first = np.cumsum(sizes) - sizes
    # The row of a single item may lack the transactions that hold no other frequent item.
    supports[sizes == 1] = counts[members[first[sizes == 1]]]

    is_chosen = (sizes >= min_size) & (np.arange(sizes.size) < limit)
    members = members[np.repeat(is_chosen, sizes)]
    ends = np.cumsum(sizes[is_chosen])
    chosen = FoundSets(ends, members, supports[is_chosen], np.array([ends.size, members.size, 0]))
    return Mined(sort_canonically(chosen, "all"), sizes.size <= limit)
