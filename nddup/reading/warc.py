"""WARC and ARC files, cut by the lengths in their headers. Each record is parsed separately: a bad one is one reject.

    read_warc    stream       -> Record | Reject: both of the next
    cut_warc     stream       -> the bytes of each record that may hold a document
    parse_warc   those bytes  -> Record | Reject
    walk_warc    stream       -> WarcPieces, every byte of the file, for `nddup.rewriting`
    as_date      text         -> a date of an archive, to the second

Files are cut here because a whole-file parser stops silently where a file is cut or a header is wrong. Headers may end
their lines with LF, fold a field over several lines, and spell its name in any case: FastWARC reads such fields as
absent, so they are split here.
"""

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from typing import NamedTuple

from nddup.reading.http_bodies import BodyError, decode_body, looks_like_text, text_of_payload
from nddup.reading.outcomes import (
    ALL_READ,
    EXCERPT_LENGTH,
    Capture,
    Record,
    Reject,
    Unread,
    clean_id,
    excerpt,
    make_record,
)
from nddup.reading.streams import PIECE, Chunk, Expanded, StoppedError

DOCUMENTS = (b"response", b"resource", b"conversion", b"revisit", b"continuation")
EXCERPT_BYTES = 4 * EXCERPT_LENGTH
MAX_HEADER = 1 << 20
"""Maximum number of bytes of a record's WARC header, including its blank line."""

BLANKS = 64
"""Bytes examined at a time for line ends between two records."""

BODY_EXPANSION = 200
"""How many times their size the encoded bodies of a file may expand to."""

_TYPE = re.compile(rb"^WARC-Type[ \t]*:[ \t]*([\w-]+)", re.IGNORECASE | re.MULTILINE)
_CONTINUATION = re.compile(rb"^WARC-Type[ \t]*:\s*continuation\b", re.IGNORECASE | re.MULTILINE)
_LENGTH = re.compile(rb"^Content-Length[ \t]*:[ \t]*(\d{1,18})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_START = b"WARC/"
_HEADER_END = re.compile(rb"\n\r?\n|\nWARC/")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~\w-]++)[ \t]*+:")
_STATUS = re.compile(rb"HTTP/|[A-Z]++(?:/[\d.]++)?[ \t]++\d{3}\b")
_INTERIM = re.compile(rb"HTTP/[\d.]++[ \t]++(?:1\d\d\b|200 Connection established)", re.IGNORECASE)
"""The header of a server or a proxy that another header follows: that of the answer."""

_CODE = re.compile(rb"\S{1,20}+[ \t]++(\d{3})\b")
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_TEXTS = re.compile(
    r"text/(?!css\b|dns\b|(x-)?(java|ecma|live)script\b)"
    r"|(?!image/)[\w.-]+/([\w.-]+\+)*(xml|json|x-ndjson)\s*(;|$)|\s*$",
    re.IGNORECASE,
)
"""Content types of documents. Styles and scripts are none, as in a folder of pages; nor are answers of name servers."""

_NO_TYPE = re.compile(r"\s*(?:(?:unknown|application)/unknown|\*/\*|[^/;]*)\s*(?:;|$)", re.IGNORECASE)
"""Content types of servers that know none. Source: https://mimesniff.spec.whatwg.org/#sniffing-an-unknown-mime-type"""

ARC_START = b"filedesc://"
"""How an ARC file begins.

In an ARC file, the older form, a record begins with one line: address, IP, date, media type, and length, in version 2
also other columns before the length. Its records have no ids.

Source: https://archive.org/web/researcher/ArcFileFormat.php"""

MAX_LINE, MAX_DIGITS = 1 << 16, 18
_ARC_FIELDS = 5
_LEAST = (1, 1, 1, 0, 0, 0)
_ARC_DATE = re.compile(rb"\d{12,17}")
_DATE = re.compile(r"(\d{4})(?:-?(\d\d)(?:-?(\d\d)(?:T?(\d\d):?(\d\d)(?::?(\d\d))?)?)?)?(?:\.?\d*)Z?")


class Window:
    """A window on a stream: the next bytes, held in memory up to the number requested."""

    def __init__(self, stream: Expanded) -> None:
        self._stream = stream
        self.held = bytearray()
        self.is_ended = False
        self.place = 0
        self.fill(len(ARC_START))
        self.is_arc = self.held.startswith(ARC_START)

    def fill(self, size: int) -> bool:
        """Read until `size` bytes are held; return False if the stream has fewer."""
        while len(self.held) < size and not self.is_ended:
            piece = self._stream.read(PIECE)
            self.is_ended = not piece
            self.held += piece
        return len(self.held) >= size

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
            return self.held.find(b"\n" + _START, start)
        while (start := self.held.find(b"\n", start)) >= 0:
            end = self.held.find(b"\n", start + 1, start + 1 + MAX_LINE)
            if end >= 0 and _split_line(bytes(self.held[start + 1 : end])) is not None:
                return start
            start += 1
        return -1

    def find_header_end(self, limit: int) -> int:
        """Find the end of the first blank line within `limit` bytes; -1 if there is none before the next record."""
        searched = 0
        while (match := _HEADER_END.search(self.held, searched, limit)) is None:
            if self.is_ended or len(self.held) >= limit:
                return -1
            searched = max(0, len(self.held) - len(_START))  # the match may be cut at the end
            self.fill(len(self.held) + 1)
        return -1 if match[0].endswith(_START) else match.end()


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
            length, segment = length_of(header), segment_of(header)
            if begun and length is not None and segment and segment.follows(begun.last):
                begun.add(segment, _next_record(window, header, offset, max_record), max_record)
                continue
            if begun and (length is None or is_document(header)):
                yield begun.end()
                begun = None
            if length is None:
                yield _skip_to_record(window)
            elif not is_document(header):
                window.drop(len(header) + length)
            elif segment is None:
                yield _next_record(window, header, offset, max_record)
            elif segment.number == 1:
                begun = _Joined(segment, len(header), _next_record(window, header, offset, max_record))
            else:
                window.drop(len(header) + length)
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
    fields = _fields_of(header)
    number, total = (_first(fields, f"warc-segment-{name}") for name in ("number", "total-length"))
    is_first = _first(fields, "warc-type").lower() != "continuation"
    origin = _first(fields, "warc-record-id" if is_first else "warc-segment-origin-id")
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

    def add(self, segment: Segment, found: Chunk | Reject, max_record: int) -> None:
        """Add the next segment; the record becomes a reject if that is one, or if it makes the record too large."""
        self.last = segment
        if isinstance(self._start, Reject):
            return
        if isinstance(found, Reject):
            self._start = found
        else:
            block = found.value[_after_blank_line(found.value, 0) :]
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
        rest = len(first.lstrip(b"\r\n\0 "))
        window.drop(len(first) - rest)
        if rest:
            return True
    return False


def _next_record(window: Window, header: bytes, offset: int | None, max_record: int) -> Chunk | Reject:
    """Return the record at the start of the window, whose header has a length, or a reject; move past it."""
    size = len(header) + (length_of(header) or 0)
    found: Chunk | Reject
    if size > max_record:
        found = Reject("too large", f"{size:,} bytes, more than input.max_record", excerpt(header))
    elif not window.fill(size):
        missing = size - len(window.held)
        found = Reject("truncated", f"the file ends {missing:,} bytes before the end of the record", excerpt(header))
    else:
        found = Chunk(bytes(window.held[:size]), is_last=False, offset=offset)
    window.drop(size)
    return found


def read_header(window: Window) -> bytes:
    """Return the header at the start of the window, with its blank line; empty if no record begins there."""
    if window.is_arc:
        while b"\n" not in window.held[:MAX_LINE] and len(window.held) < MAX_LINE and not window.is_ended:
            window.fill(len(window.held) + 1)
        line = bytes(window.held[: window.held.find(b"\n", 0, MAX_LINE) + 1])
        return line if _split_line(line) else b""
    window.fill(len(_START))
    end = window.find_header_end(MAX_HEADER) if window.held.startswith(_START) else -1
    return bytes(window.held[: max(end, 0)])


def length_of(header: bytes) -> int | None:
    """Return the number of bytes in a record after its header; None if the header does not give it."""
    if not header.startswith(_START):
        fields = _split_line(header)
        return int(fields[-1]) if fields else None
    match = _LENGTH.search(_FOLD.sub(b" ", header))
    return int(match[1]) if match else None


def is_document(header: bytes) -> bool:
    """Return whether a record may hold a document, or is a revisit of one."""
    if not header.startswith(_START):
        return not header.startswith(ARC_START)
    match = _TYPE.search(_FOLD.sub(b" ", header))
    return match is None or match[1].lower() in DOCUMENTS


def _split_line(line: bytes) -> list[bytes] | None:
    """Return address, IP, date, media type and length of the first line of an ARC record; None for any other line."""
    fields = line.rstrip(b"\r\n").split(b" ")
    at = next((n for n, field in enumerate(fields[2:-2], 2) if _ARC_DATE.fullmatch(field)), None)
    if len(fields) < _ARC_FIELDS or at is None or not fields[-1].isdigit() or len(fields[-1]) > MAX_DIGITS:
        return None
    return [b" ".join(fields[: at - 1]), fields[at - 1], fields[at], fields[at + 1], fields[-1]]


def _fields_of_line(line: bytes) -> dict[str, list[str]]:
    address, _, date, media, _ = (field.decode("utf-8", "replace") for field in _split_line(line) or [b""] * 5)
    is_http = address.lower().startswith(("http:", "https:"))
    named = {"warc-type": "response", "warc-target-uri": address, "warc-date": date, "arc-content-type": media}
    named["content-type"] = "application/http" if is_http else media
    return {name: [value] for name, value in named.items()}


def _skip_to_record(window: Window) -> Reject:
    """Move to the next start of a record; return one reject for the bytes skipped."""
    begin, passed = excerpt(bytes(window.held[:EXCERPT_BYTES])), 0
    while True:
        at = window.find_start(1)
        if at >= 0 or window.is_ended:
            step = at + 1 if at >= 0 else len(window.held)
            window.drop(step)
            return Reject("malformed", f"{passed + step:,} bytes that do not begin a WARC record", begin)
        step = max(len(window.held) - (MAX_LINE if window.is_arc else len(_START)), 0)
        passed += step
        window.drop(step)
        window.fill(len(window.held) + 1)


class Wanted(NamedTuple):
    """What is read of the records of an archive: the HTTP statuses, None for all; header fields for the keep policy."""

    statuses: tuple[int, ...] | None = None
    policy: tuple[str, ...] = ()


ALL = Wanted()
"""Every status, and no field."""


def read_warc(
    stream: Expanded, *, max_record: int, most_expanded: int | None, wanted: Wanted = ALL
) -> Iterator[Record | Reject]:
    """Yield the documents and rejects of a WARC or ARC file, as from `cut_warc` and `parse_warc`.

    The encoded bodies up to any record expand together to at most BODY_EXPANSION times the bytes of these records and
    `max_record`, and never to more than `most_expanded`; others are rejects `too large`. What a refused body expanded
    to is not known exactly, and is estimated.
    """
    left, allowed = sys.maxsize if most_expanded is None else most_expanded, max_record
    for found in cut_warc(stream, max_record=max_record):
        if isinstance(found, Reject):
            yield found
            continue
        size = len(found.value)
        allowed += BODY_EXPANSION * size
        most = min(max_record, max(min(left, allowed), size))
        record = parse_warc(found.value, max_record=most, wanted=wanted, offset=found.offset)
        spent = 0
        if isinstance(record, Record):
            spent = max(sum(map(len, record.fields)) - size, 0)
        elif record.reason in ("malformed", "too large"):
            spent = most if record.reason == "too large" else min(most, BODY_EXPANSION * size)
        left -= spent
        allowed -= spent
        yield record


def parse_warc(chunk: bytes, *, max_record: int, wanted: Wanted = ALL, offset: int | None = None) -> Record | Reject:
    """Read the document in one record of a WARC or ARC file.

    A `revisit` has no page, and becomes a reject `revisit` that says what it repeats; a run over files makes a document
    of it where that is a document.

    Args:
        max_record: the most bytes that a payload may expand to.
        wanted: which statuses are read, and which header fields are wanted: those of the archive, else those of HTTP.

    Returns:
        The id from WARC-TREC-ID or WARC-Record-ID, the URL from WARC-Target-URI, the payload with its transfer and
        content encodings decoded, and the charset from its HTTP header. Rejects: `revisit` for a revisit, `status` for
        an HTTP status that is not wanted, `not text` by the content type, `malformed` (also for a payload that cannot
        be decoded), `id too long`, and `too large` for a payload that expands beyond `max_record`.
        Never raises.
    """
    try:
        return _parse(chunk, max_record, wanted, offset)
    except Exception as error:  # noqa: BLE001 - a parser of untrusted bytes may raise anything: it becomes the reason
        return Reject("malformed", str(error) or type(error).__name__, excerpt(chunk))


def _parse(chunk: bytes, max_record: int, wanted: Wanted, offset: int | None) -> Record | Reject:
    start, warc = _split_header(chunk)
    doc_id = (_first(warc, "warc-trec-id") or _first(warc, "warc-record-id")).strip("<> \t")
    about, encodings, charset, status = warc, list[str](), None, None
    if _first(warc, "content-type").lower().startswith("application/http"):
        http = _after_http(chunk, start)
        while _INTERIM.match(chunk, start) and chunk.startswith(b"HTTP/", http):
            start, http = http, _after_http(chunk, http)
        code = _CODE.match(chunk, start)
        status = int(code[1]) if code and http > start else None
        about, start = _fields_of(chunk[start:http]), http
        names = [*about.get("content-encoding", ()), *about.get("transfer-encoding", ())]
        encodings = [name.strip() for several in names for name in several.split(",")]
    declared = _first(about, "content-type")
    content_type = _type_of(declared, _first(warc, "warc-identified-payload-type"))
    capture = _capture_of(warc, status, content_type, offset)
    policy = tuple(_first(warc, name.lower()) or _first(about, name.lower()) or None for name in wanted.policy)

    if refused := _refusal_of(warc, capture, content_type, wanted):
        return Reject(*refused, excerpt(chunk), clean_id(doc_id) or None, capture, policy)
    if match := _CHARSET.search(declared):
        charset = match[1].strip()

    try:
        payload = decode_body(chunk[start:], encodings, max_record)
    except BodyError as error:
        return Reject("malformed", str(error), excerpt(chunk), doc_id)
    if not content_type and not looks_like_text(payload):
        return Reject("not text", "no content type, and control characters", excerpt(chunk), doc_id)
    if len(payload) > max_record:
        return Reject(
            "too large", f"its content encoding expands to more than {max_record:,} bytes", excerpt(chunk), doc_id
        )

    url, fields = _first(warc, "warc-target-uri").strip("<> \t"), [text_of_payload(payload, content_type, charset)]
    begin = excerpt(chunk[:EXCERPT_BYTES])
    unread = ALL_READ
    if _first(warc, "warc-truncated"):  # what is missing is not known, so it is like that of no other record
        unread = Unread(parts=1, digest=blake2b(f"{doc_id} {offset}".encode(), digest_size=16).digest())
    return make_record(doc_id, url, fields, charset=charset, start=begin, policy=policy, capture=capture, unread=unread)


def _type_of(declared: str, identified: str) -> str:
    """Return the content type of a payload: what the archive identified, where the declared type is missing or wrong.

    It is taken to be wrong if it is that of no document, or of a plain text; what is no type is none, as in a browser.
    """
    declared = "" if _NO_TYPE.match(declared) else declared.lstrip(" \"'")
    is_doubtful = not declared.strip() or not _TEXTS.match(declared) or declared.lower().startswith("text/plain")
    return identified if identified.strip() and is_doubtful and _TEXTS.match(identified) else declared


def _refusal_of(
    warc: dict[str, list[str]], capture: Capture, content_type: str, wanted: Wanted
) -> tuple[str, str] | None:
    """Return the reason and detail of a reject for a record that its headers show to hold no document wanted."""
    if capture.record_type == "revisit":
        refers = _first(warc, "warc-refers-to-target-uri") or _first(warc, "warc-refers-to") or "an earlier record"
        return "revisit", f"a revisit of {refers}"
    if capture.status is not None and wanted.statuses is not None and capture.status not in wanted.statuses:
        return "status", f"HTTP {capture.status}, which input.statuses leaves out"
    return None if _TEXTS.match(content_type) else ("not text", content_type[:EXCERPT_LENGTH])


def _split_header(chunk: bytes) -> tuple[int, dict[str, list[str]]]:
    if not chunk.startswith(_START):
        end = chunk.find(b"\n") + 1
        return end, _fields_of_line(chunk[:end])
    end = _after_blank_line(chunk, 0)
    return end, _fields_of(chunk[:end])


def _capture_of(warc: dict[str, list[str]], status: int | None, content_type: str, offset: int | None) -> Capture:
    """Return the facts of the fetch in the header of a record."""
    kind, date = _first(warc, "warc-type").lower(), as_date(_first(warc, "warc-date"))
    address, digest = _first(warc, "warc-target-uri").strip("<> \t"), _first(warc, "warc-payload-digest")
    media = content_type.partition(";")[0].strip().lower()
    refers: tuple[str, ...] | None = None
    if kind == "revisit":
        named, uri = (_first(warc, f"warc-refers-to{what}").strip("<> \t") for what in ("", "-target-uri"))
        then = as_date(_first(warc, "warc-refers-to-date"))
        told = {f"id {named}": named, f"digest {digest}": digest, f"uri {uri} {then}": uri and then}
        refers = tuple(name for name, is_told in told.items() if is_told)
    return Capture(date, status, media or None, address or None, digest or None, offset, kind or None, refers)


def as_date(text: str) -> str | None:
    """Return a date of an archive, to the second; a shorter one is that of its first second. None if it is no date.

    Example:
        >>> as_date("2024-05-01T12:30:00.123Z"), as_date("20240501123000"), as_date("2024-05"), as_date("yesterday")
        ('2024-05-01T12:30:00Z', '2024-05-01T12:30:00Z', '2024-05-01T00:00:00Z', None)
    """
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (
        int(part or least) for part, least in zip(match.groups(), _LEAST, strict=True)
    )
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)  # a leap second has number 60
    except ValueError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _after_blank_line(chunk: bytes, start: int) -> int:
    """Return the end of the first blank line from `start`; the end of the chunk if there is none."""
    match = _BLANK_LINE.search(chunk, start)
    return len(chunk) if match is None else match.end()


def _after_http(chunk: bytes, start: int) -> int:
    """Return the end of the HTTP header that begins at `start`; `start` if no status line and no field begins there."""
    is_header = _STATUS.match(chunk, start) or _FIELD.match(chunk, start)
    return _after_blank_line(chunk, start) if is_header else start


def _fields_of(header: bytes) -> dict[str, list[str]]:
    """Return the values of each field of a header, by its name in lower case. Lines that are no field are left out."""
    fields: dict[str, list[str]] = {}
    for line in _FOLD.sub(b" ", header).splitlines():
        if match := _FIELD.match(line):
            name = match[1].decode("ascii").lower()
            fields.setdefault(name, []).append(line[match.end() :].decode("utf-8", "replace").strip())
    return fields


def _first(fields: dict[str, list[str]], name: str) -> str:
    return next(filter(None, fields.get(name, ())), "")


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
    """Yield the pieces of a file in order; if the stream stops, a reject with the reason, as in `warc.cut_warc`.

    `is_record` marks what `cut_warc` returns as a record or as a reject; the blank lines after a record belong to it.

    Cost: linear. Memory: `max_record` and a piece; of a longer record, one piece at a time.
    """
    try:
        window = Window(stream)
        _take_blanks(window)
        last = None
        while window.fill(1):
            header = read_header(window)
            if length_of(header) is None:
                last = None
                yield from _pass_over(window)
                continue
            segment = segment_of(header)
            continues = segment is not None and segment.follows(last)
            if continues or is_document(header):
                last = segment if continues or (segment and segment.number == 1) else None
            for piece in _walk_record(window, header, max_record):
                yield piece._replace(is_record=False, continues=True) if continues else piece
    except StoppedError as error:
        yield Reject(error.reason, str(error), "")


def _walk_record(window: Window, header: bytes, max_record: int) -> Iterator[WarcPiece]:
    """Yield the record at the start of the window: whole, or in pieces if it is longer than `max_record`."""
    left, is_record = length_of(header) or 0, is_document(header)
    if len(header) + left <= max_record:
        window.fill(len(header) + left)  # if the stream stops inside the record, none of it is yielded
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
        step = max(len(window.held) - (MAX_LINE if window.is_arc else len(_START)), 0)
        if step:
            yield WarcPiece(b"", window.take(step), begins=begins, ends=False, is_record=True)
            begins = False
        window.fill(len(window.held) + 1)


def _take_blanks(window: Window) -> bytes:
    """Take the line ends and other blanks at the start of the window; return the last PIECE bytes of them at most."""
    found = b""
    while window.fill(1):
        held = bytes(window.held)
        rest = len(held.lstrip(b"\r\n\0 "))
        found = (found + window.take(len(held) - rest))[-PIECE:]
        if rest:
            break
    return found
