"""What a session of Spark holds on its executors."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def left_by(spark: SparkSession, before: set[int]) -> tuple[int, list[str], list[str]]:
    """Return what is on the executors since `before`: tables, their files, and views that the caller sees."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    manager = jvm.java.lang.Class.forName("org.apache.spark.SparkEnv").getDeclaredField("blockManager")
    manager.setAccessible(True)
    local = manager.get(spark.sparkContext._jsc.sc().env()).diskBlockManager().localDirsString()  # noqa: SLF001
    new = checkpoints(spark) - before
    files = [path.name for place in local for path in Path(place).rglob("rdd_*") if int(path.name.split("_")[1]) in new]
    shown = [spark.sql(f"SHOW VIEWS{place}").collect() for place in ("", " IN global_temp")]
    views = [row["viewName"] for rows in shown for row in rows]
    return len(new), files, views


def checkpoints(spark: SparkSession) -> set[int]:
    """Return the ids of the tables that Spark keeps on the executors."""
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())  # noqa: SLF001
