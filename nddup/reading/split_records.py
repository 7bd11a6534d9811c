"""A file that Spark delivers in pieces, cut at line ends, as one stream of bytes."""

import io
from collections.abc import Iterable, Iterator

from nddup.reading.streams import StoppedError

MARK_BYTES = 3
"""Bytes of a UTF-8 byte order mark. Spark removes it, and nothing depends on it."""


class Pieces(io.RawIOBase):
    r"""The bytes of a file, from the pieces between line ends.

    Args:
        pieces: in file order, with a line end between any two. A piece may contain line ends itself.
        size: bytes of the file; decides whether the file ends with a line end, and whether pieces are missing.

    Raises:
        StoppedError: on reading, `damaged` if bytes are missing, after all others have been returned.

    Cost: each byte is copied twice; memory: one piece.

    Example:
        >>> Pieces([b"a\nb", b"c"], 6).read(), Pieces([b"a\nb", b"c"], 5).read()
        (b'a\nb\nc\n', b'a\nb\nc')
    """

    def __init__(self, pieces: Iterable[bytes], size: int) -> None:
        super().__init__()
        self._parts = _joined(pieces, size)
        self._held = memoryview(b"")

    def readable(self) -> bool:
        """Return True, as every readable stream does."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Implement `io.RawIOBase`."""
        if not self._held:
            self._held = memoryview(next((part for part in self._parts if part), b""))
        taken = min(len(buffer), len(self._held))
        buffer[:taken] = self._held[:taken]
        self._held = self._held[taken:]
        return taken


def _joined(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the pieces with their line ends. Raises StoppedError at the end if bytes are missing."""
    came, between = 0, b""
    for piece in pieces:
        part = between + piece
        came += len(part)
        between = b"\n"
        yield part
    missing = size - came
    if missing in (1, 1 + MARK_BYTES):
        yield b"\n"
    elif missing not in (0, MARK_BYTES):
        raise StoppedError("damaged", f"{came:,} of {size:,} bytes came")
