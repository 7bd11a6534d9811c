"""Rewrite one file of a collection, whatever its format: the entry point of this package.

    judge          rows of the run on the records of a file -> verdicts
    rewrite_file   an open file, its head, the verdicts on its records -> the bytes of the new file

XML, TREC, JSON lines   `chunk_files`    CSV       `csv_file`
WARC, e-mail            `chunk_files`    Parquet   `parquet_file`
pages and texts         here: the file is the record, so it is copied as it is, cut, or not written at all

Compress the bytes of a new file as the original file was.

Every packed file ends with a byte known in advance (`end_of`); uncompressed text ends with a line end, which is added
if missing. So Spark can write a file as rows that are cut at this byte.
"""

import bz2
import lzma
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard

from nddup.reading.formats import FileHead
from nddup.reading.streams import PIECE, Expanded, StoppedError
from nddup.rewriting.chunk_files import rewrite_chunks, rewrite_mail, rewrite_warc
from nddup.rewriting.cut_records import Cuts, Cutting, cut_file
from nddup.rewriting.table_files import rewrite_csv, rewrite_parquet
from nddup.rewriting.verdicts import NAMES, SPANS, Reader, RewriteError, Verdicts

GZIP_LEVEL = 6
ENDS = {"gzip": b"\0", "bz2": b"\0", "zstd": b"\0", "xz": b"Z"}
PARQUET_END = b"1"
EMPTY_GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0"
EMPTY_BZ2 = b"BZh9\x17rE8P\x90\0\0\0\0"
"""Empty members, this and `EMPTY_GZIP`: appended if the last member does not end with its byte in `ENDS`."""


class Packer(Protocol):
    """Compresses one member."""

    def compress(self, data: bytes, /) -> bytes:
        """Add some bytes; return the compressed ones that are ready."""

    def flush(self) -> bytes:
        """End the member; return its remaining bytes."""


def end_of(head: FileHead, compression: str) -> bytes:
    """Return the last byte of every file rewritten in this form; pages and texts are copied and may end otherwise.

    Args:
        head: the head of the files.
        compression: as from `streams.compression_of`.
    """
    if head.format.kind == "parquet":
        return PARQUET_END
    return ENDS[compression] if compression else line_end_of(head)[-1:]


def line_end_of(head: FileHead) -> bytes:
    """Return the line end that a text must end with. UTF-16 of unknown byte order is taken as little-endian."""
    return "\n".encode("utf-16-le" if head.encoding == "utf-16" else head.encoding.replace("-sig", ""))


def pack(pieces: Iterable[bytes | None], compression: str, line_end: bytes = b"\n") -> Iterator[bytes]:
    """Pack bytes into a file.

    Args:
        pieces: the bytes in order; None ends a member, in gzip.
        compression: as from `streams.compression_of`.
        line_end: the line end that uncompressed text must end with.

    Yields:
        At least `PIECE` bytes at a time, except for the last; nothing if there are no bytes.
    """
    held, size, last = [], 0, b""
    for piece in _members(pieces, compression, line_end):
        held.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield (last := b"".join(held))
            held, size = [], 0
    rest = b"".join(held)
    ending = (rest or last)[-1:]
    if compression and ending and ending != ENDS[compression]:
        rest += {"gzip": EMPTY_GZIP, "bz2": EMPTY_BZ2}.get(compression, b"")
    if rest:
        yield rest


def _members(pieces: Iterable[bytes | None], compression: str, line_end: bytes) -> Iterator[bytes]:
    if not compression:
        last = b""
        for piece in pieces:
            if piece:
                yield (last := piece)
        if last and not last.endswith(line_end):
            yield line_end
        return

    packer: Packer | None = None
    for piece in pieces:
        if piece is None and compression == "gzip" and packer is not None:
            yield packer.flush()
            packer = None
        elif piece:
            packer = packer or packer_of(compression)
            yield packer.compress(piece)
    if packer is not None:
        yield packer.flush()


def packer_of(compression: str) -> Packer:
    """Return a packer for one member, at the default level of the format's program."""
    if compression == "gzip":
        return zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    if compression == "bz2":
        return bz2.BZ2Compressor()
    return lzma.LZMACompressor() if compression == "xz" else _Zstd()


class _Zstd:
    """A frame that ends with an empty block, and so with a zero byte."""

    def __init__(self) -> None:
        self._packer = zstandard.ZstdCompressor().compressobj()

    def compress(self, data: bytes) -> bytes:
        return self._packer.compress(data)

    def flush(self) -> bytes:
        return self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + self._packer.flush()


COPIED = ("html", "text")
"""Kinds of files that are one record: copied as they are, or not at all."""

UNCUT = {"html": "pages", "warc": "WARC", "mail": "e-mail", "sgml": "TREC"}
"""Kinds of files of whose records nothing can be cut in place, and what to call them in messages."""

UNTAGGED = {"html": "a page", "text": "a text", "mail": "e-mail"}
"""Kinds of files that have no place for tags, and what to call them in messages."""

UNREAD_IN_WARC = ("not text", "revisit", "status", "no content", "too large")
"""Reject reasons of WARC records that hold no document and so stay: pictures, redirects, films, revisits of
what is not there."""

NO_RECORDS = "no records"
"""The reason of the one reject that stands for a file without a record, such as a table of a header only."""


class Stored(NamedTuple):
    """How a file is stored and read: its compression, and the most bytes of the expanded file and of a record."""

    compression: str
    most: int
    max_record: int


class Rewritten(NamedTuple):
    """Numbers of records: those written; of them those that could not be cut, and those that lost their markup."""

    records: int
    whole: int
    plain: int


def count_written(verdicts: Verdicts) -> Rewritten:
    """Return the counts of a file that was written by these verdicts, once that is done."""
    stay = verdicts.count if verdicts.stays is None else int(np.count_nonzero(verdicts.stays))
    return Rewritten(stay, verdicts.cutting.whole, verdicts.cutting.plain)


def judge(rows: pa.Table, kind: str, *, is_tagging: bool, may_go_on: bool, cutting: Cutting | None = None) -> Verdicts:
    """Return the verdicts on the records of a file.

    Args:
        rows: columns `nddup_kept` …, `reason`: the tags of each record, or why it was rejected; in file order. With
            `nddup_passages` and `nddup_cuts` these are the tags, or with `cutting` what is cut.
        kind: kind of the format. In a WARC file, records that hold no document stay.
        is_tagging: whether every record is written, with its tags.
        may_go_on: as in `Verdicts`.
        cutting: how the texts were read of which something is cut; None if nothing is.
    """
    may_be_empty = len(rows) == 1 and rows["reason"][0].as_py() == NO_RECORDS
    if is_tagging:
        tags = rows.select([name for name in SPANS.names if name in rows.column_names] or list(NAMES))
        return Verdicts(len(rows), tags=tags, may_go_on=may_go_on, may_be_empty=may_be_empty)
    stays = pc.fill_null(rows[NAMES[0]], False)  # noqa: FBT003 - the value that fills
    if kind == "warc":
        stays = pc.or_(stays, pc.is_in(rows["reason"], pa.array(UNREAD_IN_WARC)))
    flags = np.asarray(stays, np.bool_)
    verdicts = Verdicts(len(rows), stays=flags, may_go_on=may_go_on, may_be_empty=may_be_empty)
    if cutting is None or kind in UNCUT:
        return verdicts
    return replace(verdicts, cuts=rows[SPANS.names[1]], cutting=cutting)


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
    if kind in COPIED:
        yield from _copy(raw, head, stored, verdicts)
        return

    stream = Expanded(raw, compression, most if compression else None)
    if kind == "warc":
        pieces: Iterator[bytes | None] = rewrite_warc(stream, verdicts, max_record)
    elif kind == "csv":
        pieces = rewrite_csv(stream, head, verdicts, max_record)
    elif kind == "mail":
        pieces = rewrite_mail(stream, verdicts, max_record)
    else:
        pieces = rewrite_chunks(stream, head, verdicts, max_record)
    yield from pack(pieces, compression, b"" if kind == "mail" else line_end_of(head))


def _copy(raw: BinaryIO, head: FileHead, stored: Stored, verdicts: Verdicts) -> Iterator[bytes]:
    """Yield a page or a text as it is stored, unless it is removed or cut."""
    if verdicts.is_tagging:
        raise RewriteError("a page or a text has no place for tags")
    verdict = Reader(verdicts).next()
    if verdict is False:
        return
    try:
        if isinstance(verdict, Cuts):
            stream = Expanded(raw, stored.compression, stored.most if stored.compression else None)
            data = b"".join(iter(lambda: stream.read(PIECE), b""))
            yield from pack([cut_file(data, verdict, verdicts.cutting, head)], stored.compression, b"")
            return
        while piece := raw.read(PIECE):
            yield piece
    except StoppedError as error:
        raise RewriteError(str(error)) from error
