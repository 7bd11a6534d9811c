"""A reference list as tables: its lines, its pairs, its groups.

    a file   --read_list-->      entries      members array<string>, score double: a line; null where unreadable
    entries  --list_pairs-->     reference    each pair once, ids in order
    entries  --list_groups-->    groups       each membership once
    entries  --expand_groups-->  reference

The layout of the file was detected from its first lines (`nddup.reading.reference_lists.layouts`).
"""

from collections.abc import Iterator
from functools import partial
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import NddupError
from nddup.reading.reference_lists.entries import Lists, lines_of, read_lines
from nddup.reading.reference_lists.layouts import Layout
from nddup.reading.streams import Expanded, StoppedError
from nddup.spark.reading.hadoop_files import WholeFile, list_files, open_row, rows_of
from nddup.spark.schemas import require, table

Batches = Iterator[pa.RecordBatch]

ENTRIES = table("members array<string>, score double")
"""A line of the list."""

REFERENCE = table("doc_a string, doc_b string, score double, times long")
"""A pair of the list, doc_a < doc_b, its highest score, and the number of lines that hold it."""

GROUPS = table("set_id long, doc_id string")
"""A membership of a group."""

LINES = 10_000
"""Lines a batch of a compressed list."""


def read_list(spark: SparkSession, path: str, layout: Layout, *, compression: str, size: int) -> DataFrame:
    """The entries of a list. A plain file is read by many tasks, a compressed one by one task.

    Args:
        spark: the session.
        path: the file as Hadoop's URI, taken literally.
        layout: how its lines are read.
        compression: as `compression_of` says; empty for a plain file.
        size: stored bytes of the file.

    Schema out:  ENTRIES
    Shuffles:  none.    Actions:  none.

    Raises:
        NddupError: in the task, if a compressed file is damaged.
    """
    if compression:
        files = list_files(spark, [WholeFile(path, path, compression, 0, size)])
        return files.mapInArrow(partial(_read_compressed, layout=layout), ENTRIES)
    reader = spark.read.format("text").option("recursiveFileLookup", "true").option("__globPaths__", "false")
    lines = reader.load([unquote(path)]).select(F.col("value").cast("binary").alias("value"))
    return lines.mapInArrow(partial(_read_plain, layout=layout), ENTRIES)


def list_pairs(entries: DataFrame) -> DataFrame:
    """Each pair once; a document with itself is no pair.

    Schema in:   ENTRIES of pairs
    Schema out:  REFERENCE
    Shuffles:  one.    Actions:  none.
    """
    require(entries, ENTRIES, stage="evaluate")
    ends = entries.where("members is not null").select(
        F.least(F.col("members")[0], F.col("members")[1]).alias("doc_a"),
        F.greatest(F.col("members")[0], F.col("members")[1]).alias("doc_b"),
        "score",
    )
    different = ends.where("doc_a < doc_b")
    return different.groupBy("doc_a", "doc_b").agg(F.max("score").alias("score"), F.count("*").alias("times"))


def list_groups(entries: DataFrame) -> DataFrame:
    """Each membership once, groups numbered.

    Schema in:   ENTRIES of groups, persisted: the numbers depend on its partitions
    Schema out:  GROUPS
    Shuffles:  none.    Actions:  none.
    """
    require(entries, ENTRIES, stage="evaluate")
    numbered = entries.where("members is not null").withColumn("set_id", F.monotonically_increasing_id())
    return numbered.select("set_id", F.explode(F.array_distinct("members")).alias("doc_id"))


def expand_groups(entries: DataFrame) -> DataFrame:
    """The pairs of the groups, each once. Their number grows with the square of a group's size.

    Schema in:   ENTRIES of groups
    Schema out:  REFERENCE
    Shuffles:  one, of the pairs.    Actions:  none.
    """
    require(entries, ENTRIES, stage="evaluate")
    ids = F.array_sort(F.array_distinct("members"))
    rows = entries.where("members is not null").select(ids.alias("ids"))
    first = rows.select("ids", F.posexplode("ids").alias("at", "doc_a"))
    rest = first.select("doc_a", F.explode(F.expr("slice(ids, at + 2, size(ids))")).alias("doc_b"))
    counted = rest.groupBy("doc_a", "doc_b").agg(F.count("*").alias("times"))
    return counted.select("doc_a", "doc_b", F.lit(None).cast("double").alias("score"), "times")


def _read_plain(batches: Batches, *, layout: Layout) -> Batches:
    for batch in batches:
        lines = (value.decode("utf-8", "replace") for value in batch.column("value").to_pylist() if value)
        yield _entries(read_lines(lines, layout))


def _read_compressed(batches: Batches, *, layout: Layout) -> Batches:
    """Expand each file as a stream and read `LINES` lines at a time."""
    for row in rows_of(batches):
        held: list[str] = []
        try:
            with open_row(row) as raw:
                stream = Expanded(raw, row["compression"])
                for line in lines_of(iter(stream.read, b"")):
                    held.append(line)
                    if len(held) == LINES:
                        yield _entries(read_lines(held, layout))
                        held = []
        except StoppedError as error:
            raise NddupError(f"{row['path']}: {error.reason}: {error}") from error
        yield _entries(read_lines(held, layout))


def _entries(read: Lists) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "members": pa.array(read.members, pa.list_(pa.string())),
            "score": pa.array(read.scores, pa.float64()),
        }
    )
