"""Rows go to the partition they name, directly or by the hash of a key."""

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nddup.spark.placement import hash_ints, keys_of, place, place_by_keys


def test_the_hash_is_that_of_spark(spark: SparkSession) -> None:
    """The hash equals Spark's for small and large ints of both signs."""
    values = np.array([0, 1, -1, 42, 65_536, 2**31 - 1, -(2**31)], np.int32)
    rows = spark.createDataFrame([(int(value),) for value in values], "value int")

    assert hash_ints(values).tolist() == [row["h"] for row in rows.select(F.hash("value").alias("h")).collect()]


@pytest.mark.parametrize("partitions", [1, 2, 7, 64, 2_400])
def test_every_partition_has_a_key(partitions: int) -> None:
    """The key of a partition is the least one whose hash leads there."""
    keys = keys_of(partitions)
    led = hash_ints(np.arange(keys.max() + 1, dtype=np.int32)).astype(np.int64) % partitions

    assert [int(np.flatnonzero(led == number)[0]) for number in range(partitions)] == keys.tolist()


@pytest.mark.parametrize("way", [place, place_by_keys])
def test_rows_are_where_they_say(spark: SparkSession, way: object) -> None:
    """Each row is in the partition it names; one of the seven partitions gets none."""
    assert callable(way)
    rows = spark.range(100).select((F.col("id") % 6).cast("int").alias("target"))

    placed = way(rows, 7, "target").select("target", F.spark_partition_id().alias("part"))

    assert {(row["target"], row["part"]) for row in placed.collect()} == {(number, number) for number in range(6)}
