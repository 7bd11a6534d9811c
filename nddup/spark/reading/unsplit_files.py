"""Files read from their start, each by one task: compressed ones, containers, pages, and records too long to split.

A worker opens a local file itself: the bytes never pass the JVM. Of any other file system Spark hands it the whole
file, up to `FETCHED_BYTES`; a longer one it opens through Arrow (S3, GCS, HDFS, ABFS), where Arrow can. Records
are numbered in the file; there is one split, 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.reading.containers import CONTAINERS, read_container
from nddup.reading.formats import FileHead
from nddup.reading.records import Record, Reject, parse_record
from nddup.reading.streams import Chunk, Expanded, cut_stream
from nddup.spark.reading.sketch_scan import Found, Rule, contents_of, sketch_found
from nddup.spark.schemas import CONTENTS, FILES, RECORDS, local_table, require, table

Batches = Iterator[pa.RecordBatch]

TASK_BYTES = 8 << 20
"""Stored bytes of small files that one task reads: a thousand pages."""

FETCHED_BYTES = 64 << 20
"""Stored bytes of a file that Spark may hand over whole: it is in the JVM's memory some three times."""

BATCH_BYTES, BATCH_RECORDS = 16 << 20, 1_000
"""Content and records that are sketched at a time."""


def pack_files(spark: SparkSession, files: Sequence[tuple[str, str, str, int, int]]) -> DataFrame:
    """A table of files, the small ones packed into common tasks.

    Args:
        spark: the session.
        files: (path as a URI, source, compression, most bytes to expand to, size) of each.

    Schema out:  FILES, each task a partition
    Shuffles:  one, of a row a file.    Actions:  none.
    """
    rows, task, held = [], 0, 0
    for path, source, compression, most, size in sorted(files, key=lambda file: (-file[4], file[1])):
        if held and held + size > TASK_BYTES:
            task, held = task + 1, 0
        rows.append((path, source, compression, most, task, None))
        held += size
    return local_table(spark, FILES, rows).repartitionById(task + 1, F.col("task"))


def is_remote(path: str) -> bool:
    """Whether a path is of another file system than the machine's own."""
    return urlsplit(path).scheme not in ("", "file")


def is_fetched(path: str, size: int) -> bool:
    """Whether Spark hands a file over: not a local one, not a long one, and not one whose name Spark passes over."""
    name = path.rpartition("/")[2]
    return is_remote(path) and size <= FETCHED_BYTES and not name.startswith(("_", "."))


def fetch_files(spark: SparkSession, files: Sequence[tuple[str, str, str, int, int]]) -> DataFrame:
    """A table of files with their content, read by Spark from any path it knows.

    Args:
        spark: the session.
        files: as `pack_files` takes them, those that `is_fetched` says.

    Schema out:  FILES
    Shuffles:  none; what is known of the files is broadcast.    Actions:  none.
    """
    known = [(path, source, compression, most, 0) for path, source, compression, most, _ in files]
    described = local_table(spark, table("path string, source string, compression string, most long, task int"), known)
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("__globPaths__", "false")
    rows = reader.load([unquote(path) for path, *_ in files]).select(
        F.col("_metadata.file_path").alias("path"), "content"
    )
    return rows.join(F.broadcast(described), "path").select(*FILES.fieldNames())


def sketch_files(files: DataFrame, *, head: FileHead, rule: Rule) -> DataFrame:
    """Read and sketch every record of files that share a head.

    Schema in:   FILES
    Schema out:  RECORDS
    Shuffles:  none.    Actions:  none.
    """
    require(files, FILES, stage="sketch")
    return files.mapInArrow(partial(_sketch_files, head=head, rule=rule), RECORDS)


def file_contents(files: DataFrame, *, head: FileHead, rule: Rule) -> DataFrame:
    """CONTENTS of every record of files that share a head. Schema in: FILES. No shuffle, no action."""
    require(files, FILES, stage="keep")
    return files.mapInArrow(partial(_file_contents, head=head, rule=rule), CONTENTS)


def _sketch_files(batches: Batches, *, head: FileHead, rule: Rule) -> Batches:
    yield from sketch_found(read_batches(batches, head, rule.max_record), rule)


def _file_contents(batches: Batches, *, head: FileHead, rule: Rule) -> Batches:
    yield from contents_of(read_batches(batches, head, rule.max_record), head, rule)


def read_batches(batches: Batches, head: FileHead, max_record: int) -> Iterator[list[Found]]:
    """The records of a task's files, a list a batch, as `sketch.parse_chunks` gives those of chunks."""
    yield from _batched(_found(batches, head, max_record))


def _batched(found: Iterator[Found]) -> Iterator[list[Found]]:
    """Lists of about `BATCH_BYTES` of content."""
    held: list[Found] = []
    size = 0
    for place, record, chunk in found:
        held.append((place, record, chunk))
        size += sum(map(len, record.fields)) if isinstance(record, Record) else 0
        if size >= BATCH_BYTES or len(held) >= BATCH_RECORDS:
            yield held
            held, size = [], 0
    yield held


def _found(batches: Batches, head: FileHead, max_record: int) -> Iterator[Found]:
    for batch in batches:
        for row in batch.to_pylist():
            last = None
            for seq, (record, chunk) in enumerate(read_file(row, head, max_record)):
                if isinstance(record, Reject) and record.reason == "damaged" and last:
                    record = replace(record, detail=f"{record.detail}; the last good record is {last}")  # noqa: PLW2901
                last = f"{seq + 1} ({record.doc_id})" if isinstance(record, Record) else last
                yield (row["source"], 0, seq), record, chunk


def read_file(row: dict[str, Any], head: FileHead, max_record: int) -> Iterator[tuple[Record | Reject, bytes]]:
    """The records of one row of FILES, each with its chunk (empty where there is none)."""
    try:
        raw = open_file(row["path"]) if row.get("content") is None else BytesIO(row["content"])
    except (OSError, pa.ArrowException) as error:
        yield Reject("unreadable", str(error).splitlines()[0], ""), b""
        return
    with raw:
        if head.format.kind in CONTAINERS:
            options = {"source": row["source"], "compression": row["compression"], "limit": row["most"]}
            for record in read_container(raw, head, max_record=max_record, **options):
                yield record, b""
            return
        stream = Expanded(raw, row["compression"], row["most"] if row["compression"] else None)
        unit = 2 if head.encoding.startswith("utf-16") else 1
        for chunk in cut_stream(stream, head.separator, max_record=max_record, unit=unit):
            if isinstance(chunk, Chunk):
                found = parse_record(chunk.value, head, is_last=chunk.is_last)
                if found is not None:
                    yield found, chunk.value
            else:
                yield chunk, b""


def open_file(uri: str) -> BinaryIO:
    """A file of any file system that Arrow knows, at its start.

    Raises:
        OSError: if it cannot be opened, or Arrow does not know its file system.
    """
    parts = urlsplit(uri)
    if not is_remote(uri):
        return open(unquote(parts.path), "rb", buffering=0)  # noqa: PTH123 - the caller closes it
    try:
        system, path = pafs.FileSystem.from_uri(uri)
    except pa.ArrowException as error:
        raise OSError(f"{uri}: workers cannot open it ({error}); decompress it, or copy it to such a place") from error
    return system.open_input_file(path)  # type: ignore[no-any-return]
