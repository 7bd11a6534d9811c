"""WARC: every record that may hold a document is one record or one reject, whatever surrounds it."""

import gzip
import io
import lzma

import pytest

from nddup.reading.containers import container_head
from nddup.reading.records import Record, Reject, record_text
from nddup.reading.streams import Chunk, Expanded
from nddup.reading.warc import Wanted, as_date, parse_warc
from nddup.reading.warc_cutting import WarcPiece, cut_warc, walk_warc


def block(number: int, payload: bytes, kind: str = "response", content_type: str = "application/http") -> bytes:
    """Return one WARC record."""
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n"
        f"WARC-Target-URI: http://a.example/{number}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(payload)}\r\n\r\n"
    )
    return head.encode() + payload + b"\r\n\r\n"


def page(text: str, charset: str = "utf-8", headers: str = "") -> bytes:
    """Return an HTTP response."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset={charset}\r\n{headers}\r\n"
    return head.encode() + f"<html><body>{text}</body></html>".encode(charset)


def read(data: bytes, limit: int = 1 << 20) -> list[Record | Reject]:
    """Return the records and rejects of a file."""
    found = cut_warc(Expanded(io.BytesIO(data), ""), max_record=limit)
    return [parse_warc(item.value, max_record=limit) if isinstance(item, Chunk) else item for item in found]


def told(items: list[Record | Reject]) -> list[str]:
    """Return the text of each record and the reason of each reject."""
    return [item.reason if isinstance(item, Reject) else record_text(item) for item in items]


def test_pages_and_nothing_else() -> None:
    """Responses, resources and conversions are read; records about them are skipped; a revisit is a reject."""
    data = b"".join(
        [
            block(0, b"software: x", "warcinfo", "application/warc-fields"),
            block(1, b"GET / HTTP/1.1\r\n\r\n", "request"),
            block(1, page("Привет", "koi8-r")),
            block(2, b"plain text", "conversion", "text/plain"),
            block(3, b"<p>a page", "resource", "text/html"),
            block(4, b"HTTP/1.1 200 OK\r\n\r\n", "revisit"),
            block(5, b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n\x89PNG"),
            block(6, b"about: x", "metadata", "application/warc-fields"),
        ]
    )

    found = read(data)

    assert told(found) == ["Привет", "plain text", "a page", "revisit", "not text"]
    first = found[0]
    assert isinstance(first, Record)
    assert (first.doc_id, first.url, first.charset) == ("urn:uuid:1", "http://a.example/1", "koi8-r")


def test_encodings_of_http_are_undone_or_left() -> None:
    """Gzip and chunks are undone as the header says; a payload that is not in that encoding is taken as it is."""
    zipped = gzip.compress(b"<p>zipped")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    data = b"".join(
        [
            block(1, head + b"Content-Encoding: gzip\r\n\r\n" + zipped),
            block(2, head + b"Transfer-Encoding: chunked\r\n\r\n9\r\n<p>a page\r\n0\r\n\r\n"),
            block(3, head + b"Content-Encoding: gzip\r\n\r\n<p>not zipped"),
            block(4, head + b"Transfer-Encoding: chunked\r\n\r\n<p>not chunked"),
        ]
    )

    assert told(read(data)) == ["zipped", "a page", "not zipped", "not chunked"]


def test_bad_records_are_one_reject_each() -> None:
    """Bytes between records, a header without length and a record that is too long are one reject each."""
    good = [block(n, page(f"page {n}")) for n in range(4)]
    no_length = good[1].replace(b"Content-Length", b"Content-Lenght")
    data = good[0] + b"garbage\r\n" + good[1] + no_length + good[2] + block(9, page("x" * 5000)) + good[3]

    found = read(data, limit=2000)

    assert told(found) == ["page 0", "malformed", "page 1", "malformed", "page 2", "too large", "page 3"]


@pytest.mark.parametrize("missing", [5, 60, 300])
def test_a_cut_file_says_so(missing: int) -> None:
    """However much of the last record is missing, it is a reject, and the others are read."""
    data = b"".join(block(n, page("word " * 50)) for n in range(3))

    found = read(data[:-missing])

    assert [isinstance(item, Record) for item in found] == [True, True, False]
    assert told(found)[-1] == "truncated"


def test_a_payload_that_looks_like_a_record_does_not_cut() -> None:
    """A payload ends by its length, even if it looks like a record."""
    data = block(1, page("before\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nafter")) + block(2, page("next"))

    assert [text.split()[0] for text in told(read(data))] == ["before", "next"]


@pytest.mark.parametrize("data", [b"", b"\r\n\r\n", b"WARC/1.0", b"garbage", b"\0" * 5000])
def test_nothing_is_nothing_or_a_reject(data: bytes) -> None:
    """Blank files hold no record; other bytes are one reject."""
    assert told(read(data)) == ([] if not data.strip(b"\r\n\0") else ["malformed"])


HEADER = (
    "WARC/1.0\nwarc-type: response\nWARC-RECORD-ID: <urn:x:1>\nWARC-Target-URI:\n <http://a.example/long\n"
    "Content-Type:\tapplication/http;\n msgtype=response\ncontent-length: {}\n\n"
)


def test_headers_with_lf_folded_and_in_any_case() -> None:
    """Headers whose lines end with LF, with folded fields and names in any case, give the id, the URL and the page."""
    body = page("One", "koi8-r").replace(b"\r\n", b"\n").replace(b"text/html; ", b"text/html;\n\t")
    data = (HEADER.format(len(body)).encode() + body + b"\n\n") * 2

    found = read(data)

    assert told(found) == ["One", "One"]
    for one in found:
        assert isinstance(one, Record)
        assert (one.doc_id, one.url, one.charset) == ("urn:x:1", "http://a.example/long", "koi8-r")


def test_a_response_without_a_status_line() -> None:
    """A block of application/http that begins with a field has a header; one that begins with neither is a page."""
    data = block(1, page("One").partition(b"\r\n")[2]) + block(2, b"<html><body>Two") + block(3, b"\x89PNG\r\n\x1a\n\0")

    assert told(read(data)) == ["One", "Two", "not text"]


@pytest.mark.parametrize("named", ["Transfer-Encoding: chunked\r\n", ""])
@pytest.mark.parametrize("repeated", [True, False])
def test_encodings_that_the_body_does_not_have(named: str, repeated: bool) -> None:  # noqa: FBT001
    """A body is decompressed though its chunks were removed before, or its header is given twice."""
    headers = named + "content-encoding: X-GZIP\r\n" + "Content-Encoding: identity\r\n" * repeated
    head, _, body = page("One", headers=headers).partition(b"\r\n\r\n")

    data = block(1, head + b"\r\n\r\n" + gzip.compress(body)) + block(2, head + b"\r\n\r\n" + body)

    assert told(read(data)) == ["One", "One"]


def test_a_body_that_cannot_be_decoded_is_a_reject() -> None:
    """Bytes in an unknown encoding, or still compressed, are rejects, and name what was expected."""
    unknown = page("One", headers="Content-Encoding: dcb\r\n") + b"\0\1\2"
    twice = page("", headers="").partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + lzma.compress(b"One")

    found = read(block(1, unknown) + block(2, twice))

    assert told(found) == ["malformed", "malformed"]
    assert isinstance(found[0], Reject)
    assert "dcb" in found[0].detail


def segment(number: int, payload: bytes, *, total: int | None = None, origin: int = 1) -> bytes:
    """Return a segment of record 1."""
    kind = "response" if number == 1 else "continuation"
    fields = f"WARC-Segment-Number: {number}\r\n"
    if number > 1:
        fields += f"WARC-Segment-Origin-ID: <urn:uuid:{origin}>\r\n"
    if total is not None:
        fields += f"WARC-Segment-Total-Length: {total}\r\n"
    return block(number, payload, kind).replace(b"Content-Type", fields.encode() + b"Content-Type", 1)


def test_segments_are_joined_or_said_to_be_missing() -> None:
    """Segments in order are one record; one whose other segments are elsewhere, or that has no start, is a reject."""
    whole = page("one two three four")
    parts, size = (whole[:70], whole[70:80], whole[80:]), len(whole)
    first, second = segment(1, parts[0]), segment(2, parts[1])
    third = segment(3, parts[2], total=size)
    other, request = block(9, page("other")), block(8, b"GET / HTTP/1.1\r\n\r\n", "request")

    assert told(read(first + second + request + third + other)) == ["one two three four", "other"]
    assert told(read(first + second)) == ["truncated"]
    assert told(read(first + other)) == ["truncated", "other"]
    assert told(read(first + third + other)) == ["truncated", "truncated", "other"]
    assert told(read(third + other)) == ["truncated", "other"]
    assert told(read(first + segment(2, parts[1], origin=5))) == ["truncated", "truncated"]
    assert told(read(first + second + third + other, limit=len(first))) == ["too large", "other"]


@pytest.mark.parametrize(
    ("declared", "identified", "payload", "text"),
    [
        ("application/atom+xml", "", b"<?xml version='1.0'?><feed><title>a</title><p>b</p></feed>", "a b"),
        ("application/rss+xml", "", b"<rss><a>x &amp; y</a><a><![CDATA[<p>q<b>r</b>]]></a></rss>", "x & y qr"),
        ("application/xhtml+xml", "", b"<x xmlns='http://www.w3.org/1999/xhtml'><i>a</i>b<p>c</p></x>", "ab c"),
        ("text/xml; charset=koi8-r", "", "<a><b>да</b><b>нет</b></a>".encode("koi8-r"), "да нет"),
        ("application/ld+json", "", b'{"a": "<p>b"}', '{"a": "<p>b"}'),
        ("application/octet-stream", "text/html", b"<html><p>a<p>b", "a b"),
        ("", "", b"<?xml version='1.0'?><feed><p>a</p><p>b</p></feed>", "a b"),
        ("application/xml", "", b"<a><b>not well formed", "not well formed"),
        ("image/svg+xml", "", b"<svg/>", "not text"),
        ("html", "", b"<html><p>a<p>b", "a b"),
        ("text/x-c", "", b"#include <stdio.h>\nif (a<b && c) d;", "#include <stdio.h> if (a<b && c) d;"),
        ("text/markdown", "", b"# `Vec<T>` and <https://a.example>", "# `Vec<T>` and <https://a.example>"),
        ("text/csv", "", b"<!doctype html><p>a<p>b", "a b"),
        ("application/vnd.wap.xhtml+xml", "", b"<html><p>a<p>b", "a b"),
        ("unknown/unknown; charset=koi8-r", "", "<html><p>да<p>нет".encode("koi8-r"), "да нет"),
        ("*/*", "text/html", b"<p>a<p>b", "a b"),
        ('"text/html; charset=koi8-r"', "", "<p>да<p>нет".encode("koi8-r"), "да нет"),
        ("image", "", b"\x89PNG\r\n\x1a\n\0", "not text"),
    ],
)
def test_media_types(declared: str, identified: str, payload: bytes, text: str) -> None:
    """Feeds and XML are one document of their text, JSON is text; the identified type counts where none fits."""
    http = f"HTTP/1.1 200 OK\r\nContent-Type: {declared}\r\n\r\n".encode() + payload
    record = block(1, http).replace(
        b"WARC-Target", f"WARC-Identified-Payload-Type: {identified}\r\nWARC-Target".encode()
    )

    assert [" ".join(one.split()) for one in told(read(record))] == [text]


def test_headers_before_that_of_the_answer() -> None:
    """A server's 100 and 103, and a proxy's 200, are no answer: the status and the page are those that follow."""
    first = ["HTTP/1.1 100 Continue", "HTTP/1.1 103 Early Hints\r\nLink: </a>", "HTTP/1.0 200 Connection established"]
    data = b"".join(block(n, f"{head}\r\n\r\n".encode() + page("да", "koi8-r")) for n, head in enumerate(first))
    data += block(3, b"HTTP/1.1 100 Continue\r\n\r\n" + page("one").replace(b"200 OK", b"404 No"))
    data += block(4, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nHTTP/1.1 200 is the status of success")

    found = read(data)

    assert told(found) == ["да", "да", "да", "one", "HTTP/1.1 200 is the status of success"]
    assert [one.capture and one.capture.status for one in found] == [200, 200, 200, 404, 200]


@pytest.mark.parametrize("kind", ["resource", "conversion"])
def test_the_charset_of_a_record_without_http(kind: str) -> None:
    """It is in the content type of the record: a short text would not show it."""
    found = read(block(1, "на".encode("koi8-r"), kind, "text/plain; charset=koi8-r"))

    assert told(found) == ["на"]


def test_what_an_archive_cut_is_counted_as_unread() -> None:
    """A record with WARC-Truncated is read, and has one part that was not."""
    found = read(block(1, page("one")).replace(b"WARC-Target", b"WARC-Truncated: length\r\nWARC-Target"))

    assert told(found) == ["one"]
    assert isinstance(found[0], Record)
    assert found[0].unread.parts == 1


@pytest.mark.parametrize("lead", [b"\r\n\r\n", b"\xef\xbb\xbf", b"\n", b" \r\n" * 50_000])
def test_archive_after_blanks_or_a_mark(lead: bytes) -> None:
    """Blank lines or a byte order mark before the first record, as editors and programs that join files leave them."""
    data = lead + block(1, page("one")) + block(2, page("two"))

    found = container_head(data, "a.warc", None, {})

    assert found is not None
    assert found.format.kind == "warc"
    assert told(read(data)) == ["one", "two"]
    pieces = list(walk_warc(Expanded(io.BytesIO(data), ""), max_record=1 << 20))
    assert b"".join(one.header + one.data for one in pieces if isinstance(one, WarcPiece)) == data[len(lead) :]


@pytest.mark.parametrize(
    "content_type", ["application/http; msgtype=response", "text/html", "application/octet-stream", ""]
)
@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK", b"\r\nHTTP/1.1 200 OK", b"http/1.1 200 ok", b"HTTP/1.0 200OK"])
def test_answers_by_their_first_line(content_type: str, start: bytes) -> None:
    """A response with a header of HTTP is one, whatever its content type says; an answer 404 is none of those read."""
    answer = page("Привет", "koi8-r").replace(b"HTTP/1.1 200 OK", start)
    data = block(1, answer, "response", content_type).replace(b"Content-Type: \r\n", b"")

    (record,) = read(data)
    missing = parse_warc(data.replace(b"200", b"404"), max_record=1 << 20, wanted=Wanted((200,)))

    assert isinstance(record, Record)
    assert (record_text(record), record.charset) == ("Привет", "koi8-r")
    assert record.capture is not None
    assert record.capture.status == 200
    assert isinstance(missing, Reject)
    assert missing.reason == "status"


def test_a_page_that_shows_a_header_of_http_is_whole() -> None:
    """A resource, or a page in which such a header stands."""
    text = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nwords"
    data = block(1, text.encode(), "resource", "text/plain") + block(2, page(f"see {text}"))

    assert told(read(data)) == [text, f"see {text}".replace("\r", "")]


@pytest.mark.parametrize("more", range(1, 60))
def test_length_that_leads_into_the_next_record(more: int) -> None:
    """A record whose length is too long, as of characters or of other line ends, ends before the next one."""
    records = [block(number, page(f"page {number}")) for number in range(4)]
    size = len(page("page 1"))
    records[1] = records[1].replace(b"Content-Length: %d" % size, b"Content-Length: %d" % (size + more))
    data = b"".join(records)

    assert [text.strip() for text in told(read(data))] == [f"page {number}" for number in range(4)]
    pieces = list(walk_warc(Expanded(io.BytesIO(data), ""), max_record=1 << 20))
    assert sum(one.begins and one.is_record for one in pieces if isinstance(one, WarcPiece)) == 4
    assert b"".join(one.header + one.data for one in pieces if isinstance(one, WarcPiece)) == data


def test_a_record_that_holds_records_is_whole() -> None:
    """An archive inside an archive, which the next record follows."""
    inner = block(7, page("inner"))
    data = block(1, inner * 2, "resource", "text/plain") + block(2, page("two"))

    assert told(read(data)) == [(inner * 2).decode(), "two"]


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2024-05-01T12:30:00.123456+00:00", "2024-05-01T12:30:00Z"),
        ("2024-05-01T12:30:00+0200", "2024-05-01T10:30:00Z"),
        ("2024-05-01 12:30:00-00:30", "2024-05-01T13:00:00Z"),
        ("2024-05-01 23:30:00 -05", "2024-05-02T04:30:00Z"),
        ("0001-01-01T00:00:00+05:00", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("2024-05", "2024-05-01T00:00:00Z"),
        ("20240501123000", "2024-05-01T12:30:00Z"),
    ],
)
def test_dates_with_an_offset(date: str, expected: str | None) -> None:
    """As Python's `isoformat` writes them; the answer is in UTC."""
    assert as_date(date) == expected


def test_record_before_damage_is_read() -> None:
    """A gzip member that cannot be decompressed costs nothing of the whole record before it."""
    first = gzip.compress(block(1, page("one")))
    data = first + gzip.compress(block(2, page("two" * 5_000)))[:-200] + b"\xff" * 200

    found = list(cut_warc(Expanded(io.BytesIO(data), "gzip"), max_record=1 << 20))

    assert [type(item) for item in found] == [Chunk, Reject]


@pytest.mark.parametrize(
    "address",
    [
        "<metadata://gnu.org/software/wget/warc/wget.log>",
        "metadata://gnu.org/software/wget/warc/wget_arguments.txt",
        "urn:X-wpull:log",
        "urn:pageinfo:http://a.example/",
    ],
)
def test_what_a_crawler_writes_of_itself_is_no_page(address: str) -> None:
    """Logs, arguments and lists beside the pages are rejects; texts of pages are read, as are other records."""
    own = block(1, b"words of a log", "resource", "text/plain").replace(b"http://a.example/1", address.encode())
    text = block(2, b"a text", "resource", "text/plain").replace(b"http://a.example/2", b"urn:text:http://a.example/")

    (record,) = read(own)
    assert isinstance(record, Reject)
    assert (record.reason, record.detail.startswith("of the crawler")) == ("not text", True)
    assert told(read(text + own.replace(b"resource", b"conversion"))) == ["a text", "words of a log"]


@pytest.mark.parametrize("text", ["Привет, мир", "日本語の文書", "naïve 😀 café", "plain"])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-32-le"])
def test_length_in_characters(text: str, codec: str) -> None:
    """A length that counts characters, or units of UTF-16 as of JavaScript, ends the record where the page ends."""
    records = [block(number, page(f"{text} {number}")) for number in range(4)]
    unit = {"utf-16-le": 2, "utf-32-le": 4}[codec]
    for number in (1, 3):
        answer = page(f"{text} {number}")
        length = len(answer.decode().encode(codec)) // unit
        records[number] = records[number].replace(b"Length: %d" % len(answer), b"Length: %d" % length)

    for data in (b"".join(records), b"".join(records[1:])):
        expected = [f"{text} {number}" for number in range(4 - data.count(b"WARC/1.1"), 4)]
        assert [one.strip() for one in told(read(data))] == expected
        pieces = list(walk_warc(Expanded(io.BytesIO(data), ""), max_record=1 << 20))
        assert b"".join(one.header + one.data for one in pieces if isinstance(one, WarcPiece)) == data
    junk = records[0] + b"bytes between records\r\n\r\n" + records[2]
    assert told(read(junk)) == [f"{text} 0", "malformed", f"{text} 2"]


@pytest.mark.parametrize("more", [-5, -1, 0, 1, 2, 4, 9])
@pytest.mark.parametrize("between", [b"\n", b""])
def test_lengths_of_arc(more: int, between: bytes) -> None:
    """A length that leads into the line of the next record does not change its address."""
    text = b"<html>\n<p>words %d\n</html>"

    def record(number: int, more: int = 0) -> bytes:
        line = b"http://a.example/%d 1.2.3.4 20010926085547 text/html %d\n"
        return line % (number, len(text % number) + more) + text % number + between

    head = b"filedesc://a.arc 0.0.0.0 20010101000000 text/plain 3\nabc\n"
    if between or not more:
        records = [one for one in read(head + record(1, more) + record(2) + record(3)) if isinstance(one, Record)]

        assert [one.url for one in records] == [f"http://a.example/{number}" for number in (1, 2, 3)]
        assert [record_text(one).split()[:2] for one in records] == [["words", str(number)] for number in (1, 2, 3)]
