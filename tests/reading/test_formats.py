"""Golden records of every format, checked by hand."""

import bz2
import json
from pathlib import Path

import pytest

from nddup.reading.containers import CONTAINERS
from nddup.reading.formats import FORMATS, Format, FormatError, parse_path, split_field
from nddup.reading.records import Record
from tests.reading.sample_files import OAI, TREC_NEWS, TREC_WEB, encoded, read_all, seen

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
_REVISION = "<revision><id>9</id><timestamp>{}</timestamp><text>{}</text></revision>"
_NEWEST, _OLDEST = (
    _REVISION.format("2024-05-01T00:00:00Z", "newest"),
    _REVISION.format("2001-01-15T13:10:27Z", "oldest"),
)
HISTORY = f"""<mediawiki><page><title>Desc</title><id>1</id>{_NEWEST}{_OLDEST}</page>
<page><title>Asc</title><id>2</id>{_OLDEST}{_NEWEST}</page>
<page><title>None</title><id>3</id>{_NEWEST}<revision><text>last</text></revision></page></mediawiki>"""
EXTRACTED = """<doc id="12" url="https://a.example/?curid=12" title="Anarchism">
Anarchism

is &amp; &lt;b&gt;
</doc>
<doc id="39" url="https://a.example/?curid=39" title="Albedo">
Albedo
</doc>
"""
RSS2 = """<?xml version="1.0" encoding="windows-1251"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:media="m" xmlns:excerpt="e">
<channel><title>Лента</title><link>http://a.example/</link><description>d</description>
<item><media:title>other</media:title><media:description>of a picture</media:description>
<title>Заголовок</title><media:title>other</media:title><link>http://a.example/1</link>
<guid isPermaLink="false">id-1</guid><description>&lt;p&gt;Коротко&lt;/p&gt;</description>
<content:encoded><![CDATA[<p>Полный <b>текст</b> & ещё</p>]]></content:encoded>
<excerpt:encoded>e</excerpt:encoded></item>
<item><description>&lt;![CDATA[&lt;p&gt;Коротко&lt;/p&gt;]]&gt;</description><content:encoded/><link>http://a.example/2</link></item>
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
SOLR = """<add><doc><field name="id">d1</field><field name="url">http://a.example/1</field>
<field name="text">hello world</field><field name="text">again</field></doc>
<doc boost="2"><field name="title">T</field><field name="id">d2</field><field name="content">c</field></doc></add>"""
SPHINX = """<?xml version="1.0" encoding="utf-8"?>
<sphinx:docset xmlns:sphinx="http://sphinxsearch.com/"><sphinx:schema><sphinx:field name="content"/></sphinx:schema>
<sphinx:document id="1234"><content>main <![CDATA[<cdata> & x]]></content><subject>s</subject></sphinx:document>
<sphinx:document id="1235"><content>two</content></sphinx:document>
<sphinx:killlist><id>7</id></sphinx:killlist></sphinx:docset>"""
JATS = """<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving and Interchange DTD v1.2 20190208//EN" "a.dtd">
<article xmlns:xlink="http://www.w3.org/1999/xlink"><front><journal-meta><journal-title>J</journal-title></journal-meta>
<article-meta><article-id pub-id-type="publisher-id">p9</article-id><article-id pub-id-type="doi">10.1/x</article-id>
<article-id pub-id-type="pmc">7</article-id><title-group><article-title>On <italic>E. coli</italic></article-title>
</title-group><self-uri xlink:href="http://a.example/7"/><abstract><title>Aim</title><p>We study.</p></abstract>
<trans-abstract><p>Nous</p></trans-abstract></article-meta></front>
<body><sec><title>Intro</title><p>Body<xref>1</xref>.</p></sec></body><back><ref-list><ref>R</ref></ref-list></back>
<floats-group><fig><caption><p>A figure.</p></caption></fig></floats-group>
<sub-article><body><p>reply</p></body></sub-article></article>"""
ARTICLES = """<pmc-articleset>
<article><front><article-meta><article-id pub-id-type="pmid">1</article-id><abstract>only this</abstract></article-meta>
</front></article>
<article><front><article-meta><article-id pub-id-type="pmid">2</article-id></article-meta></front><body>B</body>
</article>
</pmc-articleset>"""
BOOKS = """<PubmedArticleSet><PubmedBookArticle><BookDocument><PMID>5</PMID><Book><BookTitle>Book</BookTitle></Book>
<ArticleTitle>Chapter</ArticleTitle><Abstract><AbstractText Label="A">a <i>b</i></AbstractText></Abstract>
</BookDocument></PubmedBookArticle><PubmedBookArticle><BookDocument><PMID>6</PMID><Book><BookTitle>Book</BookTitle></Book>
<Abstract><AbstractText>c</AbstractText></Abstract></BookDocument></PubmedBookArticle></PubmedArticleSet>"""
PUBMED = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE PubmedArticleSet SYSTEM "pubmed.dtd">
<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version="1">1</PMID><Article><Journal><Title>J</Title></Journal>
<ArticleTitle>Methanol <i>assay</i>.</ArticleTitle><Abstract><AbstractText Label="AIM">We assay.</AbstractText>
<AbstractText Label="RESULTS">It works.</AbstractText></Abstract></Article></MedlineCitation><PubmedData><ArticleIdList>
<ArticleId IdType="pubmed">1</ArticleId></ArticleIdList></PubmedData></PubmedArticle>
<PubmedArticle><MedlineCitation><PMID Version="1">2</PMID><Article><ArticleTitle>A title alone.</ArticleTitle></Article>
<CommentsCorrectionsList><PMID>1</PMID></CommentsCorrectionsList></MedlineCitation></PubmedArticle>
<PubmedArticle><MedlineCitation><PMID>3</PMID><Article><ArticleTitle>[Essai.]</ArticleTitle></Article><OtherAbstract
Language="fre"><AbstractText>On essaie.</AbstractText></OtherAbstract></MedlineCitation></PubmedArticle>
</PubmedArticleSet>"""
TEI = """<TEI xmlns="http://www.tei-c.org/ns/1.0" xml:lang="en"><teiHeader><fileDesc><titleStmt>
<title level="a" type="main">Bi-criteria</title></titleStmt><publicationStmt><publisher/></publicationStmt><sourceDesc>
<biblStruct><analytic><title>Bi-criteria</title></analytic><idno type="MD5">53DA</idno><idno type="DOI">10.2</idno>
</biblStruct></sourceDesc></fileDesc><profileDesc><abstract><p>We propose.</p></abstract></profileDesc></teiHeader>
<text xml:lang="en"></text></TEI>"""
CORPUS = """<teiCorpus xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt><title>All</title></titleStmt>
</fileDesc></teiHeader>
<TEI xml:id="t1"><teiHeader><fileDesc><titleStmt><title>T</title></titleStmt></fileDesc></teiHeader>
<text><front><p>F</p></front><body><p>B <hi>b</hi>old</p></body></text></TEI><TEI xml:id="t2"><teiHeader/>
<text><body><p>C</p></body></text></TEI></teiCorpus>"""
ENEX = """<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE en-export SYSTEM "http://xml.example/export4.dtd">
<en-export application="Evernote"><note><title>First</title><content><![CDATA[<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-note SYSTEM "http://xml.example/enml2.dtd"><en-note><div>Buy<en-todo/> milk</div><div>go home</div>
</en-note>]]></content><note-attributes><source-url>http://a.example</source-url></note-attributes></note></en-export>"""

KML = """<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>Map</name><description>all places</description>
<Folder><Placemark id="p1"><name>Cafe</name><description><![CDATA[<b>small</b>, by a river]]></description></Placemark>
</Folder><Placemark><name>Museum</name><Point><coordinates>1,2,0</coordinates></Point></Placemark></Document></kml>"""

NITF = """<nitf><head><title>T</title><meta name="slug" content="x"/><meta name="day" content="1"/><docdata>
<doc-id id-string="12"/></docdata><pubdata ex-ref="http://a.example/12"/></head><body><body.head><hedline><hl1>H</hl1>
</hedline><byline>By A</byline></body.head><body.content><block class="lead_paragraph"><p>Lead.</p></block>{}
</body.content></body></nitf>"""

RDF = """<rdf:RDF xmlns:rdf="r" xmlns:d="d"><rdf:Description rdf:about="http://a.example/1"><d:description>one</d:description>
</rdf:Description><rdf:Description rdf:about="urn:2"><d:description>two</d:description></rdf:Description></rdf:RDF>"""

MODS = """<OAI-PMH><ListRecords><record><header><identifier>oai:1</identifier></header><metadata><mods xmlns="m">
<titleInfo><title>T</title></titleInfo><abstract>A</abstract><relatedItem><titleInfo><title>R</title></titleInfo></relatedItem></mods>
</metadata></record></ListRecords></OAI-PMH>"""

MARC = """<collection xmlns="http://www.loc.gov/MARC21/slim"><record><leader>01142cam</leader>
<controlfield tag="001">ocm7</controlfield><datafield tag="245" ind1="1" ind2="0"><subfield code="a">Sums /</subfield>
<subfield code="c">C. S.</subfield></datafield><datafield tag="520"><subfield code="a">Verse.</subfield></datafield>
</record><record><leader>0</leader><controlfield tag="001">ocm8</controlfield>
<controlfield tag="003">x</controlfield></record>
</collection>"""
TMX = """<tmx><header/><body><tu tuid="1"><note>n</note><tuv xml:lang="en"><seg>a <ph x="1">p</ph></seg></tuv>
<tuv xml:lang="de"><seg>b</seg></tuv></tu><tu><tuv xml:lang="en"><seg>c</seg></tuv></tu></body></tmx>"""
LAW = """<akomaNtoso xmlns="http://docs.oasis-open.org/legaldocml/ns/akn/3.0"><act><meta><identification><FRBRWork>
<FRBRthis value="/akn/x/1"/></FRBRWork><FRBRExpression><FRBRthis value="/akn/x/1/eng"/></FRBRExpression>
</identification></meta><preface><p>An Act</p></preface><body><section><num>1</num><heading>Name</heading>
<content><p>It is named.</p>
</content></section></body><conclusions><p>Done.</p></conclusions></act></akomaNtoso>"""
REVIEWED = """<article><front><article-meta><article-id pub-id-type="doi">10/1</article-id><title-group><article-title>T
</article-title></title-group></article-meta></front><body><p>B</p></body><sub-article><front-stub><article-id
pub-id-type="doi">10/1r</article-id><title-group><article-title>Review</article-title></title-group></front-stub><body>
<p>Good.</p></body></sub-article><response><body><p>Thanks.</p></body></response></article>"""

ALTO = """<alto xmlns="http://www.loc.gov/standards/alto/ns-v2#"><Description><MeasurementUnit>pixel</MeasurementUnit>
</Description><Layout><Page ID="P1"><PrintSpace><TextBlock><TextLine><String CONTENT="The"/><SP/><String CONTENT="fox"/>
</TextLine><TextLine><String CONTENT="ran"/></TextLine></TextBlock><ComposedBlock><TextBlock><TextLine>
<String CONTENT="home&amp;dry"/></TextLine></TextBlock></ComposedBlock></PrintSpace></Page></Layout></alto>"""
PAGE = """<PcGts xmlns="http://schema.primaresearch.org/PAGE/gts/pagecontent/2013-07-15"><Metadata/><Page>
<TextRegion><TextLine><TextEquiv><Unicode>The fox</Unicode></TextEquiv></TextLine>
<TextEquiv><Unicode>The fox</Unicode></TextEquiv></TextRegion></Page></PcGts>"""
LINES = PAGE.replace("<TextEquiv><Unicode>The fox</Unicode></TextEquiv></TextRegion>", "</TextRegion>")
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
    ("mediawiki", encoded(HISTORY), "root <mediawiki> and records <page>", [
        ("1", "Desc", "newest"),
        ("2", "Asc", "newest"),
        ("3", "None", "last"),
    ]),
    ("xml", encoded(EXTRACTED), "records <doc> of WikiExtractor", [
        ("12", "https://a.example/?curid=12", "Anarchism is & <b>"),
        ("39", "https://a.example/?curid=39", "Albedo"),
    ]),
    ("stackexchange", encoded(STACK), "root <posts> and records <row>", [
        ("1", None, "List<T> How do I?"),
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
    ("oai", encoded(MODS), "root <OAI-PMH> and records <record>", [("oai:1", None, "T A")]),
    ("jats", encoded(JATS), "root <article> and records <article>", [
        ("7", "http://a.example/7", "On E. coli Aim We study. Intro Body1. A figure. reply"),
    ]),
    ("jats", encoded(ARTICLES), "root <pmc-articleset> and records <article>", [
        ("1", None, "only this"),
        ("2", None, "B"),
    ]),
    ("jats", encoded(REVIEWED), "root <article> and records <article>", [("10/1", None, "T B Review Good. Thanks.")]),
    ("marcxml", encoded(MARC), "root <collection> and records <record>", [
        ("ocm7", None, "Sums / C. S. Verse."),
        ("ocm8", None, "[no content]"),
    ]),
    ("tmx", encoded(TMX), "root <tmx> and records <tu>", [("1", None, "a p b"), (None, None, "c")]),
    ("akn", encoded(LAW), "root <akomaNtoso> and records <akomaNtoso>", [
        ("/akn/x/1/eng", None, "An Act 1 Name It is named. Done."),
    ]),
    ("pubmedbooks", encoded(BOOKS), "root <PubmedArticleSet> and records <PubmedBookArticle>", [
        ("5", None, "Chapter a b"),
        ("6", None, "Book c"),
    ]),
    ("pubmed", encoded(PUBMED), "root <PubmedArticleSet> and records <PubmedArticle>", [
        ("1", None, "Methanol assay. We assay. It works."),
        ("2", None, "A title alone."),
        ("3", None, "[Essai.] On essaie."),
    ]),
    ("tei", encoded(TEI), "root <TEI> and records <TEI>", [("53DA", None, "Bi-criteria We propose.")]),
    ("tei", encoded(CORPUS), "root <teiCorpus> and records <TEI>", [
        ("t1", None, "T F B bold"),
        ("t2", None, "C"),
    ]),
    ("nitf", encoded(NITF.format('<block class="full_text"><p>Lead.</p><p>More.</p></block>')),
     "root <nitf> and records <nitf>", [("12", "http://a.example/12", "T Lead. More.")]),
    ("nitf", encoded(NITF.format("")), "root <nitf> and records <nitf>", [("12", "http://a.example/12", "T Lead.")]),
    ("alto", encoded(ALTO), "root <alto> and records <alto>", [(None, None, "The fox ran home&dry")]),
    ("pagexml", encoded(PAGE), "root <PcGts> and records <PcGts>", [(None, None, "The fox")]),
    ("pagexml", encoded(LINES), "root <PcGts> and records <PcGts>", [(None, None, "The fox")]),
    ("enex", encoded(ENEX), "root <en-export> and records <note>", [
        (None, "http://a.example", "First Buy milk go home"),
    ]),
    ("kml", encoded(KML), "root <kml> and records <Placemark>", [
        ("p1", None, "Cafe small, by a river"),
        (None, None, "Museum"),
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
    """A named format reads a file as if it had been detected; the reason for the choice does not make heads differ."""
    detected, given = read_all(data), read_all(data, format=name)

    assert given == detected
    assert given[0].why == "input.format"


@pytest.mark.parametrize(("root", "text"), [("project", "Tool Makes pages. 1.2"), ("item", "Tool Makes pages.")])
def test_what_a_file_says_of_itself_is_not_its_text(root: str, text: str) -> None:
    """Of a file that is one record, a description is the text only if the file is named as a record."""
    data = f"<{root}><title>Tool</title><description>Makes pages.</description><version>1.2</version></{root}>".encode()

    head, results = read_all(data)

    assert head.is_root_record
    assert [seen(result)[-1] for result in results] == [text]


def test_what_a_record_says_of_itself_is_no_record() -> None:
    """Elements `meta` with a name and a content are none; nor is the id of RDF lost, which has a name of its own."""
    meta = '<meta name="a" content="x"/><meta name="b" content="y"/>'
    assert seen(read_all(f"<book>{meta}<title>T</title><body>B</body></book>".encode())[1][0])[-1] == "T B"
    arms = "<arm><label>a</label><description>one</description></arm>" * 2
    with pytest.raises(
        FormatError, match="which element is a record under <study>"
    ):  # whose text has a name of its own
        read_all(
            f"<study><ids><org/><nct/></ids><a/><b/><summary><textblock>S</textblock></summary>{arms}</study>".encode()
        )
    assert [seen(one)[-1] for one in read_all(f"<study><summary>S</summary>{arms}</study>".encode())[1]] == ["one"] * 2
    assert [seen(one) for one in read_all(RDF.encode())[1]] == [
        ("http://a.example/1", None, "one"),
        ("urn:2", None, "two"),
    ]


def test_ids_of_trec_may_be_attributes_beside_others() -> None:
    """As in collections of NTCIR and of newswire that were joined with others."""
    data = b'<DOC><DOCNO>1</DOCNO><TEXT>a</TEXT></DOC>\n<DOC ID="b" type="story"><TEXT>b</TEXT></DOC>'
    assert [seen(one) for one in read_all(data)[1]] == [("1", None, "a"), ("b", None, "b")]


def test_mods_has_its_title_where_it_stands_alone() -> None:
    """As in a collection of records, or in a METS file; topics are no titles."""
    mods = "<mods><subject><topic>S</topic></subject><titleInfo><nonSort>The</nonSort><title>T</title></titleInfo>"
    _, results = read_all(f"<modsCollection>{f'{mods}<abstract>A</abstract></mods>' * 2}</modsCollection>".encode())
    assert [seen(result)[-1] for result in results] == ["The T A"] * 2


def test_an_article_of_another_kind_is_none_of_jats() -> None:
    """The root of JATS is a usual name: only what stands below it tells."""
    head, results = read_all(b"<article><title>T</title><front>f</front><body>B</body></article>")

    assert head.format.name == "xml"
    assert [seen(result)[-1] for result in results] == ["T B"]


@pytest.mark.parametrize(
    ("row", "content"),
    [
        ({"title": "T", "description": "short", "maintext": "a news"}, "T a news"),
        ({"id": "1", "title": "T", "selftext": "a post", "subreddit": "s"}, "T a post"),
        ({"id": 1, "full_text": "a tweet", "user": {"description": "bio"}}, "a tweet"),
        ({"id": 1, "id_str": "1", "text": "…", "truncated": 1, "extended_tweet": {"full_text": "a tweet"}}, "a tweet"),
        ({"id": 1, "id_str": "1", "text": "a tweet", "truncated": False}, "a tweet"),
        ({"id": "1", "contents": "a passage"}, "a passage"),
        ({"abstract": "short", "article": "a whole paper"}, "a whole paper"),
        ({"id": "1", "title": "T", "description": "short", "transcript": "a talk"}, "T a talk"),
        ({"@type": "NewsArticle", "headline": "T", "description": "short", "articleBody": "a news"}, "T a news"),
    ],
)
def test_usual_names_of_texts_come_before_descriptions(row: dict[str, object], content: str) -> None:
    """Where a record has a text by a name that collections use, a description beside it is not the text."""
    _, results = read_all(json.dumps(row).encode())

    assert [seen(result)[-1] for result in results] == [content]


def test_a_text_of_a_wiki_that_is_hidden_is_no_empty_document() -> None:
    """A page whose newest revision was suppressed has no text in the dump; an older one does not stand for it."""
    page = "<page><title>{0}</title><id>{0}</id>{1}</page>"
    older = "<revision><timestamp>2001</timestamp><text>old</text></revision>"
    hidden = '<revision><timestamp>2002</timestamp><text bytes="9" deleted="deleted" /></revision>'
    pages = (
        page.format(1, older + hidden) + page.format(2, older) + page.format(3, hidden.replace("2002", "2000") + older)
    )
    _, results = read_all(f"<mediawiki>{pages}</mediawiki>".encode())

    assert [seen(result) for result in results] == [("1", None, "[deleted]"), ("2", "2", "old"), ("3", "3", "old")]


@pytest.mark.parametrize("kind", ['mode="base64"', 'type="text/html" mode="base64"', 'type="application/octet-stream"'])
def test_an_entry_of_atom_in_base64(kind: str) -> None:
    """Atom 0.3 says it by `mode`; its letters are not the text."""
    entry = f"<entry><id>1</id><title>T</title><content {kind}>\nPHA+b25lPC9wPg==\n</content></entry>"
    _, results = read_all(f'<feed version="0.3" xmlns="http://purl.org/atom/ns#">{entry}</feed>'.encode())

    assert [seen(result) for result in results] == [("1", None, "T one")]


def test_a_word_that_two_lines_divide_is_one_in_alto() -> None:
    """It stands whole beside each half, and counts where it begins, maybe on another page; a hyphen alone stays."""
    half = '<String CONTENT="{}" SUBS_TYPE="HypPart{}" SUBS_CONTENT="{}"/>'
    lines = [
        half.format("Don", 2, "Abandon") + '<String CONTENT="the"/>' + half.format("news", 1, "newspaper") + "<HYP/>",
        half.format("paper", 2, "newspaper") + '<String CONTENT="co-" SUBS_TYPE="HypPart1"/>',
        '<String CONTENT="op" SUBS_TYPE="HypPart2"/>',
    ]
    block = "".join(f"<TextLine>{line}</TextLine>" for line in lines)
    data = f"<alto><Layout><Page><PrintSpace><TextBlock>{block}</TextBlock></PrintSpace></Page></Layout></alto>"

    assert [seen(one)[-1] for one in read_all(data.encode())[1]] == ["the newspaper co- op"]


def test_all_blocks_of_a_page_and_one_reading_of_a_line() -> None:
    """ALTO's blocks may lie in blocks of blocks, PAGE's regions in others; of readings of OCR the first is the text."""
    block = '<TextBlock><TextLine><String CONTENT="{}"/></TextLine></TextBlock>'
    blocks = block.format("a")
    for letter in "bcd":  # in one another, and what follows comes after them
        blocks = f"<ComposedBlock>{blocks}</ComposedBlock>{block.format(letter)}"
    alto = f"<alto><Layout><Page><PrintSpace>{blocks}</PrintSpace></Page></Layout></alto>"
    reading = '<TextEquiv index="{0}"><Unicode>{1}</Unicode></TextEquiv>'
    line = f"<TextLine>{reading.format(0, 'fox')}{reading.format(1, 'fax')}</TextLine>"
    region = f"<TextRegion>{line}</TextRegion>"
    tables = f"<TableRegion>{region}</TableRegion>", f"<TableRegion><TableCell>{line}</TableCell></TableRegion>"
    pages = [f"<PcGts><Page><TextRegion>{line}{line}</TextRegion>{one}</Page></PcGts>" for one in ("", *tables)]
    pages.append(f"<PcGts><Page><TextRegion>{line}{region}</TextRegion></Page></PcGts>")

    assert [seen(one)[-1] for data in (alto, *pages) for one in read_all(data.encode())[1]] == [
        "a b c d", "fox fox", "fox fox fox", "fox fox fox", "fox fox"
    ]  # fmt: skip


def test_each_region_of_a_page_has_the_text_of_its_lines_where_it_has_none_itself() -> None:
    """As programs write it that complete some regions, or leave those of all empty; and each line that of its words."""
    own, empty = "<TextEquiv><Unicode>{}</Unicode></TextEquiv>", "<TextEquiv><Unicode/></TextEquiv>"
    word = f"<Word>{own.format('w')}</Word>"
    lines = f"<TextLine>{word}{own.format('l')}</TextLine><TextLine>{word}{word}{empty}</TextLine>"
    regions = [lines + own.format("r"), lines, lines + empty, empty, f"<ImageRegion><TextRegion>{lines}</TextRegion>"]
    inside = "".join(f"<TextRegion>{region}</TextRegion>" for region in regions[:-1])
    data = f"<PcGts><Page>{inside}{regions[-1]}</ImageRegion></Page></PcGts>"

    assert [seen(one)[-1] for one in read_all(data.encode())[1]] == ["r l w w l w w l w w"]


def test_a_part_of_a_record_is_no_record() -> None:
    """Passages without ids, as of BioC, in documents with ids; not so articles of an issue, or what has ids itself."""

    def read(data: str) -> list[tuple[str | None, str]]:
        return [(one.doc_id, seen(one)[-1]) for one in read_all(data.encode())[1] if isinstance(one, Record)]

    passage = "<passage><infon>x</infon><text>{}</text></passage>"
    documents = f"<document><id>1</id>{passage.format('a')}{passage.format('b')}</document>"
    assert read(f"<collection>{documents}<document><id>2</id>{passage.format('c')}</document></collection>") == [
        ("1", "a b"),
        ("2", "c"),
    ]
    for whole, part in (("issue", "passage"), ("document", "article")):
        data = documents.replace("document", whole).replace("passage", part)
        assert read(f"<r>{data}</r>") == [(None, "a"), (None, "b")]
    assert read(f"<r>{documents.replace('<infon>x</infon>', '<id>3</id>')}</r>") == [("3", "a"), ("3", "b")]


def test_the_description_of_a_video_is_its_text() -> None:
    """Feeds of videos have it in a group of Media RSS, and no content or summary of their own, or an empty one."""
    group = '<m:group xmlns:m="m"><m:title>x</m:title><m:description{}>a &lt;b&gt;</m:description></m:group>'
    entry = "<entry><id>{}</id><title>T</title>{}</entry>"
    contents = [
        group.format(""),
        group.format(' type="plain"') + "<summary/>",
        "<summary>s</summary>" + group.format(""),
    ]
    entries = "".join(entry.format(number, one) for number, one in enumerate(contents))
    item = f"<item><guid>1</guid><title>T</title>{group.format('')}</item>"

    atom = read_all(f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'.encode())[1]
    assert [seen(one)[-1] for one in atom] == ["T a <b>", "T a <b>", "T s"]
    assert [seen(one)[-1] for one in read_all(f"<rss><channel>{item}</channel></rss>".encode())[1]] == ["T a"]


def test_appendices_of_jats_are_text_and_references_are_none() -> None:
    """They stand behind the body, beside the list of references, alone or in a group."""
    front = "<front><article-meta><title-group><article-title>T</article-title></title-group></article-meta></front>"
    app, references = "<app><title>A</title><p>b</p></app>", "<ref-list><ref>r</ref></ref-list>"
    for back in (app, f"<app-group>{app}</app-group>"):
        data = f"<article>{front}<body><p>a</p></body><back>{references}{back}</back></article>"
        assert [seen(one)[-1] for one in read_all(data.encode())[1]] == ["T a A b"]


def test_lead_paragraphs_and_abstracts_of_trec_are_text() -> None:
    """The Wall Street Journal of TREC has leads `<LP>`; Ziff has texts, and abstracts or summaries alone."""
    parts = ["<LP>\na\n</LP><TEXT>b</TEXT>", "<ABSTRACT>c</ABSTRACT>", "<SUMMARY>d</SUMMARY>", "<TEXT>e</TEXT>"]
    data = "".join(f"<DOC><DOCNO>{number}</DOCNO>{part}</DOC>" for number, part in enumerate(parts))

    assert [seen(one)[-1] for one in read_all(data.encode())[1]] == ["a b", "c", "d", "e"]


def test_records_that_are_texts_themselves() -> None:
    """Elements of a usual name with ids, and no elements in them but paragraphs; not so items with fields."""

    def read(data: str) -> list[tuple[str | None, str]]:
        return [(one.doc_id, seen(one)[-1]) for one in read_all(data.encode())[1] if isinstance(one, Record)]

    texts = "<{0} id='1'><![CDATA[a]]> <b>b</b></{0}><{0} id='2'><head>c</head><p>d</p></{0}><{0} id='3'/>"
    for name in ("doc", "document", "record"):
        expected = [("1", "a b"), ("2", "c d"), ("3", "")]
        assert read(f"<author lang='en'><all>{texts.format(name)}</all></author>") == expected
    assert read("<doc id='1'><p>a</p></doc>") == [("1", "a")]
    for other in (
        texts.format("noun"),
        texts.format("doc").replace("id=", "no="),
        texts.format("doc") + "<doc><x/></doc>",
    ):
        with pytest.raises(FormatError, match="set input"):
            read(f"<r>{other}</r>")


def test_what_wikiextractor_leaves_in_a_text_is_no_xml() -> None:
    """Its tags only part the texts: those inside need not match, and quotes in a title need not be escaped."""
    texts = ["A\n\nif a<b then </ref> & <br> x &lt; y\n", "B\n", 'C "D"\n\n<poem>e <b>f</b>\n', "G <gallery\n"]
    titles = ["A", "B", '"Weird" x="y', "G > H"]
    data = "".join(
        f'<doc id="{number}" url="u{number}" title="{title}">\n{text}</doc>\n'
        for number, (title, text) in enumerate(zip(titles, texts, strict=True))
    )
    expected = ["A if a<b then </ref> & x < y", "B", 'C "D" <poem>e f', "G <gallery"]
    for first in range(len(texts)):  # whichever the head shows first
        lines = data.split("</doc>\n")[:-1]
        turned = "".join(f"{line}</doc>\n" for line in lines[first:] + lines[:first])
        found = sorted(map(seen, read_all(turned.encode())[1]))
        assert found == [(str(number), f"u{number}", text) for number, text in enumerate(expected)]


def test_every_declared_format_has_a_golden_file() -> None:
    """Every declared format is tested here, or with the containers, or in `test_records`: `romip`, `xml`, `jsonl`."""
    assert {name for name, *_ in GOLDEN} | {"romip", "xml", "jsonl", *CONTAINERS} == set(FORMATS)


@pytest.mark.parametrize("declared", FORMATS.values(), ids=list(FORMATS))
def test_every_declared_path_can_be_read(declared: Format) -> None:
    """Every path of a declared format can be parsed: a mistake in one would reject every record."""
    for path in declared.fields:
        for alternative in split_field(path)[1]:
            assert parse_path(alternative)


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
