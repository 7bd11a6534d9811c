"""Small files of each format that is cut at separators, and their chunks as Hadoop cuts them."""

from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead

WHOLE = {
    "xml": b"<?xml version='1.0'?>\n<docs><doc><id>1</id><text>a</doc_>b</text></doc>\n"
    b"<doc><id>2</id><text>c</text></doc><doc><id>3</id><text>d</text><more/></doc>\n</docs>\n",
    "prefixed": b"<r:docs xmlns:r='u'><r:doc><r:id>1</r:id><r:text>a</r:text></r:doc ><!-- </r:do -->"
    b"<r:doc><r:id>2</r:id><r:text>b</r:text></r:doc></r:docs>",
    "one": b"<doc><id>1</id><title>t</title><text>a</text></doc>",
    "rows": b"<posts>\n<row Id='1' Body='a' />\n<row Id='2' Body='b>c'/>\n<row Id='3' Body='c'/>\n</posts>",
    "mixed": b"<d xmlns:p='u' xmlns='u'><doc><id>1</id><text>a</text></doc><doc/>\n<doc><id>2</id><text>b</text></doc >"
    b"<p:doc><id>3</id><text>c</text></p:doc><doc><id>4</id><text>d</text></doc><!-- </do --><doc id='/>'/></d>",
    "mixed rows": b"<posts><row Id='1' Body='a'/><row Id='2' Body='b/>'/><row Id='3' Body='c'></row>"
    b"<row Id='4'\n/></posts>",
    "trec": b"<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>a</TEXT>\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\n<HL>h</HL><TEXT>b</TEXT>\n"
    b"</DOC>",
    "web": b"<DOC><DOCNO>1</DOCNO><DOCHDR>http://a/</DOCHDR><html>a</html></DOC>"
    b"<DOC><DOCNO>2</DOCNO><DOCHDR>http://b/</DOCHDR><html>b</html>\nc</DOC>",
    "wiki": b"<mediawiki><page><title>A</title><id>1</id><revision><text>a</text></revision></page>"
    b"<page><title>B</title><id>2</id><revision><text>b</text></revision><x/></page></mediawiki>\n",
    "feed": b"<rss><channel><item><guid>1</guid><title>a</title></item><item><guid>2</guid><title>b</title>"
    b"<description>c</description></item></channel></rss>",
    "jsonl": b'{"id": "1", "text": "a"}\n\n{"id": "2", "text": "b"}\r\n{"id": "3", "text": "c"}',
    "marked": b"\xef\xbb\xbf<docs><doc><id>1</id><text>\xd0\xb0</text></doc><doc><id>2</id><text>b</text></doc></docs>",
    "utf-16": "<docs><doc><id>1</id><text>a</text></doc><doc><id>2</id><text>b</text></doc></docs>".encode("utf-16"),
}
"""Small files of each format that Spark cuts, whole; each is tested cut off at each of its bytes."""
SETTINGS = {"feed": {"format": "rss"}}


def head_of(name: str) -> FileHead:
    """Return the head of a small file, detected from all of it."""
    return read_head(WHOLE[name], **SETTINGS.get(name, {}))


def cut(data: bytes, separator: bytes) -> list[tuple[int, bytes]]:
    """Return the chunks of a file as Hadoop cuts it, each with the byte whose split reads it (see `find_open_end`)."""
    chunks, at, anchor = [], 0, 0
    while at < len(data):
        end = data.find(separator, at)
        value = data[at : end if end >= 0 else len(data)]
        chunks.append((anchor, value.removeprefix(b"\xef\xbb\xbf") if at == 0 else value))
        anchor, at = end, (end + len(separator) if end >= 0 else len(data))
    return chunks
