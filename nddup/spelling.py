"""Text forms of documents and ids for other programs, the same on both engines."""

import base64
import codecs
import re
from xml.sax.saxutils import escape

from nddup.shown import ACTING, escape_character

FIRST = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<romip:dataset xmlns:romip="http://www.romip.ru/data/common"><collection>nddup</collection>'
)
LAST = "</romip:dataset>"
"""The lines before and after the documents of a ROMIP file."""

ESCAPES = (("\\", "\\\\"), *((character, escape_character(character)) for character in ACTING))
"""How `duplicates.txt` escapes characters of an id; all others are written unchanged. The backslash comes first."""

ESCAPED = f"[{re.escape(''.join(character for character, _ in ESCAPES))}]"
"""Matches a character that is escaped, in Python and in Java."""

_ESCAPED, _SPELLED = re.compile(ESCAPED), dict(ESCAPES)

NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold; in an id or an address they become U+FFFD."""


def escaped(doc_id: str) -> str:
    """Return an id as it is written in `duplicates.txt`."""
    return _ESCAPED.sub(lambda found: _SPELLED[found[0]], doc_id)


def spell_document(doc_id: str, url: str | None, content: str) -> str:
    """Return a document as a line of ROMIP XML.

    The content is base64 of UTF-8 with a byte order mark, which overrides any charset that its markup declares.
    """
    data = base64.b64encode(codecs.BOM_UTF8 + content.encode()).decode()
    address = "" if url is None else f"<docURL>{_text(url)}</docURL>"
    return f'<document><docID>{_text(doc_id)}</docID>{address}<content encoding="base64">{data}</content></document>'


def _text(value: str) -> str:
    return escape(NO_XML.sub("\ufffd", value))
