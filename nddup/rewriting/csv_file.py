"""Rewrite a CSV file: its header, and the remaining rows byte for byte."""

import csv
import io
from collections.abc import Iterator

from nddup.reading.csv_rows import Lines, dialect_of, read_rows
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Reject
from nddup.reading.streams import PIECE, Expanded
from nddup.rewriting.tag_records import AGAIN, tag_row
from nddup.rewriting.verdicts import NAMES, Reader, RewriteError, Tags, Verdicts

UNTOLD = "in its encoding {} the bytes of a row cannot be recovered; convert it to UTF-8 first"


def rewrite_csv(stream: Expanded, head: FileHead, verdicts: Verdicts, max_record: int) -> Iterator[bytes]:
    """Yield the bytes of the new file, as the verdicts say.

    Raises:
        RewriteError: if the file has more or fewer records than the run found, already has tags, has an encoding in
            which the bytes of a row cannot be recovered, or a line too long to be tagged.

    Cost: that of reading the rows. Memory: a row.
    """
    csv.field_size_limit(max_record)
    source = _Source(stream, head.encoding, is_tagging=verdicts.is_tagging)
    lines = Lines(source.text, max_record)
    lines.pass_over = source.pass_over
    dialect, reader, has_header = dialect_of(head), Reader(verdicts), False
    for row in read_rows(lines, dialect, with_blank=True):
        text = "".join(lines.row)
        raw = source.take(text)
        if row == []:
            yield raw if verdicts.is_tagging else b""
            continue
        if not has_header and not isinstance(row, Reject):
            has_header = True
            names = dialect.delimiter.join(("", *NAMES)) if verdicts.is_tagging else ""
            if names and set(NAMES) & {name.strip() for name in row}:
                raise RewriteError(AGAIN)
            yield source.append(raw, text, names)
            continue

        verdict = reader.next()
        if reader.is_over:
            break
        if verdict is False:
            continue
        is_row = verdicts.is_tagging and not isinstance(row, Reject)
        cells = tag_row(verdict if isinstance(verdict, Tags) else None, dialect) if is_row else ""
        yield source.append(raw, text, cells)
    if lines.stopped:
        reader.next()
    reader.require_all(verdicts.count)


class _Source:
    """The text of a file, and the bytes it was decoded from.

    Args:
        stream: the file.
        encoding: as in `FileHead`.
        is_tagging: whether every line must be written.
    """

    def __init__(self, stream: Expanded, encoding: str, *, is_tagging: bool) -> None:
        self._held = bytearray()  # bytes read and not yet taken
        self._is_tagging = is_tagging
        self._encoding, self._codec, self._is_begun = encoding, encoding, False
        tee = io.BufferedReader(_Tee(stream, self._held), PIECE)
        self.text = io.TextIOWrapper(tee, encoding, errors="surrogateescape", newline="")

    def take(self, text: str) -> bytes:
        """Take the bytes of the next lines; the first ones include the byte order mark."""
        data = self._begin() + self._encode(text)
        if not self._held.startswith(data):
            raise RewriteError(UNTOLD.format(self._encoding))
        del self._held[: len(data)]
        return data

    def append(self, raw: bytes, text: str, cells: str) -> bytes:
        """Return a row with more cells before its line end."""
        if not cells:
            return raw
        end = self._encode(text[len(text.rstrip("\r\n")) :])
        return raw[: len(raw) - len(end)] + self._encode(cells, "strict") + end

    def pass_over(self, row: list[str], rest: str) -> None:
        """Drop the skipped rest of a line that is too long; the lines of `row` come before it and are taken later."""
        if self._is_tagging:
            raise RewriteError("a line is longer than input.max_record and cannot be tagged; raise it")
        start = sum(len(self._encode(line)) for line in row) + len(self._begin(peek=True))
        del self._held[start : start + len(self._encode(rest))]

    def _begin(self, *, peek: bool = False) -> bytes:
        """Return the byte order mark once, then nothing; in UTF-16 it decides the codec."""
        if self._is_begun:
            return b""
        self._is_begun = not peek
        if self._encoding == "utf-16":
            self._codec = "utf-16-be" if self._held.startswith(b"\xfe\xff") else "utf-16-le"
            return bytes(self._held[:2]) if self._held.startswith((b"\xfe\xff", b"\xff\xfe")) else b""
        if self._encoding == "utf-8-sig":
            self._codec = "utf-8"
            return b"\xef\xbb\xbf" if self._held.startswith(b"\xef\xbb\xbf") else b""
        return b""

    def _encode(self, text: str, errors: str = "surrogateescape") -> bytes:
        try:
            return text.encode(self._codec, errors)
        except UnicodeError:
            raise RewriteError(UNTOLD.format(self._encoding)) from None


class _Tee(io.RawIOBase):
    """A stream that also keeps the bytes read from it."""

    def __init__(self, stream: Expanded, held: bytearray) -> None:
        super().__init__()
        self._stream, self._held = stream, held

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._held += data
        return len(data)
