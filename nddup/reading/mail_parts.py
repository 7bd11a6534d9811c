"""The content of a part of a message that holds no other parts: its bytes, whether they are read, and lines that go on.

    part         --data_of-->     its bytes, of base64 or quoted-printable
    type, bytes  --is_text-->     whether it is read
    part, text   --join_lines-->  a flowed text, whose soft line breaks divide words
    bytes        --take_bytes-->  those around files that stand in a text by yEnc, and these
    text         --take_files-->  the text around files that stand in it by uuencode, and these
    bytes        --signed_part--> the part in what is signed as a whole (S/MIME, opaque), or None

Sources: RFC 2045 (encodings), RFC 3676 (flowed text), RFC 5652 (Cryptographic Message Syntax), X.690 (its encodings).
"""

import binascii
import quopri
import re
from contextlib import suppress
from email.message import Message
from typing import Final, NamedTuple

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/= \t\r]|[^ \t][ \t]+[^ \t\r]")
_BLANKS = b" \t\r\n"
_BLANKS_AFTER_SIGN = re.compile(rb"=[ \t]++(?=\r?$)", re.MULTILINE)
"""Blanks that a relay adds after the sign of a line that continues."""

_SOFT_BREAK = re.compile(r"(?<!^--) \r?\n(?!>) ?", re.MULTILINE)
"""The end of a flowed line that continues, but not after the sign of a signature."""

_UUENCODED = re.compile(r"^begin [0-7]{3,4} ([^\n]{1,255})\n((?:[!-`][ -`]{0,85}\n)+)(?: ?\n)?end[ \t]*$", re.MULTILINE)
"""A file inside a text, as sent before MIME; a line of it has no lower case, and so none begins another."""

_YENC = re.compile(rb"^=ybegin [^\r\n]{1,200}? name=([^\r\n]{1,255})\r?\n", re.MULTILINE)
_YENC_END = re.compile(rb"^=yend [^\r\n]{1,200}\r?$\n?", re.MULTILINE)
"""Lines before and after a file that Usenet sends as bytes of any value."""

LINE: Final = 60
"""Letters of base64 that are more than a word, or words without blanks."""

_LETTER = re.compile(r"\w")
_CONTROLS = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")

_TEXT_TYPES: Final = frozenset(
    f"application/{name}"
    for name in ("json", "xml", "javascript", "x-javascript", "ecmascript", "sql", "x-sh", "x-shellscript", "x-patch",
                 "x-diff", "yaml", "x-yaml", "toml", "x-tex", "x-latex", "x-perl", "x-python", "x-php", "x-ndjson")
)  # fmt: skip
_UNTEXT_TYPES: Final = frozenset({"text/rtf", "text/x-vcard", "text/vcard"})
PAGE_TYPES: Final = frozenset(
    {"text/html", "application/xhtml+xml", "text/x-amp-html", "text/enriched", "text/richtext"}
)
STYLE_TYPES: Final = frozenset({"text/css", "text/javascript", "application/javascript", "application/x-javascript"})
"""What belongs to a page, as in one that a browser saved in a single file (MHTML), and is no text of it."""
_DOCUMENTS: Final = (b"%PDF", b"{\\rtf", b"%!PS")
"""How documents begin that are no text, whatever type is declared: RTF is often sent as `text/richtext`."""

SIGNED_TYPES: Final = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
"""Types of parts that may be signed as a whole."""

_SIGNED: Final = bytes.fromhex("2a864886f70d010702")
_SEQUENCE, _OBJECT, _OCTETS, _PARTS, _INSIDE = 0x30, 0x06, 0x04, 0x24, 0xA0
_LONG: Final = 0x80
MAX_LEVELS: Final = 8
"""Levels of octets made of octets that are read."""


class _Value(NamedTuple):
    """A value: its tag, and where its content begins and ends; `after`: where the next value begins."""

    tag: int
    begin: int
    end: int
    after: int


def _encoding_of(part: Message) -> str:
    return str(part.get("Content-Transfer-Encoding", "")).lower()


def is_base64(part: Message) -> bool:
    """Return whether the header of a part says that it is base64."""
    return _encoding_of(part) == "base64"


def is_quoted(part: Message) -> bool:
    """Return whether the header of a part says that it is quoted-printable."""
    return _encoding_of(part) == "quoted-printable"


def unquote(data: bytes) -> bytes:
    """Decode quoted-printable."""
    return quopri.decodestring(_BLANKS_AFTER_SIGN.sub(b"=", data))


def raw_of(part: Message) -> bytes:
    """Return the bytes of a part that holds no others as they stand, and forget its encoding.

    Python would decode them by their charset: bytes beyond ASCII in quoted-printable would be lost, and some labels and
    parameters (RFC 2231) raise errors.
    """
    del part["Content-Transfer-Encoding"]
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def data_of(part: Message) -> tuple[bytes, bool]:
    """Return the decoded bytes of a part that holds no others, and whether they were base64."""
    encoding = _encoding_of(part)
    if encoding == "quoted-printable":
        return unquote(raw_of(part)), False
    if encoding == "base64":  # which Python decodes up to the first padding, without what is none
        return _decode_lines(raw_of(part)), True
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b"", False


def _decode_lines(data: bytes) -> bytes:
    r"""Decode base64, also several pieces that each end in padding; lines after it are a text, as is all that is none.

    Programs that send lists put a footer in plain text below a text in base64.

    Example:
        >>> _decode_lines(b"YQ==\nYmM=\n-- \nus\n"), _decode_lines(b"a word\nYWJj\n")
        (b'abc\n-- \nus\n', b'a word\nYWJj\n')
    """
    lines = data.split(b"\n")
    count = next((number for number, line in enumerate(lines) if _NOT_BASE64.search(line)), len(lines))
    encoded, rest = b"".join(lines[:count]).translate(None, _BLANKS), b"\n".join(lines[count:])
    pieces = [piece[: len(piece) - (len(piece) % 4 == 1)] for piece in encoded.split(b"=")]
    decoded = b"".join(binascii.a2b_base64(piece + b"=" * (-len(piece) % 4)) for piece in pieces)
    is_short = len(encoded) < len(rest)  # a footer that is longer than the text, or a text without any base64
    if is_short and (len(encoded) % 4 or not (encoded.endswith(b"=") or len(encoded) > LINE or _is_printed(decoded))):
        return data
    return decoded + (b"\n" if rest and not decoded.endswith(b"\n") else b"") + rest


def _is_printed(data: bytes) -> bool:
    """Return whether bytes are UTF-8 without control characters: words that are no base64 hardly decode to that."""
    try:
        return not _CONTROLS.search(data) and bool(data.decode())
    except UnicodeDecodeError:
        return False


def is_text(kind: str, data: bytes) -> bool:
    """Return whether a part is read: a text by its type, or bytes of no declared type that are a text."""
    if data.startswith(_DOCUMENTS):
        return False
    if kind.startswith(("text/", "multipart/")):  # of a multipart, only one whose boundary does not occur
        return kind not in _UNTEXT_TYPES
    if (
        kind in _TEXT_TYPES
        or kind in PAGE_TYPES
        or (kind.startswith("application/") and kind.endswith(("+xml", "+json")))
    ):
        return True
    if kind != "application/octet-stream" or _CONTROLS.search(data):
        return False
    try:
        return _LETTER.search(data.decode()) is not None
    except UnicodeDecodeError:
        return False


def join_lines(text: str, form: str | None, deletes_blank: str | None) -> str:
    """Return a text without soft line breaks, where the parameters `format` and `delsp` of its part ask for that."""
    is_divided = [(value or "").lower() for value in (form, deletes_blank)] == ["flowed", "yes"]
    return _SOFT_BREAK.sub("", text) if is_divided else text


class SentFile(NamedTuple):
    """A file in a text, and its name."""

    name: str
    data: bytes


def take_bytes(data: bytes) -> list[bytes | tuple[bytes, bytes]]:
    """Return the bytes of a text in pieces: what stands around files by yEnc, and name and bytes of these. Linear."""
    pieces, at = list[bytes | tuple[bytes, bytes]](), 0
    while (start := _YENC.search(data, at)) and (end := _YENC_END.search(data, start.end())):
        pieces += [data[at : start.start()], (start[1], data[start.end() : end.start()])]
        at = end.end()
    return [*pieces, data[at:]]


def take_files(text: str) -> list[str | SentFile]:
    r"""Return a text in pieces: what stands around files by uuencode, and these files. Linear.

    Example:
        >>> take_files("a\nbegin 644 b.bin\n#8F,!\n`\nend\nc"), take_files("begin 644 it\nand so on\nend")
        (['a\n', SentFile(name='b.bin', data=b'bc\x01'), '\nc'], ['begin 644 it\nand so on\nend'])
    """
    pieces, at = list[str | SentFile](), 0
    for block in _UUENCODED.finditer(text) if "begin " in text else ():
        with suppress(binascii.Error):
            data = b"".join(binascii.a2b_uu(line) for line in block[2].splitlines())
            pieces += [text[at : block.start()], SentFile(block[1].strip(), data)]
            at = block.end()
    return [*pieces, text[at:]]


def signed_part(data: bytes) -> bytes | None:
    """Return the MIME part that was signed; None for anything else, such as what is encrypted or damaged. Linear.

    The signature is not verified: it says who wrote, not what.

    Args:
        data: the bytes of a part of one of `SIGNED_TYPES`.
    """
    try:
        return _content(data)
    except (IndexError, ValueError):
        return None


def _content(data: bytes) -> bytes | None:
    outer = _value(data, 0)
    kind = _value(data, outer.begin)
    if (outer.tag, kind.tag) != (_SEQUENCE, _OBJECT) or data[kind.begin : kind.end] != _SIGNED:
        return None
    signed = _value(data, _value(data, kind.after).begin)
    version = _value(data, signed.begin)
    digests = _value(data, version.after)
    content = _value(data, digests.after)
    name = _value(data, content.begin)
    inside = _value(data, name.after)
    if inside.tag != _INSIDE or inside.begin >= content.end:
        return None
    return b"".join(_octets(data, _value(data, inside.begin), MAX_LEVELS))


def _octets(data: bytes, value: _Value, levels: int) -> list[bytes]:
    """Return the pieces of octets, which may be divided."""
    if value.tag == _OCTETS:
        return [data[value.begin : value.end]]
    if value.tag != _PARTS or not levels:
        raise ValueError("no octets")
    pieces, at = list[bytes](), value.begin
    while at < value.end:
        one = _value(data, at)
        pieces += _octets(data, one, levels - 1)
        at = one.after
    return pieces


def _value(data: bytes, at: int) -> _Value:
    """Return the value that begins at a place. Raises IndexError or ValueError if there is none."""
    tag, length, begin = data[at], data[at + 1], at + 2
    if length == _LONG:  # up to two zero bytes
        end = _end_of(data, begin)
        return _Value(tag, begin, end, end + 2)
    if length > _LONG:
        size = length - _LONG
        length, begin = int.from_bytes(data[begin : begin + size], "big"), begin + size
    if begin + length > len(data):
        raise ValueError("a value beyond the end")
    return _Value(tag, begin, begin + length, begin + length)


def _end_of(data: bytes, at: int) -> int:
    """Return where the values inside one without a length end."""
    open_ = 1
    while True:
        if data[at : at + 2] == b"\0\0":
            open_ -= 1
            if not open_:
                return at
            at += 2
        elif data[at + 1] == _LONG:
            open_ += 1
            at += 2
        else:
            at = _value(data, at).after
