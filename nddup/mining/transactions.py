"""Plain contexts: transactions of items, and nothing else.

In nddup's orientation shingles are transactions and documents are items, so an item's transactions are its sketch.

    Context            transactions as rows of item numbers
    transpose_context  its items as rows of transactions, without rows and entries that cannot matter
    number_rows        which rows are equal: their items are in the same sets, so one of them is searched

Source:
    Ignatov, Kuznetsov 2009, Frequent itemset mining for clustering near duplicate web documents (the orientation).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, compiled


class Context(NamedTuple):
    """Transactions: number t holds `items[offsets[t]:offsets[t + 1]]`."""

    offsets: NDArray[np.int64]  # shape (t+1,)
    items: NDArray[np.int32]  # numbers 0 ... n_items-1, distinct within a transaction
    n_items: int


class ItemRows(NamedTuple):
    """The transactions of each item: row i is that of item `items[i]`."""

    items: NDArray[np.int32]
    offsets: NDArray[np.int64]
    transactions: NDArray[np.int32]  # numbers 0 ... n_transactions-1, ascending in a row
    n_transactions: int


def transpose_context(context: Context, is_frequent: NDArray[np.bool_], *, shortest: int) -> ItemRows:
    """
    Turn transactions into rows by item, without infrequent items and the transactions that are too short without them.

    Args:
        context: t transactions.
        is_frequent: shape (n_items,), bool.
        shortest: transactions of fewer frequent items are left out. One of a single frequent item matters only to the
            set of that item alone.

    Returns:
        The rows of the frequent items, ascending; the remaining transactions are renumbered in their order.
    """
    items = np.flatnonzero(is_frequent).astype(np.int32)
    number = np.full(context.n_items, -1, np.int32)
    number[items] = np.arange(items.size)

    offsets, transactions, n_transactions = scatter_transactions(
        context.offsets, context.items, number, items.size, shortest
    )
    return ItemRows(items, offsets, transactions, n_transactions)


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
    """Write the transactions of each row; return the offsets of the rows, the rows, and the number of transactions.

    `number` is the row of each item, or -1. Transactions of fewer than `shortest` items with a row are left out.
    """
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


def take_rows(rows: ItemRows, chosen: NDArray[np.int64]) -> ItemRows:
    """Take some rows, in the order given."""
    lengths = np.diff(rows.offsets)[chosen]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    at = np.repeat(rows.offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return ItemRows(rows.items[chosen], offsets, rows.transactions[at], rows.n_transactions)


@compiled
def number_rows(offsets: NDArray[np.int64], values: NDArray[np.int32]) -> tuple[NDArray[np.int64], int]:
    """
    Number the distinct rows from 0 in order of first appearance: equal rows get the same number.

    Args:
        offsets: shape (n+1,).
        values: the rows, compared value by value.

    Returns:
        The number of each row, shape (n,), and the number of distinct rows. Cost: linear in the values, as long as few
        hashes collide; hashes are unseeded, so rows made for the purpose can make it quadratic in n.
    """
    n = offsets.size - 1
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    table = np.full(1 << bits, -1, np.int64)  # open addressing: the first row of each number, or -1
    hashes, groups, count = np.empty(n, np.uint64), np.full(n, -1, np.int64), 0

    for row in range(n):
        hashes[row] = hash_row(values[offsets[row] : offsets[row + 1]])
        slot = np.int64(hashes[row] >> np.uint64(64 - bits))
        while table[slot] >= 0 and groups[row] < 0:
            other = table[slot]
            if hashes[other] == hashes[row] and is_same_row(offsets, values, other, row):
                groups[row] = groups[other]
            slot = (slot + 1) & (table.size - 1)

        if groups[row] < 0:
            table[slot] = row
            groups[row] = count
            count += 1
    return groups, count


@compiled
def hash_row(values: NDArray[np.int32]) -> np.uint64:
    """Hash the values of a row and its length."""
    mixed = np.uint64(values.size)
    for i in range(values.size):
        mixed = (mixed ^ np.uint64(values[i]) ^ (mixed >> np.uint64(29))) * HASH_MULTIPLIER
    return mixed


@compiled
def is_same_row(offsets: NDArray[np.int64], values: NDArray[np.int32], a: int, b: int) -> bool:
    """Tell whether two rows are equal, value by value."""
    size = offsets[a + 1] - offsets[a]
    if offsets[b + 1] - offsets[b] != size:
        return False

    same = 0
    while same < size and values[offsets[a] + same] == values[offsets[b] + same]:
        same += 1
    return bool(same == size)
