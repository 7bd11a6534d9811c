"""Ragged arrays, grouping and numbering of keys, and `compiled`, which compiles every kernel of the package.

A kernel is a plain Python function of NumPy arrays and numbers. `compiled` turns it into machine code at its first call
and keeps the result on disk (`nddup.kernel_cache`), so only the first process of an installation waits for it (1-7 s
per kernel). If the folder of the package is not writable, numba uses the user's cache folder. Set NUMBA_CACHE_DIR on a
cluster whose workers have neither.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from nddup.kernel_cache import KernelCache, digest_sources, kept_by_sources

P = ParamSpec("P")
R = TypeVar("R")

HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Odd, with bits spread evenly: a product with it scatters ids over partitions and table slots."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function with numba, cached on disk; it runs without the interpreter's lock."""
    kernel: Any = numba.njit(nogil=True)(function)
    with kept_by_sources():
        # `njit(cache=True)` would set numba's own cache here.
        kernel._cache = KernelCache(function)  # type: ignore[no-untyped-call] # noqa: SLF001
    return cast("Callable[P, R]", kernel)


def is_compiled(kernel: Any) -> bool:  # noqa: ANN401 - numba's dispatcher
    """Return whether the disk cache of this installation holds a kernel, compiled from its present sources."""
    function = kernel.py_func
    name = f"*.{function.__name__}-*-{digest_sources(function.__module__)}.*.nbi"
    return any(Path(kernel.stats.cache_path).glob(name))


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
    return Ragged(offsets, _gather(rows.offsets, rows.values, order, offsets))


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
def _gather(
    offsets: NDArray[np.int64],
    values: NDArray[np.uint64],
    order: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> NDArray[np.uint64]:
    moved = np.empty(targets[-1], values.dtype)
    for row in range(len(order)):
        start = offsets[order[row]]
        for i in range(targets[row + 1] - targets[row]):
            moved[targets[row] + i] = values[start + i]
    return moved


@compiled
def _scatter(groups: NDArray[np.int32], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort the rows by group number, by counting."""
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
