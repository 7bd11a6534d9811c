"""The encoding of a whole file: by byte order mark, zero bytes, the setting or the XML declaration; else UTF-8."""

import codecs
import re
from typing import Final

from nddup.reading.charset_labels import canonical_charset
from nddup.reading.formats import FormatError

MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like the next one
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
)
"""Byte order marks, and the encoding of each."""

WIDE: Final = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")

LOOKED_AT = 4096
"""Bytes in which the zero bytes of an encoding without a mark are counted."""

_CONTROLS = re.compile(rb"[\x01-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
"""Bytes that no text of one byte a character holds; ESC begins the sequences of ISO 2022."""

_ENCODING = re.compile(r"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([^\"']*)[\"']")


def file_encoding(head: bytes, charset: str | None = None) -> tuple[str, int]:
    """Return the codec of a file and the length of its byte order mark in bytes.

    Args:
        head: the first bytes of the file; an empty file is UTF-8.
        charset: the user's setting. A byte order mark, or the zero bytes of UTF-16 or UTF-32 without one, take
            precedence.

    Raises:
        FormatError: if the setting or the XML declaration names no known encoding.

    Example:
        >>> file_encoding(b"<?xml version='1.0' encoding='windows-1251'?>")
        ('cp1251', 0)
    """
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    if (wide := wide_without_mark(head)) is not None:
        return wide, 0

    label, source = charset, "input.charset"
    if label is None:
        found = _ENCODING.match(head[:1024].decode("latin-1"))
        label, source = (found.group(1), "the XML declaration") if found else ("utf-8", "")
    encoding_or_none = canonical_charset(label)
    if encoding_or_none is None:
        raise FormatError(f"unknown encoding {label!r} in {source}; set input.charset")

    # Without a mark or zero bytes the file is readable as ASCII, so it is not UTF-16, whatever it declares.
    return ("utf-8" if encoding_or_none in WIDE else encoding_or_none), 0


def unit_of(encoding: str) -> int:
    """Return the bytes of a code unit: 4 in UTF-32, 2 in UTF-16, else 1."""
    return 4 if encoding.startswith("utf-32") else 2 if encoding.startswith("utf-16") else 1


def wide_without_mark(data: bytes) -> str | None:
    r"""Return the codec of UTF-16 or UTF-32 without a byte order mark, known by its zero bytes; None for anything else.

    In text, letters of Latin, blanks, digits and line ends have zero bytes, all on one side. Text of Han without any of
    these is not recognised; neither is data of which more than one character in a hundred belongs in no text. Text with
    few zero bytes is of another script, whose letters hold bytes that are control characters elsewhere, as U+04xx does;
    without these, the few zeros are strays in a text of one byte a character, or of UTF-8.

    Example:
        >>> wide_without_mark("Привет, мир".encode("utf-16-le")), wide_without_mark(b"PK\3\4\0\0\0\0")
        ('utf-16-le', None)
    """
    start = data[:LOOKED_AT]
    if b"\0" not in start:
        return None
    even, odd = start[::2].count(0), start[1::2].count(0)
    if 5 * (even + odd) < 2 * len(start) and _may_be_narrow(start):
        return None
    for encoding in WIDE:
        if start.startswith(("<".encode(encoding), "{".encode(encoding))):
            return encoding

    if 40 * max(even, odd) < len(start):
        return None
    likely = ["utf-32-le", "utf-32-be"] if 2 * (even + odd) >= len(start) else []
    likely += [f"utf-16-{'le' if odd > even else 'be'}"] if 3 * min(even, odd) <= max(even, odd) else []
    return next((encoding for encoding in likely if _is_text(start, encoding)), None)


def _may_be_narrow(start: bytes) -> bool:
    """Return whether bytes, but for zeros, may be text of one byte a character: no controls, and not a fifth blanks.

    U+09xx, U+0Axx, U+0Cxx and U+0Dxx, the scripts of India, hold the bytes of tabs and line ends.
    """
    return not _CONTROLS.search(start) and 5 * sum(map(start.count, b"\t\n\f\r")) < len(start)


def _is_text(start: bytes, encoding: str) -> bool:
    """Return whether bytes are text in an encoding; a character may be cut by their end."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(start)
    except UnicodeDecodeError:
        return False
    strange = sum(not (character.isprintable() or character in "\t\n\r\f\u3000\xa0") for character in text)
    return len(text) > 1 and strange * 100 <= len(text)
