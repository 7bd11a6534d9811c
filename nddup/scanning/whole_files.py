"""Files read from their start, each by one task -> the records in them.

All files can be read this way; compressed files, containers (WARC, CSV, Parquet), pages, and files with a record too
long to be cut can be read in no other way. Records are numbered within the file; it is one split, 0.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import BinaryIO, NamedTuple

from nddup.ground.shown import clean
from nddup.reading.charsets import unit_of
from nddup.reading.containers import read_container
from nddup.reading.formats import FileHead
from nddup.reading.json_spread import LinedStream
from nddup.reading.outcomes import Record, Reject
from nddup.reading.records import parse_record
from nddup.reading.streams import Chunk, Expanded, Part, StoppedError, Stream, cut_pieces, reject_parts
from nddup.reading.xml_cutting import cut_records
from nddup.scanning.found import LocatedRecord, in_batches
from nddup.scanning.record_blocks import Bytes, are_blocks, cut_lines, read_blocks


class StoredFile(NamedTuple):
    """A file as stored.

    Attributes:
        source: its name in the tables.
        compression: empty for none.
        most: the bytes to which it may expand.
        open: returns the stored bytes from the start; seekable for Parquet. It may raise OSError or StoppedError, which
            become a reject of the file.
        records: how many records are read; None for all.
    """

    source: str
    compression: str
    most: int
    open: Callable[[], BinaryIO]
    records: int | None = None


def read_files(files: Iterable[StoredFile], head: FileHead, max_record: int) -> Iterator[Sequence[LocatedRecord]]:
    """Yield the records of files that share a head, one file after another; a list may hold records of several files.

    A file is opened when its turn comes, and closed before the next. Never raises, whatever a file holds.
    """
    in_blocks = are_blocks(head)
    for is_whole, together in groupby(files, key=lambda file: in_blocks and file.records is None):
        if is_whole and head.format.files.is_columnar:
            for file in together:
                yield from _rows_in(file, head, max_record)
        elif is_whole:
            yield from read_blocks(
                (piece for file in together for piece in _lines_in(file, head, max_record)), head, max_record
            )
        else:
            records = (one for file in together for one in _found_in(file, head, max_record))
            yield from in_batches(records, head.format)


def _rows_in(file: StoredFile, head: FileHead, max_record: int) -> Iterator[Sequence[LocatedRecord]]:
    from nddup.scanning.row_blocks import read_row_blocks  # noqa: PLC0415 - most collections have no Parquet

    try:
        raw = file.open()
    except (OSError, StoppedError) as error:
        yield [LocatedRecord(file.source, 0, 0, _unopened(error), b"")]
        return
    with raw:
        yield from read_row_blocks(raw, head, file.source, most=file.most, max_record=max_record)


def _lines_in(file: StoredFile, head: FileHead, max_record: int) -> Iterator[tuple[str, int, Bytes | Reject]]:
    try:
        raw = file.open()
    except (OSError, StoppedError) as error:
        yield file.source, 0, _unopened(error)
        return
    with raw:
        for piece in cut_lines(_expanded(raw, file, head), max_record):
            yield file.source, 0, piece


def _found_in(file: StoredFile, head: FileHead, max_record: int) -> Iterator[LocatedRecord]:
    """Yield the records of a file, numbered; if it is damaged, the reject names the last good record."""
    last_good = ""
    for seq, (record, chunk) in enumerate(islice(read_file(file, head, max_record), file.records)):
        outcome = record
        if isinstance(record, Record):
            last_good = f"{seq + 1} ({record.doc_id})"
        elif record.reason == "damaged" and last_good:
            outcome = replace(record, detail=f"{record.detail}; the last good record is {last_good}")
        yield LocatedRecord(file.source, 0, seq, outcome, chunk)


def read_file(file: StoredFile, head: FileHead, max_record: int) -> Iterator[tuple[Record | Reject, bytes]]:
    """Yield the records of one file, in file order, each with its chunk (empty if the format has no separator).

    If the file cannot be read further, the last item is a reject: `unreadable`, `damaged` or `too large`.
    """
    try:
        raw = file.open()
    except (OSError, StoppedError) as error:
        yield _unopened(error), b""
        return

    with raw:
        if not head.format.files.is_cut:
            about = {"source": file.source, "compression": file.compression}
            for record in read_container(raw, head, **about, limit=file.most, max_record=max_record):
                yield record, b""
        else:
            yield from read_stream(_expanded(raw, file, head), head, max_record)


def _unopened(error: OSError | StoppedError) -> Reject:
    if isinstance(error, StoppedError):
        return Reject(error.reason, str(error), "")
    return Reject("unreadable", clean(str(error)).splitlines()[0], "")


def _expanded(raw: BinaryIO, file: StoredFile, head: FileHead) -> Stream:
    expanded = Expanded(raw, file.compression, file.most if file.compression else None)
    return LinedStream(expanded, head.list_keys) if head.is_spread else expanded


def read_stream(
    stream: Stream, head: FileHead, max_record: int, *, is_part: bool = False
) -> Iterator[tuple[Record | Reject, bytes]]:
    """Yield the records of a stream that is cut at separators, each with its chunk (empty for a reject without one).

    A part of a file that ends inside a record ends with a reject `DIVIDED`.
    """
    pieces = cut_pieces(stream, head.separator, max_record=max_record, unit=unit_of(head.encoding))
    yield from parse_pieces(pieces, head, max_record, is_part=is_part)


def parse_pieces(
    pieces: Iterable[Chunk | Part | Reject], head: FileHead, max_record: int, *, is_part: bool
) -> Iterator[tuple[Record | Reject, bytes]]:
    """Yield the records of a stream that has been cut at separators, as `read_stream` does."""
    for chunk in reject_parts(cut_records(pieces, head, max_record=max_record, is_part=is_part)):
        if isinstance(chunk, Chunk):
            record = parse_record(chunk.value, head, is_last=chunk.is_last, is_whole=chunk.is_whole)
            if record is not None:
                yield record, chunk.value
        else:
            yield chunk, b""
