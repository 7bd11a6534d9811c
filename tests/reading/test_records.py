"""Heads and records: every defect of real files ends as a record or as a reject with its reason."""

import base64
import bz2
import gzip
import hashlib
import json
import pickle
import re
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead, FormatError, NoRecordsError
from nddup.reading.records import Record, Reject, content_fingerprint, decode_base64, parse_record, record_text
from tests.places import SHARED

FIXTURES = SHARED / "ruweb" / "fixtures"
needs_shared = pytest.mark.shared


def read_all(data: bytes, head: FileHead | None = None, **settings_: Any) -> list[Record | Reject]:  # noqa: ANN401
    """Cut a file as Spark does, and read every chunk: an empty piece after the last separator is no chunk."""
    head = head or read_head(data[:65_536], **settings_)
    chunks = data.split(head.separator)
    if chunks[-1] == b"":
        chunks.pop()
    results = [parse_record(chunk, head, is_last=n == len(chunks)) for n, chunk in enumerate(chunks, start=1)]
    return [result for result in results if result is not None]


def sha1(data: bytes | str) -> str:
    raw = data if isinstance(data, bytes) else data.encode()
    return hashlib.sha1(raw, usedforsecurity=False).hexdigest()


def records_of(data: bytes, **settings_: Any) -> list[Record]:  # noqa: ANN401
    results = read_all(data, **settings_)
    assert all(isinstance(result, Record) for result in results), results
    return [result for result in results if isinstance(result, Record)]


def b64(text: str, codec: str = "cp1251") -> str:
    return base64.b64encode(text.encode(codec)).decode()


# --- the collection's own files ---


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
    """Each shape and each defect gives the documents of `expected.json`; the cut file one reject more."""
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
    """The subject, base64 too, comes before the content."""
    records = records_of((FIXTURES / "romip_news.xml").read_bytes())

    assert records[0].fields[0] == "Тема 182".encode("cp1251")
    assert record_text(records[0]).startswith("Тема 182\n")


@needs_shared
def test_files_of_one_shape_have_one_head() -> None:
    """Nothing of a file's own (collection, date) is in its head."""
    data = (FIXTURES / "romip_prefixed_root.xml").read_bytes()
    other = data.replace(b"2023-06-10", b"2024-01-01").replace(b">ruweb<", b">other<")

    assert read_head(data[:4096]) == read_head(other[:65_536])
    assert hash(read_head(data)) == hash(pickle.loads(pickle.dumps(read_head(other))))  # noqa: S301


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
        assert n_tokens == pytest.approx(wanted["n_tokens"], rel=0.02, abs=2)
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


# --- heads ---


def test_romip_by_hand() -> None:
    """Wrapped and indented base64, an id with zeros, an entity in a URL."""
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


@pytest.mark.parametrize(
    ("data", "separator", "found"),
    [
        (b"<s:r xmlns:s='u'><s:doc id='1'><content>a</content></s:doc></s:r>", b"</s:doc>", "@id"),
        (b"<r><document><id>1</id><text>a</text></document ></r>", b"</document >", "id"),
        (b"<posts>\n<row Id='1' Body='a'/>\n<row Id='2' Body='b' />\n</posts>\n", b"\n", "@Id"),
        (b"<rss><channel><item><guid>1</guid><description>a</description></item></channel></rss>",
         b"</item>", "guid|@about|link"),
        (b"<newsitem itemid='1'><title>t</title><text>a</text></newsitem>", b"</newsitem>", "@itemid"),
    ],
)  # fmt: skip
def test_detects_plain_xml(data: bytes, separator: bytes, found: str) -> None:
    """Record, id and content of common shapes are found; the end tag is taken as spelled."""
    head = read_head(data)
    records = records_of(data)

    assert (head.separator, head.format.id) == (separator, found)
    assert records[0].doc_id == "1"
    assert records[0].fields[-1] == "a"


def test_several_shapes_by_paths() -> None:
    """Children, attributes, predicates, several content paths; prefixes do not matter."""
    data = b"""<add xmlns:x="u"><doc><field name="id">d1</field><x:meta href="http://a/1"/>
    <field name="title">T</field><field name="text">one <b>two</b></field></doc></add>"""

    head = read_head(
        data,
        record="doc",
        id="field[@name=id]",
        url="meta/@href",
        content=("field[@name='title']", "field[@name=text]"),
    )
    [record] = read_all(data, head)

    assert isinstance(record, Record)
    assert (record.doc_id, record.url, record.fields) == ("d1", "http://a/1", ("T", "one  two"))


def test_namespaces_of_all_ancestors() -> None:
    """A prefix declared between the root and the record is in force inside the record."""
    data = b'<o xmlns="d"><list xmlns:p="u"><record><id>1</id><p:text>a</p:text></record></list></o>'

    assert read_head(data).namespaces == (("", "d"), ("p", "u"))
    assert records_of(data)[0].fields == ("a",)


def test_prolog_does_not_fool() -> None:
    """Record tags in comments, CDATA, instructions and the DOCTYPE before the first record are no records."""
    data = b"""<?xml version="1.0"?><?pi <document>?><!-- <document> --><!DOCTYPE r [<!ENTITY a "<document>">
    <!-- it's ] > -->]><r><head><![CDATA[<document>]]></head><document><id>1</id><text>a</text></document>
    <!-- <document> --> <document><id>2</id><text>b</text></document></r>"""

    assert [record.doc_id for record in records_of(data)] == ["1", "2"]


@pytest.mark.parametrize("codec", ["cp1251", "koi8-r", "utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_of_the_file(codec: str) -> None:
    """Declared, marked or recognised by its zero bytes: the text is right."""
    text = f'<?xml version="1.0" encoding="{codec}"?><r><doc><id>ё</id><text>Привет</text></doc></r>'

    assert records_of(text.encode(codec)) == [Record("ё", None, ("Привет",), None)]


def test_wrong_declaration_of_the_file() -> None:
    """UTF-16 declared in ASCII bytes is UTF-8; the user's charset overrules a declaration."""
    text = '<?xml version="1.0" encoding="{}"?><r><doc><id>1</id><text>Привет</text></doc></r>'

    assert records_of(text.format("utf-16").encode())[0].fields == ("Привет",)
    assert records_of(text.format("koi8-r").encode("cp1251"), charset="win-1251")[0].fields == ("Привет",)


@pytest.mark.parametrize(
    ("data", "settings_", "error", "words"),
    [
        (b"", {}, NoRecordsError, "empty"),
        (b"just text", {}, FormatError, "input.format"),
        (b"<a><b/><c/></a>", {}, FormatError, "input.record, input.id and input.content"),
        (b"<a><doc><x>1</x></doc></a>", {"record": "doc"}, FormatError, "input.content"),
        (b"<a><b/></a>", {"record": "doc"}, NoRecordsError, "input.record"),
        (b"<a/>", {"format": "nope"}, FormatError, "input.format"),
        (b'<?xml version="1.0" encoding="nope"?><a/>', {}, FormatError, "input.charset"),
        (b'{"a": 1}', {}, FormatError, "input.content"),
        (b"<r><doc><id>1</id></doc></r>", {"content": "a[b"}, FormatError, "path"),
    ],
)
def test_says_what_to_set(data: bytes, settings_: dict[str, str], error: type[Exception], words: str) -> None:
    """What cannot be told is an error with the settings that would tell it."""
    with pytest.raises(error, match=words):
        read_head(data, **settings_)


@pytest.mark.parametrize(
    "path", ["", "a//b", "@a/b", "a[2]", "a b", "a|", "html(a", "xml(a)", "html(text(a))", "a/text()"]
)
def test_refuses_bad_paths(path: str) -> None:
    """A path that cannot be read is refused by name."""
    with pytest.raises(FormatError, match="path"):
        read_head(b"<r><doc><id>1</id></doc></r>", record="doc", content=(path or " ",))


# --- records ---

HEAD = read_head(b"<r><doc><id>1</id><url>u</url><text>a</text></doc></r>")


def test_chunks_without_record() -> None:
    """The tail, blanks, a prolog cut by an end tag inside a comment: no record, and no reject."""
    for chunk in (
        b"",
        b" \n",
        b"\n</r>\n",
        b"<?xml version='1.0'?><r>",
        b"<!-- <doc>",
        b"<document>",
        b"</r><!-- x -->",
    ):
        assert parse_record(chunk, HEAD, is_last=True) is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<id>1</id><text>a</text>", None),
        ("<id>1</id><text>a</text><url>u</url>\n", None),
        ("<id>1</id><text>a</text><url>u", "truncated"),
        ("<id>1</id><text>a</tex", "truncated"),
        ("<id>1</id><text>a &", "truncated"),
        ("<id>1</id>", "truncated"),
        ("", "truncated"),
    ],
)
def test_the_end_of_the_file_is_the_end_tag_or_a_cut(body: str, reason: str | None) -> None:
    """What lacks only its end tag, which may be where the file ends, is a record; what lacks more is truncated."""
    chunk = f"<doc>{body}".encode()

    result = parse_record(chunk, HEAD, is_last=True)

    assert getattr(result, "reason", None) == reason
    if isinstance(result, Reject):
        assert "ends inside this record" in result.detail
        assert result.excerpt == chunk.decode()
    else:
        assert result == parse_record(chunk, HEAD, is_last=False)


def test_a_title_alone_is_not_the_content_of_a_cut_record() -> None:
    """Of the fields that were chosen as the text, each must be there before the cut."""
    head = read_head(b"<r><doc><id>1</id><title>t</title><text>a</text></doc></r>")

    cut = parse_record(b"<doc><id>1</id><title>t</title>", head, is_last=True)

    assert head.format.content == ("title", "text")
    assert isinstance(cut, Reject)
    assert cut.reason == "truncated"


def test_cut_row_is_truncated() -> None:
    """A self-closing row must be closed; a whole one in the last line is a record."""
    head = read_head(b"<posts>\n<row Id='1' Body='a'/>\n</posts>")

    cut = parse_record(b"<row Id='2' Body='b", head, is_last=True)
    whole = parse_record(b"<row Id='2' Body='b>c'/></posts>", head, is_last=True)
    open_ = parse_record(b"<row Id='2' Body='b'>", head, is_last=False)

    assert isinstance(cut, Reject)
    assert cut.reason == "truncated"
    assert isinstance(whole, Record)
    assert whole.fields == ("b>c",)
    assert isinstance(open_, Reject)
    assert open_.reason == "malformed"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a &amp; b", "a & b"),
        ("a & b", "a & b"),
        ("?x=1&y=2", "?x=1&y=2"),
        ("a&nbsp;b & c", "a\xa0b & c"),
        ("<![CDATA[a & b <x> &amp; </y>]]> & c", "a & b <x> &amp; </y> & c"),
        ("&#1103; & &#x44f;", "я & я"),
        ("a<!-- no -->b<?no?>", "ab"),
        ("", ""),
    ],
)
def test_references_and_stray_ampersands(body: str, text: str) -> None:
    """What XML means stays, a stray & is a character; CDATA is not touched."""
    result = parse_record(f"<doc><id>1</id><text>{body}</text>".encode(), HEAD, is_last=False)

    assert isinstance(result, Record)
    assert result.fields == (text,)


@pytest.mark.parametrize(
    "body",
    [
        "<text>a",
        "<text>a</txt>",
        "<text>a\x01</text>",
        "<text x=1>a</text>",
        "<p:text/>",
        "<",
    ],
)
def test_malformed(body: str) -> None:
    """What is not well-formed is a reject with the parser's words, never repaired."""
    result = parse_record(b"\n<doc><id>1</id>" + body.encode("latin-1"), HEAD, is_last=False)

    assert isinstance(result, Reject)
    assert result.reason == "malformed"
    assert result.detail
    assert result.excerpt.startswith("<doc><id>1</id>")


@pytest.mark.parametrize(
    ("doctype", "body"),
    [
        ('<!DOCTYPE r [<!ENTITY lol "boom">]>', "&lol;"),
        ('<!DOCTYPE r [<!ENTITY a "boom"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]>', "&c;"),
        ('<!DOCTYPE r [<!ENTITY xxe SYSTEM "file:///etc/hostname">]>', "&xxe;"),
        ('<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd">', "&far;"),
        ('<!DOCTYPE r [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]>', "&p;"),
    ],
)
def test_entities_are_never_expanded(doctype: str, body: str) -> None:
    """The DOCTYPE is not passed on: a record that uses its entities is rejected, the others are read."""
    data = f"{doctype}<r><doc><id>1</id><text>{body}</text></doc><doc><id>2</id><text>b</text></doc></r>"

    bad, good = read_all(data.encode())

    assert isinstance(bad, Reject)
    assert bad.reason == "malformed"
    assert "boom" not in bad.excerpt
    assert isinstance(good, Record)
    assert good.doc_id == "2"


def test_end_tag_inside_cdata_cuts() -> None:
    """A known limit: the file is cut at every end tag, also in CDATA and comments; the reject says so."""
    for opening, closing in (("<![CDATA[", "]]>"), ("<!--", "-->"), ("<?", "?>")):
        cut = f"<text>{opening}</doc>{closing}</text>"
        data = f"<r><doc><id>1</id>{cut}</doc><doc><id>2</id><text>b</text></doc></r>"

        bad, good = read_all(data.encode())

        assert isinstance(bad, Reject)
        assert (bad.reason, bad.detail[:34]) == ("malformed", "a comment, CDATA section or instru")
        assert isinstance(good, Record)


def test_a_record_inside_another_is_said() -> None:
    """Of nested records of one name the outer is a reject; what follows it is read."""
    data = b"<r><doc><id>1</id><doc><text>a</text></doc><text>b</text></doc><doc><id>2</id><text>c</text></doc></r>"

    bad, good = read_all(data)

    assert isinstance(bad, Reject)
    assert bad.detail.startswith("another record starts before the end tag")
    assert isinstance(good, Record)
    assert good.doc_id == "2"


def test_a_record_inside_a_comment_is_none() -> None:
    """The first record of a comment is passed over; records around it are read."""
    data = b"""<r><!-- <doc><id>0</id><text>x</text></doc> --><doc><id>1</id><text>a</text></doc>
    <!-- <doc><id>0</id><text>x</text></doc> --><doc><id>2</id><text>b</text></doc></r>"""

    assert [record.doc_id for record in records_of(data)] == ["1", "2"]


def test_no_content_and_bad_base64() -> None:
    """Both are rejects that still say which document it was."""
    results = [
        parse_record(f"<doc><id>7</id>{body}".encode(), HEAD, is_last=False)
        for body in (
            "<url>u</url>",
            "<text encoding='base64'>YW*j</text>",
            "<text encoding='base64'>YWJjZ</text>",
        )
    ]

    assert [(r.reason, r.doc_id) for r in results if isinstance(r, Reject)] == [
        ("no content", "7"),
        ("bad base64", "7"),
        ("bad base64", "7"),
    ]


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
    """A URL is decoded only where it decodes to something printable."""
    fields = f"<docID>1</docID><docURL>{written}</docURL><content>a</content>"
    data = f"<dataset><document>{fields}</document></dataset>"

    assert records_of(data.encode())[0].url == url


@pytest.mark.parametrize(
    ("text", "raw"),
    [("", b""), (" \n", b""), ("YWJj", b"abc"), ("YW\nJj ", b"abc"), ("YWI=", b"ab"), ("YWI", b"ab"),
     ("YWJjZ", None), ("YW==YWJj", None), ("=YWJ", None), ("YW-_", None), ("Привет", None)],
)  # fmt: skip
def test_base64(text: str, raw: bytes | None) -> None:
    """Wrapped and unpadded base64 is read, anything else is not."""
    assert decode_base64(text) == raw


def test_text_by_markup_mode() -> None:
    """The mode is the user's, else the format's, else told from each field."""
    record = Record("1", None, ("a & b < c", "<p>x<br>y"), None)

    assert record_text(record) == "a & b < c\nx y"
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


# --- JSON lines ---


def test_json_lines() -> None:
    """Ids stay as written, dotted paths reach into objects, blank lines are nothing."""
    data = b"""{"id": "007", "url": "u", "text": "a"}
{"id": 12345678901234567890, "text": "b\\ud800"}

{"id": 1.50, "text": "c", "nested": {"x": [1]}}
"""

    records = records_of(data)

    assert [r.doc_id for r in records] == ["007", "12345678901234567890", "1.50"]
    assert [r.fields for r in records] == [("a",), ("b\ufffd",), ("c",)]
    nested = records_of(b'{"meta": {"id": 5}, "body": {"text": "a"}}', id="meta.id", content="body.text")
    assert nested == [Record("5", None, ("a",), None)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": 1, "text": "a"', "malformed"),
        (b"[1]", "malformed"),
        (b"\xff", "malformed"),
        (b"[" * 100_000, "malformed"),
        (b'{"id": 1}', "no content"),
        (b'{"id": 1, "text": null}', "no content"),
    ],
)
def test_bad_json_lines(line: bytes, reason: str) -> None:
    """A line that is no document is a reject."""
    result = parse_record(line, read_head(b'{"id": 1, "text": "a"}'), is_last=False)

    assert isinstance(result, Reject)
    assert result.reason == reason


# --- laws ---


@lru_cache
def heads() -> list[FileHead]:
    samples = (
        b"<r><doc><id>1</id><text>a</text></doc></r>",
        b"<?xml version='1.0' encoding='cp1251'?><dataset><document><docID/><content/></document>",
        b"<posts>\n<row Id='1' Body='a'/>\n</posts>",
        "<r><doc><id>1</id><text>a</text></doc></r>".encode("utf-16"),
        b'{"id": 1, "text": "a"}',
    )
    return [read_head(sample) for sample in samples]


PIECES = [
    *(b"<doc>", b"<document>", b"<row Id='1' Body='x'/>", b"<row ", b"<text>", b"</text>"),
    *(b"<text encoding='base64'>", b"<content encoding='base64'>", b"</content>", b"YWJj", b"&", b"&amp;"),
    *(b"&x;", b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<!DOCTYPE r [", b"]>", b"<?", b"?>", b"\xff", b"\0"),
    *(b'{"text":', b'"a"}', b"<", b">", b"'", b"\n"),
]


@given(
    chunk=st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join),
    is_last=st.booleans(),
)
@settings(deadline=None, max_examples=300)
def test_any_chunk_is_a_record_a_reject_or_nothing(chunk: bytes, is_last: bool) -> None:  # noqa: FBT001
    """No bytes raise; a record can be turned into text and a fingerprint."""
    for head in heads():
        for data in (chunk, chunk.decode("latin-1").encode("utf-16-le")):
            result = parse_record(data, head, is_last=is_last)

            assert result is None or isinstance(result, Record | Reject)
            if isinstance(result, Record):
                record_text(result).encode()
                content_fingerprint(result)


@given(data=st.binary(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join))
@settings(deadline=None)
def test_any_head_is_a_head_or_a_format_error(data: bytes) -> None:
    """No head raises anything but the error that says what to set."""
    try:
        head = read_head(data)
    except FormatError:
        return

    assert head.separator


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
