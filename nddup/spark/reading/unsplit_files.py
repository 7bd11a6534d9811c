"""Files read from their start, each by one task: compressed ones, containers, pages, and records too long to split.

How a worker comes to the bytes of a file is said in `hadoop_files`. Records are numbered in the file; there is
one split, 0.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from nddup.reading.containers import CONTAINERS, read_container
from nddup.reading.formats import FileHead
from nddup.reading.records import Record, Reject, parse_record
from nddup.reading.streams import Chunk, Expanded, StoppedError, cut_stream
from nddup.redaction import clean
from nddup.spark.reading.hadoop_files import in_one_place, open_row, rows_of
from nddup.spark.reading.sketch_scan import Found, Rule, contents_of, sketch_found
from nddup.spark.schemas import CONTENTS, FILES, RECORDS, require

Batches = Iterator[pa.RecordBatch]

BATCH_BYTES, BATCH_RECORDS = 16 << 20, 1_000
"""Content and records that are sketched at a time."""


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
    for row in rows_of(batches):
        last = None
        for seq, (record, chunk) in enumerate(read_file(row, head, max_record)):
            if isinstance(record, Reject) and record.reason == "damaged" and last:
                record = replace(record, detail=f"{record.detail}; the last good record is {last}")  # noqa: PLW2901
            last = f"{seq + 1} ({record.doc_id})" if isinstance(record, Record) else last
            yield (row["source"], 0, seq), record, chunk


def read_file(row: dict[str, Any], head: FileHead, max_record: int) -> Iterator[tuple[Record | Reject, bytes]]:
    """The records of one row of `rows_of`, each with its chunk (empty where there is none)."""
    try:
        raw = open_row(row)
        raw = in_one_place(raw) if head.format.kind == "parquet" else raw
    except OSError as error:
        yield Reject("unreadable", clean(str(error)).splitlines()[0], ""), b""
        return
    except StoppedError as error:
        yield Reject(error.reason, str(error), ""), b""
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
