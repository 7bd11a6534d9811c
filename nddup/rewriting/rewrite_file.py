"""Rewrite one file of a collection, whatever its format: the entry point of this package.

    judge            rows of the run on the records of a file         -> Verdicts
    rewrite_file     an open file, its head, the Verdicts             -> the bytes of the new file, by one of
    rewrite_chunks   XML, TREC, JSON lines: cut at a separator
    rewrite_warc, rewrite_mail   WARC, e-mail: record by record
    `table_files`    CSV, Parquet
    end_of, pack     the byte with which a new file ends; the new file compressed as the original was

Pages and texts are one record each, so a file is copied as it is, cut, or not written at all.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.reading.charsets import MARKS, unit_of
from nddup.reading.decoding import decode_anyway
from nddup.reading.formats import FILE_KINDS, FileHead, Kind
from nddup.reading.json_spread import NEXT_LIST, LinedStream
from nddup.reading.mail import count_messages
from nddup.reading.mail_cutting import cut_mail
from nddup.reading.outcomes import Reject
from nddup.reading.sgml_records import find_sgml_start
from nddup.reading.streams import COMPRESSIONS, PIECE, Chunk, Expanded, Packer, Part, StoppedError, Stream, cut_pieces
from nddup.reading.warc_cutting import walk_warc
from nddup.reading.xml_cutting import cut_records, is_readable_as_ascii
from nddup.reading.xml_records import wrapper_of
from nddup.reading.xml_structure import scan
from nddup.rewriting.cut_records import Cuts, Cutting, cut_chunk, cut_file
from nddup.rewriting.table_files import rewrite_csv, rewrite_parquet
from nddup.rewriting.verdicts import (
    NAMES,
    SCHEMA,
    SPANS,
    Reader,
    RewriteError,
    Tags,
    Verdicts,
    tag_json,
    tag_trec,
    tag_warc,
    tag_xml,
)

JSON_BLANKS = b" \t\r\n\0"
LINE_END = b"\n"

Member = bytes | None
"""Bytes of a record, or None at its end."""

PARQUET_END = b"1"

UNREAD_IN_WARC = ("not text", "revisit", "status", "no content", "too large")
"""Reject reasons of WARC records that hold no document and so stay: pictures, redirects, films, revisits of
what is not there."""

NO_RECORDS = "no records"
"""The reason of the one reject that stands for a file without a record, such as a table of a header only."""


NO_FIELDS = pa.schema([])


def find_record(chunk: bytes, head: FileHead) -> tuple[int, int] | None:
    """Return the start and end of the record in a chunk; None where `parse_record` finds neither record nor reject.

    Args:
        chunk: bytes between two separators, without a byte order mark.

    Returns:
        Byte offsets; the end is that of the chunk.

    Cost: linear.
    """
    if head.format.kind == "jsonl":
        return (0, len(chunk)) if chunk.strip(JSON_BLANKS) else None
    if is_readable_as_ascii(head.encoding):
        return _find(chunk, head)

    text = decode_anyway(chunk, head.encoding).text
    place = _find(text.encode(), head)
    return None if place is None else _in_bytes(chunk, text, place, head.encoding)


def _find(chunk: bytes, head: FileHead) -> tuple[int, int] | None:
    if head.format.kind == "sgml":
        start = find_sgml_start(chunk, head)
        return None if start is None else (start, len(chunk))
    wrapper = wrapper_of(head.tag, head.namespaces)
    start = wrapper.find_start(chunk)
    return None if start is None else (start, len(chunk))


def _in_bytes(chunk: bytes, text: str, place: tuple[int, int], encoding: str) -> tuple[int, int]:
    """Convert places in the UTF-8 of a text to places in the bytes it was decoded from."""
    data = text.encode()
    start, end = (len(data[:at].decode().encode(encoding, "replace")) for at in place)
    return start, len(chunk) if place[1] == len(data) else end


def rewrite_chunks(stream: Stream, head: FileHead, verdicts: Verdicts, max_record: int) -> Iterator[bytes]:
    """Yield the bytes of the new file, as the verdicts say.

    Everything between the records stays: the prolog, the elements around the records, comments, the end of the root. A
    removed record goes with the separator after it and the blanks before it. A record is found as `parse_record` finds
    it, but without parsing it.

    Raises:
        RewriteError: if the file has more or fewer records than the run found, or already has tags.

    Cost: that of finding the starts of the records; they are not parsed. Memory: a record.
    """
    writer = _Writer(head, verdicts)
    unit = unit_of(head.encoding)
    pieces = cut_pieces(stream, head.separator, max_record=max_record, unit=unit)
    for piece in cut_records(pieces, head, max_record=max_record):
        if isinstance(piece, Chunk):
            yield from writer.write_chunk(piece)
        elif isinstance(piece, Part):
            yield from writer.write_part(piece)
        else:
            writer.stop(piece)
        if writer.verdicts.is_over:
            break
    yield from writer.end(is_cut=writer.verdicts.is_over)
    writer.verdicts.require_all(verdicts.count)


class _Writer:
    """The state of a file that is being rewritten."""

    def __init__(self, head: FileHead, verdicts: Verdicts) -> None:
        self.head = head
        self.verdicts = Reader(verdicts)
        self._is_tagging = verdicts.is_tagging
        self._is_removed = False  # whether the last record was removed; its tail may follow
        self._is_inside = False  # whether a chunk that is too long has begun
        self._is_first = True
        self._is_bare = head.format.kind == "sgml"  # the file has no prolog, and no record was written yet
        self._around: list[str] = []  # the elements that the prolog leaves open
        self._last = b""
        self._is_open = False  # whether the last record written lacks its end tag

    def write_chunk(self, chunk: Chunk) -> Iterator[bytes]:
        """Yield the output for a chunk, with the separator that ended it."""
        value, end = chunk.value, b"" if chunk.is_last or chunk.is_whole else self.head.separator
        if self._is_first:
            self._is_first = False
            # The byte order mark belongs to the file, not to the first record.
            mark = next((mark for mark, encoding in MARKS if encoding == self.head.encoding), b"")
            if mark and value.startswith(mark):
                yield mark
                value = value[len(mark) :]
            self._look_around(value)

        if self._is_bare and self._is_removed:  # a file that began with a record shall begin with one again
            value = value.lstrip(b"\r\n")
        self._last = value if chunk.is_last else b""
        place = find_record(value, self.head)
        if place is None:
            yield from self._write_between(value, end)
            return
        verdict = self.verdicts.next()
        if verdict is False:
            yield from self._drop(value, place, end)
            return
        self._is_removed, self._is_bare, self._is_open = False, False, chunk.is_last
        if isinstance(verdict, Cuts):
            yield cut_chunk(chunk._replace(value=value), self.head, verdict, self.verdicts.cutting)
        else:
            yield self._tag(value, place[0], verdict) if isinstance(verdict, Tags) else value
        yield end

    def write_part(self, part: Part) -> Iterator[bytes]:
        """Yield the output for a part of a chunk that is too long: a reject, removed or, when tagging, left as is."""
        if not self._is_inside:
            verdict = self.verdicts.next()
            if verdict is False:
                place = find_record(part.value, self.head) or (0, len(part.value))
                yield from self._drop(part.value, place, b"")
        if self._is_tagging:
            yield part.value
            yield self.head.separator if part.ends and not (part.is_last or part.is_whole) else b""
        self._is_inside, self._is_first = not part.ends, False

    def stop(self, reject: Reject) -> None:
        """Count the reject of a stream that ends here because it is damaged."""
        del reject
        self.verdicts.next()

    def end(self, *, is_cut: bool) -> Iterator[bytes]:
        """Yield the end tags that a file lacks: one that ends before the others (`is_cut`), or a truncated one.

        A truncated one is left as it is when tagging.
        """
        last = f"</{self._around[0]}".encode(self.head.encoding) if self._around else b""
        if not last or (not is_cut and (self._is_tagging or last in self._last)):
            return
        if self._is_open and not self.head.is_by_line:
            yield self.head.separator
        yield "".join(f"\n</{name}>" for name in reversed(self._around)).encode(self.head.encoding)

    def _look_around(self, value: bytes) -> None:
        place = find_record(value, self.head)
        if place is not None and self.head.format.kind == "xml":
            shape = scan(value[: place[0]].decode(self.head.encoding, "replace"))
            self._around = [one.tag for one in shape.elements if not (one.is_empty or one.end_tag)]

    def _write_between(self, value: bytes, end: bytes) -> Iterator[bytes]:
        """Yield bytes that hold no record; after a removed record drop its tail, such as an end tag without a start."""
        if not self._is_tagging:
            is_tail = self._is_removed and end and not self.head.is_by_line and not value.lstrip().startswith(b"<!--")
            is_blank_line = self.head.format.kind == "jsonl" and not value.strip(JSON_BLANKS)
            if is_tail or (is_blank_line and not (self.head.list_keys and value == NEXT_LIST)):
                return
        yield value
        yield end

    def _drop(self, value: bytes, place: tuple[int, int], end: bytes) -> Iterator[bytes]:
        self._is_removed = True
        before, after = _trimmed(value[: place[0]], self.head.encoding), value[place[1] :]
        yield before
        if after.strip(JSON_BLANKS):
            yield after
            yield end
        elif before and self.head.is_by_line:
            yield end

    def _tag(self, value: bytes, start: int, tags: Tags) -> bytes:
        head = self.head
        if head.format.kind == "jsonl":
            return tag_json(value, tags, head.encoding)
        if not is_readable_as_ascii(head.encoding):
            return value[:start] + _tag_wide(value[start:], tags, head)
        return value[:start] + _tag_text(value[start:], tags, head)


def _tag_wide(record: bytes, tags: Tags, head: FileHead) -> bytes:
    whole = len(record) - len(record) % 2 if head.encoding.startswith("utf-16") else len(record)
    errors = "surrogatepass" if head.encoding.startswith("utf-16") else "strict"
    try:
        text = record[:whole].decode(head.encoding, errors).encode("utf-8", errors)
    except UnicodeError as error:
        raise RewriteError(f"in its encoding {head.encoding} a record with bad bytes cannot be tagged") from error
    tagged = _tag_text(text, tags, replace(head, encoding="utf-8"))
    return tagged.decode("utf-8", errors).encode(head.encoding, errors) + record[whole:]


def _tag_text(record: bytes, tags: Tags, head: FileHead) -> bytes:
    return tag_trec(record, tags, head.encoding) if head.format.kind == "sgml" else tag_xml(record, tags, head)


def _trimmed(before: bytes, encoding: str) -> bytes:
    """Return the bytes before a record, without blanks at their end."""
    if not encoding.startswith("utf-16"):
        return before.rstrip(b" \t\r\n")
    blanks = [blank.encode(encoding) for blank in " \t\r\n"]
    while before[-2:] in blanks:
        before = before[:-2]
    return before


def rewrite_warc(  # noqa: C901 - one choice for each kind of piece
    stream: Expanded, head: FileHead, verdicts: Verdicts, max_record: int
) -> Iterator[Member]:
    """Yield the bytes of the records as the verdicts say, and None after each record.

    In a gzipped WARC each record is a member of its own. Only removed documents and records that cannot be read are
    left out. Records that hold no document stay: warcinfo, requests, metadata, revisits, pictures.

    Raises:
        RewriteError: if the file has more or fewer records than the run found, or already has tags.

    Cost: linear; no record is parsed. Memory: `max_record`; a longer record is passed on in pieces.
    """
    del head
    reader = Reader(verdicts)
    stays = True
    for piece in walk_warc(stream, max_record=max_record):
        if isinstance(piece, Reject):  # the stream is damaged and ends here
            reader.next()
            break
        if piece.begins and piece.continues:
            if stays:
                yield piece.header
        elif piece.begins:
            verdict = reader.next() if piece.is_record else True
            if reader.is_over:
                break
            stays = verdict is not False
            if isinstance(verdict, Tags):
                yield tag_warc(piece.header, verdict)
            elif stays:
                yield piece.header
        if stays:
            yield piece.data
            if piece.ends:
                yield None
    reader.require_all(verdicts.count)


def rewrite_mail(stream: Expanded, head: FileHead, verdicts: Verdicts, max_record: int) -> Iterator[bytes]:
    """Yield the messages that stay, byte for byte. One stays whole if it, or a message inside it, stays.

    Raises:
        RewriteError: if the file has more or fewer messages than the run found.

    Cost: linear; only those that may hold others are parsed, to count these. Memory: `max_record` and a piece.
    """
    del head
    reader = Reader(verdicts)
    for message in cut_mail(stream, max_record=max_record):
        count = 1 if isinstance(message, Reject) else count_messages(message)
        stays = [reader.next() is not False for _ in range(count)]
        if any(stays) and isinstance(message, bytes):
            yield message
        if reader.is_over:
            break
    reader.require_all(verdicts.count)


def end_of(head: FileHead, compression: str) -> bytes:
    """Return the last byte of every file rewritten in this form; pages and texts are copied and may end otherwise.

    Every packed file ends with a byte known in advance; uncompressed text ends with a line end, which is added if
    missing. So Spark can write a file as rows that are cut at this byte.

    Args:
        compression: as from `streams.compression_of`.
    """
    if head.format.files.is_columnar:
        return PARQUET_END
    return COMPRESSIONS[compression].end if compression else line_end_of(head)[-1:]


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
        At least `PIECE` bytes at a time, except for the last; of no bytes an empty member, for a packed file of 0 bytes
        is none to other programs, and nothing without compression.
    """
    parts, size, last = [], 0, b""
    for piece in _members(pieces, compression, line_end):
        parts.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield (last := b"".join(parts))
            parts, size = [], 0
    rest = b"".join(parts)
    ending = (rest or last)[-1:]
    if compression and ending and ending != COMPRESSIONS[compression].end:
        rest += COMPRESSIONS[compression].empty
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
    is_empty = True
    for piece in pieces:
        if piece is None and compression == "gzip" and packer is not None:
            yield packer.flush()
            packer = None
        elif piece:
            packer = packer or COMPRESSIONS[compression].packer()
            is_empty = False
            yield packer.compress(piece)
    if packer is not None or is_empty:
        yield (packer or COMPRESSIONS[compression].packer()).flush()


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


def judge(  # noqa: PLR0913 - what a run was asked for
    rows: pa.Table,
    kind: Kind,
    *,
    is_tagging: bool,
    may_go_on: bool,
    added: pa.Schema = NO_FIELDS,
    cutting: Cutting | None = None,
) -> Verdicts:
    """Return the verdicts on the records of a file.

    Args:
        rows: columns `nddup_kept` …, `reason`: the tags of each record, or why it was rejected; in file order. With
            `nddup_passages` and `nddup_cuts` these are the tags, or with `cutting` what is cut.
        kind: kind of the format. In a WARC file, records that hold no document stay.
        is_tagging: whether every record is written, with its tags.
        may_go_on: as in `Verdicts`.
        added: other columns, which each document that stays gets, also where only these are written.
        cutting: how the texts were read of which something is cut; None if nothing is.
    """
    may_be_empty = len(rows) == 1 and rows["reason"][0].as_py() == NO_RECORDS
    spans = [name for name in SPANS.names if name in rows.column_names]
    has_tags = np.asarray(pc.is_valid(rows[(spans or NAMES)[0]]), np.bool_)
    if is_tagging:
        tags = _select(rows, list(SPANS) if spans else [*SCHEMA, *(one for one in added if one.name not in NAMES)])
        return Verdicts(len(rows), tags=tags, has_tags=has_tags, may_go_on=may_go_on, may_be_empty=may_be_empty)
    stays = pc.fill_null(rows[NAMES[0]], False)  # noqa: FBT003 - the value that fills
    if kind == "warc":
        stays = pc.or_(stays, pc.is_in(rows["reason"], pa.array(UNREAD_IN_WARC)))
    flags = np.asarray(stays, np.bool_)
    tags = _select(rows, list(added)) if added.names else None
    verdicts = Verdicts(len(rows), flags, tags, has_tags, may_go_on=may_go_on, may_be_empty=may_be_empty)
    if cutting is None or FILE_KINDS[kind].uncut:
        return verdicts
    return replace(verdicts, cuts=rows[SPANS.names[1]], cutting=cutting)


def _select(rows: pa.Table, fields: Sequence[pa.Field]) -> pa.Table:
    """Return columns as declared: a cast leaves the name of what a list holds, which Parquet writes."""
    return pa.Table.from_arrays([rows[one.name].cast(one.type) for one in fields], schema=pa.schema(fields))


STREAMED: dict[Kind, Callable[[Expanded, FileHead, Verdicts, int], Iterator[bytes | None]]] = {
    **{kind: rewrite_chunks for kind, files in FILE_KINDS.items() if files.is_cut},
    "warc": rewrite_warc,
    "csv": rewrite_csv,
    "mail": rewrite_mail,
}
"""What writes the files of a kind again that are read as a stream of bytes."""


def can_rewrite(kind: Kind) -> bool:
    """Return whether files of a kind can be written again."""
    return kind in STREAMED or FILE_KINDS[kind].is_columnar or FILE_KINDS[kind].is_copied


def rewrite_file(raw: BinaryIO, head: FileHead, stored: Stored, verdicts: Verdicts) -> Iterator[bytes]:
    """Yield the bytes of the new file, some MB at a time; nothing for a page or a text that is removed.

    Args:
        raw: the file as stored; seekable for Parquet.
        stored: how it is stored, and was read.

    Raises:
        RewriteError: if it cannot be written as requested, or differs from the file that the run read.
        OSError: if it cannot be read.

    Cost: one pass. Memory: a record, or a row group.
    """
    kind, (compression, most, max_record) = head.format.kind, stored
    if not can_rewrite(kind):
        raise RewriteError(f"files of the format {head.format.name} cannot be written again")
    if FILE_KINDS[kind].is_columnar:
        yield from rewrite_parquet(raw, head, verdicts, limit=most, max_record=max_record)
        return
    if FILE_KINDS[kind].is_copied:
        yield from _copy(raw, head, stored, verdicts)
        return

    stream = Expanded(raw, compression, most if compression else None)
    if head.is_spread:
        lined = LinedStream(stream, head.list_keys)
        pieces: Iterable[bytes | None] = _as_found(rewrite_chunks(lined, head, verdicts, max_record), lined)
    else:
        pieces = STREAMED[kind](stream, head, verdicts, max_record)
    yield from pack(pieces, compression, b"" if kind == "mail" else line_end_of(head))


def _as_found(lines: Iterable[bytes], stream: LinedStream) -> Iterator[bytes]:
    """Yield lines of JSON, between brackets and commas if the stream that they are from holds arrays."""
    is_first, is_next, lists = True, True, 0
    for piece in lines:
        if piece == NEXT_LIST and lists + 1 < len(stream.around):
            yield _opened(stream, lists) + b"]" if is_first else b"\n]"
            is_first, is_next, lists = True, True, lists + 1
        elif not stream.is_list or piece == codecs.BOM_UTF8:
            yield piece
        elif piece == LINE_END:
            is_next = True
        elif piece.strip(JSON_BLANKS):
            before = (_opened(stream, lists) if is_first else b",\n") if is_next else b""
            yield before + (piece.lstrip(JSON_BLANKS) if before else piece)
            is_first = is_next = False
    if stream.is_list:
        yield (_opened(stream, lists) if is_first else b"\n") + b"]" + (stream.end or b"\n")


def _opened(stream: LinedStream, at: int) -> bytes:
    """Return what stands before the records of an array."""
    return (stream.around[at] if stream.around else b"") + b"[\n"


def _copy(raw: BinaryIO, head: FileHead, stored: Stored, verdicts: Verdicts) -> Iterator[bytes]:
    """Yield a page or a text as it is stored, unless it is removed or cut."""
    if verdicts.names:
        raise RewriteError("a page or a text has no place for tags")
    verdict = Reader(verdicts).next()
    if verdict is False:
        return
    try:
        if isinstance(verdict, Cuts):
            stream = Expanded(raw, stored.compression, stored.most if stored.compression else None)
            data = b"".join(iter(lambda: stream.read(PIECE), b""))
            if left := cut_file(data, verdict, verdicts.cutting, head):
                yield from pack([left], stored.compression, b"")
            return
        while piece := raw.read(PIECE):
            yield piece
    except StoppedError as error:
        raise RewriteError(str(error)) from error
