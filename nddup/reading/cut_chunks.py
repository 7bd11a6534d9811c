"""A stream cut at a separator. No byte is lost: a chunk that is too long is returned in parts.

    cut_pieces   stream -> chunks; parts of a chunk longer than `max_record`; a reject with the reason if it stops

`streams.cut_stream` passes on the chunks and turns the parts into rejects; `nddup.rewriting` writes both again.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from nddup.reading.outcomes import EXCERPT_LENGTH, Reject

PIECE = 1 << 20
"""Expanded bytes read at a time."""


class StoppedError(Exception):
    """A file cannot be read further; `reason` is the reason of the reject for the rest of the file."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Chunk(NamedTuple):
    """Bytes between two separators, both removed; `is_last` if the end of the file ended them, not a separator.

    `is_whole`: they end with the end of a record, however it is spelled, and nothing was removed (`xml_cutting`).
    """

    value: bytes
    is_last: bool
    is_whole: bool = False


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

    Args:
        stream: the bytes of a file.
        separator: the bytes between two records, in the encoding of the file.
        max_record: the longest chunk that is returned whole, in bytes.
        unit: bytes per code unit, 2 in UTF-16; separators begin at multiples of it.

    Returns:
        Chunks and parts in file order; the bytes after the last separator are the last chunk, if there are any. The
        first part of a chunk has at least `max_record` bytes, or all of it. If the stream stops, the last item is a
        reject with the reason.

    Cost: linear, whatever the bytes. Memory: `max_record` and two pieces.
    """
    held, searched, passed = bytearray(), 0, 0  # passed: bytes of this chunk already returned as parts
    offset = 0  # place of held[0] in the stream, to align with code units
    while True:
        try:
            piece = stream.read(PIECE)
        except StoppedError as error:
            yield Reject(error.reason, str(error), excerpt_of(held))
            return

        # Every separator in `held` ends a chunk.
        held += piece
        start = 0
        while (end := _find(held, separator, max(start, searched), offset, unit)) >= 0:
            with memoryview(held) as view:
                value = bytes(view[start:end])
            is_long = passed > 0 or len(value) > max_record
            yield Part(value, ends=True) if is_long else Chunk(value, is_last=False)
            start = end + len(separator)
            searched, passed = start, 0

        if not piece:
            value = bytes(held[start:])
            if passed or len(value) > max_record:
                yield Part(value, ends=True, is_last=True)
            elif value:
                yield Chunk(value, is_last=True)
            return

        # Of a chunk that is too long, keep only a tail in which a separator may begin.
        del held[:start]
        offset += start
        tail = min(len(held), (len(separator) - 1 + unit) // unit * unit)
        if passed + len(held) > max_record + len(separator):
            given = len(held) - tail
            yield Part(bytes(held[:given]), ends=False)
            passed += given
            offset += given
            del held[:given]
        searched = max(0, len(held) - tail)


def excerpt_of(data: bytes | bytearray) -> str:
    """Return the first EXCERPT_LENGTH characters of some bytes, for display."""
    return bytes(data[: EXCERPT_LENGTH * 4]).decode("utf-8", "replace")[:EXCERPT_LENGTH]


def _find(held: bytearray, separator: bytes, start: int, offset: int, unit: int) -> int:
    at = held.find(separator, start)
    while at >= 0 and (offset + at) % unit:
        at = held.find(separator, at + 1)
    return at
