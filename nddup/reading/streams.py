"""Files that must be read from their start: expanded, limited, and cut into chunks.

    COMPRESSIONS     all compressions, declared once for all who read and write them: gzip, bz2, zstd, xz
    compression_of   first bytes                  -> the name of one, or none
    Expanded         a stored file                -> a stream of expanded bytes that says where and why it stopped
    GzipMember       bytes of one gzip member     -> expanded bytes, by ISA-L
    cut_pieces       stream                       -> chunks between separators, parts of long ones: every byte
    reject_parts     those                        -> chunks, and a reject in place of each that is too long
    find_open_end    last bytes of a plain file   -> the place of its last separator, if a chunk follows it
    expand_head      first bytes of a file        -> first expanded bytes

Memory: `max_record` bytes and two pieces; a longer record is skipped and counted, and reading continues after it.
"""

import bz2
import io
import lzma
import re
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO, NamedTuple, Protocol

import zstandard
from isal.igzip_lib import DECOMP_DEFLATE, IgzipDecompressor
from isal.igzip_lib import error as IgzipError
from isal.isal_zlib import crc32

from nddup.errors import StoppedError
from nddup.reading.outcomes import EXCERPT_LENGTH, Reject

__all__ = ["PIECE", "Chunk", "Expanded", "StoppedError", "compression_of", "cut_pieces", "expand_head", "reject_parts"]

MAX_HEADER = 1 << 17
"""Maximum number of bytes of a header: its extra field has at most 64 KB, and no real name or comment is longer than 64
KB."""

DICTIONARY_FRAME, DICTIONARY = b"\x5d\x2a\x4d\x18", b"\x37\xa4\x30\xec"
"""First bytes of the zstd frame that readers skip and WARC files put a dictionary in; first bytes of a dictionary."""

FRAME_START = 8
"""Bytes before what such a frame holds: its beginning, and the number of these."""

LONGEST_DICTIONARY = 1 << 24
"""Maximum size of a dictionary, in bytes; those of archives have about 1 MB."""

TRAILER = 8
_EXTRA, _NAME, _COMMENT, _CHECKED = 4, 8, 16, 2


class NoMemberError(OSError):
    """The bytes do not begin with the header of a gzip member."""


class GzipMember:
    """A decoder of one member, with the interface of the standard library's decompressors.

    ISA-L is twice as fast as zlib. Its own gzip reader raises at a wrong checksum before it returns the last data. Here
    the data is returned first, so that everything that can be decoded of a damaged file is kept.

    Raises:
        OSError: from `decompress`, if the header is not a gzip header; or if the checksum or the length is wrong, in
            the call after the one that returns the last bytes.
        isal.igzip_lib.error: if the compressed data is corrupt.
    """

    def __init__(self) -> None:
        self.eof = False
        self.unused_data = b""
        self._header: bytes | None = b""
        self._body = IgzipDecompressor(flag=DECOMP_DEFLATE)
        self._trailer = b""
        self._failure = ""
        self._crc = self._length = 0

    def decompress(self, data: bytes) -> bytes:
        """Decode the next bytes of the member; call it with no bytes at the end of the file."""
        if self._failure:
            raise OSError(self._failure)

        if self._header is not None:
            self._header += data
            end = _header_end(self._header)
            if end < 0:
                return b""
            data, self._header = self._header[end:], None
        if self._body.eof:
            self._end(self._trailer + data)
            return b""

        decoded: bytes = self._body.decompress(data)
        self._crc = crc32(decoded, self._crc)
        self._length += len(decoded)
        if self._body.eof:
            self._end(self._body.unused_data)
        return decoded

    def _end(self, rest: bytes) -> None:
        """Compare the checksum and the length in the trailer with those of the decoded bytes."""
        self._trailer = rest
        if len(rest) < TRAILER:
            return

        crc, length = int.from_bytes(rest[:4], "little"), int.from_bytes(rest[4:TRAILER], "little")
        if crc != self._crc:
            self._failure = f"CRC check failed: {self._crc:#x}, the file says {crc:#x}"
        elif length != self._length & 0xFFFFFFFF:
            self._failure = f"length check failed: {self._length:,} bytes, the file says {length:,}"
        else:
            self.eof, self.unused_data = True, rest[TRAILER:]


class ZstdFrames:
    """Makes the decoders of the frames of a file, with its dictionary: that of a WARC file is its first frame.

    Source: https://iipc.github.io/warc-specifications/specifications/warc-zstd/
    """

    def __init__(self) -> None:
        self._decompressor: zstandard.ZstdDecompressor | None = None

    def __call__(self) -> "zstandard.ZstdDecompressionObj | _FirstFrame":
        """Return a decoder of the next frame."""
        return self.decoder() if self._decompressor else _FirstFrame(self)

    def decoder(self, dictionary: bytes = b"") -> "zstandard.ZstdDecompressionObj":
        """Return a decoder of a frame that is no dictionary; `dictionary`: of this and later frames."""
        if self._decompressor is None:
            known = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
            self._decompressor = zstandard.ZstdDecompressor(dict_data=known, max_window_size=MOST_WINDOW)
        return self._decompressor.decompressobj()


class _FirstFrame:
    """A decoder of the first frame, which may hold the dictionary of the others, as it is or compressed."""

    def __init__(self, frames: ZstdFrames) -> None:
        self.eof = False
        self.unused_data = b""
        self._frames, self._held = frames, bytearray()
        self._inner: zstandard.ZstdDecompressionObj | None = None

    def decompress(self, data: bytes) -> bytes:
        """As that of the standard library."""
        if self._inner is None:
            self._held += data
            end = self._end()
            if data and end > len(self._held):
                return b""
            self._inner = self._frames.decoder(_dictionary_of(bytes(self._held[FRAME_START:end])))
            data = bytes(self._held)
        decoded: bytes = self._inner.decompress(data)
        self.eof, self.unused_data = self._inner.eof, self._inner.unused_data
        return decoded

    def _end(self) -> int:
        """Return where the frame of a dictionary ends, at least; 0 for another."""
        start = bytes(self._held[:FRAME_START])
        if not start.startswith(DICTIONARY_FRAME[: len(start)]):
            return 0
        size = int.from_bytes(start[len(DICTIONARY_FRAME) :], "little") if len(start) == FRAME_START else 0
        return FRAME_START + size if size <= LONGEST_DICTIONARY else 0


PIECE = 1 << 20
"""Expanded bytes read at a time."""

INPUT_PIECE = 8 << 10
"""Bytes of gzip passed to its decoder at a time: at most this many are lost before damaged bytes.

The decoder is fed in small pieces, so that everything before damaged bytes is kept."""

DENSE_PIECE = 1 << 10
"""Likewise for the other compressions: each byte of theirs may expand to many more."""

LINE_BYTES = 128
"""Bytes that a line or an element (two tags) counts for besides its own where expansion is limited.

Each may be a record, and that takes memory, however short it is."""

TAIL = 64 << 10
"""Bytes at the end of a file that are searched first for its last separator."""

MOST_DICTIONARY = 1 << 29
"""Maximum number of bytes of memory of a decoder of .xz: `xz -9` takes 65 MB."""

MOST_WINDOW = 1 << 31
"""Maximum number of expanded bytes that a decoder of .zst keeps, as of `zstd --long=31`: as far as a file expands."""

MOST_STARTS = 1 << 16
"""Maximum number of stored starts of members: more than begin in the bytes read ahead of a record."""

_ERRORS: tuple[type[Exception], ...] = (  # type: ignore[assignment]
    OSError, EOFError, IgzipError, lzma.LZMAError, zstandard.ZstdError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip


def _header_end(header: bytes) -> int:
    """Find where the compressed data begins; -1 while the header is incomplete. Raises OSError for another header."""
    if header and not b"\x1f\x8b\x08".startswith(header[:3]):
        raise NoMemberError(f"not a gzip member: it begins with {header[:2].hex()}")
    if len(header) > MAX_HEADER:
        raise OSError(f"a gzip header of more than {MAX_HEADER:,} bytes")
    if len(header) < 10:  # noqa: PLR2004 - the fixed part
        return -1

    flags, end = header[3], 10
    if flags & _EXTRA:
        end += 2 + int.from_bytes(header[end : end + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            zero = header.find(b"\0", end)
            if zero < 0:
                return -1
            end = zero + 1
    end += 2 * bool(flags & _CHECKED)
    return end if end <= len(header) else -1


def _dictionary_of(data: bytes) -> bytes:
    """Return a dictionary; empty for bytes that are none."""
    if compression_of(data) == "zstd":
        with zstandard.ZstdDecompressor().stream_reader(data) as expanded:
            data = expanded.read(LONGEST_DICTIONARY)
    return data if data.startswith(DICTIONARY) else b""


class Chunk(NamedTuple):
    """Bytes between two separators, both removed; `is_last` if the end of the file ended them, not a separator.

    `is_whole`: they end with the end of a record, however it is spelled, and nothing was removed (`xml_cutting`). Both:
    they end where another record starts, before an end tag.
    `offset`: where they begin in the stored file, if known.
    """

    value: bytes
    is_last: bool
    is_whole: bool = False
    offset: int | None = None


class Part(NamedTuple):
    """Some bytes of a chunk that is too long, in order; `ends` if they are its last, the others as in `Chunk`."""

    value: bytes
    ends: bool
    is_last: bool = False
    is_whole: bool = False


class Stream(Protocol):
    """The stream to be cut."""

    def read(self, size: int = PIECE) -> bytes:
        """Return at most `size` bytes; none at the end. Raises StoppedError."""


def cut_pieces(stream: Stream, separator: bytes, *, max_record: int, unit: int = 1) -> Iterator[Chunk | Part | Reject]:
    """Cut a stream at a separator.

    Chunks are those that Spark's text source makes of plain files. A chunk that is too long is returned in parts, which
    `nddup.rewriting` writes again.

    Args:
        separator: the bytes between two records, in the encoding of the file.
        max_record: the longest chunk that is returned whole, in bytes.
        unit: bytes per code unit, 2 in UTF-16; separators begin at multiples of it.

    Returns:
        Chunks and parts in file order; the bytes after the last separator are the last chunk, if there are any. The
        first part of a chunk has at least `max_record` bytes, or all of it. If the stream stops, the last item is a
        reject with the reason.

    Raises:
        ValueError: for an empty separator: files of such a kind are not cut.

    Cost: linear, whatever the bytes. Memory: `max_record` and two pieces.
    """
    if not separator:
        raise ValueError("expected the bytes between two records, got none")
    window, searched, passed = bytearray(), 0, 0  # passed: bytes of this chunk already returned as parts
    offset = 0  # place of window[0] in the stream, to align with code units
    while True:
        try:
            piece = stream.read(PIECE)
        except StoppedError as error:
            yield Reject(error.reason, str(error), excerpt_of(window))
            return

        # Every separator in `window` ends a chunk.
        window += piece
        start = 0
        while (end := _find(window, separator, max(start, searched), offset, unit)) >= 0:
            with memoryview(window) as view:
                value = bytes(view[start:end])
            is_long = passed > 0 or len(value) > max_record
            yield Part(value, ends=True) if is_long else Chunk(value, is_last=False)
            start = end + len(separator)
            searched, passed = start, 0

        if not piece:
            value = bytes(window[start:])
            if passed or len(value) > max_record:
                yield Part(value, ends=True, is_last=True)
            elif value:
                yield Chunk(value, is_last=True)
            return

        # Of a chunk that is too long, keep only a tail in which a separator may begin.
        del window[:start]
        offset += start
        tail = min(len(window), (len(separator) - 1 + unit) // unit * unit)
        if passed + len(window) > max_record + len(separator):
            given = len(window) - tail
            yield Part(bytes(window[:given]), ends=False)
            passed += given
            offset += given
            del window[:given]
        searched = max(0, len(window) - tail)


def excerpt_of(data: bytes | bytearray) -> str:
    """Return the first EXCERPT_LENGTH characters of some bytes, for display."""
    return bytes(data[: EXCERPT_LENGTH * 4]).decode("utf-8", "replace")[:EXCERPT_LENGTH]


def _find(window: bytearray, separator: bytes, start: int, offset: int, unit: int) -> int:
    at = window.find(separator, start)
    while at >= 0 and (offset + at) % unit:
        at = window.find(separator, at + 1)
    return at


class Packer(Protocol):
    """Compresses one member."""

    def compress(self, data: bytes, /) -> bytes:
        """Add some bytes; return the compressed ones that are ready."""

    def flush(self) -> bytes:
        """End the member; return its remaining bytes."""


class _Zstd:
    """A frame that ends with an empty block, and so with a zero byte."""

    def __init__(self) -> None:
        self._packer = zstandard.ZstdCompressor().compressobj()

    def compress(self, data: bytes) -> bytes:
        return self._packer.compress(data)

    def flush(self) -> bytes:
        return self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + self._packer.flush()


class Compression(NamedTuple):
    """How files are compressed: all that reading them and writing them again needs.

    Attributes:
        magic: expression for their first bytes.
        decoders: makes, for each file, what makes a decoder of one member, like those of the standard library.
        piece: stored bytes passed to it at a time.
        packer: makes what compresses one member, at the default level of the format's program.
        end: the byte with which every written file ends.
        empty: an empty member, appended if the last member does not end so.
    """

    magic: bytes
    decoders: Callable[[], Callable[[], Any]]
    piece: int
    packer: Callable[[], Packer]
    end: bytes
    empty: bytes = b""


COMPRESSIONS = {
    "gzip": Compression(
        rb"\x1f\x8b", lambda: GzipMember, INPUT_PIECE,
        partial(zlib.compressobj, 6, zlib.DEFLATED, 16 + zlib.MAX_WBITS), b"\0",
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0",
    ),
    "bz2": Compression(  # a block, or the end of an empty stream; a text may begin with the first four bytes
        rb"BZh[1-9](1|\x17|$)", lambda: bz2.BZ2Decompressor, DENSE_PIECE, bz2.BZ2Compressor, b"\0",
        b"BZh9\x17rE8P\x90\0\0\0\0"
    ),
    "zstd": Compression(  # a frame, or a skippable frame, as `pzstd` writes first
        rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", ZstdFrames, DENSE_PIECE, _Zstd, b"\0",
    ),
    "xz": Compression(
        rb"\xfd7zXZ\0", lambda: partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, MOST_DICTIONARY), DENSE_PIECE,
        lzma.LZMACompressor, b"Z",
    ),
}  # fmt: skip
"""All compressions by name. Sources: RFC 1952, RFC 8878, the format of .xz."""


def compression_of(head: bytes) -> str:
    """Return the compression of a file from its first bytes, whatever its name; empty for none.

    Example:
        >>> compression_of(b"BZh91AY"), compression_of(b"<?xml")
        ('bz2', '')
    """
    return next((name for name, one in COMPRESSIONS.items() if re.match(one.magic, head)), "")


class Expanded(io.RawIOBase):
    """The expanded bytes of a file, all its members or frames concatenated.

    Args:
        raw: the file as stored.
        compression: from `compression_of`.
        limit: the most bytes to expand to, where each line or element of a compressed file counts for LINE_BYTES more;
            None for no limit.

    Raises:
        StoppedError: on reading, `damaged` or, past the limit, `too large`. All bytes decoded before that point are
            returned first.
    """

    def __init__(self, raw: BinaryIO, compression: str, limit: int | None = None) -> None:
        super().__init__()
        codec = COMPRESSIONS[compression] if compression else None
        self._stream: Any = _Members(raw, codec.decoders(), codec.piece) if codec else io.BufferedReader(raw, PIECE)
        self._limit = limit
        self._count = self._counted = 0
        self._line = LINE_BYTES if compression else 0
        self._rest = b""

    def stored_place(self, place: int) -> int | None:
        """Return where the stored file holds what begins at an expanded place, which never falls from call to call.

        None if it begins inside a compressed member.
        """
        if isinstance(self._stream, _Members):
            return self._stream.stored_place(place)
        return place

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
            data: bytes = self._rest or self._stream.read1(size)
        except _ERRORS as error:
            text = str(error) or type(error).__name__
            raise StoppedError("damaged", f"{text}, after {self._count:,} bytes") from error

        data, self._rest = data[:size], data[size:]  # a decoder may return more than was asked for
        self._count += len(data)
        if self._limit is None:
            return data
        if self._line:
            self._counted += self._line * max(data.count(b"\n"), data.count(b"\r"), data.count(b"<") // 2)
        self._counted += len(data)
        if self._counted > self._limit:
            data = data[: max(0, len(data) + self._limit - self._counted)]
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
        self._is_full = False  # more of the member may be decoded without more input
        self._starts: deque[tuple[int, int]] = deque(maxlen=MOST_STARTS)
        self._expanded = self._stored = 0

    def stored_place(self, place: int) -> int | None:
        """As `Expanded.stored_place`."""
        last = None
        while self._starts and self._starts[0][0] <= place:
            at, stored = self._starts.popleft()
            last = stored if at == place else None
        return last

    def read1(self, size: int) -> bytes:
        """Return the bytes that the next piece of input expands to, whatever the requested size."""
        del size
        while self._is_full or (piece := self._input or self._next_input()):
            if self._is_full:
                piece = b""
            elif self._member is None:
                piece = piece.lstrip(b"\0")
                if not piece:
                    self._input = b""
                    continue
                self._member = self._decoder()
                self._starts.append((self._expanded, self._stored - len(piece)))

            data = self._decode(piece)
            if data:
                self._expanded += len(data)
                return data

        if self._member is not None:
            self._member.decompress(b"")  # raises first if the checksum is wrong
            raise EOFError("the file ends inside a compressed member")
        return b""

    def _decode(self, piece: bytes) -> bytes:
        """Return at most PIECE bytes of the member where its decoder can stop (bzip2, xz), else all of the input's."""
        if hasattr(self._member, "needs_input"):
            data: bytes = self._member.decompress(piece, PIECE)
            self._is_full = len(data) >= PIECE and not self._member.eof
        else:
            data = self._member.decompress(piece)
        self._input = b""
        if self._member.eof:
            self._input, self._member = self._member.unused_data, None
        return data

    def _next_input(self) -> bytes:
        piece: bytes = self._raw.read(self._piece)
        self._stored += len(piece)
        return piece


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


def reject_parts(pieces: Iterable[Chunk | Part | Reject]) -> Iterator[Chunk | Reject]:
    """Replace the parts of each chunk that is too long by a reject."""
    length, start = 0, ""  # of the current chunk that is too long
    for piece in pieces:
        if not isinstance(piece, Part):
            yield piece
            continue
        start = start or excerpt_of(piece.value)
        length += len(piece.value)
        if piece.ends:
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
