"""The documents of WARC and ARC files. Each record is parsed separately: a bad one is one reject.

    read_warc    stream               -> Record | Reject: `cut_warc` and the next
    parse_warc   bytes of one record  -> Record | Reject
    as_date      text                 -> a date of an archive, to the second

Files are cut into records in `warc_cutting`.
"""

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
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
from nddup.reading.streams import Expanded
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
        told = {f"id {named}": named, f"digest {digest}": digest, f"uri {uri} {then}": uri and then}
        refers = tuple(name for name, is_told in told.items() if is_told)
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
