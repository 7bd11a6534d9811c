"""Bytes -> text by a codec that is known; what it cannot decode becomes U+FFFD, and is counted.

    decode_anyway   bytes, codec  -> Decoded: text, encoding, and the bytes that cannot be decoded
    take_marks      text decoded with EACH_BYTE  -> text, and those bytes

ISO-2022-JP is read with the signs of NEC and IBM, which Python's codec has not.
"""

import codecs
import re
from typing import Final, NamedTuple

_JAPANESE_RUN = re.compile(rb"\x1b(?:\$[@B](?P<pairs>[ -~]*)|\(I(?P<kana>[ -_]*)|\([BJ])")
_HIGH = bytes(byte | 0x80 if byte > ord(" ") else byte for byte in range(256))
_VENDORS: Final = "nddup.vendors"
"""Error handler of `bytes.decode`; the rest as EACH_BYTE."""

_MARKS = 0xDC00

_MARK = re.compile("[\udc00-\udcff]")

EACH_BYTE: Final = "nddup.each"
"""Error handler of `bytes.decode`: each undecodable byte becomes a lone surrogate, which no encoding decodes to."""


class Decoded(NamedTuple):
    """Text, the Python codec that decoded it, and the undecodable bytes, in order; each became one U+FFFD."""

    text: str
    encoding: str
    lost: bytes = b""

    @property
    def replaced(self) -> int:
        """The number of undecodable bytes."""
        return len(self.lost)


def _mark_each(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(_MARKS + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(EACH_BYTE, _mark_each)


def take_marks(text: str) -> tuple[str, bytes]:
    r"""Return a text decoded with EACH_BYTE with U+FFFD for each undecodable byte, and those bytes, in order.

    Example:
        >>> take_marks(b"a\xff\xfeb".decode("utf-8", EACH_BYTE)) == ("a\ufffd\ufffdb", b"\xff\xfe")
        True
    """
    marks = [] if text.isascii() else _MARK.findall(text)
    return (_MARK.sub("\ufffd", text), bytes(ord(mark) - _MARKS for mark in marks)) if marks else (text, b"")


def decode_anyway(raw: bytes, encoding: str) -> Decoded:
    """Decode with a U+FFFD for each undecodable byte."""
    try:
        return Decoded(raw.decode(encoding), encoding)
    except UnicodeDecodeError:
        unescaped = _unescape_japanese(raw) if encoding == "iso2022_jp" and raw.isascii() else None
        marked = raw.decode(encoding, EACH_BYTE) if unescaped is None else unescaped.decode("euc_jp", _VENDORS)
    text, lost = take_marks(marked)
    return Decoded(text, encoding, lost)


def _unescape_japanese(raw: bytes) -> bytes | None:
    r"""Return text in ISO-2022-JP as EUC, which has the same characters; None where it has others.

    Example:
        >>> _unescape_japanese(b"a \x1b$B$\"\x1b(B b").decode("euc_jp")
        'a あ b'
    """
    plain = _JAPANESE_RUN.sub(_unescape_run, raw)
    return None if b"\x1b" in plain else plain


def _unescape_run(run: re.Match[bytes]) -> bytes:
    """Return the bytes after an escape sequence in EUC: pairs of bytes, katakana of one byte, or ASCII."""
    if run["kana"]:
        return b"".join(b"\x8e%c" % (byte | 0x80) if byte > ord(" ") else b" " for byte in run["kana"])
    return run["pairs"].translate(_HIGH) if run["pairs"] else b""


def _read_sign(error: UnicodeError) -> tuple[str, int]:
    """Read a pair of bytes of EUC as a sign of NEC or IBM, as ① and ㈱, which mail has and Python's EUC has not."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    if len(pair) == 2 and min(pair) >= _HIGH[ord("!")]:  # noqa: PLR2004 - a pair
        row, column = pair[0] - 0xA1, pair[1] - 0xA1
        first = row // 2 + (0x81 if row < 0x3E else 0xC1)  # noqa: PLR2004 - the rows of cp932 leave out 0xa0 to 0xdf
        second = column + (0x9F if row % 2 else 0x40 if column < 0x3F else 0x41)  # noqa: PLR2004 - 0x7f is left out
        try:
            return bytes((first, second)).decode("cp932"), error.start + 2
        except UnicodeDecodeError:
            pass
    return _mark_each(error)


codecs.register_error(_VENDORS, _read_sign)
