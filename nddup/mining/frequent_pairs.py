"""All pairs of items of a context that have at least a given number of transactions in common.

Most transactions are short. A few, such as the shingles of a template, hold a large part of all items, and would cost
most of the counting. So the longest transactions become columns of bits, in which an item's row is a few words, and the
rest become lists of the items they hold. A pair is counted along the lists; its bits are counted only if it was met
there, or if both items have enough transactions in bits alone. The number of columns is chosen by estimated cost.

Sources:
    Agrawal, Srikant 1994, Fast algorithms for mining association rules (counting pairs).
    Sarawagi, Kirpal 2004, Efficient set joins on similarity predicates (long lists are handled apart).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.mining.bitsets import Bits, add_slot, count_common

MEETING = 3
"""Cost of one meeting in a list, in words of bits compared."""
MAX_BITS = 1 << 23
"""Most words of bits for all items together: 64 MB."""


def find_pairs(
    offsets: NDArray[np.int64], transactions: NDArray[np.int32], n_transactions: int, least: int
) -> NDArray[np.int32]:
    """
    Find all pairs of items with enough common transactions.

    Args:
        offsets: shape (m+1,); item i is in `transactions[offsets[i]:offsets[i + 1]]`.
        transactions: numbers 0 ... n_transactions-1, distinct within an item.
        n_transactions: number of transactions.
        least: number of transactions that a pair must have in common, at least 1.

    Returns:
        Shape (e, 2), int32, the lower item first, each pair once, ascending by the higher item.

    Cost:
        At most half the sum of the squares of the transactions' lengths; less where `choose_columns` finds it cheaper.
        Memory: a copy of the transactions, at most 64 MB of bits, and 8 bytes a pair, twice that while they grow.

    Example:
        >>> find_pairs(np.array([0, 3, 5, 8]), np.array([0, 1, 2, 1, 2, 0, 1, 2], np.int32), 3, 3).tolist()
        [[0, 2]]
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
    in_bits: NDArray[np.int32]  # shape (m,), the number of those columns
    posted: NDArray[np.int32]  # the lists: the items of each other transaction, ascending
    ends: NDArray[np.int64]  # shape (t,), the present end of each list


class Meetings(NamedTuple):
    """The items that one item meets in its lists."""

    counts: NDArray[np.int32]  # shape (m,), common transactions with each item; reset to 0 after each item
    items: NDArray[np.int32]  # shape (m,), room for the items met


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
def add_pair(pairs: NDArray[np.int32], count: int, a: int, b: int) -> NDArray[np.int32]:
    """Write a pair at `count`, doubling the room if there is none left; return the pairs."""
    if count == len(pairs):
        longer = np.empty((2 * count, 2), np.int32)
        longer[:count] = pairs
        pairs = longer
    pairs[count, 0] = a
    pairs[count, 1] = b
    return pairs
