"""How documents and ids are written as text for other programs: one spelling for both engines."""

import base64
import codecs
import re
from xml.sax.saxutils import escape

FIRST = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<romip:dataset xmlns:romip="http://www.romip.ru/data/common"><collection>nddup</collection>'
)
LAST = "</romip:dataset>"
"""The lines before and after the documents of a ROMIP file."""

ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
"""In `duplicates.txt` these characters of an id are written so; all others as they are."""

NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold; in an id or an address they become U+FFFD."""


def escaped(doc_id: str) -> str:
    """An id as it stands in `duplicates.txt`."""
    for character, spelled in ESCAPES:
        doc_id = doc_id.replace(character, spelled)
    return doc_id


def spell_document(doc_id: str, url: str | None, content: str) -> str:
    """A document as a line of ROMIP XML.

    The content is base64 of UTF-8 with a byte order mark, which wins over whatever charset its markup declares.
    """
    data = base64.b64encode(codecs.BOM_UTF8 + content.encode()).decode()
    address = "" if url is None else f"<docURL>{_text(url)}</docURL>"
    return f'<document><docID>{_text(doc_id)}</docID>{address}<content encoding="base64">{data}</content></document>'


def _text(value: str) -> str:
    return escape(NO_XML.sub("\ufffd", value))
