"""Mail that is signed as a whole (S/MIME, opaque) -> the part that was signed.

    signed_part    bytes of a part `application/pkcs7-mime`  -> the MIME part in it, or None

The signature is not verified: it says who wrote, not what. Mail that is encrypted has no such part.

Sources: RFC 5652 (Cryptographic Message Syntax), X.690 (its encodings, BER and DER).
"""

from typing import Final, NamedTuple

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


def signed_part(data: bytes) -> bytes | None:
    """Return the part that was signed; None for anything else, such as what is encrypted or damaged. Linear."""
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
