"""Tables that convert a page to UTF-8 byte by byte: one for each single-byte charset, and one for UTF-8 itself.

    table_of         the table of a charset
    has_characters   whether every byte of a document is a character of a charset
    UTF_8            the table that leaves every byte unchanged

A kernel with such a table reads pages as stored, and writes UTF-8. Below 128 all these charsets are ASCII.
"""

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

SINGLE_BYTE: Final = frozenset(
    {"cp866", "cp874", "koi8-r", "koi8-u", "mac-cyrillic", "mac-roman"}
    | {f"cp125{digit}" for digit in range(9)}
    | {f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
)
"""Python's single-byte codecs that are accepted for documents."""

WRITTEN: Final = 4
"""Bytes per entry, its length byte included. Kernels write past a short character, so text buffers need as many spare.
"""

LENGTH_SHIFT: Final = np.uint32(24)
_MARKS: Final = b"&<\r"
_HIGH: Final = range(128, 256)

Characters = NDArray[np.uint32]


class ByteTable(NamedTuple):
    """The UTF-8 of each byte of a charset.

    Attributes:
        encoding: the codec.
        characters: (256,) uint32, read-only: for each byte its UTF-8, the first byte lowest, and the number of these
            bytes in the highest byte; 0 for `&`, `<` and the carriage return, which need special treatment in text.
        missing: the bytes that are not characters of the charset.
        longest: the most UTF-8 bytes of any byte.
    """

    encoding: str
    characters: Characters
    missing: bytes
    longest: int


def _make_table(encoding: str, written: list[bytes]) -> ByteTable:
    """Make the table that writes `written[byte]` for each byte."""
    packed = [int.from_bytes(utf8, "little") | len(utf8) << int(LENGTH_SHIFT) for utf8 in written]
    characters = np.array(packed, np.uint32)
    characters[list(_MARKS)] = 0
    characters.flags.writeable = False
    missing = bytes(byte for byte in _HIGH if written[byte] == "\ufffd".encode())
    return ByteTable(encoding, characters, missing, max(map(len, written)))


UTF_8: Final = _make_table("utf-8", [bytes([byte]) for byte in range(256)])
"""The table for pages in UTF-8: each byte is written unchanged."""


@cache
def table_of(encoding: str) -> ByteTable:
    r"""Return the table of a charset in SINGLE_BYTE. A byte without a character is written as U+FFFD.

    Example:
        >>> table = table_of("cp1251")
        >>> hex(table.characters[ord("Я".encode("cp1251"))]), table.missing
        ('0x200afd0', b'\x98')
    """
    return _make_table(encoding, [bytes([byte]).decode(encoding, "replace").encode() for byte in range(256)])


def has_characters(data: bytes, encoding: str) -> bool:
    r"""Return whether a charset is one of SINGLE_BYTE and every byte of `data` is one of its characters.

    Cost: one search, at the speed of memory, for each byte that is not a character; cp1251 has one such byte.

    Example:
        >>> has_characters(b"\x98", "cp1251"), has_characters(b"\x98", "koi8-r"), has_characters(b"a", "utf-8")
        (False, True, False)
    """
    return encoding in SINGLE_BYTE and not any(byte in data for byte in table_of(encoding).missing)
