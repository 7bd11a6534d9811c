"""Small files of some formats, and helpers that read them and show what was read."""

import io
from typing import Any

from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead
from nddup.reading.records import Record, Reject, record_text
from nddup.reading.streams import Expanded
from nddup.scanning.whole_files import read_stream

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
OAI = """<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>
<record><header><identifier>oai:x:1</identifier></header><metadata><oai_dc:dc xmlns:oai_dc="o" xmlns:dc="d">
<dc:title>Title</dc:title><dc:description>If p&lt;q then</dc:description><dc:identifier>http://x/1</dc:identifier>
</oai_dc:dc></metadata></record>
<record><header status="deleted"><identifier>oai:x:2</identifier></header></record>
<record><header><identifier>oai:x:3</identifier></header><metadata><arXiv xmlns="a"><title>T3</title>
<abstract>Abstract.</abstract></arXiv></metadata></record>
<record><header><identifier>oai:x:4</identifier></header><metadata><m:mods xmlns:m="m"><m:title>T4</m:title>
<m:n>note</m:n></m:mods></metadata></record></ListRecords></OAI-PMH>"""


def read_all(data: bytes, **settings: Any) -> tuple[FileHead, list[Record | Reject]]:  # noqa: ANN401
    """Read a file from its start, as one task does; return its head and what was found."""
    head = read_head(data[: 1 << 18], **settings)
    stream = Expanded(io.BytesIO(data), "")
    results = [record for record, _ in read_stream(stream, head, len(data))]
    return head, results


def seen(result: Record | Reject) -> tuple[str | None, str | None, str]:
    """Return a record's id, URL and text, with runs of blanks as one; of a reject its id and its reason in brackets."""
    if isinstance(result, Reject):
        return result.doc_id, None, f"[{result.reason}]"
    return result.doc_id, result.url, " ".join(record_text(result).split())


def encoded(text: str | bytes, codec: str = "utf-8") -> bytes:
    return text if isinstance(text, bytes) else text.encode(codec)
