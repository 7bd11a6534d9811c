"""WARC files, cut by the lengths in their headers. Each record is parsed separately, so one bad record is one reject.

    cut_warc     stream -> the bytes of each record that may hold a document
    parse_warc   those bytes -> Record | Reject

Files are cut here because a whole-file parser stops silently where a file is cut or a header is wrong. Headers may end
their lines with LF, fold a field over several lines, and spell its name in any case: FastWARC reads such fields as
absent, so they are split here. `http_bodies` decodes the transfer and content encodings.

Records that are not documents (warcinfo, request, metadata, continuation) are skipped. A `revisit` has no page, and
becomes a reject `no content`, so that the records and rejects of a crawl add up.

Source: ISO 28500:2017, https://iipc.github.io/warc-specifications/.
"""

import re
from collections.abc import Iterator

from nddup.reading.http_bodies import BodyError, decode_body, looks_like_text
from nddup.reading.outcomes import EXCERPT_LENGTH, Record, Reject, excerpt, make_record
from nddup.reading.streams import PIECE, Chunk, Expanded, StoppedError

DOCUMENTS = (b"response", b"resource", b"conversion", b"revisit")
EXCERPT_BYTES = 4 * EXCERPT_LENGTH
MAX_HEADER = 1 << 20
"""Most bytes of a record's WARC header, including its blank line."""

BLANKS = 64
"""Bytes examined at a time for line ends between two records."""

_TYPE = re.compile(rb"^WARC-Type[ \t]*:[ \t]*([\w-]+)", re.IGNORECASE | re.MULTILINE)
_LENGTH = re.compile(rb"^Content-Length[ \t]*:[ \t]*(\d{1,18})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_START = b"WARC/"
_HEADER_END = re.compile(rb"\n\r?\n|\nWARC/")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~\w-]++)[ \t]*+:")
_STATUS = re.compile(rb"HTTP/|[A-Z]++(?:/[\d.]++)?[ \t]++\d{3}\b")
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_TEXTS = re.compile(r"text/|application/(xhtml\+xml|xml|json)|\s*$")


class Window:
    """A window on a stream: the next bytes, held in memory up to the number requested."""

    def __init__(self, stream: Expanded) -> None:
        self._stream = stream
        self.held = bytearray()
        self.is_ended = False

    def fill(self, size: int) -> bool:
        """Read until `size` bytes are held; return False if the stream has fewer."""
        while len(self.held) < size and not self.is_ended:
            piece = self._stream.read(PIECE)
            self.is_ended = not piece
            self.held += piece
        return len(self.held) >= size

    def drop(self, size: int) -> None:
        """Move the window forward by `size` bytes, which need not be held."""
        while size > len(self.held) and not self.is_ended:
            size -= len(self.held)
            self.held.clear()
            self.fill(1)
        del self.held[:size]

    def take(self, size: int) -> bytes:
        """Return the first `size` held bytes, or all if there are fewer, and move the window past them."""
        with memoryview(self.held) as view:
            taken = bytes(view[:size])
        del self.held[:size]
        return taken

    def find_header_end(self, limit: int) -> int:
        """Find the end of the first blank line within `limit` bytes; -1 if there is none before the next record."""
        searched = 0
        while (found := _HEADER_END.search(self.held, searched, limit)) is None:
            if self.is_ended or len(self.held) >= limit:
                return -1
            searched = max(0, len(self.held) - len(_START))  # the match may be cut at the end
            self.fill(len(self.held) + 1)
        return -1 if found[0].endswith(_START) else found.end()


def cut_warc(stream: Expanded, *, max_record: int) -> Iterator[Chunk | Reject]:
    """Yield the records of a WARC file that may hold a document.

    Args:
        stream: the bytes of the file.
        max_record: the longest record returned, in bytes, including its header.

    Returns:
        The header and block of each record. Rejects: `too large` for a longer record; `malformed` for a header without
        a length, or for bytes that begin no record, up to the next record; `truncated` if the file ends inside a
        record; if the stream stops, its reason.

    Cost: linear. Memory: `max_record` and a piece.
    """
    window = Window(stream)
    try:
        while _skip_blank(window):
            yield from _next_record(window, max_record)
    except StoppedError as error:
        yield Reject(error.reason, str(error), excerpt(bytes(window.held[:EXCERPT_BYTES])))


def _skip_blank(window: Window) -> bool:
    """Move to the next byte that is not a line end or other blank; return False at the end of the file."""
    while window.fill(1):
        first = window.held[:BLANKS]
        rest = len(first.lstrip(b"\r\n\0 "))
        window.drop(len(first) - rest)
        if rest:
            return True
    return False


def _next_record(window: Window, max_record: int) -> Iterator[Chunk | Reject]:
    """Yield the record at the start of the window, or a reject; nothing for a record that is not a document."""
    header = read_header(window)
    length = length_of(header)
    if length is None:
        yield _skip_to_record(window)
        return

    size = len(header) + length
    if not is_document(header):
        window.drop(size)
    elif size > max_record:
        yield Reject("too large", f"{size:,} bytes, more than input.max_record", excerpt(header))
        window.drop(size)
    elif not window.fill(size):
        missing = size - len(window.held)
        yield Reject("truncated", f"the file ends {missing:,} bytes before the end of the record", excerpt(header))
        window.drop(size)
    else:
        yield Chunk(bytes(window.held[:size]), is_last=False)
        window.drop(size)


def read_header(window: Window) -> bytes:
    """Return the header at the start of the window, with its blank line; empty if no record begins there."""
    window.fill(len(_START))
    end = window.find_header_end(MAX_HEADER) if window.held.startswith(_START) else -1
    return bytes(window.held[: max(end, 0)])


def length_of(header: bytes) -> int | None:
    """Return the number of bytes in a record after its header; None if the header does not give it."""
    found = _LENGTH.search(_FOLD.sub(b" ", header))
    return int(found[1]) if found else None


def is_document(header: bytes) -> bool:
    """Return whether a record may hold a document, or is a revisit of one."""
    found = _TYPE.search(_FOLD.sub(b" ", header))
    return found is None or found[1].lower() in DOCUMENTS


def _skip_to_record(window: Window) -> Reject:
    """Move to the next start of a record; return one reject for the bytes skipped."""
    begin, passed = excerpt(bytes(window.held[:EXCERPT_BYTES])), 0
    while True:
        at = window.held.find(b"\n" + _START, 1)
        if at >= 0 or window.is_ended:
            step = at + 1 if at >= 0 else len(window.held)
            window.drop(step)
            return Reject("malformed", f"{passed + step:,} bytes that do not begin a WARC record", begin)
        step = max(len(window.held) - len(_START), 0)
        passed += step
        window.drop(step)
        window.fill(len(window.held) + 1)


def parse_warc(chunk: bytes, *, max_record: int) -> Record | Reject:
    """Read the document in one WARC record.

    Returns:
        The id from WARC-TREC-ID or WARC-Record-ID, the URL from WARC-Target-URI, the payload with its transfer and
        content encodings decoded, and the charset from its HTTP header. Rejects: `no content` for a revisit, `not text`
        by the content type, `malformed` (also for a payload that cannot be decoded), `id too long`, and `too large` for
        a payload that expands beyond `max_record`.
        Never raises.
    """
    try:
        return _parse(chunk, max_record)
    except Exception as error:  # noqa: BLE001 - a parser of untrusted bytes may raise anything: it becomes the reason
        return Reject("malformed", str(error) or type(error).__name__, excerpt(chunk))


def _parse(chunk: bytes, max_record: int) -> Record | Reject:
    start = _after_blank_line(chunk, 0)
    warc = _fields_of(chunk[:start])
    doc_id = (_first(warc, "warc-trec-id") or _first(warc, "warc-record-id")).strip("<> \t")
    if _first(warc, "warc-type").lower() == "revisit":
        refers = _first(warc, "warc-refers-to-target-uri") or _first(warc, "warc-refers-to") or "an earlier record"
        return Reject("no content", f"a revisit of {refers}", excerpt(chunk), doc_id)

    about, encodings, charset = warc, list[str](), None
    if is_http := _first(warc, "content-type").lower().startswith("application/http"):
        http = _after_http(chunk, start)
        about, start = _fields_of(chunk[start:http]), http
        names = [*about.get("content-encoding", ()), *about.get("transfer-encoding", ())]
        encodings = [name.strip() for several in names for name in several.split(",")]
    content_type = _first(about, "content-type")
    if not _TEXTS.match(content_type.lower()):
        return Reject("not text", content_type[:EXCERPT_LENGTH], excerpt(chunk), doc_id)
    if is_http and (found := _CHARSET.search(content_type)):
        charset = found[1].strip()

    try:
        payload = decode_body(chunk[start:], encodings, max_record)
    except BodyError as error:
        return Reject("malformed", str(error), excerpt(chunk), doc_id)
    if not content_type and not looks_like_text(payload):
        return Reject("not text", "no content type, and control characters", excerpt(chunk), doc_id)
    if len(payload) > max_record:
        return Reject("too large", "its content encoding expands past input.max_record", excerpt(chunk), doc_id)

    is_plain = content_type.lower().startswith(("text/plain", "application/json"))
    url = _first(warc, "warc-target-uri").strip("<> \t")  # some programs write <URL>
    return make_record(doc_id, url, [(payload, not is_plain)], charset=charset, start=excerpt(chunk[:EXCERPT_BYTES]))


def _after_blank_line(chunk: bytes, start: int) -> int:
    """Return the end of the first blank line from `start`; the end of the chunk if there is none."""
    found = _BLANK_LINE.search(chunk, start)
    return len(chunk) if found is None else found.end()


def _after_http(chunk: bytes, start: int) -> int:
    """Return the end of the HTTP header that begins at `start`; `start` if no status line and no field begins there."""
    is_header = _STATUS.match(chunk, start) or _FIELD.match(chunk, start)
    return _after_blank_line(chunk, start) if is_header else start


def _fields_of(header: bytes) -> dict[str, list[str]]:
    """Return the values of each field of a header, by its name in lower case. Lines that are no field are left out."""
    fields: dict[str, list[str]] = {}
    for line in _FOLD.sub(b" ", header).splitlines():
        if found := _FIELD.match(line):
            name = found[1].decode("ascii").lower()
            fields.setdefault(name, []).append(line[found.end() :].decode("utf-8", "replace").strip())
    return fields


def _first(fields: dict[str, list[str]], name: str) -> str:
    """Return the first value of a field that is not empty; empty if there is none."""
    return next(filter(None, fields.get(name, ())), "")
