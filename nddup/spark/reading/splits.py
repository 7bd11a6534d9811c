"""From collection files to chunks: the bytes between two record ends, many tasks a file, nothing in memory.

Spark's text source cuts at the record's end tag; the cast to binary keeps any encoding. Which separator, encoding and
parser a file needs was read from its head (`nddup.reading.detect`); files of equal head are read together.
"""

from collections.abc import Sequence
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.reading.formats import FileHead
from nddup.spark.schemas import CHUNKS, local_table, table


def read_chunks(
    spark: SparkSession, files: Sequence[tuple[str, str, int]], head: FileHead, *, max_record: int
) -> DataFrame:
    """The chunks of files that share a head.

    Args:
        spark: the session.
        files: (path as Hadoop's URI, source, where it ends open: `streams.find_open_end`) of each; paths are literal,
            each must be one that `nddup.scanning.collection.can_cut`.
        head: how to cut them.
        max_record: a chunk longer than this by more than a separator is passed over and never held in memory; that
            it was can be told from the sum of the lengths.

    Schema out:  CHUNKS, in file order within a split; the bytes after the last separator of a file are a chunk too.
    Shuffles:  none; `files` is broadcast.    Actions:  none.
    """
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


def number_texts(df: DataFrame, *, id: str, text: str) -> DataFrame:  # noqa: A002 - the caller's word
    """Documents of a DataFrame in the order of their ids, numbered within their partition.

    Schema in:   any, with the columns `id` and `text`; both are cast to string
    Schema out:  TEXTS; `source` is `dataframe`, `split` the partition of the sort
    Shuffles:  one, by ranges of id.    Actions:  the sampling of the sort.
    """
    rows = df.select(
        F.col(id).cast("string").alias("doc_id"),
        F.lit(None).cast("string").alias("url"),
        F.col(text).cast("string").alias("text"),
    ).sort(F.col("doc_id").asc_nulls_last(), F.xxhash64("text"), "text")
    return rows.select(
        "*",
        F.lit("dataframe").alias("source"),
        F.spark_partition_id().cast("long").alias("split"),
        F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1)).alias("seq"),
    )
