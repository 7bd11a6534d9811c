"""From collection files to chunks, the bytes between two separators; many tasks read a file, in the JVM alone.

Spark's text source cuts at the separator; its strings are cast to binary, so that any encoding is kept. The separator
of a file has been detected from its head (`nddup.scanning.file_heads`); files with equal heads are read together.
"""

from collections.abc import Sequence
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.reading.formats import FileHead
from nddup.spark.heavy_keys import in_parts
from nddup.spark.schemas import CHUNKS, local_table, table


def read_chunks(
    spark: SparkSession, files: Sequence[tuple[str, str, int]], head: FileHead, *, max_record: int
) -> DataFrame:
    """Return the chunks of files that share a head.

    Args:
        spark: the session.
        files: (path as a Hadoop URI, source, open end as `streams.find_open_end` gives) of each; paths are literal, and
            `nddup.scanning.file_heads.can_cut` holds for each.
        head: how to cut them.
        max_record: Spark skips a chunk that is longer by more than a separator, and never holds it in memory. The sum
            of the lengths then falls short of the file's size.

    Schema out:  CHUNKS, in file order within a split; the bytes after the last separator of a file are a chunk too.
    Shuffles:  none; `files` is broadcast, in parts where it is long (`heavy_keys`).    Actions:  none.
    """
    parts = [_read_part(spark, part, head, max_record) for part in in_parts(files)]
    return reduce(DataFrame.unionByName, parts)


def _read_part(
    spark: SparkSession, files: Sequence[tuple[str, str, int]], head: FileHead, max_record: int
) -> DataFrame:
    """Read the chunks of files that are broadcast together."""
    reader = (
        spark.read.format("text")
        .option("lineSep", head.separator_text)
        .option("recursiveFileLookup", "true")  # no partition columns from folder names
        .option("__globPaths__", "false")  # `[1]` in a name is a name
        .option("mapreduce.input.linerecordreader.line.maxlength", str(max_record + len(head.separator) + 2))
    )
    if head.encoding.startswith("utf-16"):
        reader = reader.option("encoding", head.encoding.replace("utf-16-", "UTF-16").upper())

    names = [unquote(path) for path, *_ in files]  # Spark takes names as they are, and gives them back as URIs
    rows = reader.load(names).select(
        F.col("value").cast("binary").alias("value"),
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_block_start").alias("split"),
        F.col("_metadata.file_block_length").alias("length"),
    )

    known = local_table(spark, table("path string, source string, open_end long"), files)
    in_split = F.col("open_end") - F.col("split")
    found = rows.join(F.broadcast(known), "path").withColumn(
        "ends_open", (in_split >= 0) & (in_split < F.col("length"))
    )
    return found.select(*CHUNKS.fieldNames())
