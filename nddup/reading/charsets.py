"""The bytes of one document -> text, whatever the encoding.

    canonical_charset   a label as written in documents and settings ("win-1251", "utf8")  -> the Python codec
    file_encoding       first bytes of a file                   -> codec, length of the byte order mark
    shown_encoding      those bytes, the codec declared         -> the codec that they show, if it is another
    find_encoding       bytes, charset of the caller  -> Encoded: the text only if a decision needed it
    decode_content      bytes, charset of the caller  -> Decoded: text, encoding, and the bytes that cannot be decoded
    has_characters      bytes, codec  -> whether each byte is a character

The order in which encodings are tried is in `find_encoding`; detection, in `_detect`. Nothing here raises for bytes of
a document: what cannot be decoded becomes U+FFFD and is counted.
"""

import codecs
import re
from functools import cache, lru_cache
from typing import Final, NamedTuple

import chardet
from chardet import EncodingEra
from chardet.registry import get_candidates
from resiliparse.parse.encoding import map_encoding_to_html5

from nddup.reading.decoding import Decoded, decode_anyway
from nddup.reading.formats import FormatError

SINGLE_BYTE: Final = frozenset(
    {f"cp{page}" for page in (437, 737, 775, 850, 852, 855, 857, 858, *range(860, 864), 865, 866, 869, 874, 1125)}
    | {"koi8-r", "koi8-u", "koi8-t", "kz1048", "mac-cyrillic", "mac-greek", "mac-latin2", "mac-roman", "mac-turkish"}
    | {f"cp125{digit}" for digit in range(9)}
    | {f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
)
"""Python's single-byte codecs that are accepted for documents. Below 128 all of them are ASCII."""

# Labels found in documents that the encoding standard does not list.
_UNLISTED_LABELS = {
    "koi8r": "koi8-r", "koi-8r": "koi8-r", "koi-8": "koi8-r", "koi8u": "koi8-u", "koi-8u": "koi8-u", "alt": "cp866",
    "cp950": "big5", "latin-1": "cp1252", "iso-latin-1": "cp1252", "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-ukrainian": "mac-cyrillic", "hz-gb-2312": "hz", "iso-2022-kr": "iso2022_kr", "csiso2022kr": "iso2022_kr",
    "utf-32": "utf-32-le", "utf-8-sig": "utf-8",
    # as browsers read a page that declares it
    "x-user-defined": "cp1252",
}  # fmt: skip

_PAGE_LABEL = re.compile(r"^(?:x-)?(?:windows|win|cp|ibm|dos)[-_ ]?(\d{3,4})$")
"""A code page by its number, however its vendor is written."""

_LABEL_START = re.compile(
    r"_?(?:x-)?(?P<page>(?:windows|win|cp|ibm|dos)[-_ ]?\d{3,4}(?!\d))"
    r"|_?(?:x-)?(?:iso[-_ ]?)?8859[-_ ]?(?P<part>1[0-6]|[1-9])(?!\d)|_?(?:x-)?(?P<name>utf-?8|iso-2022-(?:jp|kr))(?!\d)"
)
"""How a label begins behind which, or in another spelling, something stands: `iso-8859-1http-equiv`, `8859-1`."""

# The standard's decoders for these encodings cover more characters than Python's codecs of the same name.
_WIDER_CODECS = {
    "big5": "big5hkscs", "euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030", "iso8859-11": "cp874",
    "shift_jis": "cp932",
}  # fmt: skip

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
    "johab",
    "utf-32-le",
    "utf-32-be",
}

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

DECLARATION_BYTES = 4096  # first bytes searched for a declaration; WHATWG says 1024, but real pages put scripts first

DETECTION_WINDOW = 65_536  # bytes of the page that are searched for words

SURE_OF_RARE = 0.3  # confidence from which a rare encoding is believed; of five letters it was .29

DETECTION_BYTES = 4096  # bytes of such words given to the detector; 1024 and 16384 were no better

SURE = 0.25  # confidence from which the detector was right about texts of 100 and more letters of 60 languages

FEW_LETTERS = 40  # non-ASCII bytes below which ISO 8859-5 and cp866 are not detected

SURE_OF_UTF_8 = 12  # bytes beyond ASCII: of 100,000 runs of six characters in Han, kana and Hangul none was UTF-8 too

FEW_HAN = 8  # characters of Han from which bytes may be UTF-16 without a mark

FALLBACK = "cp1252"  # what a browser assumes when nothing is known

_XML_DECLARATION = re.compile(rb"\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']\s*([\w.:+-]{1,40})")

_META = re.compile(rb"<meta(\s[^>]{0,500}?)charset\s*+=\s*+[\"']?\s*+([\w.:+-]{1,40})[^>]{0,500}", re.IGNORECASE)

_ABOUT = re.compile(rb"[\s\"'](?:name|property|itemprop)\s*=", re.IGNORECASE)
"""An attribute of a <meta> that says something of the page, as a description in which a charset is named."""

_SCRIPT_OR_TAG = re.compile(rb"<(script|style)\b.*?(?:</\1|\Z)|<[^<>]*>?", re.DOTALL | re.IGNORECASE)

_NON_ASCII_WORD = re.compile(rb"(?<![A-Za-z\x80-\xff])[A-Za-z\x80-\xff]*[\x80-\xff][\x40-\xff]*")

_FOREIGN_RUN = re.compile(rb"[\xc0-\xff]{3}")

_NON_ASCII = re.compile(rb"[\x80-\xff]")

_CONTROL = re.compile(rb"[\x80-\x9f]")

_BLANKS = re.compile(rb"\s+")

_MAC_CYRILLIC = re.compile(rb"[\xe0-\xfe]\xdf")  # a word that ends in a capital letter, if it is cp1251

_ISO_ARABIC = re.compile(
    rb"[\xc7\xc8\xca-\xda\xe1\xe3-\xe6][\xe2\xe7-\xea]|[\xe2\xe7-\xea][\xc7\xc8\xca-\xda\xe1\xe3-\xe6]"
)
"""Two Arabic letters of ISO 8859-6, of which cp1256 has one, and beside it an accented letter of French."""

_HAN = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff01-\uff5e]")

_KANA = re.compile("[\u3041-\u30ff]")

_THAI = ord("\x0e")
"""The upper byte of every character of Thai and Lao in UTF-16, and of no other character in their texts but blanks."""

_ASCII = bytes(range(128))

_JAPANESE = re.compile(rb"\x1b(?:\$[@B]|\([IJ])")

_BEYOND_ASCII = re.compile(r"[^\0-\x7f]")

_ESCAPED = {
    "ISO-2022-JP": ("iso2022_jp", "iso2022_jp_ext", "iso2022_jp_2004"),
    "ISO-2022-KR": ("iso2022_kr",),
    "HZ": ("hz",),
}
"""Beginnings of chardet's names of encodings with escape sequences, and the codecs that may decode their text."""

_OF_ESCAPES: Final = frozenset(name for names in _ESCAPED.values() for name in names)

_OF_DOS: Final = frozenset({"iso8859-5", "cp866"})

_RARE: Final = frozenset({"cp737", "cp855", "johab"})
"""Chardet's names of further encodings: those detected in longer texts, and those asked about in case of doubt."""

_ALPHABETS: Final = frozenset({"cp1251", "cp1253", "cp1255", "cp1256", "cp874", "koi8-r", "koi8-u", "tis-620"})
"""Its names of encodings of the web in which every letter of a word is beyond ASCII."""

_WORDS_ALONE = re.compile(rb"[A-Za-z0-9\x80-\xff .,;:!?'()-]*")


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
    if codec := _known_codec(_PAGE_LABEL.sub(r"cp\1", key)):
        return codec
    start = _LABEL_START.match(key)
    if start is None:
        return None
    return _known_codec(_PAGE_LABEL.sub(r"cp\1", start["page"] or start["name"] or f"iso-8859-{start['part']}"))


def _known_codec(key: str) -> str | None:
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


def file_encoding(head: bytes, charset: str | None = None) -> tuple[str, int]:
    """Return the codec of a file and the length of its byte order mark in bytes.

    It is known by the byte order mark, zero bytes, the setting or the XML declaration; else it is UTF-8.

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
        match = _ENCODING.match(head[:1024].decode("latin-1"))
        label, source = (match.group(1), "the XML declaration") if match else ("utf-8", "")
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

    In text, letters of Latin, blanks, digits and line ends have zero bytes, all on one side; Han, kana and Thai with
    few of these are known by their upper bytes. Data of which over one character in a hundred is of no text is
    not recognised. Text with few zero bytes is of another script, whose letters hold bytes that are control characters
    elsewhere, as U+04xx does; without these, the few zeros are strays in a text of one byte a character, or of UTF-8.

    Example:
        >>> wide_without_mark("Привет, мир".encode("utf-16-le")), wide_without_mark(b"PK\3\4\0\0\0\0")
        ('utf-16-le', None)
    """
    start = data[:LOOKED_AT]
    if b"\0" not in start:
        return _thai_without_mark(start) if _THAI in start else None
    even, odd = start[::2].count(0), start[1::2].count(0)
    if 5 * (even + odd) < 2 * len(start) and may_be_narrow(start):
        return None
    for encoding in WIDE:
        if start.startswith(("<".encode(encoding), "{".encode(encoding))):
            return encoding

    if 40 * max(even, odd) < len(start):
        return _thai_without_mark(start) or _han_without_mark(start)
    likely = ["utf-32-le", "utf-32-be"] if 2 * (even + odd) >= len(start) else []
    likely += [f"utf-16-{'le' if odd > even else 'be'}"] if 3 * min(even, odd) <= max(even, odd) else []
    return next((encoding for encoding in likely if _is_text(start, encoding)), None)


def may_be_narrow(start: bytes) -> bool:
    """Return whether bytes, but for zeros, may be text of one byte a character: no controls, and not a fifth blanks.

    U+09xx, U+0Axx, U+0Cxx and U+0Dxx, the scripts of India, hold the bytes of tabs and line ends.
    """
    return not _CONTROLS.search(start) and 5 * sum(map(start.count, b"\t\n\f\r")) < len(start)


def _is_text(start: bytes, encoding: str) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(start)
    except UnicodeDecodeError:
        return False
    strange = sum(not (character.isprintable() or character in "\t\n\r\f\u3000\xa0") for character in text)
    return len(text) > 1 and strange * 100 <= len(text)


class Encoded(NamedTuple):
    """The bytes of a document without its byte order mark, and the codec that decodes them.

    `decoded` is None where it was not needed: every byte is a character of ASCII or of a single-byte charset.
    `is_guess` says that nothing declares the codec, and that the letters leave it open: the text may be garbage.
    """

    data: bytes
    encoding: str
    decoded: Decoded | None
    is_guess: bool = False

    @property
    def replaced(self) -> int:
        """The number of undecodable bytes, each of which is one U+FFFD in the text."""
        return self.decoded.replaced if self.decoded is not None else 0

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes are valid UTF-8, so that a parser can read them as they are."""
        return self.encoding in ("ascii", "utf-8") and self.replaced == 0

    def decode(self) -> Decoded:
        """Return the text, decoding it now if it was not needed before."""
        return self.decoded or Decoded(self.data.decode(self.encoding), self.encoding)


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
    match = _XML_DECLARATION.match(head)
    labels = [match[1]] if match else []
    if match is None and b"charset" in head.lower():
        labels = [meta[2] for meta in _META.finditer(_without_comments(head)) if _is_declaration(meta)]
    known = (canonical_charset(label.decode("ascii", "replace")) for label in labels)
    charset = next(filter(None, known), None)
    return "utf-8" if charset in WIDE else charset


def _is_declaration(meta: re.Match[bytes]) -> bool:
    """Return whether a <meta> declares a charset, and is no description of the page in which one is named."""
    is_inside = meta[1].count(b'"') % 2 or meta[1].count(b"'") % 2
    return not (is_inside and _ABOUT.search(meta[0]) and b"http-equiv" not in meta[0].lower())


def _without_comments(head: bytes) -> bytes:
    """Remove comments. An unclosed comment is kept, with everything after it."""
    kept, at = [], 0
    while (start := head.find(b"<!--", at)) >= 0 and (end := head.find(b"-->", start + 4)) >= 0:
        kept.append(head[at:start])
        at = end + 3
    return b"".join((*kept, head[at:]))


def decode_content(raw: bytes, charset: str | None = None) -> Decoded:
    """Decode the bytes of one document.

    Returns:
        Text, codec, and the undecodable bytes, each of which became one U+FFFD. Empty bytes give empty text.
        Never raises, whatever the bytes and the label.

    Cost: that of `find_encoding`, and at most one `bytes.decode` more.

    Example:
        >>> decode_content("Привет".encode("koi8-r"), "koi8-r")
        Decoded(text='Привет', encoding='koi8-r', lost=b'')
    """
    return find_encoding(raw, charset).decode()


def find_encoding(raw: bytes, charset: str | None = None) -> Encoded:
    """Find the encoding of one document.

    The encoding is the first of these that fits: that of the byte order mark; UTF-16 or UTF-32 by zero bytes; the
    charset given by the caller; the charset that the document declares (XML declaration, <meta>) in its first 4 KB; one
    with escape sequences (ISO-2022, HZ); UTF-8; the detected one. A charset *fits* if it is known and at most one in
    ten non-ASCII bytes cannot be decoded. So a wrong declaration is skipped, while a page with a few damaged bytes is
    read as declared. No other charset fits bytes beyond ASCII that are valid UTF-8, if they are not very few, and none
    but ISO-2022 fits its escape sequences.

    Args:
        raw: the document as stored; a byte order mark at its start is used and removed.
        charset: label from the user's setting or an HTTP header; None if there is none. A charset that does not fit
            is skipped, like a wrong declaration.

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
    # Text in UTF-16 has a blank, a digit or a line end somewhere, and so a zero byte, if it is not Han.
    if given in WIDE and b"\0" not in raw and _han_without_mark(raw, 1) != given:
        given = None
    is_ascii = given not in WIDE and raw.isascii()
    may_escape = is_ascii and (b"\x1b" in raw or b"~{" in raw)
    if is_ascii and not may_escape:
        return Encoded(raw, "ascii", None)

    escaped = _detect_escapes(raw) if may_escape else None
    declared = declared_charset(raw)
    if _is_utf8_as(given or declared, raw):
        given = "utf-8"
    likely: tuple[str | None, ...] = (given, declared, escaped, None if _ends_in_letter(raw) else "utf-8")
    if escaped is not None and escaped != "hz" and not {given, declared} & _OF_ESCAPES and _is_whole(raw, escaped):
        likely = (escaped,)  # whatever is declared: in no other charset do such sequences occur
    for candidate in likely:
        encoded = _read_if_it_fits(raw, candidate) if candidate else None
        if encoded is not None:
            return encoded
    encoding, is_sure = _detect(raw)
    return _read_as(raw, encoding)._replace(is_guess=not is_sure)


def _ends_in_letter(raw: bytes) -> bool:
    r"""Return whether the last byte alone is beyond ASCII, and more likely a letter than the start of a cut character.

    In UTF-8 most accented letters begin with one of two bytes, which in other charsets are the rare `Â` and `Ã`.

    Example:
        >>> _ends_in_letter(b"caf\xe9"), _ends_in_letter("cafe é".encode()[:-1])
        (True, False)
    """
    return raw[-1:] > b"\xc3" and raw[:-1].isascii()


def _is_whole(raw: bytes, encoding: str) -> bool:
    decoded = decode_anyway(raw, encoding)
    return not decoded.lost and not decoded.text.isascii()


def _is_utf8_as(encoding: str | None, raw: bytes) -> bool:
    """Return whether bytes beyond ASCII are UTF-8, and so hardly in the encoding that they are declared to be in.

    Mail and pages of UTF-8 are often declared so. The last character may be cut, but there must be a whole one: a byte
    at the end of a title is the accented letter of a charset of one byte.
    """
    if encoding in (None, "utf-8", *WIDE):
        return False
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        return False
    least = 1 if encoding in SINGLE_BYTE else SURE_OF_UTF_8
    return not text.isascii() and len(raw.translate(None, _ASCII)) >= least  # the slowest, last


def shown_encoding(head: bytes, encoding: str = "utf-8", least: int = 1) -> str:
    """Return the codec of a file by its first bytes, where they contradict the one that it declares, or UTF-8.

    Bytes that are UTF-8 are so whatever is declared. Where most bytes beyond ASCII are not, the encoding is detected,
    if they are many, or all of the file and at least `least`: a stray one says nothing of what follows.

    Example:
        >>> shown_encoding('{"text": "Старый архив города"}'.encode("cp1251"))
        'cp1251'
    """
    start = head[: 4 * DETECTION_WINDOW]
    length = len(start.translate(None, _ASCII))
    if not length or encoding in WIDE:
        return encoding
    if encoding != "utf-8":
        return "utf-8" if _is_utf8_as(encoding, start) else encoding
    is_told = length >= (least if len(head) < 4 * DETECTION_WINDOW else FEW_LETTERS)
    return _detect(start)[0] if is_told and 2 * decode_anyway(start, encoding).replaced > length else encoding


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
    return Encoded(data, encoding, None if has_characters(data, encoding) else decode_anyway(data, encoding))


def _read_if_it_fits(raw: bytes, encoding: str) -> Encoded | None:
    """Do as `_read_as`, or return None if the encoding does not fit; a character cut by the end of the bytes fits."""
    if has_characters(raw, encoding):
        return Encoded(raw, encoding, None)

    try:
        return Encoded(raw, encoding, Decoded(raw.decode(encoding), encoding))
    except UnicodeDecodeError as error:
        is_cut_at_end = error.reason == "unexpected end of data"
    decoded = decode_anyway(raw, encoding)
    if encoding in _OF_ESCAPES and raw.isascii():  # whose characters are pairs of bytes below 128
        non_ascii = 2 * len(_BEYOND_ASCII.findall(decoded.text))
    else:
        non_ascii = len(raw.translate(None, _ASCII))
    fits = is_cut_at_end or decoded.replaced * 10 <= non_ascii
    return Encoded(raw, encoding, decoded) if fits else None


def _detect_escapes(raw: bytes) -> str | None:
    """Return the codec of bytes below 128 in which escape sequences begin characters (ISO-2022, HZ); None for ASCII."""
    at = min(place for place in (raw.find(b"\x1b"), raw.find(b"~{")) if place >= 0)
    guess = str(chardet.detect(raw[max(at - 64, 0) :][:DETECTION_WINDOW])["encoding"]).upper()
    guess = "ISO-2022-JP" if _JAPANESE.match(raw, at) else guess  # half-width katakana are beyond chardet
    names = next((names for label, names in _ESCAPED.items() if guess.startswith(label)), ())
    return min(names, key=lambda name: decode_anyway(raw, name).replaced, default=None)


@cache
def _of_the_web() -> frozenset[str]:
    """Return chardet's names of the encodings that are detected in short texts, where rare ones are likely errors."""
    return frozenset(one.name for one in get_candidates(EncodingEra.MODERN_WEB))


def _ask(sample: bytes, encodings: frozenset[str]) -> tuple[str | None, float]:
    """Return the codec of which chardet is surest, and how sure it is; None and 0 if it takes the bytes for no text."""
    answer = chardet.detect(sample[:DETECTION_BYTES], include_encodings=encodings)
    guess = answer["encoding"]
    codec = canonical_charset(guess) if guess else None
    return codec, answer["confidence"] if codec else 0.0


def _detect(raw: bytes) -> tuple[str, bool]:
    """Guess the codec of bytes that are neither ASCII nor UTF-8, FALLBACK if nothing is found; say whether it is sure.

    Chardet detects the charset, restricted to the encodings of the web, with ISO 8859-5 and cp866 where there are
    enough letters to tell them from others. Where it is not SURE, it is asked about encodings of DOS and of old Korean
    too, and this answer counts if it is twice as sure of it; else the encoding is a guess, which is counted. It gets
    only the words with non-ASCII bytes, because markup is ASCII and blurs the statistics; for accented Latin all text,
    and then no encoding of another alphabet is a candidate.

    Of the 964 cp1251 and KOI8-R pages of the test collection, with declarations removed, all but six are decoded
    correctly; the six hold 5 to 41 letters, and are counted as guesses. On samples of these pages, given whole pages
    and all encodings, chardet made 10 errors in 190 and charset-normalizer 20; restricted as above, they made 0 and 1
    in 321.

    Cost: 1.4 ms; twice that where the first answer is not sure.
    """
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
    candidates = _of_the_web() - _ALPHABETS if is_latin else _of_the_web() if is_short else _of_the_web() | _OF_DOS
    charset, confidence = _ask(sample, candidates)
    if confidence < SURE and not is_latin:
        rarer, rarer_confidence = _ask(sample, _of_the_web() | _OF_DOS | _RARE)
        if rarer_confidence >= max(SURE_OF_RARE, 2 * confidence):
            charset, confidence = rarer, rarer_confidence
    are_words = is_latin and _WORDS_ALONE.fullmatch(raw)  # in UTF-16 some bytes would hardly be letters
    if confidence < SURE and not are_words and (wide := _han_without_mark(raw)) is not None:
        return wide, True
    if charset is None:
        return FALLBACK, False
    if charset == "cp1251" and b"\xff" not in sample and _MAC_CYRILLIC.search(sample):
        charset = "mac-cyrillic"

    if (
        charset == "cp1256"
        and 20 * len(_ISO_ARABIC.findall(sample)) > len(sample)
        and has_characters(sample, "iso8859-6")
    ):
        return "iso8859-6", True

    # cp1250 and ISO 8859-2 share most letters, but cp1250's š, ť, ž, ś, ź and quotation marks are controls there.
    is_latin_2 = charset == "cp1250" and not _CONTROL.search(window)
    return "iso8859-2" if is_latin_2 else charset, confidence >= SURE


def _han_without_mark(raw: bytes, least: int = FEW_HAN) -> str | None:
    """Return the codec of UTF-16 without a mark of at least so many characters, all Han or kana; None for others.

    A digit and a letter of ASCII are kana too, and two letters Han, so an eighth of the bytes of Han must be others.
    """
    start = raw[: min(LOOKED_AT, len(raw) // 2 * 2)]
    beyond = len(start.translate(None, _ASCII))
    for encoding in ("utf-16-le", "utf-16-be"):
        text = start.decode(encoding, "replace")
        han, kana = (len(one.findall(text)) for one in (_HAN, _KANA))
        if len(text) >= least and 20 * (han + kana) >= 19 * len(text) and 4 * beyond >= han > 0:
            return encoding
    return None


def _thai_without_mark(raw: bytes) -> str | None:
    """Return the codec of UTF-16 without a mark that is all Thai or Lao; None for anything else."""
    start = raw[: min(LOOKED_AT, len(raw) // 2 * 2)]
    for encoding, upper in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
        zeros = upper.count(0)  # of blanks and line ends
        if len(upper) >= FEW_HAN and upper.count(_THAI) + zeros == len(upper) > 2 * zeros:
            return encoding
    return None
