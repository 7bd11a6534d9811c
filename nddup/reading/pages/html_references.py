# ruff: noqa: PLR2004 (the numbers of UTF-8 and of code points are their own)
"""Character references of HTML (`&amp;`, `&#65;`, `&#x41;`), and writing a character in UTF-8.

Source: https://html.spec.whatwg.org/multipage/parsing.html#character-reference-state
"""

from html.entities import html5
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.reading.pages.html_elements import NAME_BYTES, find, table_of

NO_CHARACTER: Final = -1
"""In place of a code point: the reference must be left to the parser."""

_AMPERSAND, _HASH, _SEMICOLON, _BLANK = (ord(sign) for sign in "&#; ")
_BITS = 12
_REFERENCES, _CHARACTERS = table_of(
    {
        name[:-1]: ord(character)
        for name, character in html5.items()
        if name.endswith(";") and len(name) <= NAME_BYTES + 1 and len(character) == 1 and ord(character) > ord(" ")
    },
    _BITS,
)
"""The character of every reference that ends with a semicolon and has at most 8 letters, except blanks and controls."""

_OLD_REFERENCES, _OLD_CHARACTERS = table_of(
    {name: ord(character) for name, character in html5.items() if not name.endswith(";")}, _BITS
)
_OLD_LENGTH = max(len(name) for name in html5 if not name.endswith(";"))
"""The character of every reference that needs no semicolon, and the length of the longest."""

_OF_CP1252 = np.array([ord(bytes([byte]).decode("cp1252", "ignore") or chr(byte)) for byte in range(0x80, 0xA0)])
"""The characters for which the numbers 128 to 159 stand, (32,)."""


@compiled
def character_of(name: int) -> int:
    """Return the code point of a named reference, given without `&` and semicolon; 0 if it is not in the table."""
    return find(_REFERENCES, _CHARACTERS, name, 64 - _BITS)


@compiled
def read_reference(page: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return the character of the reference whose `&` is just before `at`, and where it ends; `&` if it is not one.

    NO_CHARACTER for a name with a semicolon that is not in the table, and for a number without a semicolon or one that
    the parser would change.
    """
    if at < end and page[at] == _HASH:
        return _read_number(page, at + 1, end)

    name, start = 0, at
    while at < end and _is_name(page[at]):
        name = (name << 8) | page[at]
        at += 1
    length = at - start
    if length == 0:
        return _AMPERSAND, at
    if at == end or page[at] != _SEMICOLON:
        return _read_old(page, start, at)
    code = character_of(name) if length <= NAME_BYTES else 0
    return (code, at + 1) if code else (NO_CHARACTER, at)


@compiled
def _read_old(page: NDArray[np.uint8], start: int, end: int) -> tuple[int, int]:
    """Return the character of the longest old name at the start of letters without a semicolon, and where it ends.

    If there is none, return `&` and `start`.
    """
    name, code, stop = 0, _AMPERSAND, start
    for at in range(start, min(start + _OLD_LENGTH, end)):
        name = (name << 8) | page[at]
        found = find(_OLD_REFERENCES, _OLD_CHARACTERS, name, 64 - _BITS)
        if found:
            code, stop = found, at + 1
    return code, stop


@compiled
def _read_number(page: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return the character of a numeric reference, given its first digit or `x`, and where it ends; or NO_CHARACTER."""
    code, digits, base = 0, 0, 10
    if at < end and page[at] | 0x20 == ord("x"):
        base, at = 16, at + 1
    while at < end and digits < NAME_BYTES:
        byte = int(page[at])
        digit = byte - ord("0") if byte <= ord("9") else (byte | 0x20) - ord("a") + 10
        if not 0 <= digit < base or (ord("9") < byte < ord("A")):
            break
        code, digits, at = code * base + digit, digits + 1, at + 1

    # Most numbers from 128 to 159 are read as cp1252. The parser changes other controls, surrogates and numbers that
    # are not characters, so these are refused.
    if 0x80 <= code < 0xA0:
        code = _OF_CP1252[code - 0x80]
    is_kept = (
        _BLANK < code < 0x7F
        or 0x80 <= code < 0xD800
        or 0xE000 <= code < 0xFDD0
        or code == 0xFFFD
        or 0x10000 <= code < 0x1FFFE
    )
    is_whole = digits > 0 and at < end and page[at] == _SEMICOLON
    return (code, at + 1) if is_kept and is_whole else (NO_CHARACTER, at)


@compiled
def _is_name(byte: int) -> bool:
    return ord("0") <= byte <= ord("9") or ord("a") <= byte | 0x20 <= ord("z")


@compiled
def put(text: NDArray[np.uint8], size: int, code: int) -> int:
    """Write a character in UTF-8; return the new length."""
    if code < 0x80:
        text[size] = code
        return size + 1
    if code < 0x800:
        text[size] = 0xC0 | code >> 6
        text[size + 1] = 0x80 | (code & 0x3F)
        return size + 2
    length = 3 if code < 0x10000 else 4
    text[size] = (0xE0 if length == 3 else 0xF0) | code >> 6 * (length - 1)
    for place in range(1, length):
        text[size + place] = 0x80 | (code >> 6 * (length - 1 - place) & 0x3F)
    return size + length
