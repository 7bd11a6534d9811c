"""The encoding of a whole file: by byte order mark, zero bytes, the setting or the XML declaration; else UTF-8."""

import re

from nddup.reading.charset_labels import canonical_charset
from nddup.reading.formats import FormatError

_ENCODING = re.compile(r"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([^\"']*)[\"']")


def file_encoding(head: bytes, charset: str | None = None) -> tuple[str, int]:
    """Return the codec of a file and the length of its byte order mark in bytes.

    Args:
        head: the first bytes of the file; an empty file is UTF-8.
        charset: the user's setting. A byte order mark, or the zero bytes of UTF-16 without one, take precedence.

    Raises:
        FormatError: if the setting or the XML declaration names no known encoding.

    Example:
        >>> file_encoding(b"<?xml version='1.0' encoding='windows-1251'?>")
        ('cp1251', 0)
    """
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ):
        if head.startswith(mark):
            return encoding, len(mark)
    if head.startswith((b"<\0", b"{\0")):
        return "utf-16-le", 0
    if head.startswith((b"\0<", b"\0{")):
        return "utf-16-be", 0

    label, source = charset, "input.charset"
    if label is None:
        found = _ENCODING.match(head[:1024].decode("latin-1"))
        label, source = (found.group(1), "the XML declaration") if found else ("utf-8", "")
    encoding_or_none = canonical_charset(label)
    if encoding_or_none is None:
        raise FormatError(f"unknown encoding {label!r} in {source}; set input.charset")

    # Without a mark or zero bytes the file is readable as ASCII, so it is not UTF-16, whatever it declares.
    return ("utf-8" if encoding_or_none.startswith("utf-16") else encoding_or_none), 0
