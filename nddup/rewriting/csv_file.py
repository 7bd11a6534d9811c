"""Rewrite a CSV file: its header, and the remaining rows byte for byte."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace

from nddup.reading.csv_rows import MARK, Lines, dialect_of, read_rows
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record, Reject
from nddup.reading.streams import PIECE, Expanded
from nddup.rewriting.cut_records import Cuts, Cutting, Values
from nddup.rewriting.verdicts import AGAIN, AnyTags, Reader, RewriteError, Verdicts, tag_row

LINE_ENDS = {
    "utf-16-le": re.compile(rb"\r\0\n\0|\r\0|\n\0"),
    "utf-16-be": re.compile(rb"\0\r\0\n|\0\r|\0\n"),
    "": re.compile(rb"\r\n|\r|\n"),
}
"""The end of a line in UTF-16 and in any other encoding: none has these bytes inside a character."""


def rewrite_csv(stream: Expanded, head: FileHead, verdicts: Verdicts, max_record: int) -> Iterator[bytes]:
    """Yield the bytes of the new file, as the verdicts say.

    Raises:
        RewriteError: if the file has more or fewer records than the run found, already has tags, or a line too long to
            be tagged.

    Cost: that of reading the rows. Memory: a row.
    """
    csv.field_size_limit(max_record)
    source = _Source(stream, head.encoding, is_tagging=verdicts.is_tagging)
    lines = Lines(source.text, max_record)
    lines.pass_over = source.pass_over
    dialect, reader, has_header = dialect_of(head), Reader(verdicts), False
    columns: list[str] = []
    for row in read_rows(lines, dialect, with_blank=True):
        raw = source.take(len(lines.row))
        if row == []:
            yield raw if verdicts.is_tagging else b""
            continue
        if not has_header and not isinstance(row, Reject):
            has_header = True
            columns = [name.strip() for name in row]
            names = dialect.delimiter.join(("", *verdicts.names)) if verdicts.is_tagging else ""
            if set(verdicts.names) & set(columns):
                raise RewriteError(AGAIN)
            yield source.append(raw, names)
            continue

        verdict = reader.next()
        if reader.is_over:
            break
        if verdict is False:
            continue
        if isinstance(verdict, Cuts) and not isinstance(row, Reject):
            yield source.change(raw, _cut_row(row, columns, head, verdict, verdicts.cutting))
            continue
        is_row = verdicts.is_tagging and not isinstance(row, Reject)
        tags = verdict if isinstance(verdict, AnyTags) else None
        cells = tag_row(tags, dialect, len(verdicts.names)) if is_row else ""
        yield source.append(raw, cells)
    if lines.stopped:
        reader.next()
    reader.require_all(verdicts.count)


def _cut_row(row: list[str], columns: list[str], head: FileHead, cuts: Cuts, cutting: Cutting) -> str | None:
    """Return a row with less text, without its line end; None if it is left whole."""
    cells = [cell.replace(MARK, "\ufffd") for cell in row]
    places = [columns.index(name) for name in head.format.content if name in columns]
    record = Record(None, None, tuple(cells[at] for at in places), head.format.is_markup)
    dialect = dialect_of(head)

    def write(values: Values) -> tuple[Record | None, bytes]:
        new = list(cells)
        for at, value in zip(places, values, strict=True):
            new[at] = new[at] if value is None else str(value)
        line = dialect.write(new)
        again = next(dialect.read(io.StringIO(f"{line}\n", newline="")), [])
        is_same = len(again) == len(new) and all(again[at] == one for at, one in enumerate(new) if at not in places)
        fields = tuple(again[at] for at in places) if is_same else ()
        return (replace(record, fields=fields) if is_same else None), line.encode()

    data = cutting.apply(record, cuts, write)
    return None if data is None else data.decode()


class _Source:
    """The text of a file, and the bytes it was decoded from.

    Lines are taken by their ends, not by encoding their text again: bytes that cannot be decoded stay as they are.

    Args:
        stream: the file.
        encoding: as in `FileHead`.
        is_tagging: whether every line must be written.
    """

    def __init__(self, stream: Expanded, encoding: str, *, is_tagging: bool) -> None:
        self._held = bytearray()  # bytes read and not yet taken
        self._is_tagging = is_tagging
        self._codec = encoding.removesuffix("-sig")
        self._end: re.Pattern[bytes] | None = None
        tee = io.BufferedReader(_Tee(stream, self._held), PIECE)
        self.text = io.TextIOWrapper(tee, encoding, errors="nddup.mark", newline="")

    def take(self, count: int) -> bytes:
        """Take the bytes of the next lines; the first ones include the byte order mark."""
        if self._end is None:
            if self._codec == "utf-16":
                self._codec = "utf-16-be" if self._held.startswith(b"\xfe\xff") else "utf-16-le"
            self._end = LINE_ENDS.get(self._codec, LINE_ENDS[""])
        unit, end = 2 if self._codec.startswith("utf-16") else 1, 0
        for _ in range(count):
            found = self._end.search(self._held, end)
            while found and found.start() % unit:  # between two characters of UTF-16
                found = self._end.search(self._held, found.start() + 1)
            end = found.end() if found else len(self._held)
        taken = bytes(self._held[:end])
        del self._held[:end]
        return taken

    def append(self, raw: bytes, cells: str) -> bytes:
        """Return a row with more cells before its line end."""
        ending = self._ending(raw)
        return raw[: len(raw) - len(ending)] + cells.encode(self._codec, "xmlcharrefreplace") + ending if cells else raw

    def change(self, raw: bytes, row: str | None) -> bytes:
        """Return another row with the line end of a row; the row itself if there is no other."""
        return raw if row is None else row.encode(self._codec, "xmlcharrefreplace") + self._ending(raw)

    def _ending(self, raw: bytes) -> bytes:
        return next(end for one in ("\r\n", "\n", "\r", "") if raw.endswith(end := one.encode(self._codec)))

    def pass_over(self, row: list[str], rest: str) -> None:
        """Refuse to tag a line that is too long; the rest of it is taken with its start."""
        del row, rest
        if self._is_tagging:
            raise RewriteError("a line is longer than input.max_record and cannot be tagged; raise it")


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
