"""How ids, documents, sizes and counts are spelled: for other programs, the same on both engines, and for people."""

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


MOST_BYTES = (1 << 31) - 1
"""Bytes of the longest record: a Java array holds no more."""

UNITS = {"": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


def parse_size(value: int | str) -> int:
    """Return the number of bytes that a setting means; units are powers of 1024.

    Raises:
        ValueError: if the text is not a number with an optional unit, or the number is less than 1.

    Example:
        >>> parse_size("64MB")
        67108864
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*+(\d{1,18})\s*+([kmg]b)?\s*+", value.lower())
        if not match:
            raise ValueError(f"expected bytes such as 64MB, got {value!r}")
        value = int(match[1]) * UNITS[match[2] or ""]
    if value < 1:
        raise ValueError(f"must be at least 1 byte, got {value}")
    return value


def spell_size(size: int) -> str:
    """Write a file's size for people; here units are powers of 1000, as in programs that list files.

    Example:
        >>> spell_size(1), spell_size(640), spell_size(4_200), spell_size(3_300_000)
        ('1 byte', '640 bytes', '4 kB', '3.3 MB')
    """
    if size < 1_000:  # noqa: PLR2004 - a kilobyte
        return counted(size, "byte")
    return f"{size / 1e3:,.0f} kB" if size < 1_000_000 else f"{size / 1e6:,.1f} MB"  # noqa: PLR2004 - a megabyte


def counted(count: int, name: str) -> str:
    """Write a count of things whose plural ends in s.

    Example:
        >>> counted(1, "file"), counted(1_200, "file")
        ('1 file', '1,200 files')
    """
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"
