"""A charset label as written in documents and settings ("win-1251", "utf8") -> the Python codec.

Source: the labels of https://encoding.spec.whatwg.org/#names-and-labels, from Resiliparse; other names are Python's.
"""

import codecs
from functools import lru_cache
from typing import Final

from resiliparse.parse.encoding import map_encoding_to_html5

SINGLE_BYTE: Final = frozenset(
    {"cp866", "cp874", "koi8-r", "koi8-u", "mac-cyrillic", "mac-roman"}
    | {f"cp125{digit}" for digit in range(9)}
    | {f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
)
"""Python's single-byte codecs that are accepted for documents. Below 128 all of them are ASCII."""

# Labels found in documents that the encoding standard does not list.
_UNLISTED_LABELS = {
    "win-1251": "cp1251",
    "win1251": "cp1251",
    "windows1251": "cp1251",
    "cp-1251": "cp1251",
    "koi8r": "koi8-r",
    "dos-866": "cp866",
    "alt": "cp866",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-ukrainian": "mac-cyrillic",
    "hz-gb-2312": "hz",
    "iso-2022-kr": "iso2022_kr",
    "csiso2022kr": "iso2022_kr",
    "utf-32": "utf-32-le",
    "utf-8-sig": "utf-8",
}

# The standard's decoders for these encodings cover more characters than Python's codecs of the same name.
_WIDER_CODECS = {
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-11": "cp874",
    "shift_jis": "cp932",
}

# Codecs that a document may declare: not utf-7 or unicode_escape, and nothing that is not a character encoding.
_ALLOWED = SINGLE_BYTE | {
    "utf-8",
    "utf-16-le",
    "utf-16-be",
    "gb18030",
    "big5hkscs",
    "cp932",
    "cp949",
    "euc_jp",
    "iso2022_jp",
    "iso2022_kr",
    "hz",
    "utf-32-le",
    "utf-32-be",
}


@lru_cache(maxsize=1024)
def canonical_charset(label: str) -> str | None:
    """Return the codec for a charset label as found in documents and settings.

    Args:
        label: in any spelling; blanks and quotes around it are ignored.

    Returns:
        The name of a Python codec; None if the label is empty, unknown, or not an encoding accepted for documents.
        "utf-16" without a byte order is little-endian.

    Example:
        >>> canonical_charset(" Windows-1251 "), canonical_charset("win-1251"), canonical_charset("utf-7")
        ('cp1251', 'cp1251', None)
    """
    key = label.strip(" \t\r\n\f\"'").lower()
    name = _codec_of_label(key)
    if name is None:  # one of Python's own spellings, such as cp932 or latin_1
        try:
            codec = codecs.lookup(key).name
        except (LookupError, ValueError):
            return None
        name = _codec_of_label(codec) or codec

    name = _WIDER_CODECS.get(name, name)
    return name if name in _ALLOWED else None


def _codec_of_label(label: str) -> str | None:
    """Look a label up in the encoding standard's table and in `_UNLISTED_LABELS`; None for any other label."""
    if label in _UNLISTED_LABELS or not label.isascii():
        return _UNLISTED_LABELS.get(label)
    name: str | None = map_encoding_to_html5(label, fallback_utf8=False)
    return name
