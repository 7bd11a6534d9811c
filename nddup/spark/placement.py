"""Moving rows to the partition that one of their columns names."""

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SEED = 42
"""Seed of the hash by which Spark spreads rows over partitions."""


def place(table: DataFrame, partitions: int, column: str) -> DataFrame:
    """Move every row to the partition that `column` names, 0 <= value < partitions.

    Spark has had `repartitionById` since 4.1; before that, `place_by_keys` does the same.

    Shuffles:  one.    Actions:  none.
    """
    if hasattr(type(table), "repartitionById"):
        return table.repartitionById(partitions, F.col(column))
    return place_by_keys(table, partitions, column)


def place_by_keys(table: DataFrame, partitions: int, column: str) -> DataFrame:
    """Move rows as `place` does, by hash partitioning on a key computed so that its hash leads to the partition.

    Spark cannot tell that rows with one value are then together, so a `groupBy` of the column shuffles them again.
    """
    keys = F.split(F.lit(",".join(map(str, keys_of(partitions)))), ",")
    return table.repartition(partitions, keys[F.col(column)].cast("int"))


def keys_of(partitions: int) -> NDArray[np.int32]:
    """Return for each partition the least int that Spark's hash partitioning sends there, (partitions,).

    Cost: about n ln n hashes for n partitions.

    Example:
        >>> keys = keys_of(7)
        >>> (hash_ints(keys).astype(int) % 7).tolist()
        [0, 1, 2, 3, 4, 5, 6]
    """
    found = np.full(partitions, -1, np.int32)
    low = 0
    while (found < 0).any():
        tried = np.arange(low, low + 4 * partitions, dtype=np.int32)[::-1]
        last = np.full(partitions, -1, np.int32)
        last[hash_ints(tried).astype(np.int64) % partitions] = tried  # of several, the last written stays: the least
        found = np.where(found < 0, last, found)
        low += 4 * partitions
    return found


def hash_ints(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the Murmur3 hash (x86, 32 bits) of each int, as Spark's `hash` does."""
    mixed = values.astype(np.uint32) * np.uint32(0xCC9E2D51)
    mixed = _rotated(mixed, 15) * np.uint32(0x1B873593)
    mixed = _rotated(mixed ^ np.uint32(SEED), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(4)  # the length of an int in bytes
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (mixed ^ (mixed >> np.uint32(16))).view(np.int32)


def _rotated(values: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
