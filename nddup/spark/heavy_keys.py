"""Joins on a key that most of the rows may have: forty million pages can hold one and the same text.

A shuffle sends all rows of a key to one task. Here the rows of a heavy key are cut into parts, a task each, and the row
of the other side is copied to each part. Spark's own cure for skewed joins needs a shuffle on both sides; where one
side is an aggregate on the key there is none on that side.

    rows, groups  --count_heavy-->  rows with `n`    for rows that do not say how many share their key
    rows, groups  --join_parted-->  joined           one shuffle of either side, on the key and the part
"""

from collections.abc import Sequence
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

T = TypeVar("T")

HEAVY = 100_000
"""Rows of one key that a task takes: under 100 MB of narrow rows. A key with as many is heavy."""

MOST_BROADCAST = 1_000_000
"""Rows of a small side that are sent to every executor, some 100 bytes each, so that the other side is not shuffled."""


def beside(few: DataFrame, rows: int) -> DataFrame:
    """The small side of a join, `rows` in all: broadcast, unless it has outgrown that; then both sides are shuffled."""
    return F.broadcast(few) if rows <= MOST_BROADCAST else few.hint("merge")


def in_parts(files: Sequence[T]) -> list[Sequence[T]]:
    """Files that are broadcast, at most `MOST_BROADCAST` at a time; one empty part of none.

    What Spark reads of them is too large to be shuffled, and its order would be lost.
    """
    return [files[at : at + MOST_BROADCAST] for at in range(0, max(len(files), 1), MOST_BROADCAST)]


def count_heavy(rows: DataFrame, groups: DataFrame, key: str) -> DataFrame:
    """The rows with `n`: how many rows have the key, if that is `HEAVY` or more; else 0.

    Schema in:   key, …; key, n long, a row a key
    Schema out:  as the rows, n long
    Shuffles:  none; the heavy keys, at most one for `HEAVY` rows, are broadcast.    Actions:  none.
    """
    heavy = groups.where(F.col("n") >= HEAVY).select(key, "n")
    return rows.join(F.broadcast(heavy), key, "left").withColumn("n", F.coalesce("n", F.lit(0).cast("long")))


def join_parted(rows: DataFrame, groups: DataFrame, key: str, *, by: str, how: str = "inner") -> DataFrame:
    """Join rows with what is known of their key; the rows of a heavy key are spread over many tasks.

    Args:
        rows: the side where a key may be heavy. `n` is how many rows have the key; any number below `HEAVY` will do
            where they are fewer.
        groups: the other side, with `n` of the same meaning; few rows a key.
        key: column of both.
        by: a column of the rows whose values differ within a key; its hash decides the part.
        how: `inner` or `left`.

    Schema out:  key, n and the other columns of the rows, the other columns of the groups but `n`
    Shuffles:  either side on (key, part), unless the groups are small enough to be broadcast.    Actions:  none.
    """
    placed = rows.withColumn("part", F.pmod(F.xxhash64(by), _parts() + 1))
    copied = groups.withColumn("part", F.explode(F.sequence(F.lit(0).cast("long"), _parts()))).drop("n")
    return placed.join(copied, [key, "part"], how).drop("part")


def join_found(  # noqa: PLR0913 - those of `join_parted`
    rows: DataFrame, groups: DataFrame, key: str, *, by: str, is_large: bool, how: str = "inner"
) -> DataFrame:
    """As `join_parted`, for rows without `n`. A plain join if there are too few rows for a heavy key (not `is_large`).

    Schema out:  the columns of the rows, the other columns of the groups but `n`
    """
    if not is_large:
        return rows.join(groups.drop("n"), key, how)
    return join_parted(count_heavy(rows, groups, key), groups, key, by=by, how=how).drop("n")


def _parts() -> Column:
    """The number of the last part of a key."""
    return F.floor(F.col("n") / HEAVY)
