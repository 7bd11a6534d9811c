"""Golden records of every format: how many, and the first, a middle and the last of them, checked by hand."""

import bz2
import json
from pathlib import Path
from typing import Any

import pytest

from nddup.reading.containers import CONTAINERS
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS, FileHead, Format, FormatError, NoRecordsError, parse_path, split_field
from nddup.reading.outcomes import MAX_ID_LENGTH, make_record
from nddup.reading.records import Record, Reject, parse_record, record_text

TREC_WEB = b"""<DOC>
<DOCNO>GX000-00-0000000</DOCNO>
<DOCHDR>
http://a.example/index.html
HTTP/1.1 200 OK
Content-Type: text/html; charset=windows-1251
</DOCHDR>
<html><head><title>T</title></head><body>\xef\xe5\xf0\xe2\xe0\xff <b>page</b> & more<br><text>x</text></body></html>
</DOC>
<DOC>
<DOCNO>GX000-00-0000001</DOCNO>
<DOCOLDNO>IA076</DOCOLDNO>
<DOCHDR>
http://a.example:80/2.txt 10.0.0.1 19970115062118 text/plain 3423
HTTP/1.0 200 OK
Content-type: text/plain
</DOCHDR>
if a <b and c> d
</DOC >
<doc>
<docno> GX000-00-0000002 </docno>
<dochdr>
</dochdr>
</DOC>
"""

TREC_NEWS = b"""<!-- disk 4 -->
<DOC>
<DOCNO> FT911-1 </DOCNO>
<PROFILE>_AN-BENBQAD8FT</PROFILE>
<HEADLINE>
FT 14 MAY 91 / Headline
</HEADLINE>
<TEXT>
Body one AT&amp;T, AT&T and &AT;, p<0.05.
</TEXT>
<BYLINE>nobody</BYLINE>
<TEXT>
and more
</TEXT>
</DOC>
<DOC><DOCNO>FT911-2</DOCNO><PUB>no text</PUB></DOC>
<DOC><DOCNO>FT911-3</DOCNO><LEADPARA><P>Lead</P></LEADPARA><TEXT><P>Para one</P><P>Para two</P></TEXT></DOC>"""

CLEF = b"""<DOC>
<DOCNO>LA010194-0001</DOCNO>
<DOCID>011900</DOCID>
<HEADLINE><P>Headline</P></HEADLINE>
<TEXT><P>Para one</P><P>Para two</P></TEXT>
</DOC>
"""

REUTERS = b"""<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" OLDID="5544" NEWID="1">
<DATE>26-FEB-1987 15:01:01.79</DATE>
<UNKNOWN>&#5;&#5;&#5;C T f0704reute</UNKNOWN>
<TEXT>&#2;
<TITLE>BAHIA COCOA REVIEW</TITLE>
<DATELINE>    SALVADOR, Feb 26 - </DATELINE><BODY>Showers &lt;IBM> continued \xfc
 Reuter
&#3;</BODY></TEXT>
</REUTERS>
<REUTERS TOPICS="NO" NEWID="2"><TEXT TYPE="BRIEF">&#2;
******<TITLE>BLAH BLAH <NEW></TITLE>Blah blah blah.

</TEXT></REUTERS>
<REUTERS TOPICS="NO" NEWID='3'><TEXT TYPE="UNPROC">&#2;
only text &#3;</TEXT></REUTERS>
"""

MEDIAWIKI = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
<siteinfo><sitename>W</sitename><dbname>w</dbname></siteinfo>
<page><title>One</title><ns>0</ns><id>10</id><redirect title="Two"/><revision><id>1000</id><contributor><id>7</id>
</contributor><text xml:space="preserve">#REDIRECT [[Two]]</text></revision></page>
<page><title>Two &amp; more</title><ns>0</ns><id>12</id>
<revision><id>1</id><text>old</text></revision><revision><id>2</id><text>new &lt;br&gt; '''b'''</text></revision></page>
<page><title>Three</title><ns>0</ns><id>13</id><revision><id>3</id><text bytes="0" xml:space="preserve" /></revision>
</page>
</mediawiki>
"""

STACK = """<?xml version="1.0" encoding="utf-8"?>
<posts>
  <row Id="1" PostTypeId="1" Body="&lt;p&gt;How do &lt;em&gt;I&lt;/em&gt;?&lt;/p&gt;&#xA;" Title="List&lt;T&gt;" />
  <row Id="2" PostTypeId="2" ParentId="1" Body="&lt;p&gt;a &amp;lt; b&lt;/p&gt;" />
  <row Id="3" PostTypeId="2" ParentId="1" Body="" />
</posts>
"""

RSS2 = """<?xml version="1.0" encoding="windows-1251"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:media="m" xmlns:excerpt="e">
<channel><title>Лента</title><link>http://a.example/</link><description>d</description>
<item><title>Заголовок</title><media:title>other</media:title><link>http://a.example/1</link>
<guid isPermaLink="false">id-1</guid><description>&lt;p&gt;Коротко&lt;/p&gt;</description>
<content:encoded><![CDATA[<p>Полный <b>текст</b> & ещё</p>]]></content:encoded>
<excerpt:encoded>e</excerpt:encoded></item>
<item><description>&lt;p&gt;Коротко&lt;/p&gt;</description><content:encoded/><link>http://a.example/2</link></item>
<item><title>только заголовок</title><guid></guid><link>http://a.example/3</link></item>
</channel></rss>"""

RSS1 = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="http://a.example/"><title>c</title><items><rdf:Seq><rdf:li rdf:resource="x"/></rdf:Seq></items>
</channel><item rdf:about="http://a.example/1"><title>t</title><link>http://a.example/1?x</link>
<description>text one</description></item><item rdf:about="http://a.example/2"><title>u</title>
<link>http://a.example/2</link><description>text two</description></item></rdf:RDF>"""

ATOM = """<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:title>f</a:title><a:entry><a:id>urn:uuid:1</a:id>
<a:title type="html">t &amp;amp; u</a:title><a:link rel="self" href="http://a.example/self"/>
<a:link rel="alternate" href="http://a.example/1"/>
<a:content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>XHTML <i>body</i></p></div></a:content></a:entry>
<a:entry><a:id>urn:uuid:2</a:id><a:title>a &lt;b></a:title>
<a:link rel="self" href="s"/><a:link href="http://a.example/2"/>
<a:content type="html">&lt;p&gt;one &amp;lt; two&lt;/p&gt;</a:content></a:entry>
<a:entry><a:id>urn:uuid:3</a:id><a:title/><a:content src="http://a.example/3.pdf" type="application/pdf"/>
<a:summary>short &lt;x></a:summary></a:entry>
<a:entry><a:id>urn:uuid:4</a:id><a:content type="image/png">YWJj</a:content></a:entry></a:feed>"""

OAI = """<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>
<record><header><identifier>oai:x:1</identifier></header><metadata><oai_dc:dc xmlns:oai_dc="o" xmlns:dc="d">
<dc:title>Title</dc:title><dc:description>If p&lt;q then</dc:description><dc:identifier>http://x/1</dc:identifier>
</oai_dc:dc></metadata></record>
<record><header status="deleted"><identifier>oai:x:2</identifier></header></record>
<record><header><identifier>oai:x:3</identifier></header><metadata><arXiv xmlns="a"><title>T3</title>
<abstract>Abstract.</abstract></arXiv></metadata></record>
<record><header><identifier>oai:x:4</identifier></header><metadata><m:mods xmlns:m="m"><m:title>T4</m:title>
<m:n>note</m:n></m:mods></metadata></record></ListRecords></OAI-PMH>"""

SOLR = """<add><doc><field name="id">d1</field><field name="url">http://a.example/1</field>
<field name="text">hello world</field><field name="text">again</field></doc>
<doc boost="2"><field name="title">T</field><field name="id">d2</field><field name="content">c</field></doc></add>"""

SPHINX = """<?xml version="1.0" encoding="utf-8"?>
<sphinx:docset xmlns:sphinx="http://sphinxsearch.com/"><sphinx:schema><sphinx:field name="content"/></sphinx:schema>
<sphinx:document id="1234"><content>main <![CDATA[<cdata> & x]]></content><subject>s</subject></sphinx:document>
<sphinx:document id="1235"><content>two</content></sphinx:document>
<sphinx:killlist><id>7</id></sphinx:killlist></sphinx:docset>"""


def read_all(data: bytes, **settings: Any) -> tuple[FileHead, list[Record | Reject]]:  # noqa: ANN401
    """Cut a file as Spark does, and read every chunk."""
    head = read_head(data[: 1 << 18], **settings)
    chunks = data.split(head.separator)
    if chunks[-1] == b"":
        chunks.pop()
    results = [parse_record(chunk, head, is_last=n == len(chunks)) for n, chunk in enumerate(chunks, start=1)]
    return head, [result for result in results if result is not None]


def seen(result: Record | Reject) -> tuple[str | None, str | None, str]:
    """The id, URL and text of a record with its blanks as one; of a reject the reason in brackets."""
    if isinstance(result, Reject):
        return result.doc_id, None, f"[{result.reason}]"
    return result.doc_id, result.url, " ".join(record_text(result).split())


def encoded(text: str | bytes, codec: str = "utf-8") -> bytes:
    return text if isinstance(text, bytes) else text.encode(codec)


GOLDEN: list[tuple[str, bytes, str, list[tuple[str | None, str | None, str]]]] = [
    ("trec", TREC_WEB.replace(b"</DOC >", b"</DOC>"), "records <DOC> with a DOCNO", [
        ("GX000-00-0000000", "http://a.example/index.html", "первая page & more x"),
        ("GX000-00-0000001", "http://a.example:80/2.txt", "if a <b and c> d"),
        ("GX000-00-0000002", None, ""),
    ]),
    ("trec", TREC_NEWS, "records <DOC> with a DOCNO", [
        ("FT911-1", None, "FT 14 MAY 91 / Headline Body one AT&T, AT&T and &AT;, p<0.05. and more"),
        ("FT911-2", None, "[no content]"),
        ("FT911-3", None, "Lead Para one Para two"),
    ]),
    ("trec", CLEF, "records <DOC> with a DOCNO", [("LA010194-0001", None, "Headline Para one Para two")]),
    ("trec", REUTERS, "records <REUTERS> with a NEWID", [
        ("1", None, "BAHIA COCOA REVIEW Showers <IBM> continued ü Reuter \x03"),
        ("2", None, "BLAH BLAH \x02 ****** Blah blah blah."),
        ("3", None, "\x02 only text \x03"),
    ]),
    ("mediawiki", encoded(MEDIAWIKI), "root <mediawiki version=0.11> and records <page>", [
        ("10", "One", "#REDIRECT [[Two]]"),
        ("12", "Two & more", "new <br> '''b'''"),
        ("13", "Three", ""),
    ]),
    ("stackexchange", encoded(STACK), "root <posts> and records <row>", [
        ("1", None, "List<T> How do I ?"),
        ("2", None, "a < b"),
        ("3", None, ""),
    ]),
    ("rss", encoded(RSS2, "cp1251"), "root <rss version=2.0> and records <item>", [
        ("id-1", "http://a.example/1", "Заголовок Полный текст & ещё"),
        ("http://a.example/2", "http://a.example/2", "Коротко"),
        ("http://a.example/3", None, "[no content]"),
    ]),
    ("rss", encoded(RSS1), "root <rdf:RDF> and records <item>", [
        ("http://a.example/1", "http://a.example/1?x", "t text one"),
        ("http://a.example/2", "http://a.example/2", "u text two"),
    ]),
    ("atom", encoded(ATOM), "root <a:feed> and records <entry>", [
        ("urn:uuid:1", "http://a.example/1", "t & u XHTML body"),
        ("urn:uuid:2", "http://a.example/2", "a <b> one < two"),
        ("urn:uuid:3", None, "short <x>"),
        ("urn:uuid:4", None, "abc"),
    ]),
    ("oai", encoded(OAI), "root <OAI-PMH> and records <record>", [
        ("oai:x:1", "http://x/1", "Title If p<q then"),
        ("oai:x:2", None, "[deleted]"),
        ("oai:x:3", None, "T3 Abstract."),
        ("oai:x:4", None, "T4 note"),
    ]),
    ("solr", encoded(SOLR), "root <add> and records <doc>", [
        ("d1", "http://a.example/1", "hello world again"),
        ("d2", None, "T c"),
    ]),
    ("sphinx", encoded(SPHINX), "root <sphinx:docset> and records <document>", [
        ("1234", None, "s main <cdata> & x"),
        ("1235", None, "two"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "why", "expected"), GOLDEN, ids=[f"{n}-{w[-12:]}" for n, _, w, _ in GOLDEN])
def test_golden(name: str, data: bytes, why: str, expected: list[tuple[str | None, str | None, str]]) -> None:
    """The format is detected, the head says why, and every record is read as checked by hand."""
    head, results = read_all(data)

    assert (head.format.name, head.why) == (name, why)
    assert [seen(result) for result in results] == expected


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, data, _, _ in GOLDEN])
def test_the_named_format_reads_the_same(name: str, data: bytes) -> None:
    """A format that is given is the one that would be detected; why it was chosen is no part of a head."""
    detected, given = read_all(data), read_all(data, format=name)

    assert given == detected
    assert given[0].why == "input.format"


def test_every_declared_format_has_a_golden_file() -> None:
    """What is declared is tested; `romip`, `xml` and `jsonl` in `test_records`."""
    assert {name for name, *_ in GOLDEN} | {"romip", "xml", "jsonl", *CONTAINERS} == set(FORMATS)


@pytest.mark.parametrize("declared", FORMATS.values(), ids=list(FORMATS))
def test_every_declared_path_can_be_read(declared: Format) -> None:
    """A declaration with a mistake would reject every record."""
    for path in declared.fields:
        for alternative in split_field(path)[1]:
            assert parse_path(alternative)


# --- the shared samples ---


def test_every_sample_of_the_table(shared: Path) -> None:
    """Each row of `formats.json` is read: detected by itself, or as plain XML with the settings of the row."""
    samples = shared / "xml-samples"
    known = {"RSS 2.0", "RSS 1.0/RDF", "Atom", "OAI-PMH oai_dc", "Solr add", "Sphinx xmlpipe2", "StackExchange"}
    for row in json.loads((samples / "formats.json").read_text()):
        path = samples / row["sample"]
        if not path.exists():
            continue
        data = path.read_bytes()
        data = bz2.decompress(data) if path.suffix == ".bz2" else data
        is_known = row["mode"] == "sgml" or row["format"].startswith(("ROMIP", "Media")) or row["format"] in known
        settings = {} if is_known else {key: row[key] for key in ("record", "id", "url") if row[key] != "-"}
        if row["content_mode"] == "none":
            with pytest.raises(FormatError, match="text"):
                read_all(data, **settings)
            continue
        content = {} if is_known else {"content": tuple(row["text"].split("+"))}

        head, results = read_all(data, **settings, **content)

        assert results, row["format"]
        assert (head.format.name == "xml") is not is_known
        assert all(isinstance(result, Record) and result.doc_id for result in results if seen(result)[2] != "[deleted]")


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("docbook.xml", {"record": "chapter", "id": "@id", "content": "."},
         [("ch1", None, "One Text one ."), ("ch2", None, "Two Text two.")]),
        ("tei.xml", {"record": "TEI", "id": "@id", "content": "text/body"}, [("t1", None, "TEI body")]),
        ("pubmed.xml", {"record": "PubmedArticle", "id": "MedlineCitation/PMID",
          "content": "MedlineCitation/Article/ArticleTitle,MedlineCitation/Article/Abstract/AbstractText"},
         [("1", None, "T x one two")]),
    ],
)  # fmt: skip
def test_plain_xml_by_settings(
    shared: Path, name: str, settings: dict[str, str], expected: list[tuple[str | None, str | None, str]]
) -> None:
    """Records nested anywhere, xml:id, and repeated text elements."""
    _, results = read_all((shared / "xml-samples" / name).read_bytes(), **settings)

    assert [seen(result) for result in results] == expected


def test_a_newsitem_alone_in_its_file() -> None:
    """RCV1: the record is the root, in ISO 8859-1, and the file may end with it."""
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
    """Real MediaWiki exports, one in UTF-16: the ids are the pages', redirects are documents."""
    head, results = read_all(bz2.decompress((shared / "xml-samples" / name).read_bytes()))
    records = [result for result in results if isinstance(result, Record)]

    assert head.format.name == "mediawiki"
    assert len(records) == len(results) == count
    for position, (doc_id, url, start) in expected.items():
        assert (records[position].doc_id, records[position].url) == (doc_id, url)
        assert record_text(records[position]).startswith(start)


# --- detection ---


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
    """An empty feed is not guessed at."""
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


# --- paths ---


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
    """Each form of the language of paths."""
    data = b"""<r><doc data="ZGVm"><a>one</a><b>two</b><empty> </empty><list><i x="X">first</i><j>last</j></list>
    <f name="a/b|c">odd</f><f>bare</f><code>YWJj</code></doc></r>"""

    [as_id] = read_all(data, record="doc", id=path, content="a")[1]
    [as_content] = read_all(data, record="doc", id="b", content=(path,))[1]

    assert isinstance(as_id, Record)
    assert isinstance(as_content, Record)
    assert as_id.doc_id == (value or None)
    assert record_text(as_content).strip() == value


def test_what_a_field_holds_is_said_by_field() -> None:
    """Markup and plain text side by side, whatever they look like."""
    data = b"<r><doc><id>1</id><t>a &lt;br&gt; b</t><h>x&lt;blink&gt;y</h></doc></r>"

    [record] = read_all(data, record="doc", content=("text(t)", "html(h)"))[1]

    assert isinstance(record, Record)
    assert record.is_markup == (False, True)
    assert record_text(record) == "a <br> b\nx y"


def test_paths_of_json() -> None:
    """Alternatives and what a field holds mean the same in JSON lines."""
    data = b'{"a": "", "b": {"c": "YWJj"}, "x|y": "odd"}'

    assert seen(read_all(data, id="z|b.c", content="base64(a|b.c)")[1][0]) == ("YWJj", None, "abc")
    assert seen(read_all(data, content=("x|y",))[1][0]) == (None, None, "odd")
    assert seen(read_all(b'{"a": "*"}', content="base64(a)")[1][0])[2] == "[bad base64]"


def test_given_content_is_all_the_text() -> None:
    """The titles of a format are left out where the content is said."""
    [record, *_] = read_all(encoded(OAI), content="metadata/*/description")[1]

    assert seen(record)[2] == "If p<q then"


# --- TREC ---


def test_trec_web_in_the_last_chunk() -> None:
    """A file may end with its last end tag; a page that lacks its end is truncated."""
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
    """Tags that do not match are borne; two records before one end tag are not."""
    result = parse_record(b"<DOC>" + body, read_head(TREC_NEWS), is_last=False)

    assert getattr(result, "reason", None) == reason


def test_trec_by_settings() -> None:
    """Other elements, and another record."""
    [record] = read_all(b"<ART><NO>7</NO><B>x</B></ART>", format="trec", record="art", id="no", content=("text(b)",))[1]

    assert seen(record) == ("7", None, "x")
    with pytest.raises(FormatError, match="path of one element"):
        read_head(TREC_NEWS, content="A/B")


# --- ids and URLs ---


def test_ids_and_urls_fit_on_a_line() -> None:
    """Line ends and control characters: a blank in an id, nothing in a URL."""
    data = b"<r><doc><id>a\n\tb</id><url>http://x/\n1&#x85;&#9;2</url><text>t</text></doc></r>"

    assert seen(read_all(data)[1][0]) == ("a b", "http://x/12", "t")


def test_ids_are_bounded() -> None:
    """An id of a megabyte would be in every pair of its document."""
    short, long = (make_record("x" * length, None, [("", None)]) for length in (MAX_ID_LENGTH, MAX_ID_LENGTH + 1))

    assert isinstance(short, Record)
    assert isinstance(long, Reject)
    assert (long.reason, long.detail) == ("id too long", "65,537 characters, more than 65,536")
