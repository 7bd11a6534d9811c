"""Base64 as found in records: possibly wrapped, indented, or without its closing `=`.

    decode_base64   text -> bytes, or None

A compiled pass decodes well-formed text and skips blanks. Anything else goes to Python's decoder in its strict mode.
"""

import binascii
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BLANKS: Final = b" \t\r\n"
_BLANK, _PADDING, _FOREIGN = 64, 65, 255
_GROUP, _GROUP_BITS = 4, 24


def _sextets() -> NDArray[np.uint8]:
    """Return the value of each byte in base64, (256,) uint8; blanks, `=` and other bytes have special values."""
    values = np.full(256, _FOREIGN, np.uint8)
    values[list(_ALPHABET)] = np.arange(len(_ALPHABET))
    values[list(_BLANKS)] = _BLANK
    values[ord("=")] = _PADDING
    return values


_SEXTETS = _sextets()
_UNUSUAL: Final = np.uint32(1 << _GROUP_BITS)


def _shifted(bits: int) -> NDArray[np.uint32]:
    """Return the value of each byte shifted by `bits`, (256,) uint32; _UNUSUAL for a byte that is not base64."""
    values = _sextets().astype(np.uint32)
    return np.where(values < _BLANK, values << np.uint32(bits), _UNUSUAL).astype(np.uint32)


_FIRST, _SECOND, _THIRD, _FOURTH = (_shifted(bits) for bits in (18, 12, 6, 0))
_ONE, _TWO, _THREE = (np.uint64(step) for step in (1, 2, 3))
_BYTE, _TWO_BYTES, _LOW_BYTE = np.uint32(8), np.uint32(16), np.uint32(255)


def decode_base64(text: str) -> bytes | None:
    r"""Decode base64 that may be wrapped, indented, or without its closing `=`.

    Returns:
        The bytes, empty for blank text; None for text that is not base64: other characters, data after the padding, or
        a cut group.

    Cost: linear, about 1 ns per character.

    Example:
        >>> decode_base64(" YWJj\n ZA"), decode_base64("YW*j")
        (b'abcd', None)
    """
    try:
        data = text.encode("ascii")
    except UnicodeEncodeError:
        return None
    decoded = np.empty(len(data) // 4 * 3 + 3, np.uint8)
    size = _decode(np.frombuffer(data, np.uint8), decoded)
    return decoded[:size].tobytes() if size >= 0 else _decode_strictly(data)


def _decode_strictly(data: bytes) -> bytes | None:
    """Decode with Python's strict decoder, after removing blanks and completing the padding."""
    data = data.translate(None, _BLANKS)
    try:
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4), strict_mode=True) if data else b""
    except binascii.Error:
        return None


@compiled
def _decode(data: NDArray[np.uint8], decoded: NDArray[np.uint8]) -> int:
    """Decode base64 to the front of `decoded`; return the number of bytes, or -1 for unusual text."""
    at = size = held = bits = padding = 0
    while at < len(data):
        if bits == 0 and padding == 0:
            at, size = _decode_groups(data, at, decoded, size)
            if at == len(data):
                break

        value = int(_SEXTETS[data[at]])
        at += 1
        if value == _PADDING:
            padding += 1
        elif value < _BLANK and padding == 0:
            held, bits = held << 6 | value, (bits + 6) % _GROUP_BITS
            if bits == 0:
                size = _put(decoded, size, held, _GROUP_BITS)
                held = 0
        elif value != _BLANK:
            return -1

    # The last group may have two or three characters, and the padding that completes it.
    if bits == 0 and padding == 0:
        return size
    if bits not in (12, 18) or padding > (_GROUP_BITS - bits) // 6:
        return -1
    return _put(decoded, size, held >> bits % 8, bits - bits % 8)


@compiled
def _decode_groups(data: NDArray[np.uint8], at: int, decoded: NDArray[np.uint8], size: int) -> tuple[int, int]:
    """Decode whole groups up to one with a blank or padding; return where the rest begins, and the new length."""
    # The indices are unsigned: signed ones are checked for being negative, and the loop took twice as long.
    place, target = np.uint64(at), np.uint64(size)
    done, most = 0, (len(data) - at) // _GROUP
    while done < most:
        bits = _FIRST[data[place]] | _SECOND[data[place + _ONE]] | _THIRD[data[place + _TWO]]
        bits |= _FOURTH[data[place + _THREE]]
        if bits >= _UNUSUAL:
            break
        decoded[target] = bits >> _TWO_BYTES
        decoded[target + _ONE] = (bits >> _BYTE) & _LOW_BYTE
        decoded[target + _TWO] = bits & _LOW_BYTE
        place += np.uint64(_GROUP)
        target += _THREE
        done += 1
    return at + _GROUP * done, size + 3 * done


@compiled
def _put(decoded: NDArray[np.uint8], size: int, held: int, bits: int) -> int:
    """Write the lowest `bits` bits of `held`, highest byte first; return the new length."""
    for shift in range(bits - 8, -1, -8):
        decoded[size] = held >> shift & 0xFF
        size += 1
    return size
