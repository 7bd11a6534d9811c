"""Local files, read in the calling process: the functions that an engine without Spark calls in its workers.

    scan_files    whole files, one after another  -> the rows of a consumer
    cut_file      a plain file                    -> parts of equal size in bytes
    scan_part     one part                        -> the rows of a consumer
    read_texts    a table of ids and texts        -> records, as if they had been read from files

The parts of a file, in order, give the same records and rejects as the whole file.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from nddup.reading.charsets import unit_of
from nddup.reading.formats import FORMATS, FileHead
from nddup.reading.json_lines import plain_keys
from nddup.reading.outcomes import DIVIDED, Record, Reject, excerpt, make_record
from nddup.reading.records import parse_json
from nddup.reading.streams import Expanded
from nddup.scanning.collection import ListedFile
from nddup.scanning.found import Batches, Consumer, LocatedRecord, RecordLimits, in_batches
from nddup.scanning.record_blocks import Bytes, cut_lines, read_blocks
from nddup.scanning.walk import open_stored
from nddup.scanning.whole_files import StoredFile, read_files, read_stream

PIECE = 1 << 16
"""Bytes in which a separator is looked for at a time; most records are shorter."""


class DividedError(Exception):
    """Files were divided inside a record, and have to be read from their start: `sources`."""

    def __init__(self, sources: Iterable[str]) -> None:
        super().__init__(f"divided inside a record: {', '.join(sources)}")
        self.sources = set(sources)


class FilePart(NamedTuple):
    """The bytes from `start` to `end` of a plain file. A record belongs to the part that holds the first byte of the
    separator before it; the first record of the file belongs to the first part.
    """

    path: str
    source: str
    start: int
    end: int


COLUMNS = ("source", "split", "seq", "doc_id", "title", "text", "turns", "policy")
"""Columns of TEXTS that are read."""

TURNS = FileHead(format=replace(FORMATS["jsonl"], content=("turns",)), encoding="utf-8", separator=b"\n")


def scan_files(entries: Iterable[ListedFile], head: FileHead, consumer: Consumer, limits: RecordLimits) -> Batches:
    """Yield the rows of whole files, of any format, compressed or not.

    Args:
        entries: files that share a head, as one task reads them; `file.path` is as `open_stored` takes it.

    Yields:
        Batches of `consumer.table`. A file that cannot be opened, or not read to its end, is a reject, never an
        exception.
    """
    files = (
        StoredFile(
            entry.file.source, entry.compression, entry.most, partial(open_stored, entry.file.path), entry.records
        )
        for entry in entries
    )
    yield from consumer.batches(read_files(files, head, limits.max_record), head)


def cut_file(entry: ListedFile, size: int) -> list[FilePart]:
    """Divide a plain file into parts of `size` bytes, the last one maybe shorter; none for an empty file.

    Example:
        >>> from nddup.scanning.input_files import InputFile
        >>> [part[2:] for part in cut_file(ListedFile(InputFile("/a", "a", 25, 0), "", -1), 10)]
        [(0, 10), (10, 20), (20, 25)]
    """
    file = entry.file
    starts = range(0, file.size, size)
    return [FilePart(file.path, file.source, start, min(start + size, file.size)) for start in starts]


def scan_part(part: FilePart, head: FileHead, consumer: Consumer, limits: RecordLimits) -> Batches:
    """Yield the rows of one part of a plain file, whose group is not `is_whole`.

    Yields:
        Batches of `consumer.table`; `split` is the start of the part, `seq` counts its records from 0.

    Raises:
        DividedError: after all else, if the part ends inside a record.
        OSError: if the file cannot be opened.

    Cost: the bytes of the part, and those up to the first separator after it.
    """
    lists: Iterator[Sequence[LocatedRecord]]
    if plain_keys(head) is not None:
        lists = read_blocks(_lines_in(part, head, limits.max_record), head, limits.max_record)
    else:
        lists = in_batches(read_part(part, head, limits.max_record), head.format)
    yield from consumer.batches(lists, head)


def _lines_in(part: FilePart, head: FileHead, max_record: int) -> Iterator[tuple[str, int, Bytes | Reject]]:
    with _open_part(part, head) as stream:
        for piece in cut_lines(stream, max_record):
            yield part.source, part.start, piece


def read_part(part: FilePart, head: FileHead, max_record: int) -> Iterator[LocatedRecord]:
    """Yield the records of a part.

    Its first record begins after the first separator that begins in the part, or at the start of the file. Its last
    record ends at the first separator that begins after the part, or at the end of the file.

    Raises:
        DividedError: after its last record, if it ends inside another one.
        OSError: if the file cannot be opened, although its head was read before.
    """
    with _open_part(part, head) as stream:
        for seq, (record, chunk) in enumerate(read_stream(stream, head, max_record, is_part=True)):
            if isinstance(record, Reject) and record.reason == DIVIDED:
                raise DividedError({part.source})
            yield LocatedRecord(part.source, part.start, seq, record, chunk)


@contextmanager
def _open_part(part: FilePart, head: FileHead) -> Iterator[Expanded]:
    unit = unit_of(head.encoding)
    with open_stored(part.path) as file:
        start: int | None = 0
        if part.start > 0:
            before = find_separator(file, part.start, head.separator, unit)
            start = before + len(head.separator) if before is not None and before < part.end else None
        after = find_separator(file, part.end, head.separator, unit) if start is not None else part.end
        end = None if after is None else after + len(head.separator)

        file.seek(part.end if start is None else start)
        yield Expanded(_Range(file, file.tell() if start is None else end), "")  # type: ignore[arg-type]


def find_separator(file: BinaryIO, start: int, separator: bytes, unit: int = 1) -> int | None:
    """Find where the first separator at or after a place begins; None if there is none.

    Args:
        file: seekable; its position changes.
        separator: not empty.
        unit: bytes per code unit, 2 in UTF-16: separators begin at multiples of it.

    Cost: reads up to the separator, in pieces of `PIECE` bytes. Memory: two pieces.
    """
    file.seek(start)
    window, offset = b"", start  # offset: place of window[0] in the file
    while piece := file.read(PIECE):
        window += piece
        at = window.find(separator)
        while at >= 0 and (offset + at) % unit:
            at = window.find(separator, at + 1)
        if at >= 0:
            return offset + at

        tail = len(separator) - 1  # bytes in which a separator may begin that continues in the next piece
        offset += max(0, len(window) - tail)
        window = window[-tail:] if tail else b""
    return None


class _Range(io.RawIOBase):
    """The bytes of an open file from its position up to a place; to the end of the file if that is None."""

    def __init__(self, file: BinaryIO, end: int | None) -> None:
        super().__init__()
        self._file = file
        self._left = None if end is None else end - file.tell()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        size = len(buffer) if self._left is None else min(len(buffer), self._left)
        read: int = self._file.readinto(memoryview(buffer)[:size])  # type: ignore[attr-defined]
        self._left = None if self._left is None else self._left - read
        return read


def read_texts(batches: Iterable[pa.RecordBatch]) -> Iterator[list[LocatedRecord]]:
    """Yield the records of documents passed in, one list per batch. A null or non-UTF-8 id or text is a reject.

    Args:
        batches: of TEXTS. Spark's strings may hold any bytes, so each value is decoded separately.
    """
    for batch in batches:
        places = [batch.column(name).to_pylist() for name in COLUMNS[:3]]
        values = [batch.column(name).cast(pa.binary()).to_pylist() for name in COLUMNS[3:-1]]
        policy = batch.column("policy").cast(pa.list_(pa.binary())).to_pylist()
        rows = zip(*places, *values, policy, strict=True)
        yield [LocatedRecord(file, split, seq, _document(*row), b"") for file, split, seq, *row in rows]


def _document(
    doc_id: bytes | None,
    title: bytes | None,
    text: bytes | None,
    turns: bytes | None,
    policy: list[bytes | None] | None,
) -> Record | Reject:
    """Make a record of an id and a text, or a reject for the first of them that cannot be used."""
    start = excerpt(text or turns or b"")
    if doc_id is None:
        return Reject("no id", "the id is null", start)
    try:
        name = doc_id.decode()
    except UnicodeDecodeError as error:
        return Reject("malformed", f"the id is not UTF-8: {error}", start)

    try:
        given = [(value.decode(), None) for value in (title, text) if value is not None]
    except UnicodeDecodeError as error:
        return Reject("malformed", f"the text is not UTF-8: {error}", start, name)
    known = tuple(value if value is None else value.decode(errors="replace") for value in policy or ())
    make = partial(make_record, name, None, start=start, policy=known, is_exact=True)
    if turns is not None:
        chat = parse_json(b'{"turns":' + turns + b"}", TURNS)
        if not isinstance(chat, Record):
            return Reject("no text", "no turn of the chat has a text", start, name)
        fields = [*given, *((field, None) for field in chat.fields)]
        return make(fields, replaced=chat.replaced, unread=chat.unread)
    return make(given) if given else Reject("no text", "the text is null", start, name)
