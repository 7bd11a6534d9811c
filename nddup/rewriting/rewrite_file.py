"""Rewrite one file of a collection, whatever its format: the entry point of this package.

    judge          rows of the run on the records of a file -> verdicts
    rewrite_file   an open file, its head, the verdicts on its records -> the bytes of the new file

XML, TREC, JSON lines   `chunk_files`    CSV       `csv_file`
WARC                    `warc_file`      Parquet   `parquet_file`
pages and texts         here: the file is the record, so it is copied as it is, or not at all
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.reading.formats import FileHead
from nddup.reading.streams import PIECE, Expanded, StoppedError
from nddup.rewriting.chunk_files import rewrite_chunks
from nddup.rewriting.csv_file import rewrite_csv
from nddup.rewriting.packing import line_end_of, pack
from nddup.rewriting.parquet_file import rewrite_parquet
from nddup.rewriting.verdicts import NAMES, Reader, RewriteError, Verdicts
from nddup.rewriting.warc_file import rewrite_warc

UNTAGGED = {"html": "a page", "text": "a text"}
"""Kinds of files that have no place for tags, and what to call them in messages."""

UNREAD_IN_WARC = ("not text", "no content", "too large")
"""Reject reasons of WARC records that hold no document and so stay: pictures, revisits, films."""

NO_RECORDS = "no records"
"""The reason of the one reject that stands for a file without a record, such as a table of a header only."""


class Stored(NamedTuple):
    """How a file is stored and read: its compression, and the most bytes of the expanded file and of a record."""

    compression: str
    most: int
    max_record: int


def judge(rows: pa.Table, kind: str, *, is_tagging: bool, may_go_on: bool) -> Verdicts:
    """Return the verdicts on the records of a file.

    Args:
        rows: columns `nddup_kept` …, `reason`: the tags of each record, or why it was rejected; in file order.
        kind: kind of the format. In a WARC file, records that hold no document stay.
        is_tagging: whether every record is written, with its tags.
        may_go_on: as in `Verdicts`.
    """
    may_be_empty = len(rows) == 1 and rows["reason"][0].as_py() == NO_RECORDS
    if is_tagging:
        tags = rows.select(list(NAMES))
        return Verdicts(len(rows), tags=tags, may_go_on=may_go_on, may_be_empty=may_be_empty)
    stays = pc.fill_null(rows[NAMES[0]], False)  # noqa: FBT003 - the value that fills
    if kind == "warc":
        stays = pc.or_(stays, pc.is_in(rows["reason"], pa.array(UNREAD_IN_WARC)))
    flags = np.asarray(stays, np.bool_)
    return Verdicts(len(rows), stays=flags, may_go_on=may_go_on, may_be_empty=may_be_empty)


def rewrite_file(raw: BinaryIO, head: FileHead, stored: Stored, verdicts: Verdicts) -> Iterator[bytes]:
    """Yield the bytes of the new file, some MB at a time; nothing for a page or a text that is removed.

    Args:
        raw: the file as stored; seekable for Parquet.
        head: the head of the file.
        stored: how it is stored, and was read.
        verdicts: the verdicts on its records.

    Raises:
        RewriteError: if it cannot be written as asked, or differs from the file that the run read.
        OSError: if it cannot be read.

    Cost: one pass. Memory: a record, or a row group.
    """
    kind, (compression, most, max_record) = head.format.kind, stored
    if kind == "parquet":
        yield from rewrite_parquet(raw, head, verdicts, limit=most, max_record=max_record)
        return
    if kind in UNTAGGED:
        yield from _copy(raw, verdicts)
        return

    stream = Expanded(raw, compression, most if compression else None)
    if kind == "warc":
        pieces: Iterator[bytes | None] = rewrite_warc(stream, verdicts, max_record)
    elif kind == "csv":
        pieces = rewrite_csv(stream, head, verdicts, max_record)
    else:
        pieces = rewrite_chunks(stream, head, verdicts, max_record)
    yield from pack(pieces, compression, line_end_of(head))


def _copy(raw: BinaryIO, verdicts: Verdicts) -> Iterator[bytes]:
    """Yield a page or a text as it is stored, unless it is removed."""
    if verdicts.is_tagging:
        raise RewriteError("a page or a text has no place for tags")
    if Reader(verdicts).next() is False:
        return
    try:
        while piece := raw.read(PIECE):
            yield piece
    except StoppedError as error:
        raise RewriteError(str(error)) from error
