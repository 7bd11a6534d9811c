"""WARC and ARC files, cut by the lengths in their headers, which are split here too.

    cut_warc     stream       -> the bytes of each record that may hold a document
    walk_warc    stream       -> WarcPieces, every byte of the file, for `nddup.rewriting`
    fields_of    header       -> the values of its fields

Files are cut here because a whole-file parser stops silently where a file is cut or a header is wrong. Headers may end
their lines with LF, fold a field over several lines, and spell its name in any case: FastWARC reads such fields as
absent, so they are split here.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from nddup.reading.outcomes import EXCERPT_LENGTH, Reject, excerpt
from nddup.reading.streams import PIECE, Chunk, Expanded, StoppedError

DOCUMENTS = (b"response", b"resource", b"conversion", b"revisit", b"continuation")
EXCERPT_BYTES = 4 * EXCERPT_LENGTH
MAX_HEADER = 1 << 20
"""Maximum number of bytes of a record's WARC header, including its blank line."""

BLANKS = 64
"""Bytes examined at a time for line ends between two records."""

MOST_BYTES = 4
"""Bytes of UTF-8 that a character takes at most."""

_BLANK = b"\r\n\0 "

_TYPE = re.compile(rb"^WARC-Type[ \t]*:[ \t]*([\w-]+)", re.IGNORECASE | re.MULTILINE)
_CONTINUATION = re.compile(rb"^WARC-Type[ \t]*:\s*continuation\b", re.IGNORECASE | re.MULTILINE)
_LENGTH = re.compile(rb"^Content-Length[ \t]*:[ \t]*(\d{1,18})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
START = b"WARC/"
_HEADER_END = re.compile(rb"\n\r?\n|\nWARC/")
_NEXT = re.compile(rb"\r?\n\r?\n(?=WARC/[\d.]+\r?\n[\w-]+[ \t]*:)")
_FOLD = re.compile(rb"\r?\n[ \t]+")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~\w-]++)[ \t]*+:")
ARC_START = b"filedesc://"
"""How an ARC file begins.

In an ARC file, the older form, a record begins with one line: address, IP, date, media type, and length, in version 2
also other columns before the length. Its records have no ids.

Source: https://archive.org/web/researcher/ArcFileFormat.php"""

MAX_LINE, MAX_DIGITS = 1 << 16, 18
_ARC_FIELDS = 5
_ADDRESS = re.compile(rb"[A-Za-z][\w+.-]*:")
_ARC_DATE = re.compile(rb"\d{12,17}")
LEAD = b"\xef\xbb\xbf" + _BLANK
"""A byte order mark and blanks, which may stand before the first record."""


class Window:
    """A window on a stream: the next bytes, held in memory up to the number requested.

    It begins after what may stand before the first record.
    """

    def __init__(self, stream: Expanded) -> None:
        self._stream = stream
        self.held = bytearray()
        self.is_ended = False
        self._stopped: StoppedError | None = None
        self.place = 0
        while self.fill(1) and self.held[:1] in LEAD:
            self.drop(len(self.held) - len(self.held.lstrip(LEAD)))
        self.fill(len(ARC_START))
        self.is_arc = self.held.startswith(ARC_START)

    def fill(self, size: int) -> bool:
        """Read until `size` bytes are held; return False if the stream has fewer."""
        while len(self.held) < size and not self.is_ended:
            if self._stopped:
                raise self._stopped
            piece = self._stream.read(PIECE)
            self.is_ended = not piece
            self.held += piece
        return len(self.held) >= size

    def look(self, size: int) -> None:
        """Do as `fill`, but where the stream stops before, raise that only when these bytes are needed."""
        try:
            self.fill(size)
        except StoppedError as error:
            self._stopped = error

    @property
    def stored_place(self) -> int | None:
        """Where the stored file holds the first byte of the window; None if that is inside a compressed member."""
        return self._stream.stored_place(self.place)

    def drop(self, size: int) -> None:
        """Move the window forward by `size` bytes, which need not be held."""
        while size > len(self.held) and not self.is_ended:
            size -= len(self.held)
            self.place += len(self.held)
            self.held.clear()
            self.fill(1)
        self.place += min(size, len(self.held))
        del self.held[:size]

    def take(self, size: int) -> bytes:
        """Return the first `size` held bytes, or all if there are fewer, and move the window past them."""
        with memoryview(self.held) as view:
            taken = bytes(view[:size])
        self.place += len(taken)
        del self.held[:size]
        return taken

    def find_start(self, start: int) -> int:
        """Find the next start of a record among the bytes held, after a line end at or after `start`; -1 if none."""
        if not self.is_arc:
            return self.held.find(b"\n" + START, start)
        while (start := self.held.find(b"\n", start)) >= 0:
            end = self.held.find(b"\n", start + 1, start + 1 + MAX_LINE)
            if end >= 0 and split_line(bytes(self.held[start + 1 : end])) is not None:
                return start
            start += 1
        return -1

    def find_header_end(self, limit: int) -> int:
        """Find the end of the first blank line within `limit` bytes; -1 if there is none before the next record."""
        searched = 0
        while (match := _HEADER_END.search(self.held, searched, limit)) is None:
            if self.is_ended or len(self.held) >= limit:
                return -1
            searched = max(0, len(self.held) - len(START))  # the match may be cut at the end
            self.fill(len(self.held) + 1)
        return -1 if match[0].endswith(START) else match.end()


def cut_warc(stream: Expanded, *, max_record: int) -> Iterator[Chunk | Reject]:  # noqa: C901 - one choice for each kind of record
    """Yield the records of a WARC file that may hold a document.

    Records that are not documents (warcinfo, request, metadata) are skipped. Segments of a record are joined, if no
    other document stands between them.

    Args:
        max_record: the longest record returned, in bytes, including its header.

    Returns:
        The header and block of each record. Rejects: `too large` for a longer record; `malformed` for a header without
        a length, or for bytes that begin no record, up to the next record; `truncated` if the file ends inside a
        record; if the stream stops, its reason.

    Cost: linear. Memory: `max_record` and a piece.
    """
    window, begun = None, None
    try:
        window = Window(stream)
        while _skip_blank(window):
            offset, header = window.stored_place, read_header(window)
            size, segment = size_of(window, header, max_record), segment_of(header)
            if begun and size is not None and segment and segment.follows(begun.last):
                begun.add(segment, _next_record(window, header, size, offset, max_record), max_record)
                continue
            if begun and (size is None or is_document(header)):
                yield begun.end()
                begun = None
            if size is None:
                yield _skip_to_record(window)
            elif not is_document(header):
                window.drop(size)
            elif segment is None:
                yield _next_record(window, header, size, offset, max_record)
            elif segment.number == 1:
                begun = _Joined(segment, len(header), _next_record(window, header, size, offset, max_record))
            else:
                window.drop(size)
                yield Reject("truncated", "a segment of a record that does not begin before it", excerpt(header))
        if begun:
            yield begun.end()
    except StoppedError as error:
        if begun:
            yield begun.end()
        yield Reject(error.reason, str(error), excerpt(bytes(window.held[:EXCERPT_BYTES])) if window else "")


class Segment(NamedTuple):
    """What the header of a segmented record says: its number, the id of the first segment, the length of all blocks."""

    number: int
    origin: str
    total: int | None

    def follows(self, last: "Segment | None") -> bool:
        """Return whether it is the next segment of the same record."""
        return last is not None and (self.number, self.origin) == (last.number + 1, last.origin)


def segment_of(header: bytes) -> Segment | None:
    """Return which segment a header begins; None for a record that is whole. A continuation is always one."""
    if b"segment-number" not in header.lower() and not _CONTINUATION.search(header):
        return None
    fields = fields_of(header)
    number, total = (first_value(fields, f"warc-segment-{name}") for name in ("number", "total-length"))
    is_first = first_value(fields, "warc-type").lower() != "continuation"
    origin = first_value(fields, "warc-record-id" if is_first else "warc-segment-origin-id")
    count = int(number) if number.isdecimal() and len(number) <= MAX_DIGITS else 0
    return Segment(
        1 if is_first else max(count, 2), origin, int(total) if total.isdecimal() and len(total) <= MAX_DIGITS else None
    )


class _Joined:
    """The segments of a record that stand one after the other in a file, with no other document between them."""

    def __init__(self, first: Segment, header_size: int, start: Chunk | Reject) -> None:
        self.last = first
        self._start = start
        self._parts = [start.value] if isinstance(start, Chunk) else []
        self._size = len(start.value) if isinstance(start, Chunk) else 0
        self._header_size = header_size

    def add(self, segment: Segment, chunk: Chunk | Reject, max_record: int) -> None:
        """Add the next segment; the record becomes a reject if that is one, or if it makes the record too large."""
        self.last = segment
        if isinstance(self._start, Reject):
            return
        if isinstance(chunk, Reject):
            self._start = chunk
        else:
            block = chunk.value[after_blank_line(chunk.value, 0) :]
            self._parts.append(block)
            self._size += len(block)
            if self._size > max_record:
                start = excerpt(self._parts[0][:EXCERPT_BYTES])
                self._start = Reject("too large", "its segments have more bytes than input.max_record", start)
        if isinstance(self._start, Reject):
            self._parts.clear()

    def end(self) -> Chunk | Reject:
        """Return the record, or the reject `truncated` if segments are missing."""
        if isinstance(self._start, Reject):
            return self._start
        total = self.last.total
        if total is None or total > self._size - self._header_size:
            start = excerpt(self._parts[0][:EXCERPT_BYTES])
            return Reject("truncated", f"the record goes on elsewhere, after segment {self.last.number}", start)
        return self._start._replace(value=b"".join(self._parts))


def _skip_blank(window: Window) -> bool:
    """Move to the next byte that is not a line end or other blank; return False at the end of the file."""
    while window.fill(1):
        first = window.held[:BLANKS]
        rest = len(first.lstrip(_BLANK))
        window.drop(len(first) - rest)
        if rest:
            return True
    return False


def _next_record(window: Window, header: bytes, size: int, offset: int | None, max_record: int) -> Chunk | Reject:
    """Return the record of so many bytes at the start of the window, or a reject; move past it."""
    record: Chunk | Reject
    if size > max_record:
        record = Reject("too large", f"{size:,} bytes, more than input.max_record", excerpt(header))
    elif not window.fill(size):
        missing = size - len(window.held)
        record = Reject("truncated", f"the file ends {missing:,} bytes before the end of the record", excerpt(header))
    else:
        record = Chunk(bytes(window.held[:size]), is_last=False, offset=offset)
    window.drop(size)
    return record


def read_header(window: Window) -> bytes:
    """Return the header at the start of the window, with its blank line; empty if no record begins there."""
    if window.is_arc:
        while b"\n" not in window.held[:MAX_LINE] and len(window.held) < MAX_LINE and not window.is_ended:
            window.fill(len(window.held) + 1)
        line = bytes(window.held[: window.held.find(b"\n", 0, MAX_LINE) + 1])
        return line if split_line(line) else b""
    window.fill(len(START))
    end = window.find_header_end(MAX_HEADER) if window.held.startswith(START) else -1
    return bytes(window.held[: max(end, 0)])


def length_of(header: bytes) -> int | None:
    """Return the number of bytes in a record after its header; None if the header does not give it."""
    if not header.startswith(START):
        fields = split_line(header)
        return int(fields[-1]) if fields else None
    match = _LENGTH.search(_FOLD.sub(b" ", header))
    return int(match[1]) if match else None


def size_of(window: Window, header: bytes, max_record: int) -> int | None:
    """Return the bytes of the record at the start of the window, with its header; None if that has no length.

    A wrong length is not believed where neither a record nor the end of the file follows: one that leads into the next
    record, as programs write that count line ends wrong, ends before that; one that is the number of characters, not of
    bytes, reaches to the next record, or to the end of the file.
    """
    length = length_of(header)
    if length is None:
        return None
    size = len(header) + length
    if size > max_record:
        return size
    if window.is_arc:
        return _size_by_lines(window, len(header), size)
    window.look(size + BLANKS)
    after = window.held[size : size + BLANKS].lstrip(_BLANK)[: len(START)]
    if len(window.held) >= size and START.startswith(after):
        return size
    following = _NEXT.search(window.held, len(header) - len(b"\r\n"), size + BLANKS)
    if following and following.end() < size:
        return max(following.start(), len(header))
    return _size_by_characters(window, len(header), length, max_record) or size


def _size_by_lines(window: Window, start: int, size: int) -> int:
    """Return where a record of ARC ends: where its length says, unless that is inside the line of the next one."""
    window.look(size + 1)
    if bytes(window.held[size : size + 1]) in (b"", b"\n", b"\r") or window.held[size - 1 : size] == b"\n":
        return size
    window.look(size + MAX_LINE)
    begin, end = window.held.rfind(b"\n", start, size) + 1, window.held.find(b"\n", size, size + MAX_LINE)
    line = bytes(window.held[begin:end]) if 0 < begin < end else b""
    return begin if _ADDRESS.match(line) and split_line(line) else size


def _size_by_characters(window: Window, start: int, length: int, max_record: int) -> int | None:
    """Return where a record ends that has so many characters of UTF-8, or units of UTF-16; None if it has others."""
    most = min(start + MOST_BYTES * length, max_record)
    window.look(most + BLANKS)
    following = _NEXT.search(window.held, start + length, most + BLANKS)
    end = following.start() if following else len(window.held.rstrip(_BLANK)) if len(window.held) < most else start
    try:
        text = window.held[start:end].decode()
    except UnicodeDecodeError:
        return None
    lengths = (len(text), len(text.encode("utf-16-le")) // 2)
    return end if end > start and length in lengths else None


def is_document(header: bytes) -> bool:
    """Return whether a record may hold a document, or is a revisit of one."""
    if not header.startswith(START):
        return not header.startswith(ARC_START)
    match = _TYPE.search(_FOLD.sub(b" ", header))
    return match is None or match[1].lower() in DOCUMENTS


def split_line(line: bytes) -> list[bytes] | None:
    """Return address, IP, date, media type and length of the first line of an ARC record; None for any other line."""
    fields = line.rstrip(b"\r\n").split(b" ")
    at = next((n for n, field in enumerate(fields[2:-2], 2) if _ARC_DATE.fullmatch(field)), None)
    if len(fields) < _ARC_FIELDS or at is None or not fields[-1].isdigit() or len(fields[-1]) > MAX_DIGITS:
        return None
    return [b" ".join(fields[: at - 1]), fields[at - 1], fields[at], fields[at + 1], fields[-1]]


def _skip_to_record(window: Window) -> Reject:
    """Move to the next start of a record; return one reject for the bytes skipped."""
    begin, passed = excerpt(bytes(window.held[:EXCERPT_BYTES])), 0
    while True:
        at = window.find_start(1)
        if at >= 0 or window.is_ended:
            step = at + 1 if at >= 0 else len(window.held)
            window.drop(step)
            return Reject("malformed", f"{passed + step:,} bytes that do not begin a WARC record", begin)
        step = max(len(window.held) - (MAX_LINE if window.is_arc else len(START)), 0)
        passed += step
        window.drop(step)
        window.fill(len(window.held) + 1)


class WarcPiece(NamedTuple):
    """Bytes of a record.

    Attributes:
        header: the WARC header with its blank line, in the first piece only; empty for bytes that begin no record.
        data: the bytes of this piece, without the header.
        begins: whether it is the first piece of the record.
        ends: whether it is the last piece of the record.
        is_record: whether the record counts, as a document or as a reject; False for warcinfo, request and the like.
        continues: whether it is a later segment of the record that counted last, and belongs to it.
    """

    header: bytes
    data: bytes
    begins: bool
    ends: bool
    is_record: bool
    continues: bool = False


def walk_warc(stream: Expanded, *, max_record: int) -> Iterator[WarcPiece | Reject]:
    """Yield the pieces of a file in order; if the stream stops, a reject with the reason, as in `cut_warc`.

    `is_record` marks what `cut_warc` returns as a record or as a reject; the blank lines after a record belong to it.

    Cost: linear. Memory: `max_record` and a piece; of a longer record, one piece at a time.
    """
    try:
        window = Window(stream)
        last = None
        while window.fill(1):
            header = read_header(window)
            size = size_of(window, header, max_record)
            if size is None:
                last = None
                yield from _pass_over(window)
                continue
            segment = segment_of(header)
            continues = segment is not None and segment.follows(last)
            if continues or is_document(header):
                last = segment if continues or (segment and segment.number == 1) else None
            for piece in _walk_record(window, header, size, max_record):
                yield piece._replace(is_record=False, continues=True) if continues else piece
    except StoppedError as error:
        yield Reject(error.reason, str(error), "")


def _walk_record(window: Window, header: bytes, size: int, max_record: int) -> Iterator[WarcPiece]:
    """Yield the record at the start of the window: whole, or in pieces if it is longer than `max_record`."""
    left, is_record = size - len(header), is_document(header)
    if size <= max_record:
        window.fill(size)  # if the stream stops inside the record, none of it is yielded
        window.take(len(header))
        data = window.take(left)
        yield WarcPiece(header, data + _take_blanks(window), begins=True, ends=True, is_record=is_record)
        return

    window.take(len(header))
    begins = True
    while left and window.fill(1):
        data = window.take(min(left, PIECE))
        left -= len(data)
        yield WarcPiece(header if begins else b"", data, begins=begins, ends=False, is_record=is_record)
        begins = False
    yield WarcPiece(header if begins else b"", _take_blanks(window), begins=begins, ends=True, is_record=is_record)


def _pass_over(window: Window) -> Iterator[WarcPiece]:
    """Yield the bytes up to the next start of a record, in pieces; together they are one reject."""
    begins = True
    while True:
        at = window.find_start(1)
        if at >= 0 or window.is_ended:
            data = window.take(at + 1 if at >= 0 else len(window.held))
            yield WarcPiece(b"", data, begins=begins, ends=True, is_record=True)
            return
        step = max(len(window.held) - (MAX_LINE if window.is_arc else len(START)), 0)
        if step:
            yield WarcPiece(b"", window.take(step), begins=begins, ends=False, is_record=True)
            begins = False
        window.fill(len(window.held) + 1)


def _take_blanks(window: Window) -> bytes:
    """Take the line ends and other blanks at the start of the window; return the last PIECE bytes of them at most."""
    blanks = b""
    while window.fill(1):
        data = bytes(window.held)
        rest = len(data.lstrip(_BLANK))
        blanks = (blanks + window.take(len(data) - rest))[-PIECE:]
        if rest:
            break
    return blanks


def after_blank_line(chunk: bytes, start: int) -> int:
    """Return the end of the first blank line from `start`; the end of the chunk if there is none."""
    match = _BLANK_LINE.search(chunk, start)
    return len(chunk) if match is None else match.end()


def fields_of(header: bytes) -> dict[str, list[str]]:
    """Return the values of each field of a header, by its name in lower case. Lines that are no field are left out."""
    fields: dict[str, list[str]] = {}
    for line in _FOLD.sub(b" ", header).splitlines():
        if match := FIELD.match(line):
            name = match[1].decode("ascii").lower()
            fields.setdefault(name, []).append(line[match.end() :].decode("utf-8", "replace").strip())
    return fields


def first_value(fields: dict[str, list[str]], name: str) -> str:
    """Return the first value of a field that is not empty; empty if there is none."""
    return next(filter(None, fields.get(name, ())), "")
