"""Which items of a context occur together often enough: all pairs with a least number of common transactions.

Most transactions are short; a few, such as the shingles of a template, are held by a large part of all items and would
alone make most of the counting. So the longest ones are columns of bits, an item's row a few words, and the rest are
lists: a pair is counted along the lists, and the bits are counted only for pairs met there, and between items that
hold enough in bits alone. How many columns are bits is chosen by what both ways would cost.
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.mining.bitsets import Bits, add_slot, count_common

MEETING = 3
"""What one meeting in a list costs, in words of bits compared."""
MAX_BITS = 1 << 23
"""Words of bits for all items together: 64 MB."""


def find_pairs(
    offsets: NDArray[np.int64], transactions: NDArray[np.int32], n_transactions: int, least: int
) -> NDArray[np.int32]:
    """
    Find all pairs of items with enough common transactions.

    Args:
        offsets: shape (m+1,); item i is in `transactions[offsets[i]:offsets[i + 1]]`.
        transactions: numbers 0 ... n_transactions-1, distinct within an item.
        n_transactions: how many there are.
        least: transactions a pair must have in common, at least 1.

    Returns:
        Shape (e, 2), int32, the lower item first, each pair once, ascending by the higher item.

    Cost:
        At most half the sum of the squares of the transactions' lengths, or what `choose_columns` finds cheaper.
        Memory: the transactions once more, at most 64 MB of bits, 8 bytes a pair and as much again while it grows.

    Example:
        >>> find_pairs(np.array([0, 3, 5, 8]), np.array([0, 1, 2, 1, 2, 0, 1, 2], np.int32), 3, 3).tolist()
        [[0, 2]]
    """
    lengths = np.bincount(transactions, minlength=n_transactions)
    columns = choose_columns(lengths, offsets.size - 1)
    slots = np.full(n_transactions, -1, np.int32)
    slots[columns] = np.arange(columns.size)
    rest = np.where(slots < 0, lengths, 0)
    starts = np.concatenate(([0], np.cumsum(rest))).astype(np.int64)
    return count_pairs(offsets, transactions, slots, starts, (columns.size + 63) >> 6, least)


def choose_columns(lengths: NDArray[np.int64], n_items: int) -> NDArray[np.int64]:
    """Choose the transactions to be held as bits, the longest, 64 a word, so that the whole costs least."""
    by_length = np.argsort(-lengths, kind="stable")
    meetings = np.concatenate(([0], np.cumsum(lengths[by_length].astype(np.float64) ** 2))) / 2
    most = min((lengths.size + 63) >> 6, MAX_BITS // max(n_items, 1))
    taken = np.minimum(64 * np.arange(most + 1), lengths.size)
    costs = MEETING * (meetings[-1] - meetings[taken]) + np.arange(most + 1) * (n_items**2 / 2)
    return by_length[: taken[np.argmin(costs)]]


@compiled
def split_item(
    transactions: NDArray[np.int32], slots: NDArray[np.int32], row: Bits, light: NDArray[np.int32]
) -> tuple[int, int]:
    """Write the transactions of an item into its row of bits and into `light`; returns how many of both."""
    n_light = 0
    for i in range(transactions.size):
        slot = slots[transactions[i]]
        if slot >= 0:
            add_slot(row, int(slot))
        else:
            light[n_light] = transactions[i]
            n_light += 1
    return transactions.size - n_light, n_light


@compiled
def add_pair(pairs: NDArray[np.int32], count: int, a: int, b: int) -> NDArray[np.int32]:
    """Write a pair at `count`, with more room where there is none left."""
    if count == len(pairs):
        longer = np.empty((2 * count, 2), np.int32)
        longer[:count] = pairs
        pairs = longer
    pairs[count, 0] = a
    pairs[count, 1] = b
    return pairs


@compiled
def count_pairs(
    offsets: NDArray[np.int64],
    transactions: NDArray[np.int32],
    slots: NDArray[np.int32],
    starts: NDArray[np.int64],
    width: int,
    least: int,
) -> NDArray[np.int32]:
    """Count each item against the items before it: along the lists first, then in bits."""
    m = offsets.size - 1
    bits = np.zeros((m, width), np.uint64)
    in_bits, heavy = np.zeros(m, np.int32), np.empty(m, np.int32)
    posted, ends = np.empty(starts[-1], np.int32), starts[:-1].copy()
    met, touched = np.zeros(m, np.int32), np.empty(m, np.int32)
    light = np.empty(slots.size, np.int32)
    pairs, count, n_heavy = np.empty((1024, 2), np.int32), 0, 0
    for a in range(m):
        in_bits[a], n_light = split_item(transactions[offsets[a] : offsets[a + 1]], slots, bits[a], light)
        n_touched = 0
        for i in range(n_light):
            at = light[i]
            for j in range(starts[at], ends[at]):
                b = posted[j]
                if met[b] == 0:
                    touched[n_touched] = b
                    n_touched += 1
                met[b] += 1
            posted[ends[at]] = a
            ends[at] += 1
        if in_bits[a] >= least:
            for i in range(n_heavy):
                b = heavy[i]
                if met[b] == 0 and count_common(bits[a], bits[b]) >= least:
                    pairs = add_pair(pairs, count, b, a)
                    count += 1
            heavy[n_heavy] = a
            n_heavy += 1
        for i in range(n_touched):
            b = touched[i]
            more = least - met[b]
            if more <= min(in_bits[a], in_bits[b]) and count_common(bits[a], bits[b]) >= more:
                pairs = add_pair(pairs, count, b, a)
                count += 1
            met[b] = 0
    return pairs[:count].copy()
