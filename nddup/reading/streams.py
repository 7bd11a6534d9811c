"""Files that must be read from their start: expanded, limited, and cut into chunks.

    compression_of   first bytes -> gzip, bz2, zstd, xz, or none
    Expanded         a stream of expanded bytes that says where and why it stopped
    cut_stream       stream -> chunks between separators, as Spark's text source cuts plain files
    find_open_end    last bytes of a plain file -> the place of its last separator, if a chunk follows it
    expand_head      first bytes of a file -> first expanded bytes

The decoder is fed in small pieces, so that everything before damaged bytes is kept. Memory is limited to `max_record`
bytes and two pieces: a longer record is skipped and counted, and reading continues after it.
"""

import bz2
import io
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

import zstandard
from isal.igzip_lib import error as IgzipError

from nddup.reading.cut_chunks import PIECE, Chunk, Part, StoppedError, cut_pieces, excerpt_of
from nddup.reading.gzip_members import GzipMember
from nddup.reading.outcomes import Reject

INPUT_PIECE = 8 << 10
"""Bytes of gzip passed to its decoder at a time: at most this many are lost before damaged bytes."""

DENSE_PIECE = 1 << 10
"""Likewise for the other compressions: each byte of theirs may expand to many more."""

TAIL = 64 << 10
"""Bytes at the end of a file that are searched first for its last separator."""

__all__ = ["PIECE", "Chunk", "Expanded", "StoppedError", "compression_of", "cut_stream", "expand_head", "reject_parts"]

MAGIC = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9](1|\x17|$)": "bz2",  # a block, or the end of an empty stream; a text may begin with the first four
    rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18": "zstd",  # a frame, or a skippable frame, as `pzstd` writes first
    rb"\xfd7zXZ\0": "xz",
}
"""Expressions for the first bytes of compressed files. Sources: RFC 1952, RFC 8878, the format of .xz."""

_ERRORS: tuple[type[Exception], ...] = (OSError, EOFError, IgzipError, lzma.LZMAError, zstandard.ZstdError)  # type: ignore[assignment]


def compression_of(head: bytes) -> str:
    """Return the compression of a file from its first bytes, whatever its name; empty for none.

    Example:
        >>> compression_of(b"BZh91AY"), compression_of(b"<?xml")
        ('bz2', '')
    """
    return next((name for magic, name in MAGIC.items() if re.match(magic, head)), "")


class Expanded(io.RawIOBase):
    """The expanded bytes of a file, all its members or frames concatenated.

    Args:
        raw: the file as stored.
        compression: from `compression_of`.
        limit: the most bytes to expand to; None for no limit.

    Raises:
        StoppedError: on reading, `damaged` or, past the limit, `too large`. All bytes decoded before that point are
            returned first.
    """

    def __init__(self, raw: BinaryIO, compression: str, limit: int | None = None) -> None:
        super().__init__()
        self._stream = _decoder(raw, compression)
        self._limit = limit
        self._count = 0
        self._rest = b""

    def readable(self) -> bool:
        """Return True, as every readable stream does."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Implement `io.RawIOBase`, for `io.TextIOWrapper`."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int = PIECE) -> bytes:
        """Return at most `size` bytes; none at the end."""
        try:
            data: bytes = self._rest or self._stream.read1(size)  # type: ignore[attr-defined]
        except _ERRORS as error:
            text = str(error) or type(error).__name__
            raise StoppedError("damaged", f"{text}, after {self._count:,} bytes") from error

        data, self._rest = data[:size], data[size:]  # a decoder may return more than was asked for
        self._count += len(data)
        if self._limit is not None and self._count > self._limit:
            data = data[: max(0, len(data) + self._limit - self._count)]
            if not data:
                raise StoppedError("too large", f"expands to more than {self._limit:,} bytes (input.max_expansion)")
        return data


class _Members(io.RawIOBase):
    """Concatenated streams, members or frames, each decoded by its own decoder; zero bytes between them are ignored.

    Unlike the libraries' own file readers, it raises if a file ends inside a member, and if what follows a member is
    neither zero bytes nor another member: they take any bytes after the first member that they cannot decode for
    garbage, and end the file there.
    """

    def __init__(self, raw: BinaryIO, decoder: Callable[[], Any], piece: int) -> None:
        super().__init__()
        self._raw, self._decoder, self._piece = raw, decoder, piece
        self._member: Any = None
        self._input = b""

    def read1(self, size: int) -> bytes:
        """Return the bytes that the next piece of input expands to, whatever the requested size."""
        del size
        while piece := self._input or self._raw.read(self._piece):
            self._input = b""
            if self._member is None:
                piece = piece.lstrip(b"\0")
                if not piece:
                    continue
                self._member = self._decoder()

            data: bytes = self._member.decompress(piece)
            if self._member.eof:
                self._input, self._member = self._member.unused_data, None
            if data:
                return data

        if self._member is not None:
            self._member.decompress(b"")  # raises first if the checksum is wrong
            raise EOFError("the file ends inside a compressed member")
        return b""


def _decoder(raw: BinaryIO, compression: str) -> BinaryIO:
    if compression == "gzip":
        return _Members(raw, GzipMember, INPUT_PIECE)  # type: ignore[return-value]
    if compression == "bz2":
        return _Members(raw, bz2.BZ2Decompressor, DENSE_PIECE)  # type: ignore[return-value]
    if compression == "xz":
        return _Members(raw, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ), DENSE_PIECE)  # type: ignore[return-value]
    if compression == "zstd":
        return _Members(raw, zstandard.ZstdDecompressor().decompressobj, DENSE_PIECE)  # type: ignore[return-value]
    return io.BufferedReader(raw, PIECE)  # type: ignore[type-var]


def expand_head(raw: bytes, size: int) -> bytes:
    """Expand the first bytes of a file to at most `size` bytes; to fewer if they end earlier or are damaged."""
    stream = Expanded(io.BytesIO(raw), compression_of(raw))
    parts: list[bytes] = []
    try:
        while size > 0 and (data := stream.read(min(size, PIECE))):
            parts.append(data)
            size -= len(data)
    except StoppedError:
        pass
    return b"".join(parts)[: size + sum(map(len, parts))] if size < 0 else b"".join(parts)


def cut_stream(stream: Expanded, separator: bytes, *, max_record: int, unit: int = 1) -> Iterator[Chunk | Reject]:
    """Cut a stream at a separator.

    Args:
        stream: the bytes of a file.
        separator: the bytes between two records, in the encoding of the file.
        max_record: the longest chunk returned, in bytes.
        unit: bytes per code unit, 2 in UTF-16; separators begin at multiples of it.

    Returns:
        Chunks in file order; the bytes after the last separator are the last chunk. A chunk longer than `max_record` is
        replaced by a reject `too large`. If the stream stops, the last item is a reject with the reason.

    Cost: linear, whatever the bytes. Memory: `max_record` and two pieces.
    """
    return reject_parts(cut_pieces(stream, separator, max_record=max_record, unit=unit))


def reject_parts(pieces: Iterable[Chunk | Part | Reject]) -> Iterator[Chunk | Reject]:
    """Replace the parts of each chunk that is too long by a reject."""
    length, start = 0, ""  # of the current chunk that is too long
    for found in pieces:
        if not isinstance(found, Part):
            yield found
            continue
        start = start or excerpt_of(found.value)
        length += len(found.value)
        if found.ends:
            yield too_large(length, start)
            length, start = 0, ""


def find_open_end(read: Callable[[int, int], bytes], size: int, separator: bytes, *, max_record: int) -> int:
    r"""Find where the last separator of a plain file begins, if a chunk follows it.

    Spark does not say whether a separator or the end of the file ended a chunk. The result decides it: the last chunk
    of a file is in the split that holds the first byte of the separator before it (or the first byte of the file).

    Args:
        read: (place, length) -> bytes of the file.
        size: bytes of the file.
        separator: the bytes at which the file is cut. It must not overlap itself; tags and line ends do not.
        max_record: the longest chunk of interest, in bytes.

    Returns:
        The place; 0 if the file has no separator; -1 if the file ends with one, or if the chunk after it is longer than
        `max_record` and therefore a reject in any case.

    Cost: reads the last `TAIL` bytes; while these hold no separator, sixteen times as many, up to `max_record`.

    Example:
        >>> data = b"<d>a</d><d>b</d>\n"
        >>> find_open_end(lambda start, size: data[start : start + size], len(data), b"</d>", max_record=100)
        12
    """
    most, length = max_record + len(separator), min(TAIL, size)
    while True:
        tail = read(size - length, length)
        at = tail.rfind(separator)
        if at >= 0:
            return -1 if at + len(separator) == length else size - length + at
        if length == size:
            return 0
        if length >= most:
            return -1
        length = min(length * 16, most, size)


def too_large(length: int, excerpt: str) -> Reject:
    """Make the reject for a chunk longer than `max_record`; all readers use it."""
    return Reject("too large", f"{length:,} bytes, more than input.max_record", excerpt)
