"""Paths and settings of formats: where ids, addresses and contents are."""

import bz2
from pathlib import Path

import pytest

from nddup.reading.detect import read_head
from nddup.reading.formats import FormatError, NoRecordsError
from nddup.reading.outcomes import MAX_ID_LENGTH, make_record
from nddup.reading.records import Record, Reject, parse_record, record_text
from tests.reading.sample_files import OAI, TREC_NEWS, TREC_WEB, encoded, read_all, seen


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("docbook.xml", {"record": "chapter", "id": "@id", "content": "."},
         [("ch1", None, "One Text one."), ("ch2", None, "Two Text two.")]),
        ("tei.xml", {"record": "TEI", "id": "@id", "content": "text/body"}, [("t1", None, "TEI body")]),
        ("pubmed.xml", {"record": "PubmedArticle", "id": "MedlineCitation/PMID",
          "content": "MedlineCitation/Article/ArticleTitle,MedlineCitation/Article/Abstract/AbstractText"},
         [("1", None, "T x one two")]),
    ],
)  # fmt: skip
def test_plain_xml_by_settings(
    shared: Path, name: str, settings: dict[str, str], expected: list[tuple[str | None, str | None, str]]
) -> None:
    """Plain XML may have records nested anywhere, xml:id, and repeated text elements."""
    _, results = read_all((shared / "xml-samples" / name).read_bytes(), **settings)

    assert [seen(result) for result in results] == expected


def test_a_newsitem_alone_in_its_file() -> None:
    """In RCV1 the record is the root, in ISO 8859-1, and the file may end right after it."""
    text = """<?xml version="1.0" encoding="iso-8859-1" ?><newsitem itemid="2330" id="root" xml:lang="en">
    <headline>Tylan é</headline><dateline>d</dateline><text><p>One.</p><p>Two.</p></text></newsitem>"""
    settings = {"record": "newsitem", "id": "@itemid", "content": "headline,text"}

    for data in (text.encode("latin-1"), text.encode("latin-1") + b"\n"):
        assert [seen(result) for result in read_all(data, **settings)[1]] == [("2330", None, "Tylan é One. Two.")]


@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", 206, {
            0: ("10", "AccessibleComputing", "#REDIRECT [[Computer accessibility]]"),
            103: ("599", "Afroasiatic languages", "{{Redirect|Afro-Asiatic}}"),
            -1: ("775", "Algorithm", "{{other uses}}\n{{Use mdy dates|date=June 2013}}"),
        }),
        ("bgwiki-latest-pages-articles-shortened.xml.bz2", 3, {
            0: ("558", "Григориански календар", "[[File:Gregory XIII"),
            1: ("559", "Уикипедия:Редактиране на страници", "{{ИП Уикипедия"),
            2: ("560", "Уикипедия:Разговори/Архив/2005/октомври-ноември-декември", "{{архив уикипедия разговори}}"),
        }),
    ],
)  # fmt: skip
def test_real_exports(shared: Path, name: str, count: int, expected: dict[int, tuple[str, str, str]]) -> None:
    """Real MediaWiki exports, one in UTF-16, are read: ids are those of the pages, and redirects are documents."""
    head, results = read_all(bz2.decompress((shared / "xml-samples" / name).read_bytes()))
    records = [result for result in results if isinstance(result, Record)]

    assert head.format.name == "mediawiki"
    assert len(records) == len(results) == count
    for position, (doc_id, url, start) in expected.items():
        assert (records[position].doc_id, records[position].url) == (doc_id, url)
        assert record_text(records[position]).startswith(start)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            "<rss version='2.0'><channel><title>empty</title></channel></rss>",
            "<rss> is the root of rss, but no <item> was seen",
        ),
        ("<OAI-PMH><error code='noRecordsMatch'/></OAI-PMH>", "<OAI-PMH> is the root of oai, but no <record> was seen"),
        (
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>f</title></feed>",
            "<feed> is the root of atom, but no <entry> was seen",
        ),
    ],
)
def test_a_known_format_without_records_says_so(data: str, said: str) -> None:
    """A known root without its records is an error that names both; nothing is guessed."""
    with pytest.raises(NoRecordsError, match=said):
        read_head(data.encode())


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("<feed><product><text>a</text></product><product><text>b</text></product></feed>", "xml"),
        ("<r:RDF xmlns:r='r'><r:Description r:about='x'><text>a</text></r:Description></r:RDF>", "xml"),
        ("<add><item><id>1</id><text>a</text></item></add>", "xml"),
        ("<documents><document><docID>1</docID><content>a</content></document></documents>", "romip"),
        ("<x xmlns='http://www.romip.ru/data/common'><document><content>a</content></document></x>", "romip"),
        ("<root><DOC><DOCNO>1</DOCNO><TEXT>a</TEXT></DOC></root>", "trec"),
        ('{"text": "a"}', "jsonl"),
    ],
)
def test_a_root_of_that_name_is_not_enough(data: str, name: str) -> None:
    """A format is chosen by its root only if its records are there."""
    assert read_head(data.encode()).format.name == name


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a", "one"),
        ("p:a", "one"),
        ("z|b|a", "two"),
        ("empty|b", "two"),
        ("empty|z", ""),
        ("list/*[1]", "first"),
        ("list/*[last()]", "last"),
        ("list/i[1]/@x", "X"),
        ("f[@name=a/b|c]", "odd"),
        ("f[@name=]", "bare"),
        ("base64(code)", "abc"),
        ("base64(@data)", "def"),
        ("html(b)", "two"),
        ("@data", "ZGVm"),
    ],
)
def test_paths(path: str, value: str) -> None:
    """Each form of a path finds its value, as an id and as content."""
    data = b"""<r><doc data="ZGVm"><a>one</a><b>two</b><empty> </empty><list><i x="X">first</i><j>last</j></list>
    <f name="a/b|c">odd</f><f>bare</f><code>YWJj</code></doc></r>"""

    [as_id] = read_all(data, record="doc", id=path, content="a")[1]
    [as_content] = read_all(data, record="doc", id="b", content=(path,))[1]

    assert isinstance(as_id, Record)
    assert isinstance(as_content, Record)
    assert as_id.doc_id == (value or None)
    assert record_text(as_content).strip() == value


def test_what_a_field_holds_is_said_by_field() -> None:
    """`text()` and `html()` decide field by field what is markup, whatever it looks like."""
    data = b"<r><doc><id>1</id><t>a &lt;br&gt; b</t><h>x&lt;blink&gt;y</h></doc></r>"

    [record] = read_all(data, record="doc", content=("text(t)", "html(h)"))[1]

    assert isinstance(record, Record)
    assert record.is_markup == (False, True)
    assert record_text(record) == "a <br> b\nxy"


def test_paths_of_json() -> None:
    """Alternatives, and functions such as `base64()`, mean the same in JSON lines."""
    data = b'{"a": "", "b": {"c": "YWJj"}, "x|y": "odd"}'

    assert seen(read_all(data, id="z|b.c", content="base64(a|b.c)")[1][0]) == ("YWJj", None, "abc")
    assert seen(read_all(data, content=("x|y",))[1][0]) == (None, None, "odd")
    assert seen(read_all(b'{"a": "*"}', content="base64(a)")[1][0])[2] == "[bad base64]"


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        ('{"_id": "d1", "title": "a", "text": "b"}', "d1"),  # BEIR, Elasticsearch
        ('{"_id": {"$oid": "5f1"}, "text": "b"}', "5f1"),  # mongoexport
        ('{"uuid": "u", "document_id": 7, "text": "b"}', "7"),
        ('{"_id": "x", "id": "y", "text": "b"}', "y"),
    ],
)
def test_ids_of_databases_and_benchmarks(line: str, id_: str) -> None:
    """A key of these names is the id, where no key of a plainer name is there."""
    record = parse_record(line.encode(), read_head(line.encode()), is_last=True)
    assert isinstance(record, Record)
    assert record.doc_id == id_


def test_ids_of_several_types_in_one_export() -> None:
    """MongoDB writes the type of some ids, in each of its own ways, and others alone, whichever the first is."""
    ids = ['{"$oid": "5f1"}', '"a"', "7", '{"$numberLong": "8"}', '{"$uuid": "u"}', '{"a": "b"}', "null"]
    for first in range(len(ids)):
        turned = ids[first:] + ids[:first]
        lines = "".join(f'{{"_id": {id_}, "text": "t"}}\n' for id_ in turned)
        records = [one for one in read_all(lines.encode())[1] if isinstance(one, Record)]
        assert [one.doc_id for one in records] == (["5f1", "a", "7", "8", "u", None, None] * 2)[first : first + 7]


def test_given_content_is_all_the_text() -> None:
    """If the content is set, the titles of the format are left out."""
    [record, *_] = read_all(encoded(OAI), content="metadata/*/description")[1]

    assert seen(record)[2] == "If p<q then"


def test_trec_web_in_the_last_chunk() -> None:
    """The last page may end with its last end tag; a page that lacks it is truncated."""
    head = read_head(TREC_WEB)
    start = b"<DOC><DOCNO>1</DOCNO><DOCHDR>\nu\n</DOCHDR><html>a"

    whole, cut = (parse_record(start + end, head, is_last=True) for end in (b"</HTML>\n", b"</p>"))

    assert isinstance(whole, Record)
    assert isinstance(cut, Reject)
    assert cut.reason == "truncated"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<DOCNO>1</DOCNO><DOCHDR>u", "malformed"),
        (b"<DOCNO>1</DOCNO><TEXT>a\n<DOC>\n<DOCNO>2</DOCNO><TEXT>b</TEXT>", "malformed"),
        (b"<DOCNO>1<TEXT>a", None),
        (b"<TEXT>a</TEXT></TEXT><TEXT>b", None),
        (b"</TEXT>", "no content"),
    ],
)
def test_broken_trec(body: bytes, reason: str | None) -> None:
    """Tags that do not match are tolerated; two records before one end tag are not."""
    result = parse_record(b"<DOC>" + body, read_head(TREC_NEWS), is_last=False)

    assert getattr(result, "reason", None) == reason


def test_trec_by_settings() -> None:
    """Other elements and another record can be set; a path of several elements is refused."""
    [record] = read_all(b"<ART><NO>7</NO><B>x</B></ART>", format="trec", record="art", id="no", content=("text(b)",))[1]

    assert seen(record) == ("7", None, "x")
    with pytest.raises(FormatError, match="path of one element"):
        read_head(TREC_NEWS, content="A/B")


def test_ids_and_urls_fit_on_a_line() -> None:
    """Line ends and control characters become a blank in an id and are dropped from a URL."""
    data = b"<r><doc><id>a\n\tb</id><url>http://x/\n1&#x85;&#9;2</url><text>t</text></doc></r>"

    assert seen(read_all(data)[1][0]) == ("a b", "http://x/12", "t")


def test_ids_are_bounded() -> None:
    """A longer id is a reject: one of a megabyte would be in every pair of its document."""
    short, long = (make_record("x" * length, None, [("", None)]) for length in (MAX_ID_LENGTH, MAX_ID_LENGTH + 1))

    assert isinstance(short, Record)
    assert isinstance(long, Reject)
    assert (long.reason, long.detail) == ("id too long", "65,537 characters, more than 65,536")
