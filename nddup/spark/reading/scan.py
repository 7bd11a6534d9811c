"""One pass over the documents of a run, for any consumer of `nddup.scanning`.

    files      --scan-->          the consumer's table    documents of a collection
    DataFrame  --number_texts-->  TEXTS
    TEXTS      --scan_texts-->    the consumer's table    documents that were given

Spark cuts a plain file into chunks, which many tasks read; any other file is read by one task, from its start. The
workers parse the records and hand them to the consumer; no record is shuffled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from nddup.reading.formats import FileHead
from nddup.reading.split_records import MARK_BYTES
from nddup.scanning.chunks import parse_chunks
from nddup.scanning.collection import Collection, Files, Group
from nddup.scanning.file_heads import is_hidden
from nddup.scanning.found import Batches, Consumer, Limits
from nddup.scanning.given_texts import read_texts
from nddup.scanning.whole_files import StoredFile, read_files
from nddup.spark.heavy_keys import beside
from nddup.spark.reading import hadoop_files
from nddup.spark.reading.hadoop_files import open_row, rows_of
from nddup.spark.reading.splits import read_chunks
from nddup.spark.schemas import CONTENTS, TEXTS, local_table, require, schema_of, table


@dataclass(frozen=True)
class BytesSeen:
    """The bytes that came of a group that Spark cuts, to compare with the sizes of its files after the scan."""

    group: Group
    observation: Observation
    max_record: int

    @property
    def is_short(self) -> bool:
        """Whether bytes may be missing: Spark passes over a record that is too long, and does not say so.

        A separator is counted for each chunk, also where a file ends without one. Byte order marks are missing; where
        there may be so many that they could hide a record, the answer is yes, and each file is looked at.
        """
        files, separator = self.group.files, len(self.group.head.separator)
        expected = sum(entry.file.size + separator * (entry.open_end >= 0) for entry in files)
        came = int(self.observation.get.get("bytes") or 0)
        marks = MARK_BYTES * len(files)
        return marks >= self.max_record or expected - came > marks


def scan(spark: SparkSession, collection: Collection, consumer: Consumer, *, files: Files, limits: Limits) -> DataFrame:
    """The rows that a consumer makes of all files of a collection.

    Args:
        spark: the session.
        collection: the files, and how each is read.
        consumer: what makes the rows; it is sent to the workers.
        files: opens the few files that no source of Spark reads: remote ones with a hidden name.
        limits: of a record, and of what a compressed file may expand to.

    Schema out:  `consumer.table`; empty for a collection without files
    Shuffles:  as `hadoop_files.list_files`, of the files that are read whole.    Actions:  none.
    """
    parts = [_scan_group(spark, group, consumer, files=files, limits=limits) for group in collection.groups]
    return _together(spark, parts, consumer)


def scan_counting(
    spark: SparkSession, collection: Collection, consumer: Consumer, *, files: Files, limits: Limits
) -> tuple[DataFrame, list[BytesSeen]]:
    """As `scan`; and the bytes that come of each group that Spark cuts, which are known once the rows were made."""
    seen = [BytesSeen(group, Observation(), limits.max_record) for group in collection.groups]
    parts = [
        _scan_group(spark, one.group, consumer, files=files, limits=limits, observation=one.observation) for one in seen
    ]
    return _together(spark, parts, consumer), [one for one in seen if not one.group.is_whole]


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


def scan_texts(texts: DataFrame, consumer: Consumer) -> DataFrame:
    """The rows that a consumer makes of documents whose text is given; a null id or text is a reject.

    Schema in:   TEXTS
    Schema out:  `consumer.table`
    Shuffles:  none.    Actions:  none.
    """
    require(texts, TEXTS, stage="sketch")
    return texts.mapInArrow(partial(_consume_texts, consumer=consumer), schema_of(consumer.table))


def sources_cut_short(spark: SparkSession, group: Group, *, max_record: int) -> DataFrame:
    """The sources of a group of which bytes are missing: Spark passed over a record that is too long.

    Schema out:  source string
    Shuffles:  one, of a row a file and task. The files are read again, in the JVM alone.    Actions:  none.
    """
    sizes = local_table(
        spark, table("source string, size long"), [(entry.file.source, entry.file.size) for entry in group.files]
    )
    chunks = _cut_group(spark, group, max_record=max_record)
    came = chunks.groupBy("source").agg(_bytes_of(group.head).alias("came"))
    is_short = F.col("size") - F.coalesce("came", F.lit(0)) > MARK_BYTES
    return sizes.join(came, "source", "left").where(is_short).select("source")


def key_contents(contents: DataFrame, offsets: DataFrame, splits: int) -> DataFrame:
    """The content of every record under its `doc_key`, for writing the kept documents; `splits`: rows of the offsets.

    Schema in:   CONTENTS; source string, split long, before long (records before the split)
    Schema out:  doc_key long, content string (decoded, markup kept), line string (JSON lines: the line as it came)
    Shuffles:  none; `offsets` is broadcast. The contents, where splits are very many (`heavy_keys`).
    Actions:   none.
    """
    require(contents, CONTENTS, stage="keep")
    return contents.join(beside(offsets, splits), ["source", "split"]).select(
        (F.col("before") + F.col("seq")).alias("doc_key"), "content", "line"
    )


def _scan_group(  # noqa: PLR0913 - as `scan`
    spark: SparkSession,
    group: Group,
    consumer: Consumer,
    *,
    files: Files,
    limits: Limits,
    observation: Observation | None = None,
) -> DataFrame:
    """The rows of one group; the bytes of one that Spark cuts are counted in the observation."""
    how: dict[str, Any] = {"head": group.head, "consumer": consumer, "max_record": limits.max_record}
    if group.is_whole:
        rows = hadoop_files.list_files(spark, whole_files(group, files, limits))
        ends = {entry.file.source: entry.records for entry in group.files if entry.records is not None}
        return rows.mapInArrow(partial(_consume_files, ends=ends, **how), schema_of(consumer.table))

    rows = _cut_group(spark, group, max_record=limits.max_record)
    if observation is not None:
        rows = rows.observe(observation, _bytes_of(group.head).alias("bytes"))
    return rows.mapInArrow(partial(_consume_chunks, **how), schema_of(consumer.table))


def _cut_group(spark: SparkSession, group: Group, *, max_record: int) -> DataFrame:
    """CHUNKS of files that Spark cuts."""
    files = [(entry.file.path, entry.file.source, entry.open_end) for entry in group.files]
    return read_chunks(spark, files, group.head, max_record=max_record)


def whole_files(group: Group, files: Files, limits: Limits) -> list[hadoop_files.WholeFile]:
    """The files of a group; those that no source of Spark reads come with their content."""
    found = []
    for file, compression, *_ in group.files:
        is_passed_over = is_hidden(file.path) and hadoop_files.is_remote(file.path)
        is_small = file.size <= hadoop_files.FETCHED_BYTES
        content = files.read_head(file.path, file.size) if is_passed_over and is_small else None
        most = limits.most_expanded(file.size)
        found.append(hadoop_files.WholeFile(file.path, file.source, compression, most, file.size, content))
    return found


def _bytes_of(head: FileHead) -> Column:
    """The bytes of chunks with the separators behind them, summed."""
    return F.sum(F.length("value") + len(head.separator))


def _together(spark: SparkSession, parts: Sequence[DataFrame], consumer: Consumer) -> DataFrame:
    return reduce(DataFrame.unionByName, parts) if parts else local_table(spark, schema_of(consumer.table))


# In a worker ---------------------------------------------------------------------------------------------------------


def _consume_chunks(batches: Batches, *, head: FileHead, consumer: Consumer, max_record: int) -> Batches:
    yield from consumer.batches(parse_chunks(batches, head, max_record), head)


def _consume_files(
    batches: Batches, *, head: FileHead, consumer: Consumer, max_record: int, ends: Mapping[str, int]
) -> Batches:
    """`ends` names the sources of which only so many records are read."""
    must_seek = head.format.kind == "parquet"
    files = (
        StoredFile(
            row["source"],
            row["compression"],
            row["most"],
            partial(open_row, row, must_seek=must_seek),
            ends.get(row["source"]),
        )
        for row in rows_of(batches)
    )
    yield from consumer.batches(read_files(files, head, max_record), head)


def _consume_texts(batches: Batches, *, consumer: Consumer) -> Batches:
    yield from consumer.batches(read_texts(batches), None)
