"""Joins on a skewed key, which most of the rows may share: forty million pages can hold the same text.

A shuffle sends all rows with one key to one task. Here the rows of a heavy key are split into parts, one task each, and
the matching row of the other side is copied to every part. Spark's own treatment of skewed joins needs a shuffle on
both sides, and a side that is an aggregate by the key is not shuffled for the join.

    rows, groups  --count_heavy-->  rows with `n`    for rows without a count of the rows that share their key
    rows, groups  --join_parted-->  joined           one shuffle of each side, on the key and the part
"""

from collections.abc import Sequence
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

T = TypeVar("T")

HEAVY = 100_000
"""Rows of one key in one task: under 100 MB of narrow rows. A key with this many rows or more is heavy."""

WORTH = 5_000
"""Rows from which a broadcast, a job of its own, costs less than the shuffle of the rows that it spares."""

MOST_BROADCAST = 1_000_000
"""Largest number of rows to broadcast, about 100 bytes each. Broadcasting the small side of a join saves shuffling the
other."""


def beside(few: DataFrame, rows: int, many: int = WORTH) -> DataFrame:
    """Return the small side of a join with `many` rows, marked for broadcast where both are neither small nor large.

    Below `WORTH` rows it is a plain join; if the small side has more than `MOST_BROADCAST`, both sides are shuffled.
    """
    if many < WORTH:
        return few
    return F.broadcast(few) if rows <= MOST_BROADCAST else few.hint("merge")


def in_parts(files: Sequence[T]) -> list[Sequence[T]]:
    """Split a list of files into parts of at most `MOST_BROADCAST`, to broadcast each; no files give one empty part.

    The alternative, a shuffle of the contents that Spark reads, would be too large and would lose their order.
    """
    return [files[at : at + MOST_BROADCAST] for at in range(0, max(len(files), 1), MOST_BROADCAST)]


def count_heavy(rows: DataFrame, groups: DataFrame, key: str) -> DataFrame:
    """Add to each row `n`, the number of rows with its key if that is `HEAVY` or more, else 0.

    Schema in:   key, …; key, n long, one row per key
    Schema out:  the columns of the rows, n long
    Shuffles:  none; the heavy keys, at most one per `HEAVY` rows, are broadcast.    Actions:  none.
    """
    heavy = groups.where(F.col("n") >= HEAVY).select(key, "n")
    return rows.join(F.broadcast(heavy), key, "left").withColumn("n", F.coalesce("n", F.lit(0).cast("long")))


def join_parted(rows: DataFrame, groups: DataFrame, key: str, *, by: str, how: str = "inner") -> DataFrame:
    """Join rows with the group of their key, spreading the rows of a heavy key over many tasks.

    Args:
        rows: the side where a key may be heavy. `n` is the number of rows with the key; if that is below `HEAVY`, any
            number below `HEAVY` will do.
        groups: the other side, with `n` of the same meaning; few rows per key.
        key: the column to join on, in both.
        by: a column of the rows whose values differ within a key; its hash decides the part.
        how: `inner` or `left`.

    Schema out:  key, n and the other columns of the rows, the other columns of the groups but `n`
    Shuffles:  both sides on (key, part), unless the groups are small enough to be broadcast.    Actions:  none.
    """
    placed = rows.withColumn("part", F.pmod(F.xxhash64(by), _parts() + 1))
    copied = groups.withColumn("part", F.explode(F.sequence(F.lit(0).cast("long"), _parts()))).drop("n")
    return placed.join(copied, [key, "part"], how).drop("part")


def join_found(  # noqa: PLR0913 - those of `join_parted`
    rows: DataFrame, groups: DataFrame, key: str, *, by: str, many: int, how: str = "inner"
) -> DataFrame:
    """Join as `join_parted`, for rows without `n`, of which there are `many`.

    Below `HEAVY` no key can be heavy. The groups, at most one per two rows, are then broadcast: the rows do not move.
    Below `WORTH` it is a plain join.

    Schema out:  the columns of the rows, the other columns of the groups but `n`
    """
    if many < HEAVY:
        return rows.join(beside(groups.drop("n"), many, many), key, how)
    return join_parted(count_heavy(rows, groups, key), groups, key, by=by, how=how).drop("n")


def _parts() -> Column:
    return F.floor(F.col("n") / HEAVY)
