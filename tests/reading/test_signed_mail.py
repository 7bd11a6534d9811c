"""Mail that is signed as a whole: the part in it is read, by definite and indefinite lengths."""

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading.mail import read_message
from nddup.reading.mail_parts import signed_part
from nddup.reading.outcomes import Record
from nddup.reading.records import content_fingerprint, record_text

RUSSIAN = "Привет, это письмо о договоре, который мы подписали вчера вечером"


def one(data: bytes) -> Record:
    """Return the record of a message."""
    found = next(read_message(data, made_up="a.eml#1"))
    assert isinstance(found, Record)
    return found


def der(tag: int, *parts: bytes) -> bytes:
    """Return a value with its length."""
    data = b"".join(parts)
    size = len(data).to_bytes(3, "big")
    return bytes([tag]) + (bytes([len(data)]) if len(data) < 128 else b"\x83" + size) + data


def ber(tag: int, *parts: bytes) -> bytes:
    """Return a value that ends with two zero bytes."""
    return bytes([tag, 0x80]) + b"".join(parts) + b"\0\0"


def signed(data: bytes, write: Callable[..., bytes], size: int = 0, kind: str = "2a864886f70d010702") -> bytes:
    """Return a message that is signed as a whole, by RFC 5652; its octets in pieces of a size, if given."""
    pieces = [der(0x04, data[at : at + size]) for at in range(0, len(data), size)] if size else []
    octets = write(0x24, *pieces) if size else der(0x04, data)
    content = write(0x30, der(0x06, bytes.fromhex("2a864886f70d010701")), write(0xA0, octets))
    inner = write(0x30, der(0x02, b"\1"), der(0x31, der(0x30, b"x")), content, write(0xA0, b"\4\2ab"), der(0x31, b""))
    whole = write(0x30, der(0x06, bytes.fromhex(kind)), write(0xA0, inner))
    head = b"Subject: s\nContent-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64\n\n"
    return head + base64.encodebytes(whole)


@pytest.mark.parametrize("write", [der, ber])
@pytest.mark.parametrize("size", [0, 7, 1000])
def test_mail_that_is_signed_as_a_whole_is_read(write: Callable[..., bytes], size: int) -> None:
    """Its text stands in the signed part; what is encrypted, or damaged, is an attachment that is not read."""
    part = b"Content-Type: text/plain; charset=koi8-r\r\n\r\n" + (RUSSIAN * 9).encode("koi8-r")
    whole = signed(part, write, size)

    found = one(whole)
    assert record_text(found).split("\n") == ["s", RUSSIAN * 9]
    assert found.unread.parts == 0
    assert content_fingerprint(found) != content_fingerprint(one(signed(part, write, 11)))
    for closed in (signed(part, write, size, "2a864886f70d010703"), whole[:200]):
        assert record_text(one(closed)) == "s\nattachment: smime.p7m"
        assert one(closed).unread.parts == 1
    again = signed(whole, write, size)
    assert RUSSIAN in record_text(one(again))


@given(st.binary(max_size=80), st.integers(0, 150))
def test_damaged_signed_mail_is_never_an_error(data: bytes, at: int) -> None:
    """Whatever the bytes, a part is found or not."""
    whole = signed(b"Content-Type: text/plain\n\nwords", ber, 5)
    raw = base64.decodebytes(whole.partition(b"\n\n")[2])
    signed_part(raw[:at] + data + raw[at + 3 :])
    signed_part(data)
