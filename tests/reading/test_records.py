"""Heads and records: every defect of real files ends as a record or as a reject with its reason."""

import base64
import bz2
import gzip
import hashlib
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.ground.shown import FIRST, LAST, spell_document
from nddup.reading.detect import read_head
from nddup.reading.records import (
    Markup,
    Record,
    Reject,
    content_fingerprint,
    decode_base64,
    parse_record,
    record_text,
    spell_page,
)
from nddup.sketching.tokens import tokenise
from tests.places import SHARED
from tests.reading.record_files import FIXTURES, HEAD, needs_shared, read_all, records_of


def sha1(data: bytes | str) -> str:
    raw = data if isinstance(data, bytes) else data.encode()
    return hashlib.sha1(raw, usedforsecurity=False).hexdigest()


def b64(text: str, codec: str = "cp1251") -> str:
    return base64.b64encode(text.encode(codec)).decode()


@needs_shared
@pytest.mark.parametrize(
    ("name", "encoding", "first_id", "query"),
    [
        ("romip_prefixed_root.xml", "utf-8", "182", ""),
        ("romip_default_ns_cp1251.xml", "cp1251", "182", ""),
        ("romip_news.xml", "utf-8", "040404-182", ""),
        ("romip_xml11.xml", "utf-8", "182", ""),
        ("romip_broken_raw_ampersand.xml", "utf-8", "182", "?x=1&y=2"),
        ("romip_broken_truncated.xml", "utf-8", "182", ""),
    ],
)
def test_romip_fixtures(name: str, encoding: str, first_id: str, query: str) -> None:
    """Each form and each defect gives the documents of `expected.json`; the last one of the cut file is a reject."""
    expected = json.loads((FIXTURES / "expected.json").read_text())
    data = (FIXTURES / name).read_bytes()
    count = 29 if "truncated" in name else 30

    head = read_head(data[:4096])
    results = read_all(data, head)
    records = [result for result in results if isinstance(result, Record)]

    assert (head.format.name, head.encoding, head.separator) == ("romip", encoding, b"</document>")
    assert len(records) == count
    assert [r.reason for r in results if isinstance(r, Reject)] == ["truncated"] * (30 - count)
    assert records[0].doc_id == first_id
    for position in (0, count // 2, count - 1):
        record, wanted = records[position], expected[position]
        assert record.doc_id == str(wanted["doc_id"]) or name == "romip_news.xml"
        assert record.url is not None
        assert record.url.split("?")[0] == wanted["url"].split("?")[0]
        assert record.url.endswith(query)
        assert sha1(record.fields[-1]) == wanted["sha1"]
        assert len(record.fields[-1]) == wanted["n_bytes"]
    digests = [sha1(record.fields[-1]) for record in records]
    assert digests == [wanted["sha1"] for wanted in expected[:count]]


@needs_shared
def test_news_has_its_subject() -> None:
    """The subject, also in base64, comes before the content."""
    records = records_of((FIXTURES / "romip_news.xml").read_bytes())

    assert records[0].fields[0] == "Тема 182".encode("cp1251")
    assert record_text(records[0]).startswith("Тема 182\n")


@needs_shared
@pytest.mark.parametrize("part", [0, 1])
def test_token_counts_of_real_pages(part: int) -> None:
    """Record, charset and markup together give the token counts of `meta.jsonl.gz`."""
    with gzip.open(SHARED / "ruweb" / "meta.jsonl.gz") as lines:
        meta = {str(row["doc_id"]): row for row in map(json.loads, lines)}

    records = records_of(bz2.decompress((SHARED / "ruweb" / f"ruweb.xml.{part}.bz2").read_bytes()))

    assert len(records) == 500
    for record in records[::7]:
        wanted = meta[record.doc_id or ""]
        n_tokens = len(re.findall(r"\w+", record_text(record).lower()))
        assert n_tokens == pytest.approx(wanted["n_tokens"], rel=0.02, abs=5)  # inline markup divides no word
        assert record.url == wanted["url"]


@needs_shared
def test_utf_16_export() -> None:
    """A real MediaWiki export in UTF-16LE is cut and parsed in its own encoding."""
    name = "bgwiki-latest-pages-articles-shortened.xml.bz2"
    data = bz2.decompress((SHARED / "xml-samples" / name).read_bytes())

    head = read_head(data[:65_536], record="page", id="id", url="title", content="revision/text")
    records = [r for r in read_all(data, head) if isinstance(r, Record)]

    assert head.encoding == "utf-16-le"
    assert head.separator == "</page>".encode("utf-16-le")
    assert len(records) == 3
    assert all(re.search("[а-я]", record_text(record)) for record in records)


def test_romip_by_hand() -> None:
    """Wrapped and indented base64, an id with zeros, and an entity in a URL are read."""
    body = b64("<p>Привет, мир</p>")
    data = f"""<?xml version="1.0"?><romip:dataset xmlns:romip="http://www.romip.ru/data/common">
    <document><docID> 007 </docID><docURL>http://x/?a=1&amp;b=2</docURL>
    <content encoding="base64"> {body[:7]}
      {body[7:]}
    </content></document></romip:dataset>"""

    [record] = records_of(data.encode())

    assert (record.doc_id, record.url) == ("007", "http://x/?a=1&b=2")
    assert record.fields == ("<p>Привет, мир</p>".encode("cp1251"),)
    assert record_text(record).split() == ["Привет,", "мир"]


def test_empty_id_is_none_and_empty_content_is_content() -> None:
    """An empty id is no id; an empty content element is an empty document."""
    assert parse_record(b"<doc><id> </id><text/>", HEAD, is_last=False) == Record(None, None, ("",), None)


def test_subject_alone_is_no_document() -> None:
    """In ROMIP a record without content is rejected although it has a subject."""
    data = f"<dataset><document><docID>1</docID><subject>{b64('x')}</subject></document></dataset>"

    [result] = read_all(data.encode())

    assert isinstance(result, Reject)
    assert result.reason == "no content"


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://a.example/", "http://a.example/"),
        (b64("http://a.example/?x=1"), "http://a.example/?x=1"),
        (" " + b64("http://a.example/") + "\n", "http://a.example/"),
        ("abcdefgh", "abcdefgh"),
        ("", None),
    ],
)
def test_romip_url(written: str, url: str | None) -> None:
    """A URL is decoded only if that gives something printable."""
    fields = f"<docID>1</docID><docURL>{written}</docURL><content>a</content>"
    data = f"<dataset><document>{fields}</document></dataset>"

    assert records_of(data.encode())[0].url == url


@pytest.mark.parametrize(
    ("text", "raw"),
    [("", b""), (" \n", b""), ("YWJj", b"abc"), ("YW\nJj ", b"abc"), ("YWI=", b"ab"), ("YWI", b"ab"),
     ("YWJjZ", None), ("YW==YWJj", None), ("=YWJ", None), ("YW-_", None), ("Привет", None)],
)  # fmt: skip
def test_base64(text: str, raw: bytes | None) -> None:
    """Wrapped and unpadded base64 is read; anything else is not."""
    assert decode_base64(text) == raw


def test_text_by_markup_mode() -> None:
    """The mode is the user's, else the format's, else detected for each field."""
    record = Record("1", None, ("a & b < c", "<p>x<br>y"), None)

    assert record_text(record) == "a & b < c\n\nx\ny"
    assert record_text(record, markup="text") == "a & b < c\n<p>x<br>y"
    assert record_text(Record("1", None, ("<p>x",), is_markup=False)) == "<p>x"
    assert record_text(Record("1", None, ("Привет".encode("koi8-r"),), is_markup=True), "koi8-r") == "Привет"
    with pytest.raises(ValueError, match="markup"):
        record_text(record, markup="xml")  # type: ignore[arg-type]


def test_fingerprint_is_of_the_content_only() -> None:
    """Equal content has equal fingerprints; where fields are divided matters."""
    one, two = Record("1", "u", (b"ab",), None), Record("2", None, ("ab",), is_markup=True)

    assert content_fingerprint(one) == content_fingerprint(two)
    assert len(content_fingerprint(one)) == 16
    assert content_fingerprint(Record(None, None, ("a", "b"), None)) != content_fingerprint(
        Record(None, None, ("ab", ""), None)
    )


def test_json_lines() -> None:
    """Ids stay as written, dotted paths reach into objects, and blank lines are skipped."""
    data = b"""{"id": "007", "url": "u", "text": "a"}
{"id": 12345678901234567890, "text": "b\\ud800"}

{"id": 1.50, "text": "c", "nested": {"x": [1]}}
"""

    records = records_of(data)

    assert [r.doc_id for r in records] == ["007", "12345678901234567890", "1.50"]
    assert [r.fields for r in records] == [("a",), ("b\ufffd",), ("c",)]
    written = records_of(b'{"id": 1, "text": "a\tb\x01"}\n')  # as by programs that escape quotes alone
    assert [r.fields for r in written] == [("a\tb\x01",)]
    nested = records_of(b'{"meta": {"id": 5}, "body": {"text": "a"}}', id="meta.id", content="body.text")
    assert nested == [Record("5", None, ("a",), None)]


@given(texts=st.lists(st.binary(max_size=40), min_size=1, max_size=8))
@settings(deadline=None)
def test_what_is_written_is_read(texts: list[bytes]) -> None:
    """Base64 records come back byte for byte, in order."""

    def encode(raw: bytes) -> str:
        return base64.encodebytes(raw).decode()

    body = "".join(
        f"<document><docID>{n}</docID><content encoding='base64'>{encode(t)}</content></document>\n"
        for n, t in enumerate(texts)
    )

    records = records_of(f"<dataset>{body}</dataset>".encode())

    assert [(r.doc_id, r.fields) for r in records] == [(str(n), (t,)) for n, t in enumerate(texts)]


def test_halves_of_surrogate_pairs_are_not_one_content() -> None:
    """Texts in which other lone surrogates became U+FFFD are equal, and their contents are not."""
    escapes = ("\\ud800", "\\udfff", "\\ud800", "\\ufffd")
    found = records_of("".join(f'{{"id": "a", "text": "b{escape}"}}\n' for escape in escapes).encode())

    assert [(one.fields, one.replaced) for one in found] == [(("b\ufffd",), 1)] * 3 + [(("b\ufffd",), 0)]
    first, second, third, plain = map(content_fingerprint, found)
    assert first == third
    assert len({first, second, plain}) == 3


PIECES = [
    *"ab \n<>&;\0\r\f\ufeff", "word", "<script>", "</script>", "<p>", "</p>", "<b>", "</b>", "<!--", "-->", "A<T>",
    "&lt;", "&amp;", "&#0;", "<html>", "<template>", "<textarea>", "<title>", "<plaintext>", "<!doctype html>",
    "<head>", "<br/>", "</body>", "<?xml ?>", "<![CDATA[", "]]>",
]  # fmt: skip


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), min_size=1, max_size=2),
    st.sampled_from([None, False, True]),
    st.sampled_from(["auto", "text", "html"]),
)
def test_words_of_any_record_are_those_of_its_page(fields: list[str], is_markup: bool | None, markup: Markup) -> None:  # noqa: FBT001
    """What is written as ROMIP XML, whose readers take each content for a page, has the words that it was read with."""
    record = Record("1", None, tuple(fields), is_markup)

    document = spell_document("1", None, spell_page(record, markup=markup))
    [again] = records_of(f"{FIRST}\n{document}\n{LAST}\n".encode())

    assert tokenise(record_text(again)) == tokenise(record_text(record, markup=markup))
