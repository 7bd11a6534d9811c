"""The bytes of one document -> text, whatever the encoding.

    find_encoding      the encoding; the text only if it had to be decoded to see whether the encoding fits
    decode_content     the text, the encoding, and how many byte sequences could not be decoded

The encoding is the first of these that fits: that of the byte order mark; UTF-16 or UTF-32 by zero bytes; the charset
given by the caller; the charset that the document declares (XML declaration, <meta>) in its first 4 KB; one with escape
sequences (ISO-2022, HZ); UTF-8; the detected one. A charset *fits* if it is known and at most one in ten non-ASCII
bytes cannot be decoded. So a wrong declaration is skipped, while a page with a few damaged bytes is read as declared.

Chardet detects the charset, restricted to the encodings of the web, with ISO 8859-5 and cp866 where there are enough
letters to tell them from others. It is given only the words with non-ASCII bytes (for accented Latin, all text),
because markup is ASCII and blurs the statistics. On the 964 cp1251 and KOI8-R pages of the test collection, with
declarations removed, every text was decoded correctly, at 1.5 ms per page. On samples of these pages, given whole pages
and all encodings, chardet made 10 errors in 190 and charset-normalizer 20; restricted as above, they made 0 and 1 in
321.
"""

import re
from functools import cache
from typing import NamedTuple

import chardet
from chardet import EncodingEra
from chardet.registry import get_candidates

from nddup.reading.charset_labels import SINGLE_BYTE, canonical_charset
from nddup.reading.file_encodings import MARKS, WIDE, wide_without_mark

DECLARATION_BYTES = 4096  # first bytes searched for a declaration; WHATWG says 1024, but real pages put scripts first
DETECTION_WINDOW = 65_536  # bytes of the page that are searched for words
DETECTION_BYTES = 4096  # bytes of such words given to the detector; 1024 and 16384 were no better
FEW_LETTERS = 40  # non-ASCII bytes below which ISO 8859-5 and cp866 are not detected
FALLBACK = "cp1252"  # what a browser assumes when nothing is known

_XML_DECLARATION = re.compile(rb"\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']\s*([\w.:+-]{1,40})")
_META = re.compile(rb"<meta\s[^>]{0,500}?charset\s*+=\s*+[\"']?\s*+([\w.:+-]{1,40})", re.IGNORECASE)
_SCRIPT_OR_TAG = re.compile(rb"<(script|style)\b.*?(?:</\1|\Z)|<[^<>]*>?", re.DOTALL | re.IGNORECASE)
_NON_ASCII_WORD = re.compile(rb"(?<![A-Za-z\x80-\xff])[A-Za-z\x80-\xff]*[\x80-\xff][\x40-\xff]*")
_FOREIGN_RUN = re.compile(rb"[\xc0-\xff]{3}")
_NON_ASCII = re.compile(rb"[\x80-\xff]")
_CONTROL = re.compile(rb"[\x80-\x9f]")
_BLANKS = re.compile(rb"\s+")
_ASCII = bytes(range(128))

_JAPANESE = re.compile(rb"\x1b(?:\$[@B]|\([IJ])")
_ESCAPED = {
    "ISO-2022-JP": ("iso2022_jp", "iso2022_jp_ext", "iso2022_jp_2004"),
    "ISO-2022-KR": ("iso2022_kr",),
    "HZ": ("hz",),
}
"""Beginnings of chardet's names of encodings with escape sequences, and the codecs that may decode their text."""


class Decoded(NamedTuple):
    """Text, the Python codec that decoded it, and the number of U+FFFD that stand for undecodable bytes."""

    text: str
    encoding: str
    replaced: int


class Encoded(NamedTuple):
    """The bytes of a document without its byte order mark, and the codec that decodes them.

    `decoded` is None where it was not needed: every byte is a character of ASCII or of a single-byte charset.
    """

    data: bytes
    encoding: str
    decoded: Decoded | None

    @property
    def replaced(self) -> int:
        """The number of U+FFFD that stand for undecodable bytes."""
        return self.decoded.replaced if self.decoded is not None else 0

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes are valid UTF-8, so that a parser can read them as they are."""
        return self.encoding in ("ascii", "utf-8") and self.replaced == 0

    def decode(self) -> Decoded:
        """Return the text, decoding it now if it was not needed before."""
        return self.decoded or Decoded(self.data.decode(self.encoding), self.encoding, 0)


def declared_charset(head: bytes) -> str | None:
    """Find the charset that a document declares in its first bytes.

    Args:
        head: the start of the document, readable as ASCII; the first 4 KB are searched, outside comments.

    Returns:
        The name of a codec; None if nothing is declared or the label is unknown. A declaration of utf-16 that is
        readable as ASCII means utf-8, as the encoding standard says.

    Example:
        >>> declared_charset(b'<meta http-equiv=Content-Type content="text/html; charset=koi8-r">')
        'koi8-r'
    """
    head = head[:DECLARATION_BYTES]
    found = _XML_DECLARATION.match(head)
    if found is None and b"charset" in head.lower():
        found = _META.search(_without_comments(head))
    charset = canonical_charset(found.group(1).decode("ascii", "replace")) if found else None
    return "utf-8" if charset in WIDE else charset


def _without_comments(head: bytes) -> bytes:
    """Remove comments. An unclosed comment is kept, with everything after it."""
    kept, at = [], 0
    while (start := head.find(b"<!--", at)) >= 0 and (end := head.find(b"-->", start + 4)) >= 0:
        kept.append(head[at:start])
        at = end + 3
    return b"".join((*kept, head[at:]))


def decode_content(raw: bytes, charset: str | None = None) -> Decoded:
    """Decode the bytes of one document.

    Args:
        raw: as for `find_encoding`.
        charset: as for `find_encoding`.

    Returns:
        Text, codec, and the number of U+FFFD that stand for undecodable bytes, not counting U+FFFD in the document
        itself. Empty bytes give empty text. Never raises, whatever the bytes and the label.

    Cost: that of `find_encoding`, and at most one `bytes.decode` more.

    Example:
        >>> decode_content("Привет".encode("koi8-r"), "koi8-r")
        Decoded(text='Привет', encoding='koi8-r', replaced=0)
    """
    return find_encoding(raw, charset).decode()


def find_encoding(raw: bytes, charset: str | None = None) -> Encoded:
    """Find the encoding of one document.

    Args:
        raw: the document as stored; a byte order mark at its start is used and removed.
        charset: label from the user's setting or an HTTP header; None if there is none. A charset that does not fit
            (see the module) is skipped, like a wrong declaration.

    Returns:
        The bytes without the mark, the codec, and the text if it was decoded. Never raises, whatever the bytes and the
        label.

    Cost: a search of the first 4 KB if there are non-ASCII bytes; a `bytes.decode` per multi-byte charset tried, or if
        some bytes cannot be decoded; detection, if needed, takes about 1.4 ms more.
    """
    for mark, encoding in MARKS:
        if raw.startswith(mark):
            return _read_as(raw[len(mark) :], encoding)
    wide = wide_without_mark(raw)
    if wide is not None:
        return _read_as(raw, wide)

    given = canonical_charset(charset) if charset else None
    if given in WIDE and b"\0" not in raw:
        given = None  # text in UTF-16 has a space, a digit or a line end somewhere, and so a zero byte
    is_ascii = given not in WIDE and raw.isascii()
    may_escape = is_ascii and (b"\x1b" in raw or b"~{" in raw)
    if is_ascii and not may_escape:
        return Encoded(raw, "ascii", None)

    escaped = _detect_escapes(raw) if may_escape else None
    for candidate in (given, declared_charset(raw), escaped, "utf-8"):
        found = _read_if_it_fits(raw, candidate) if candidate else None
        if found is not None:
            return found
    return _read_as(raw, _detect(raw))


def has_characters(data: bytes, encoding: str) -> bool:
    r"""Return whether a charset is one of SINGLE_BYTE and every byte of `data` is one of its characters.

    Cost: one search, at the speed of memory, for each byte that is not a character; cp1251 has one such byte.

    Example:
        >>> has_characters(b"\x98", "cp1251"), has_characters(b"\x98", "koi8-r"), has_characters(b"a", "utf-8")
        (False, True, False)
    """
    return encoding in SINGLE_BYTE and not any(byte in data for byte in _missing(encoding))


@cache
def _missing(encoding: str) -> bytes:
    """Return the bytes that are not characters of a single-byte charset."""
    return bytes(byte for byte in range(256) if bytes([byte]).decode(encoding, "replace") == "\ufffd")


def _read_as(data: bytes, encoding: str) -> Encoded:
    """Read the bytes in an encoding, whether it fits or not."""
    return Encoded(data, encoding, None if has_characters(data, encoding) else decode_anyway(data, encoding))


def _read_if_it_fits(raw: bytes, encoding: str) -> Encoded | None:
    """Do as `_read_as`, or return None if the encoding does not fit; a character cut by the end of the bytes fits."""
    if has_characters(raw, encoding):
        return Encoded(raw, encoding, None)

    try:
        return Encoded(raw, encoding, Decoded(raw.decode(encoding), encoding, 0))
    except UnicodeDecodeError as error:
        is_cut_at_end = error.reason == "unexpected end of data"
    decoded = decode_anyway(raw, encoding)
    non_ascii = len(raw.translate(None, _ASCII))
    fits = is_cut_at_end or decoded.replaced * 10 <= non_ascii
    return Encoded(raw, encoding, decoded) if fits else None


def decode_anyway(raw: bytes, encoding: str) -> Decoded:
    """Decode with U+FFFD for undecodable bytes; count these, but not the U+FFFD in the document itself."""
    try:
        return Decoded(raw.decode(encoding), encoding, 0)
    except UnicodeDecodeError:
        text = raw.decode(encoding, "replace")
    own = raw.count("\ufffd".encode(encoding)) if encoding.startswith(("utf", "gb")) else 0
    return Decoded(text, encoding, max(text.count("\ufffd") - own, 0))


def _detect_escapes(raw: bytes) -> str | None:
    """Return the codec of bytes below 128 in which escape sequences begin characters (ISO-2022, HZ); None for ASCII."""
    at = min(place for place in (raw.find(b"\x1b"), raw.find(b"~{")) if place >= 0)
    guess = str(chardet.detect(raw[max(at - 64, 0) :][:DETECTION_WINDOW])["encoding"]).upper()
    guess = "ISO-2022-JP" if _JAPANESE.match(raw, at) else guess  # half-width katakana are beyond chardet
    names = next((names for label, names in _ESCAPED.items() if guess.startswith(label)), ())
    return min(names, key=lambda name: decode_anyway(raw, name).replaced, default=None)


@cache
def _likely(*, is_short: bool) -> frozenset[str]:
    """Return chardet's names of the encodings that are detected; in short texts, rare ones are more likely errors."""
    of_the_web = frozenset(one.name for one in get_candidates(EncodingEra.MODERN_WEB))
    return of_the_web if is_short else of_the_web | {"iso8859-5", "cp866"}


def _detect(raw: bytes) -> str:
    """Guess the codec of bytes that are neither ASCII nor UTF-8; FALLBACK if nothing is found."""
    first = _NON_ASCII.search(raw)
    start = max(first.start() - 1024, 0) if first else 0
    window = _SCRIPT_OR_TAG.sub(b" ", raw[start : start + DETECTION_WINDOW])
    words = _NON_ASCII_WORD.findall(window) or _NON_ASCII_WORD.findall(raw, start, start + DETECTION_WINDOW)
    sample = b" ".join(words)

    # Words in Latin script have few accented letters: the words around them help.
    is_latin = len(sample.translate(None, _ASCII)) * 2 < len(sample) and not _FOREIGN_RUN.search(sample)
    if is_latin:
        sample = _BLANKS.sub(b" ", window)

    is_short = len(sample[:DETECTION_BYTES].translate(None, _ASCII)) < FEW_LETTERS
    guess = chardet.detect(sample[:DETECTION_BYTES], include_encodings=_likely(is_short=is_short))["encoding"]
    charset = (canonical_charset(guess) if guess else None) or FALLBACK

    # cp1250 and ISO 8859-2 share most letters, but cp1250's š, ť, ž, ś, ź and quotation marks are controls there.
    return "iso8859-2" if charset == "cp1250" and not _CONTROL.search(window) else charset
