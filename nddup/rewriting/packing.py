"""The bytes of a file, compressed as the file was that they come from.

Every packed file ends with a byte that is known beforehand, `end_of` its form: a text with a line end, which is added
where it is missing. Spark can so write it in rows that are cut at this byte.
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
"""A member without content: it is put behind a last member whose own last byte is another."""


class Packer(Protocol):
    """Compresses one member."""

    def compress(self, data: bytes, /) -> bytes:
        """What some bytes add to it."""

    def flush(self) -> bytes:
        """Its end."""


def end_of(head: FileHead, compression: str) -> bytes:
    """The last byte of every file that is written again in this form; a page or a text has none of its own.

    Args:
        head: of the files.
        compression: as of `streams.compression_of`.
    """
    if head.format.kind == "parquet":
        return PARQUET_END
    return ENDS[compression] if compression else line_end_of(head)[-1:]


def line_end_of(head: FileHead) -> bytes:
    """The line end that a text must have at its end. UTF-16 of an unknown order is taken as the usual one."""
    return "\n".encode("utf-16-le" if head.encoding == "utf-16" else head.encoding.replace("-sig", ""))


def pack(pieces: Iterable[bytes | None], compression: str, line_end: bytes = b"\n") -> Iterator[bytes]:
    """The file that some bytes make.

    Args:
        pieces: in order; None ends a member, where the compression has members.
        compression: as of `streams.compression_of`.
        line_end: of a text that is not compressed.

    Yields:
        Some `PIECE` bytes at a time; nothing for no bytes.
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
    """What compresses one member, at the usual level of its program."""
    if compression == "gzip":
        return zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    if compression == "bz2":
        return bz2.BZ2Compressor()
    return lzma.LZMACompressor() if compression == "xz" else _Zstd()


class _Zstd:
    """A frame that ends with an empty block, so with a zero byte."""

    def __init__(self) -> None:
        self._packer = zstandard.ZstdCompressor().compressobj()

    def compress(self, data: bytes) -> bytes:
        return self._packer.compress(data)

    def flush(self) -> bytes:
        return self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + self._packer.flush()
