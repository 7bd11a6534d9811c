"""What each byte of a page is in UTF-8: a table for each charset of one byte a character, and one for UTF-8 itself.

    table_of         the table of a charset
    has_characters   whether every byte of a document is a character of a charset
    UTF_8            the table that leaves every byte as it is

A kernel that takes such a table reads pages as they are stored, and writes UTF-8. Below 128 all these charsets are
ASCII.
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
"""Python's codecs of one byte a character that documents may have."""

WRITTEN: Final = 4
"""Bytes of an entry, that of its length included: a kernel writes all of them and keeps the first."""

LENGTH_SHIFT: Final = np.uint32(24)
_MARKS: Final = b"&<\r"
_HIGH: Final = range(128, 256)

Characters = NDArray[np.uint32]


class ByteTable(NamedTuple):
    """What the bytes of a page are in UTF-8.

    Attributes:
        encoding: the codec.
        characters: (256,), read-only: of each byte the bytes in UTF-8, the first lowest, and their number in the
            highest byte; 0 for `&`, `<` and the carriage return, which may not be text as they stand.
        missing: the bytes that are no characters.
        longest: the largest of the numbers.
    """

    encoding: str
    characters: Characters
    missing: bytes
    longest: int


def _make_table(encoding: str, written: list[bytes]) -> ByteTable:
    """The table that writes these, one for each byte."""
    packed = [int.from_bytes(utf8, "little") | len(utf8) << int(LENGTH_SHIFT) for utf8 in written]
    characters = np.array(packed, np.uint32)
    characters[list(_MARKS)] = 0
    characters.flags.writeable = False
    missing = bytes(byte for byte in _HIGH if written[byte] == "\ufffd".encode())
    return ByteTable(encoding, characters, missing, max(map(len, written)))


UTF_8: Final = _make_table("utf-8", [bytes([byte]) for byte in range(256)])
"""For pages that are UTF-8: each byte is written as it is."""


@cache
def table_of(encoding: str) -> ByteTable:
    r"""The table of a charset of SINGLE_BYTE. A byte without a character is written as U+FFFD.

    Example:
        >>> table = table_of("cp1251")
        >>> hex(table.characters[ord("Я".encode("cp1251"))]), table.missing
        ('0x200afd0', b'\x98')
    """
    return _make_table(encoding, [bytes([byte]).decode(encoding, "replace").encode() for byte in range(256)])


def has_characters(data: bytes, encoding: str) -> bool:
    r"""Whether a charset is one of SINGLE_BYTE, and every byte one of its characters.

    Cost: one search, as fast as memory, for each byte that is none; cp1251 has one of these.

    Example:
        >>> has_characters(b"\x98", "cp1251"), has_characters(b"\x98", "koi8-r"), has_characters(b"a", "utf-8")
        (False, True, False)
    """
    return encoding in SINGLE_BYTE and not any(byte in data for byte in table_of(encoding).missing)
