"""Hostile files: whatever a record holds, it is read or rejected in bounded time and memory, and never crashes."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nddup.reading.charsets import decode_content
from nddup.reading.detect import read_head
from nddup.reading.formats import FormatError
from nddup.reading.markup import strip_markup
from nddup.reading.records import Record, Reject, content_fingerprint, parse_record, read_text, record_text
from nddup.reading.warc import text_of_payload
from tests.places import ROOT
from tests.samples_by_night import every

MEGABYTE = 1_000_000
SECONDS = 10.0
"""Limit for any of these on a busy core: a quiet one takes a tenth of it, and quadratic work takes minutes."""

XML = read_head(b"<r><doc><id>1</id><text>a</text></doc></r>")
TREC = read_head(b"<DOC><DOCNO>1</DOCNO><TEXT>a</TEXT></DOC>")
BY_LINE = read_head(b"<r>\n<row Id='1' Body='a'/>\n</r>")

STARTS = (b"", b"<", b"&", b"&#", b"<!--", b"<![CDATA[", b"<!DOCTYPE r [", b"\xe9 ")
REPEATED = (
    *(b"<!--", b"<![CDATA[", b"<?", b"<!DOCTYPE ", b'<!DOCTYPE "', b"<!DOCTYPE [", b"]]>", b"-->", b"a", b"\xe9", b" "),
    *(b"&", b"&a", b"&#1", b"&#1;", b"<", b"<a", b"<a ", b'<a "', b"</a", b"</a ", b"<p>", b"<b>", b"<script", b'a="'),
    *(b" a=1", b"<DOC> ", b"<DOCNO> ", b"<TEXT>", b"</TEXT>", b"<text>", b"\0", b"\xed\xa0\x80", b"\"'", b"=\n"),
)


def timed(work: Callable[[bytes], object], data: bytes) -> float:
    """Return the seconds of CPU that a reader takes; a file that cannot be understood is an outcome too."""
    started = time.process_time()
    with contextlib.suppress(FormatError):
        work(data)
    return time.process_time() - started


@pytest.mark.parametrize("start", every(4, STARTS))
def test_reading_is_linear(start: bytes) -> None:
    """Each reader takes linear time for 50 KB of any one fragment repeated."""
    strip_markup("<b>" * 2000)  # compile the kernels first
    readers: dict[str, Callable[[bytes], object]] = {
        "head": read_head,
        "head of a record": lambda data: read_head(b"<r><doc><text>" + data),
        "record": lambda data: parse_record(b"<doc>" + data, XML, is_last=True),
        "before a record": lambda data: parse_record(data, XML, is_last=False),
        "row": lambda data: parse_record(b"<row " + data, BY_LINE, is_last=False),
        "trec": lambda data: parse_record(b"<DOC>" + data, TREC, is_last=False),
        "charset": decode_content,
    }
    for repeated in REPEATED:
        data = start + repeated * (MEGABYTE // 20 // len(repeated))
        for name, reader in readers.items():
            assert timed(reader, data) < SECONDS / 8, (name, repeated)


BODIES: dict[str, Callable[[], bytes]] = {
    "deep": lambda: b"<b>" * MEGABYTE,
    "deep and closed": lambda: b"<b>" * MEGABYTE + b"</b>" * MEGABYTE,
    "attributes": lambda: b"<b %s/>" % b" ".join(b'a%d="1"' % i for i in range(MEGABYTE)),
    "namespaces": lambda: b"<b %s/>" % b" ".join(b'xmlns:a%d="u%d" a%d:x="1"' % (i, i, i) for i in range(50_000)),
    "children": lambda: b"<b/>" * MEGABYTE,
    "comment": lambda: b"<!-- %s -->" % (b"- " * (5 * MEGABYTE)),
    "pis": lambda: b"<?a b?>" * MEGABYTE,
    "references": lambda: b"<c>" + b"&#1103;" * MEGABYTE + b"</c>",
    "cdata": lambda: b"<c>" + b"<![CDATA[&]]>" * (MEGABYTE // 2) + b"</c>",
}


@pytest.mark.parametrize("kind", BODIES)
def test_big_structures(kind: str) -> None:
    """Depth beyond the parser's 2,048 levels is a reject, and a million of anything else is read in seconds."""
    body = BODIES[kind]()
    chunk = b"<doc><id>1</id><text>a%s</text>" % body
    started = time.process_time()

    result = parse_record(chunk, XML, is_last=False)
    if isinstance(result, Record):
        record_text(result)

    assert getattr(result, "reason", None) == ("malformed" if kind.startswith("deep") else None)
    assert time.process_time() - started < SECONDS


def test_many_titles_and_many_texts_are_read_in_linear_time() -> None:
    """Titles inside texts are looked up, not searched for again and again: 280 KB took 14 s."""
    chunk = b"<DOC><DOCNO>1</DOCNO>" + b"<TITLE>a</TITLE><TEXT>b</TEXT>" * 20_000

    assert timed(lambda data: parse_record(data, TREC, is_last=False), chunk) < SECONDS / 2


def test_nothing_crashes_on_a_small_stack() -> None:
    """No reader recurses so deep that it ends the process, and the task with it."""
    program = """if True:
        import threading
        from pathlib import Path
        from tests.reading.test_hostile import BODIES, XML, parse_record, strip_markup, read_head
        deep = BODIES["deep"]()
        threading.stack_size(512 << 10)
        def work():
            for body in (deep, BODIES["deep and closed"](), BODIES["attributes"](), b"<b>" * 2000 + b"</b>" * 2000):
                parse_record(b"<doc><id>1</id><text>" + body + b"</text>", XML, is_last=False)
                parse_record(b"<doc>" + body, XML, is_last=True)
            strip_markup(deep)
            read_head(b"<r><doc><text>" + deep)
            parse_record(b"[" * 1_000_000, read_head(b'{"text": "a"}'), is_last=True)
            print("alive")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        lines = Path("/proc/self/status").read_text().splitlines()  # `ru_maxrss` would be at least that of this test
        print(next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM")))
    """

    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr[-2000:]
    alive, megabytes = done.stdout.split()
    assert alive == "alive"
    assert int(megabytes) < 2_000


BILLION_LAUGHS = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))


@pytest.mark.parametrize(
    ("doctype", "body"),
    [
        (f'<!DOCTYPE r [<!ENTITY l0 "lol">{BILLION_LAUGHS}]>', "&l9;"),
        ('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "&x;"),
        ('<!DOCTYPE r [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]>', "&x;"),
        ("", '<!DOCTYPE r [<!ENTITY x "boom">]>&x;'),
        ("", "<x:include xmlns:x='http://www.w3.org/2001/XInclude' href='/etc/passwd' parse='text'/>"),
    ],
)
def test_entities_and_inclusions_stay_unread(doctype: str, body: str) -> None:
    """A record that refers to anything outside, or to the DOCTYPE, is a reject or holds nothing of it."""
    plain = f"{doctype}<r><doc><id>1</id><text>a</text></doc></r>"
    data, head = plain.replace("<text>a", f"<text>{body}").encode(), read_head(plain.encode())

    result = parse_record(data.split(head.separator)[0], head, is_last=False)

    if isinstance(result, Record):
        assert result.fields == ("",)
    else:
        assert isinstance(result, Reject)
        assert result.reason == "malformed"


@pytest.mark.parametrize(
    "entity", ['SYSTEM "{file}"', '"precious"', 'PUBLIC "x" "{file}"', '"&b;"><!ENTITY b "precious"']
)
def test_a_feed_of_a_crawl_holds_nothing_of_its_entities(tmp_path: Path, entity: str) -> None:
    """A whole XML document, with its DOCTYPE, is parsed: no file is opened, and no entity is put in its place."""
    file = tmp_path / "secret"
    file.write_text("precious")
    doctype = f"<!DOCTYPE rss [<!ENTITY a {entity.format(file=file)}>]>"
    text, is_markup = text_of_payload(f"{doctype}<rss><title>news &a;</title></rss>".encode(), "application/xml", None)
    assert (text, is_markup) == ("news", False)


@pytest.mark.parametrize(("inside", "places"), [(b"a\xed\xa0\x80b", 3), (b"\xff\xfe", 2), (b"\xc0\x80", 2)])
def test_what_cannot_be_decoded_is_replaced_and_counted(inside: bytes, places: int) -> None:
    """Surrogates and bytes that are not UTF-8 are replaced and counted, in ids and texts, in XML and JSON lines."""
    lines = read_head(b'{"id": "1", "text": "a"}')
    for chunk, head in (
        (b"<doc><id>%s</id><text>a</text>" % inside, XML),
        (b"<doc><id>1</id><text>%s</text>" % inside, XML),
        (b'{"id": "1", "text": "%s"}' % inside, lines),
    ):
        result = parse_record(chunk, head, is_last=False)

        assert isinstance(result, Record)
        assert result.replaced == read_text(result).replaced == places
        assert "\ufffd" * places in f"{result.doc_id} {result.fields[0]!r}".replace("a", "").replace("b", "")
        other = parse_record(chunk.replace(inside, inside[:-1] + b"\xf8"), head, is_last=False)
        assert isinstance(other, Record)
        assert content_fingerprint(other) != content_fingerprint(result)


@pytest.mark.parametrize("inside", [b"a\0b", b"&#xD800;", b"&#0;"])
def test_what_is_no_character_is_replaced(inside: bytes) -> None:
    """NUL and references to surrogates become U+FFFD, in the id as in the text, and can be written."""
    for chunk in (b"<doc><id>%s</id><text>a</text>" % inside, b"<doc><id>1</id><text>%s</text>" % inside):
        result = parse_record(chunk, XML, is_last=False)

        assert isinstance(result, Record)
        assert "\ufffd" in f"{result.doc_id}{result.fields[0]!r}"
        assert str(result.doc_id).encode()
        assert record_text(result).encode()


def test_lone_surrogates_of_utf_16_are_replaced() -> None:
    """A lone surrogate in a UTF-16 file is two undecodable bytes of its record."""
    head = read_head("<r><doc><id>1</id><text>a</text></doc></r>".encode("utf-16"))
    chunk = "<doc><id>1</id><text>a".encode("utf-16-le") + b"\x00\xd8" + "</text>".encode("utf-16-le")

    result = parse_record(chunk, head, is_last=False)

    assert isinstance(result, Record)
    assert (result.fields, result.replaced) == (("a\ufffd\ufffd",), 2)
