"""Reading a reference list on Spark, in many tasks if the file is not compressed.

The layout of the file has been detected from its first lines (`nddup.reading.reference_lists.layouts`).
"""

from collections.abc import Iterator
from functools import partial
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import NddupError
from nddup.reading.reference_lists.layouts import Layout, entries_of, lines_of
from nddup.reading.streams import Expanded, StoppedError
from nddup.scanning.file_heads import is_refused
from nddup.spark.reading.hadoop_files import WholeFile, list_files, open_row, rows_of
from nddup.spark.schemas import table
from nddup.spark.sources import reader_of

Batches = Iterator[pa.RecordBatch]

PAIRS = table("doc_a string, doc_b string, score double")
GROUP_LINES = table("members array<string>")
"""The entries of a pair list and of a group list, as in `nddup.reading.reference_lists.layouts`."""


def read_list(spark: SparkSession, path: str, layout: Layout, *, compression: str, size: int) -> DataFrame:
    """Read the entries of a list. Many tasks read a plain file, one task a compressed file.

    Args:
        spark: the session.
        path: the file as a Hadoop URI, taken literally.
        layout: how its lines are read.
        compression: as `compression_of` gives; empty for a plain file.
        size: stored bytes of the file.

    Schema out:  PAIRS; or set_id long, doc_id string: save these, because the numbers depend on the partitions
    Shuffles:  none.    Actions:  none.

    Raises:
        NddupError: in the task, if a compressed file is damaged.
    """
    if compression or is_refused(path):
        lines, read = list_files(spark, [WholeFile(path, path, compression, 0, size)]), _read_compressed
    else:
        source = reader_of(spark, "text").load([unquote(path)])
        lines, read = source.select(F.col("value").cast("binary").alias("value")), _read_plain

    if layout.kind == "pairs":
        return lines.mapInArrow(partial(read, layout=layout), PAIRS)
    groups = lines.mapInArrow(partial(read, layout=layout), GROUP_LINES)
    numbered = groups.withColumn("set_id", F.monotonically_increasing_id())
    return numbered.select("set_id", F.explode_outer("members").alias("doc_id"))


def _read_plain(batches: Batches, *, layout: Layout) -> Batches:
    for batch in batches:
        lines = (value.decode("utf-8", "replace") for value in batch.column("value").to_pylist() if value)
        yield from entries_of(lines, layout)


def _read_compressed(batches: Batches, *, layout: Layout) -> Batches:
    """Read the entries of each file from its expanded stream."""
    for row in rows_of(batches):
        try:
            with open_row(row) as raw:
                stream = Expanded(raw, row["compression"])
                yield from entries_of(lines_of(iter(stream.read, b"")), layout)
        except StoppedError as error:
            raise NddupError(f"{row['path']}: {error.reason}: {error}") from error
