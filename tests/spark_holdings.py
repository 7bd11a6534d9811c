"""What a session of Spark holds on its executors."""

import gc
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

PATIENCE = 30
"""Seconds in which Spark removes what is freed: executors are not waited for."""


def left_by(spark: SparkSession, before: set[int]) -> tuple[int, list[str], list[str]]:
    """Return what is on the executors since `before`: tables, their files, and views that the caller sees."""
    new, limit = checkpoints(spark) - before, time.monotonic() + PATIENCE
    while True:
        files = [name for name in files_of(spark, "rdd") if int(name.split("_")[1]) not in before]
        if all(int(name.split("_")[1]) in new for name in files) or time.monotonic() > limit:
            break
        time.sleep(0.1)
    shown = [spark.sql(f"SHOW VIEWS{place}").collect() for place in ("", " IN global_temp")]
    views = [row["viewName"] for rows in shown for row in rows]
    return len(new), files, views


def shuffles_left(spark: SparkSession, before: set[str]) -> set[str]:
    """Return the files of shuffles since `before` that stay when the garbage of both languages is collected."""
    limit = time.monotonic() + PATIENCE
    while (left := files_of(spark, "shuffle") - before) and time.monotonic() < limit:
        gc.collect()
        spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr] # noqa: SLF001
        time.sleep(0.5)
    return left


def files_of(spark: SparkSession, kind: str) -> set[str]:
    """Return the names of Spark's own files of a kind, `rdd` or `shuffle`, in `spark.local.dir`."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    manager = jvm.java.lang.Class.forName("org.apache.spark.SparkEnv").getDeclaredField("blockManager")
    manager.setAccessible(True)
    local = manager.get(spark.sparkContext._jsc.sc().env()).diskBlockManager().localDirsString()  # noqa: SLF001
    return {path.name for place in local for path in Path(place).rglob(f"{kind}_*")}


def checkpoints(spark: SparkSession) -> set[int]:
    """Return the ids of the tables that Spark keeps on the executors."""
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())  # noqa: SLF001
