"""Compress the bytes of a new file as the original file was.

Every packed file ends with a byte known in advance (`end_of`); uncompressed text ends with a line end, which is added
if missing. So Spark can write a file as rows that are cut at this byte.
"""

import bz2
import lzma
import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

import zstandard

from nddup.reading.formats import FileHead
from nddup.reading.streams import PIECE

GZIP_LEVEL = 6
ENDS = {"gzip": b"\0", "bz2": b"\0", "zstd": b"\0", "xz": b"Z"}
PARQUET_END = b"1"
EMPTY_GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0"
EMPTY_BZ2 = b"BZh9\x17rE8P\x90\0\0\0\0"
"""Empty members, this and `EMPTY_GZIP`: appended if the last member does not end with its byte in `ENDS`."""


class Packer(Protocol):
    """Compresses one member."""

    def compress(self, data: bytes, /) -> bytes:
        """Add some bytes; return the compressed ones that are ready."""

    def flush(self) -> bytes:
        """End the member; return its remaining bytes."""


def end_of(head: FileHead, compression: str) -> bytes:
    """Return the last byte of every file rewritten in this form; pages and texts are copied and may end otherwise.

    Args:
        head: the head of the files.
        compression: as from `streams.compression_of`.
    """
    if head.format.kind == "parquet":
        return PARQUET_END
    return ENDS[compression] if compression else line_end_of(head)[-1:]


def line_end_of(head: FileHead) -> bytes:
    """Return the line end that a text must end with. UTF-16 of unknown byte order is taken as little-endian."""
    return "\n".encode("utf-16-le" if head.encoding == "utf-16" else head.encoding.replace("-sig", ""))


def pack(pieces: Iterable[bytes | None], compression: str, line_end: bytes = b"\n") -> Iterator[bytes]:
    """Pack bytes into a file.

    Args:
        pieces: the bytes in order; None ends a member, in gzip.
        compression: as from `streams.compression_of`.
        line_end: the line end that uncompressed text must end with.

    Yields:
        At least `PIECE` bytes at a time, except for the last; nothing if there are no bytes.
    """
    held, size, last = [], 0, b""
    for piece in _members(pieces, compression, line_end):
        held.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield (last := b"".join(held))
            held, size = [], 0
    rest = b"".join(held)
    ending = (rest or last)[-1:]
    if compression and ending and ending != ENDS[compression]:
        rest += {"gzip": EMPTY_GZIP, "bz2": EMPTY_BZ2}.get(compression, b"")
    if rest:
        yield rest


def _members(pieces: Iterable[bytes | None], compression: str, line_end: bytes) -> Iterator[bytes]:
    if not compression:
        last = b""
        for piece in pieces:
            if piece:
                yield (last := piece)
        if last and not last.endswith(line_end):
            yield line_end
        return

    packer: Packer | None = None
    for piece in pieces:
        if piece is None and compression == "gzip" and packer is not None:
            yield packer.flush()
            packer = None
        elif piece:
            packer = packer or packer_of(compression)
            yield packer.compress(piece)
    if packer is not None:
        yield packer.flush()


def packer_of(compression: str) -> Packer:
    """Return a packer for one member, at the default level of the format's program."""
    if compression == "gzip":
        return zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    if compression == "bz2":
        return bz2.BZ2Compressor()
    return lzma.LZMACompressor() if compression == "xz" else _Zstd()


class _Zstd:
    """A frame that ends with an empty block, and so with a zero byte."""

    def __init__(self) -> None:
        self._packer = zstandard.ZstdCompressor().compressobj()

    def compress(self, data: bytes) -> bytes:
        return self._packer.compress(data)

    def flush(self) -> bytes:
        return self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + self._packer.flush()
