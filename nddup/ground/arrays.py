"""Ragged arrays, grouping and numbering of keys.

Ragged, take_rows, gather    rows of different lengths
group_rows, number_keys      keys -> equal ones together; a number for each distinct one
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import compiled

HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Odd, with bits spread evenly: a product with it scatters ids over partitions and table slots."""


class Ragged(NamedTuple):
    """Rows of different lengths: row i is `values[offsets[i]:offsets[i + 1]]`."""

    offsets: NDArray[np.int64]
    values: NDArray[np.uint64]


def take_rows(rows: Ragged, order: NDArray[np.int64]) -> Ragged:
    """Return the rows of a ragged array in the order given, (m,); a row may be left out or repeated.

    Cost: linear in the rows taken and their values, however many rows there are.
    """
    offsets = np.zeros(len(order) + 1, np.int64)
    np.cumsum(rows.offsets[order + 1] - rows.offsets[order], out=offsets[1:])
    return Ragged(offsets, gather(rows.offsets, rows.values, order, offsets))


def group_rows(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bring equal keys together without sorting.

    Args:
        keys: shape (n,), uint64, any order.

    Returns:
        `order` (n,), int64: the numbers of the rows, group by group. Groups are in the order in which their keys first
        appear, and rows keep their order within a group. `offsets` (g + 1,), int64: group i is
        `order[offsets[i]:offsets[i + 1]]`. For no rows: an empty order and offsets [0].

    Cost: linear; one open-addressing table.
    """
    groups, count = number_keys(keys)
    return _scatter(groups, count)


@compiled
def number_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int32], int]:
    """Number the distinct keys from 0 in the order in which they first appear; return the number of each row's key, and
    the count of distinct keys.
    """
    # An open-addressing table, at most half full, holds the numbers; `seen` holds the key of each number.
    bits = 4
    while (1 << bits) < 2 * len(keys):
        bits += 1
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    table = np.full(1 << bits, -1, np.int32)
    seen = np.empty(len(keys), np.uint64)
    numbers = np.empty(len(keys), np.int32)

    count = 0
    for row in range(len(keys)):
        key = keys[row]
        slot = np.int64((key * HASH_MULTIPLIER) >> shift)
        while table[slot] >= 0 and seen[table[slot]] != key:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            seen[count] = key
            count += 1
        numbers[row] = table[slot]
    return numbers, count


@compiled
def gather(
    offsets: NDArray[np.int64],
    values: NDArray[np.uint64],
    order: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> NDArray[np.uint64]:
    """Return the front of each row in `order`, of as many values as lie between two of `targets`, one after another."""
    moved = np.empty(targets[-1], values.dtype)
    for row in range(len(order)):
        start = offsets[order[row]]
        for i in range(targets[row + 1] - targets[row]):
            moved[targets[row] + i] = values[start + i]
    return moved


@compiled
def _scatter(groups: NDArray[np.int32], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    offsets = np.zeros(count + 1, np.int64)
    for group in groups:
        offsets[group + 1] += 1
    for i in range(count):
        offsets[i + 1] += offsets[i]

    place = offsets[:-1].copy()
    order = np.empty(len(groups), np.int64)
    for row in range(len(groups)):
        order[place[groups[row]]] = row
        place[groups[row]] += 1
    return order, offsets
