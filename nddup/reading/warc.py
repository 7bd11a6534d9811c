"""The documents of WARC and ARC files. Each record is parsed separately: a bad one is one reject.

    read_warc    stream               -> Record | Reject: `cut_warc` and the next
    parse_warc   bytes of one record  -> Record | Reject
    as_date      text                 -> a date of an archive, to the second
    decode_body  a body, encodings    -> the body of HTTP without them; BodyError
    text_of_payload  a body, its type -> its text, and whether it is markup: of pages, text, JSON, XML and feeds

Files are cut into records in `warc_cutting`.
"""

import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final, NamedTuple

from fastwarc.stream_io import BrotliReader
from lxml import etree

from nddup.ground.shown import clean_id
from nddup.reading.markup import INLINE, read_unknown
from nddup.reading.outcomes import (
    ALL_READ,
    EXCERPT_LENGTH,
    Capture,
    Record,
    Reject,
    Unread,
    Value,
    excerpt,
    make_record,
)
from nddup.reading.page_limits import has_too_many
from nddup.reading.streams import Expanded, NoMemberError, StoppedError, compression_of
from nddup.reading.warc_cutting import (
    EXCERPT_BYTES,
    FIELD,
    START,
    after_blank_line,
    cut_warc,
    fields_of,
    first_value,
    split_line,
)

BODY_EXPANSION = 200
"""How many times their size the encoded bodies of a file may expand to."""

_STATUS = re.compile(rb"(?i:HTTP/)|[A-Z]++(?:/[\d.]++)?[ \t]++\d{3}\b")
_ANSWER = re.compile(rb"[ \t\r\n]*+(?=HTTP/\d)", re.IGNORECASE)
"""What stands before the header of an answer, where no content type says that there is one."""

_INTERIM = re.compile(rb"HTTP/[\d.]++[ \t]++(?:1\d\d\b|200 Connection established)", re.IGNORECASE)
"""The header of a server or a proxy that another header follows: that of the answer."""

_CODE = re.compile(rb"\S{1,20}+[ \t]++(\d{3})(?!\d)")
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_TEXTS = re.compile(
    r"text/(?!css\b|dns\b|(x-)?(java|ecma|live)script\b)"
    r"|(?!image/)[\w.-]+/([\w.-]+\+)*(xml|json|x-ndjson)\s*(;|$)|\s*$",
    re.IGNORECASE,
)
"""Content types of documents. Styles and scripts are none, as in a folder of pages; nor are answers of name servers."""

_NO_TYPE = re.compile(r"\s*(?:(?:unknown|application)/unknown|\*/\*|[^/;]*)\s*(?:;|$)", re.IGNORECASE)
"""Content types of servers that know none. Source: https://mimesniff.spec.whatwg.org/#sniffing-an-unknown-mime-type"""

_OF_CRAWLER = re.compile(r"metadata:|urn:(?:pageinfo|x-wpull|thumbnail|view|fullPage):", re.IGNORECASE)
"""Addresses of what a crawler writes of itself or of a page as a record beside the pages: logs, arguments, lists.

They are those of wget, wpull and Browsertrix, whose `urn:text:` is a text."""

_LEAST = (1, 1, 1, 0, 0, 0)
_DATE = re.compile(
    r"(\d{4})(?:-?(\d\d)(?:-?(\d\d)(?:[Tt ]?(\d\d):?(\d\d)(?::?(\d\d))?)?)?)?(?:[.,]?\d*)"
    r" ?(?:[Zz]|([+-])(\d\d):?(\d\d)?)?"
)

TEXT_BYTES = 4096
"""First bytes of a body that are examined by `looks_like_text`."""

SHORT_BYTES = 256
"""A body shorter than this must also be UTF-8 to look like text: few compressed bytes may hold no control character."""

MOST_UNNAMED = 2
"""Compressions of a body that no header names, as servers send files that they have compressed."""

_UNNAMED = ("gzip", "zstd")

_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")

_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")

_CHUNK = re.compile(rb"[ \t]*+([0-9a-fA-F]{1,15})[ \t]*+(?:;[^\r\n]*+)?\r?\n")

_CHUNK_END = re.compile(rb"\r?\n|\r\Z")

_CUT_CHUNK = re.compile(rb"[ \t]*+[0-9a-fA-F]{0,15}[ \t]*+(?:;[^\r\n]*+)?\r?\Z")

_PLAIN: Final = re.compile(r"text/plain\b|[\w.-]+/([\w.-]+\+)*(json|x-ndjson)\s*(;|$)", re.IGNORECASE)

_MARKUP: Final = re.compile(r"[^;]*?(html|xml|wml)", re.IGNORECASE)

_XML: Final = re.compile(r"[\w.-]+/([\w.-]+\+)*xml\s*(;|$)", re.IGNORECASE)

_XML_START: Final = re.compile(rb"(\xef\xbb\xbf)?\s*+<(\?xml\s|rss[\s>]|feed[\s>]|rdf:RDF[\s>])", re.IGNORECASE)

_PAGE: Final = re.compile(rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)

_START = 4096

_XHTML: Final = "{http://www.w3.org/1999/xhtml}"


class Wanted(NamedTuple):
    """What is read of the records of an archive: the HTTP statuses, None for all; header fields for the keep policy."""

    statuses: tuple[int, ...] | None = None
    policy: tuple[str, ...] = ()


ALL = Wanted()
"""Every status, and no field."""


class BodyError(ValueError):
    """A body cannot be decoded; the message names the encoding."""


def read_warc(
    stream: Expanded, *, max_record: int, most_expanded: int | None, wanted: Wanted = ALL
) -> Iterator[Record | Reject]:
    """Yield the documents and rejects of a WARC or ARC file, as from `cut_warc` and `parse_warc`.

    The encoded bodies up to any record expand together to at most BODY_EXPANSION times the bytes of these records and
    `max_record`, and never to more than `most_expanded`; others are rejects `too large`. What a refused body expanded
    to is not known exactly, and is estimated.
    """
    left, allowed = sys.maxsize if most_expanded is None else most_expanded, max_record
    for chunk in cut_warc(stream, max_record=max_record):
        if isinstance(chunk, Reject):
            yield chunk
            continue
        size = len(chunk.value)
        allowed += BODY_EXPANSION * size
        most = min(max_record, max(min(left, allowed), size))
        record = parse_warc(chunk.value, max_record=most, wanted=wanted, offset=chunk.offset)
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
    doc_id = (first_value(warc, "warc-trec-id") or first_value(warc, "warc-record-id")).strip("<> \t")
    about, encodings, charset, status = warc, list[str](), None, None
    answer = _ANSWER.match(chunk, start) if first_value(warc, "warc-type").lower() == "response" else None
    if answer or first_value(warc, "content-type").lower().startswith("application/http"):
        start = answer.end() if answer else start
        http = _after_http(chunk, start)
        while _INTERIM.match(chunk, start) and chunk.startswith(b"HTTP/", http):
            start, http = http, _after_http(chunk, http)
        code = _CODE.match(chunk, start)
        status = int(code[1]) if code and http > start else None
        about, start = fields_of(chunk[start:http]), http
        names = [*about.get("content-encoding", ()), *about.get("transfer-encoding", ())]
        encodings = [name.strip() for several in names for name in several.split(",")]
    declared = first_value(about, "content-type")
    content_type = _type_of(declared, first_value(warc, "warc-identified-payload-type"))
    capture = _capture_of(warc, status, content_type, offset)
    policy = tuple(
        first_value(warc, name.lower()) or first_value(about, name.lower()) or None for name in wanted.policy
    )

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

    url, fields = first_value(warc, "warc-target-uri").strip("<> \t"), [text_of_payload(payload, content_type, charset)]
    begin = excerpt(chunk[:EXCERPT_BYTES])
    unread = ALL_READ
    if first_value(warc, "warc-truncated"):  # what is missing is not known, so it is like that of no other record
        unread = Unread(parts=1, digest=blake2b(f"{doc_id} {offset}".encode(), digest_size=16).digest())
    return make_record(doc_id, url, fields, charset=charset, start=begin, policy=policy, capture=capture, unread=unread)


def _fields_of_line(line: bytes) -> dict[str, list[str]]:
    address, _, date, media, _ = (field.decode("utf-8", "replace") for field in split_line(line) or [b""] * 5)
    is_http = address.lower().startswith(("http:", "https:"))
    named = {"warc-type": "response", "warc-target-uri": address, "warc-date": date, "arc-content-type": media}
    named["content-type"] = "application/http" if is_http else media
    return {name: [value] for name, value in named.items()}


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
        refers = (
            first_value(warc, "warc-refers-to-target-uri") or first_value(warc, "warc-refers-to") or "an earlier record"
        )
        return "revisit", f"a revisit of {refers}"
    if capture.status is not None and wanted.statuses is not None and capture.status not in wanted.statuses:
        return "status", f"HTTP {capture.status}, which input.statuses leaves out"
    if capture.record_type == "resource" and capture.target_uri and _OF_CRAWLER.match(capture.target_uri):
        return "not text", f"of the crawler, no page: {capture.target_uri[:EXCERPT_LENGTH]}"
    return None if _TEXTS.match(content_type) else ("not text", content_type[:EXCERPT_LENGTH])


def _split_header(chunk: bytes) -> tuple[int, dict[str, list[str]]]:
    if not chunk.startswith(START):
        end = chunk.find(b"\n") + 1
        return end, _fields_of_line(chunk[:end])
    end = after_blank_line(chunk, 0)
    return end, fields_of(chunk[:end])


def _capture_of(warc: dict[str, list[str]], status: int | None, content_type: str, offset: int | None) -> Capture:
    """Return the facts of the fetch in the header of a record."""
    kind, date = first_value(warc, "warc-type").lower(), as_date(first_value(warc, "warc-date"))
    address, digest = first_value(warc, "warc-target-uri").strip("<> \t"), first_value(warc, "warc-payload-digest")
    media = content_type.partition(";")[0].strip().lower()
    refers: tuple[str, ...] | None = None
    if kind == "revisit":
        named, uri = (first_value(warc, f"warc-refers-to{what}").strip("<> \t") for what in ("", "-target-uri"))
        then = as_date(first_value(warc, "warc-refers-to-date"))
        references = {f"id {named}": named, f"digest {digest}": digest, f"uri {uri} {then}": uri and then}
        refers = tuple(name for name, is_told in references.items() if is_told)
    return Capture(date, status, media or None, address or None, digest or None, offset, kind or None, refers)


def as_date(text: str) -> str | None:
    """Return a date of an archive in UTC, to the second; a shorter one is that of its first second. None if it is none.

    Example:
        >>> as_date("2024-05-01T12:30:00.123Z"), as_date("20240501123000"), as_date("2024-05"), as_date("yesterday")
        ('2024-05-01T12:30:00Z', '2024-05-01T12:30:00Z', '2024-05-01T00:00:00Z', None)
        >>> as_date("2024-05-01 12:30:00.123456+02:00")
        '2024-05-01T10:30:00Z'
    """
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (
        int(part or least) for part, least in zip(match.groups()[:6], _LEAST, strict=True)
    )
    offset = timedelta(hours=int(match[8] or 0), minutes=int(match[9] or 0))
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)  # a leap second has number 60
        moment += offset if match[7] == "-" else -offset
    except (ValueError, OverflowError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _after_http(chunk: bytes, start: int) -> int:
    """Return the end of the HTTP header that begins at `start`; `start` if no status line and no field begins there."""
    is_header = _STATUS.match(chunk, start) or FIELD.match(chunk, start)
    return after_blank_line(chunk, start) if is_header else start


def decode_body(body: bytes, encodings: Sequence[str], limit: int) -> bytes:
    r"""Return a body without its encodings.

    Archives hold bodies that are not encoded as their headers say: proxies remove chunks or decompress a body and leave
    the header. So each encoding is tried in its turn. A body that does not have it must look like text, or is refused:
    compressed bytes and the lengths of chunks never become text. A body that begins as gzip or zstd is that, whatever
    its header says, as is one that is chunks up to the last. A body that ends inside an encoding gives all that
    decodes, as in a browser.

    Args:
        encodings: their names in any case, in the order in which they were applied; unknown ones too.
        limit: bytes after which decoding stops; a result with more bytes is not whole.

    Raises:
        BodyError: if the body is not encoded as named, and does not look like text either; or if it is damaged.

    Cost: linear in the bytes read and made.

    Example:
        >>> decode_body(b"3\r\nabc\r\n0\r\n\r\n", ["gzip", "chunked"], 100)
        b'abc'
    """
    doubt, is_over = "", False
    for name in reversed(encodings):
        try:
            body = _DECODERS.get(name.lower().removeprefix("x-"), _refuse)(body, limit)
        except BodyError:
            raise
        except (ValueError, EOFError, OSError, zlib.error) as error:
            doubt = doubt or f"its body cannot be decoded ({name}: {error})"
        if is_over := len(body) > limit:
            break
    if not is_over and "chunked" not in map(str.lower, encodings):
        body = _unnamed_chunks(body) or body
    for _ in range(MOST_UNNAMED):
        if is_over or compression_of(body) not in _UNNAMED:
            break
        body, doubt = _expand(body, compression_of(body), limit), ""
        is_over = len(body) > limit
    if doubt and not looks_like_text(body):
        raise BodyError(doubt)
    if kind := compression_of(body):
        raise BodyError(f"its body is {kind}")
    return body


def looks_like_text(data: bytes) -> bool:
    r"""Return whether bytes may be text: no control characters that text does not have, and UTF-8 if they are few.

    Source: https://mimesniff.spec.whatwg.org/#binary-data-byte.

    Example:
        >>> looks_like_text("страница".encode("cp1251") * 40), looks_like_text(b"\x0b\x02\x80abc\x03")
        (True, False)
    """
    start = data[:TEXT_BYTES]
    if start.startswith(_MARKS):
        return True
    if _BINARY.search(start):
        return False
    if len(data) >= SHORT_BYTES or start.lstrip().startswith(b"<"):
        return True
    try:
        start.decode()
    except UnicodeDecodeError:
        return False
    return True


def _join_chunks(body: bytes, limit: int) -> bytes:
    """Join the chunks of a body; a body that does not begin with the length of a chunk is no error: it has none."""
    at, size, parts = 0, 0, list[bytes]()
    while at < len(body) and size <= limit:
        match = _CHUNK.match(body, at)
        if match is None:
            if _CUT_CHUNK.match(body, at):
                break
            if not at:
                return body
            raise BodyError(f"its body cannot be decoded (chunked: no length of a chunk at byte {at:,})")
        length = int(match[1], 16)
        if not length:
            break
        parts.append(body[match.end() : match.end() + length])
        size += len(parts[-1])
        at = match.end() + length
        if at < len(body):
            end = _CHUNK_END.match(body, at)
            if end is None:
                raise BodyError(f"its body cannot be decoded (chunked: no end of a chunk at byte {at:,})")
            at = end.end()
    return b"".join(parts)


def _unnamed_chunks(body: bytes) -> bytes | None:
    """Join the chunks of a body whose header does not name them; None unless all of it is chunks, up to the last."""
    at, parts = 0, list[bytes]()
    while match := _CHUNK.match(body, at):
        begin, length = match.end(), int(match[1], 16)
        if not length:
            return b"".join(parts) if parts and not body[begin:].strip() else None
        end = _CHUNK_END.match(body, begin + length)
        if end is None:
            return None
        parts.append(body[begin : begin + length])
        at = end.end()
    return None


def _gunzip(body: bytes, limit: int) -> bytes:
    """Decompress all members; bytes after the last one are ignored, as by browsers."""
    if _has_zlib(body):
        return _inflate(body, limit)
    if compression_of(body) != "gzip":
        raise ValueError("it does not begin as gzip")
    return _expand(body, "gzip", limit)


def _unzstd(body: bytes, limit: int) -> bytes:
    if compression_of(body) != "zstd":
        raise ValueError("it does not begin as zstd")
    return _expand(body, "zstd", limit)


def _expand(body: bytes, compression: str, limit: int) -> bytes:
    stream, pieces, size = Expanded(io.BytesIO(body), compression), list[bytes](), 0
    try:
        while size <= limit and (piece := stream.read()):
            pieces.append(piece)
            size += len(piece)
    except StoppedError as error:
        is_cut = isinstance(error.__cause__, EOFError | NoMemberError)
        if not (is_cut and pieces):
            raise BodyError(f"its body cannot be decoded ({compression}: {error})") from error
    return b"".join(pieces)


def _has_zlib(body: bytes) -> bool:
    return len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2]) % 31 == 0


def _inflate(body: bytes, limit: int) -> bytes:
    """Decompress deflate with the header of zlib, or without, as old servers send it."""
    has_header = _has_zlib(body)
    decoder = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
    inflated = decoder.decompress(body, limit + 1)
    if not decoder.eof and len(inflated) <= limit and (not inflated or (not has_header and looks_like_text(body))):
        raise EOFError("it ends early")
    return inflated


def _unbrotli(body: bytes, limit: int) -> bytes:
    """Decompress Brotli. It has no mark and no checksum: a body that ends early looks like any other."""
    return BrotliReader(io.BytesIO(body)).read(limit + 1) if body else body


def _refuse(body: bytes, limit: int) -> bytes:
    del body, limit
    raise ValueError("an encoding that is not known")


def _keep(body: bytes, limit: int) -> bytes:
    del limit
    return body


_DECODERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "chunked": _join_chunks,
    "gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
    "identity": _keep,
    "": _keep,
}
"""A decoder of each encoding. It raises BodyError if a body that has the encoding is damaged, else ValueError."""


def text_of_payload(payload: bytes, content_type: str, charset: str | None) -> tuple[Value, bool | None]:
    """Return the content of a payload, and whether it is markup, None if its text must be tested.

    Args:
        payload: without its encodings.
        content_type: empty if it is not known: the first bytes decide then.
        charset: from the HTTP header.

    Returns:
        Of XML that is no page, the text of its elements and CDATA sections, apart except at inline elements of XHTML;
        markup inside them, as in feeds, is removed. Anything else unchanged, as is XML that cannot be parsed, as
        markup; a text of another type, such as Markdown or a program, must be tested.
    """
    is_xml = _XML.match(content_type) or _XML_START.match(payload)
    if is_xml and not _PAGE.search(payload, 0, _START) and (text := _text_of_xml(payload, charset)):
        return text, False
    if not content_type.strip():
        return payload, None
    return payload, True if _MARKUP.match(content_type) else False if _PLAIN.match(content_type) else None


def _text_of_xml(payload: bytes, charset: str | None) -> str:
    """Return the text of an XML document; empty if it cannot be parsed, or has too many parts."""
    if has_too_many(payload, is_xml=True):
        return ""
    try:
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, recover=True, remove_comments=True,
            remove_pis=True, encoding=charset,
        )  # fmt: skip
        root = etree.fromstring(payload, parser)
    except (etree.XMLSyntaxError, LookupError, ValueError):
        return _text_of_xml(payload, None) if charset else ""
    if root is None:
        return ""
    parts: list[str] = []
    for event, node in etree.iterwalk(root, events=("start", "end")):
        is_inline = isinstance(node.tag, str) and node.tag.removeprefix(_XHTML) in INLINE and _XHTML in node.tag
        if not is_inline:
            parts.append("\n")
        text = node.text if event == "start" else node.tail
        if text and isinstance(node.tag, str):
            parts.append(read_unknown(text).text)
        elif event == "end" and text:
            parts.append(text)
    return "".join(parts).strip()
