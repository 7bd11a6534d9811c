"""Bodies of HTTP: each encoding is removed, whatever the headers say; nothing encoded becomes text."""

import gzip
import lzma
import random
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]  # FastWARC requires it
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from nddup.reading.warc import BodyError, decode_body, looks_like_text

LIMIT = 1 << 20
PAGE = "<html><body>Сто слов о том, чего в архиве нет. " + " ".join(map(str, range(300)))
TEXT = PAGE.encode()


def chunked(data: bytes, size: int = 100, end: bytes = b"0\r\n\r\n") -> bytes:
    """Return the chunks of a body."""
    parts = (data[at : at + size] for at in range(0, len(data), size))
    return b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in parts) + end


def raw_deflate(data: bytes) -> bytes:
    """Return deflate without the header and the checksum of zlib."""
    return zlib.compress(data)[2:-4]


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstandard.ZstdCompressor().compress,
    "chunked": chunked,
    "identity": bytes,
}


@given(st.lists(st.sampled_from(sorted(ENCODERS)), max_size=4), st.data())
def test_any_encodings_that_were_applied_or_only_named(names: list[str], data: st.DataObject) -> None:
    """The text comes back whichever of the named encodings the body really has."""
    body = TEXT
    for name in names:
        body = ENCODERS[name](body) if data.draw(st.booleans()) else body

    assert decode_body(body, names, LIMIT) == TEXT


@pytest.mark.parametrize("name", ["gzip", "deflate", "Deflate", "chunked"])
def test_a_body_that_is_cut_gives_what_decodes(name: str) -> None:
    """A body that ends early gives a beginning of its text, or nothing at all; it never gives encoded bytes."""
    body = ENCODERS[name](TEXT)
    lengths = set()
    for end in range(4, len(body)):
        try:
            found = decode_body(body[:end], [name], LIMIT)
        except BodyError:
            continue
        assert TEXT.startswith(found)
        lengths.add(len(found))

    assert max(lengths) > len(TEXT) // 2


def test_chunks_that_are_wrong_are_refused() -> None:
    """A wrong length, or one that is no number, gives an error: else lengths would stand inside the text."""
    for wrong in (b"50\r\n" + TEXT[:90] + b"\r\n5\r\nabcde\r\n", chunked(TEXT, end=b"") + b"zz\r\nabc"):
        with pytest.raises(BodyError, match="chunk"):
            decode_body(wrong, ["chunked"], LIMIT)


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd", "compress", "dcb", "utf-8"])
def test_bytes_that_do_not_decode_are_refused(name: str) -> None:
    """Bytes that are neither encoded as named nor text are refused, whatever encoding is named."""
    noise = random.Random(1)  # noqa: S311
    for size in (30, 300, 3000):
        with pytest.raises(BodyError, match="cannot be decoded"):
            decode_body(bytes([0x1F]) + noise.randbytes(size) + bytes(3), [name], LIMIT)
    assert decode_body(TEXT, [name], LIMIT) == TEXT


def test_damage_and_what_is_still_compressed_are_refused() -> None:
    """A damaged member, and a body that is compressed more often than servers do, are no text."""
    body = bytearray(gzip.compress(random.Random(2).randbytes(3000)))  # noqa: S311
    body[1500] ^= 0xFF
    for wrong, names in (
        (bytes(body), ["gzip"]),
        (bytes(body), []),
        (gzip.compress(gzip.compress(gzip.compress(TEXT))), []),
        (lzma.compress(TEXT), []),
    ):
        with pytest.raises(BodyError):
            decode_body(wrong, names, LIMIT)


@pytest.mark.parametrize("named", [[], ["deflate"], ["br"], ["utf-8"], ["chunked"], ["gzip"]])
@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_body_is_known_by_its_first_bytes(named: list[str], compress: Callable[[bytes], bytes]) -> None:
    """As of servers that name no encoding or another one, or compress a file that is compressed."""
    assert decode_body(compress(TEXT), named, LIMIT) == TEXT
    assert decode_body(gzip.compress(compress(TEXT)), named, LIMIT) == TEXT
    assert decode_body(zlib.compress(TEXT), ["gzip"], LIMIT) == TEXT
    assert LIMIT < len(decode_body(compress(bytes(50_000_000)), named, LIMIT)) < 5_000_000


@pytest.mark.parametrize("name", ["gzip", "deflate", "Deflate", "br", "zstd"])
def test_a_bomb_stops_at_the_limit(name: str) -> None:
    """A body that expands too far is expanded to little more than the limit, so that the caller sees that."""
    body = ENCODERS[name](bytes(50_000_000))

    assert 1000 < len(decode_body(body, [name], 1000)) < 5_000_000


def test_what_looks_like_text() -> None:
    """Pages in old charsets and UTF-16 with a mark look like text; a few bytes must also be UTF-8."""
    assert looks_like_text("Короткая".encode())
    assert looks_like_text("<p>Короткая".encode("cp1251"))
    assert looks_like_text("Длинная страница. ".encode("koi8-r") * 20)
    assert looks_like_text("Страница".encode("utf-16"))
    assert not looks_like_text("Короткая".encode("cp1251"))
    assert not looks_like_text(b"<html>\0")


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_chunks_that_no_header_names(size: int) -> None:
    """A body that is chunks from its first byte to its last is joined; a text that begins like one is not changed."""
    assert decode_body(chunked(TEXT, size), [], LIMIT) == TEXT
    assert decode_body(chunked(gzip.compress(TEXT), size), ["gzip"], LIMIT) == TEXT
    for text in (b"5\r\nabcde\r\n", b"5\r\nabcde\r\n0\r\n\r\nmore", b"0\r\n\r\n", b"12\n13\n0\n", b"a\nb\n0\n\n"):
        assert decode_body(text, [], LIMIT) == text
