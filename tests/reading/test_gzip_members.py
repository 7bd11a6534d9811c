"""Gzip members against the standard library, whatever the header, the pieces and the damage."""

import gzip
import io
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading.streams import Expanded, GzipMember, StoppedError, _Members


def pack(data: bytes, *, extra: bytes | None, name: bytes | None, comment: bytes | None, checked: bool) -> bytes:
    """Return a gzip member with the given fields of RFC 1952."""
    flags = 4 * (extra is not None) + 8 * (name is not None) + 16 * (comment is not None) + 2 * checked
    header = b"\x1f\x8b\x08" + bytes([flags]) + b"\0" * 4 + b"\0\xff"
    if extra is not None:
        header += struct.pack("<H", len(extra)) + extra
    for text in (name, comment):
        header += b"" if text is None else text + b"\0"
    if checked:
        header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    body = zlib.compressobj(6, zlib.DEFLATED, -15)
    return header + body.compress(data) + body.flush() + struct.pack("<II", zlib.crc32(data), len(data))


def expand(packed: bytes, piece: int) -> bytes:
    """Return what is decoded if the file comes in pieces of `piece` bytes."""
    stream = _Members(io.BytesIO(packed), GzipMember, piece)
    return b"".join(iter(lambda: stream.read1(1), b""))


def read_all(read: Callable[[], bytes], found: list[bytes]) -> None:
    """Read into `found` to the end, or until an error is raised."""
    while data := read():
        found.append(data)


TEXTS = st.one_of(st.none(), st.binary(max_size=20).map(lambda text: text.replace(b"\0", b"")))
MEMBERS = st.lists(
    st.builds(
        pack,
        st.binary(max_size=300),
        extra=st.one_of(st.none(), st.binary(max_size=30)),
        name=TEXTS,
        comment=TEXTS,
        checked=st.booleans(),
    ),
    max_size=4,
)


@given(MEMBERS, st.integers(1, 400), st.integers(0, 3))
def test_members_are_decoded_as_the_standard_library_does(members: list[bytes], piece: int, zeros: int) -> None:
    """Members are decoded for any header and pieces; zero bytes after the last one are ignored."""
    packed = b"".join(members) + b"\0" * zeros * bool(members)

    assert expand(packed, piece) == gzip.decompress(packed)


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_cut_file_gives_a_beginning_and_says_so(data: bytes, draw: st.DataObject) -> None:
    """A file that is cut anywhere gives a true beginning of its text and then raises an error."""
    packed = gzip.compress(data)
    stream = Expanded(io.BytesIO(packed[: draw.draw(st.integers(1, len(packed) - 1))]), "gzip")
    found: list[bytes] = []

    with pytest.raises(StoppedError) as stopped:
        read_all(stream.read, found)

    assert stopped.value.reason == "damaged"
    assert data.startswith(b"".join(found))


@pytest.mark.parametrize(("at", "words"), [(-8, "CRC check"), (-1, "length check"), (0, "not a gzip member")])
def test_what_is_wrong_is_said_after_what_was_decoded(at: int, words: str) -> None:
    """A wrong checksum, length or header of the second member is an error after all bytes decoded before it."""
    second = bytearray(gzip.compress(b"second"))
    second[at] ^= 1
    stream = _Members(io.BytesIO(gzip.compress(b"first ") + bytes(second)), GzipMember, 1 << 13)
    found: list[bytes] = []

    with pytest.raises(OSError, match=words):
        read_all(lambda: stream.read1(1), found)

    assert b"".join(found) == (b"first second" if at else b"first ")


def test_an_endless_name_is_no_header() -> None:
    """A header is bounded, so that a file of letters does not fill the memory."""
    with pytest.raises(OSError, match="header of more than"):
        expand(b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"n" * (1 << 20), 1 << 13)
