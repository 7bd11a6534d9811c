"""Plain contexts: transactions of items, nothing else given.

In nddup's orientation shingles are transactions and documents are items, so an item's transactions are its sketch.

    Context            transactions as rows of item numbers
    transpose_context  its items as rows of transactions, without what cannot matter
    number_rows        which rows are equal: such items are in the same sets, and one of them is searched

Source:
    Ignatov, Kuznetsov 2009, Frequent itemset mining for clustering near duplicate web documents (the orientation).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled

MIX = np.uint64(0x9E3779B97F4A7C15)


class Context(NamedTuple):
    """Transactions: number t holds `items[offsets[t]:offsets[t + 1]]`."""

    offsets: NDArray[np.int64]  # shape (t+1,)
    items: NDArray[np.int32]  # numbers 0 ... n_items-1, distinct within a transaction
    n_items: int


class Rows(NamedTuple):
    """Items by their transactions: row i is of item `items[i]`."""

    items: NDArray[np.int32]
    offsets: NDArray[np.int64]
    transactions: NDArray[np.int32]  # numbers 0 ... n_transactions-1, ascending in a row
    n_transactions: int


def transpose_context(context: Context, is_frequent: NDArray[np.bool_], *, shortest: int) -> Rows:
    """
    Turn transactions into rows by item, without infrequent items and what they leave too short.

    Args:
        context: t transactions.
        is_frequent: shape (n_items,), bool.
        shortest: transactions of fewer frequent items are left out. Those of one matter to the items alone only.

    Returns:
        The rows of the frequent items, ascending; the transactions left are numbered anew, in their order.
    """
    items = np.flatnonzero(is_frequent).astype(np.int32)
    number = np.full(context.n_items, -1, np.int32)
    number[items] = np.arange(items.size)
    offsets, transactions, n_transactions = scatter_transactions(
        context.offsets, context.items, number, items.size, shortest
    )
    return Rows(items, offsets, transactions, n_transactions)


@compiled
def count_left(offsets: NDArray[np.int64], items: NDArray[np.int32], number: NDArray[np.int32]) -> NDArray[np.int32]:
    """Count the items of each transaction that have a row."""
    left = np.zeros(offsets.size - 1, np.int32)
    for i in range(left.size):
        for j in range(offsets[i], offsets[i + 1]):
            left[i] += number[items[j]] >= 0
    return left


@compiled
def scatter_transactions(
    offsets: NDArray[np.int64], items: NDArray[np.int32], number: NDArray[np.int32], n_rows: int, shortest: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """Count what goes to each row, then send it there."""
    t = offsets.size - 1
    left = count_left(offsets, items, number)
    ends = np.zeros(n_rows + 1, np.int64)
    for i in range(t):
        for j in range(offsets[i], offsets[i + 1] if left[i] >= shortest else offsets[i]):
            ends[number[items[j]] + 1] += number[items[j]] >= 0
    for row in range(n_rows):
        ends[row + 1] += ends[row]
    starts = ends.copy()
    transactions = np.empty(ends[-1], np.int32)
    count = 0
    for i in range(t):
        if left[i] < shortest:
            continue
        for j in range(offsets[i], offsets[i + 1]):
            row = number[items[j]]
            if row >= 0:
                transactions[starts[row]] = count
                starts[row] += 1
        count += 1
    return ends, transactions, count


def take_rows(rows: Rows, chosen: NDArray[np.int64]) -> Rows:
    """Take some rows, in the order given."""
    lengths = np.diff(rows.offsets)[chosen]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    at = np.repeat(rows.offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return Rows(rows.items[chosen], offsets, rows.transactions[at], rows.n_transactions)


@compiled
def number_rows(offsets: NDArray[np.int64], values: NDArray[np.int32]) -> tuple[NDArray[np.int64], int]:
    """
    Number the distinct rows from 0 in order of first appearance: equal rows get the same number.

    Args:
        offsets: shape (n+1,).
        values: the rows, compared value by value.

    Returns:
        The number of each row, shape (n,), and how many there are. Cost: linear.
    """
    n = offsets.size - 1
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    table = np.full(1 << bits, -1, np.int64)
    hashes, groups, count = np.empty(n, np.uint64), np.empty(n, np.int64), 0
    for row in range(n):
        low, size = offsets[row], offsets[row + 1] - offsets[row]
        mixed = np.uint64(size)
        for i in range(low, low + size):
            mixed = (mixed ^ np.uint64(values[i]) ^ (mixed >> np.uint64(29))) * MIX
        hashes[row] = mixed
        slot = np.int64(mixed >> np.uint64(64 - bits))
        groups[row] = -1
        while table[slot] >= 0 and groups[row] < 0:
            other = table[slot]
            start = offsets[other]
            is_equal = hashes[other] == mixed and offsets[other + 1] - start == size
            for i in range(size if is_equal else 0):
                is_equal = is_equal and values[start + i] == values[low + i]
            if is_equal:
                groups[row] = groups[other]
            slot = (slot + 1) & (table.size - 1)
        if groups[row] < 0:
            table[slot] = row
            groups[row] = count
            count += 1
    return groups, count
