"""Rewrite files of rows. CSV: its header, and the remaining rows byte for byte. Parquet: all columns with their types
and order, row group by row group.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nddup.errors import first_line
from nddup.ground.columns import one_chunk, path_of
from nddup.reading.chats import with_texts
from nddup.reading.csv_rows import HEADER, Lines, column_names, dialect_of, meant, read_rows
from nddup.reading.decoding import EACH_BYTE, take_marks
from nddup.reading.formats import FileHead, FormatError
from nddup.reading.outcomes import Record, Reject, Value
from nddup.reading.parquet_rows import (
    DAMAGED,
    RowPlace,
    TooLargeError,
    columns_of,
    format_of,
    open_parquet,
    place_rows,
    read_batches,
)
from nddup.reading.streams import PIECE, Expanded
from nddup.rewriting.cut_records import Cuts, Cutting, Values, cut_row
from nddup.rewriting.verdicts import AGAIN, Reader, RewriteError, Tags, Verdicts, tag_row

LINE_ENDS = {
    "utf-16-le": re.compile(rb"\r\0\n\0|\r\0|\n\0"),
    "utf-16-be": re.compile(rb"\0\r\0\n|\0\r|\0\n"),
    "": re.compile(rb"\r\n|\r|\n"),
}
"""The end of a line in UTF-16 and in any other encoding: none has these bytes inside a character."""

Names = Sequence[str]
"""Names of columns."""

GROUP_BYTES = 64 << 20
"""Bytes of rows after which a row group is written."""


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
    for row in read_rows(lines, dialect, head.format.content, with_blank=True):
        raw = source.take(len(lines.row))
        if row == []:
            names_delimiter = not has_header and "".join(lines.row).strip()
            yield raw if verdicts.is_tagging or names_delimiter else b""
            continue
        if not has_header and not isinstance(row, Reject):
            has_header = True
            columns = column_names(row)
            names = dialect.delimiter.join(("", *verdicts.names)) if verdicts.names else ""
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
        tags = verdict if isinstance(verdict, Tags) else None
        cells = "" if isinstance(row, Reject) else tag_row(tags, dialect, len(verdicts.names))
        yield source.append(raw, names if isinstance(row, Reject) and row.reason == HEADER else cells)
    if lines.stopped:
        reader.next()
    reader.require_all(verdicts.count)


def _cut_row(row: list[str], columns: list[str], head: FileHead, cuts: Cuts, cutting: Cutting) -> str | None:
    """Return a row with less text, without its line end; None if it is left whole."""
    cells = [take_marks(cell)[0] for cell in row]
    places = [columns.index(name) for name in head.format.content if name in columns]
    places = [at for at in places if meant(cells[at])] or places[:1]  # as `make_record`
    record = Record(None, None, tuple(meant(cells[at]) for at in places), head.format.is_markup)
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
    """

    def __init__(self, stream: Expanded, encoding: str, *, is_tagging: bool) -> None:
        self._held = bytearray()  # bytes read and not yet taken
        self._is_tagging = is_tagging
        self._codec = encoding.removesuffix("-sig")
        self._end: re.Pattern[bytes] | None = None
        tee = io.BufferedReader(_Tee(stream, self._held), PIECE)
        self.text = io.TextIOWrapper(tee, encoding, errors=EACH_BYTE, newline="")

    def take(self, count: int) -> bytes:
        """Take the bytes of the next lines; the first ones include the byte order mark."""
        if self._end is None:
            if self._codec == "utf-16":
                self._codec = "utf-16-be" if self._held.startswith(b"\xfe\xff") else "utf-16-le"
            self._end = LINE_ENDS.get(self._codec, LINE_ENDS[""])
        unit, end = 2 if self._codec.startswith("utf-16") else 1, 0
        for _ in range(count):
            match = self._end.search(self._held, end)
            while match and match.start() % unit:  # between two characters of UTF-16
                match = self._end.search(self._held, match.start() + 1)
            end = match.end() if match else len(self._held)
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
    """A stream that also stores the bytes read from it."""

    def __init__(self, stream: Expanded, copy: bytearray) -> None:
        super().__init__()
        self._stream, self._held = stream, copy

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._held += data
        return len(data)


class NewValues(NamedTuple):
    """New values of the fields of a row, which are its content columns without nulls; None where a field stays."""

    values: list[Value | None]


Rows = dict[int, Tags | NewValues | None]
"""Rows of a row group, in order, with their tags or new values; None where a row has none."""


def rewrite_parquet(
    raw: BinaryIO, head: FileHead, verdicts: Verdicts, *, limit: int | None, max_record: int
) -> Iterator[bytes]:
    """Yield the bytes of the new file, as the verdicts say, compressed as the first column of the old one.

    Of a file that cannot be opened, whose one verdict is its reject, there are none.

    Args:
        raw: the file, seekable.
        limit: most bytes of content, as when the run read it.
        max_record: most bytes of a record.

    Raises:
        RewriteError: if the file has more or fewer records than the run found, already has tags, or is damaged where a
            document stands.

    Cost: the columns that the records are made of are decoded twice. Memory: a row group of about `GROUP_BYTES`.
    """
    try:
        file = open_parquet(raw)
        schema, forms = file.schema_arrow, _forms(file)
    except DAMAGED as error:
        written = verdicts.has_tags if verdicts.stays is None else verdicts.stays
        if verdicts.count <= 1 and written is not None and not written.any():
            return  # the one reject of a file that cannot be opened
        raise RewriteError(f"cannot be written again: {first_line(error)}") from error
    if set(verdicts.names) & set(schema.names):
        raise RewriteError(AGAIN)
    schema = pa.schema([*schema, *(() if verdicts.tags is None else verdicts.tags.schema)], schema.metadata)

    content: Names = ()
    with suppress(FormatError):  # no column of it is the text: it is one reject
        content = format_of(file, raw, head.format).content
    sink = _Sink()
    with pq.ParquetWriter(sink, schema, **forms) as writer:
        records = place_rows(raw, head, limit=limit, max_record=max_record)
        for group, chosen, end in _choose_rows(file, records, verdicts):
            batches = _read_batches(file, raw, group, end, max_record)
            for rows in _read_rows(batches, chosen, schema, verdicts, content):
                writer.write_table(rows, row_group_size=len(rows))
                yield sink.written()
    yield sink.written()


def _choose_rows(
    file: pq.ParquetFile, records: Iterator[tuple[Record | Reject, RowPlace | None]], verdicts: Verdicts
) -> Iterator[tuple[int, Rows, int]]:
    """Yield the number of each row group, its rows to write with their tags, and the row before which it is read.

    With tags, all rows are written, also those that were not read for their text, as after `input.max_expansion`.
    """
    reader, chosen, current = Reader(verdicts), Rows(), 0
    for one, place in records:
        verdict = reader.next()
        if reader.is_over:
            break
        while place is not None and place.group > current:
            yield current, chosen, _end_of(file, current, chosen, is_whole=verdicts.is_tagging)
            chosen, current = Rows(), current + 1
        if place is not None and verdict is not False:
            chosen[place.row] = verdict if isinstance(verdict, Tags) else None
            if isinstance(verdict, Cuts) and isinstance(one, Record):
                chosen[place.row] = NewValues(cut_row(one, verdict, verdicts.cutting))
    reader.require_all(verdicts.count)
    is_whole = verdicts.is_tagging and not reader.is_over
    for group in range(current, file.num_row_groups if is_whole else min(current + 1, file.num_row_groups)):
        yield group, chosen, _end_of(file, group, chosen, is_whole=is_whole)
        chosen = Rows()


def _end_of(file: pq.ParquetFile, group: int, chosen: Rows, *, is_whole: bool) -> int:
    return int(file.metadata.row_group(group).num_rows) if is_whole else max(chosen, default=-1) + 1


def _read_rows(
    batches: Iterator[tuple[pa.RecordBatch, int]],
    chosen: Rows,
    schema: pa.Schema,
    verdicts: Verdicts,
    content: Sequence[str],
) -> Iterator[pa.Table]:
    """Yield the rows to write of a row group, in tables of about `GROUP_BYTES`; with tags, all rows."""
    tables: list[pa.Table] = []
    size, left = 0, len(chosen)
    for batch, start in batches:
        places = [row for row in range(start, start + len(batch)) if verdicts.is_tagging or row in chosen]
        left -= sum(row in chosen for row in places)
        taken = pa.Table.from_batches(_runs(batch, places, start), batch.schema)
        for at, name in enumerate(verdicts.names):
            values = [None if (tags := chosen.get(row)) is None else tags.values[at] for row in places]
            taken = taken.append_column(schema.field(name), pa.array(values, schema.field(name).type))
        taken = _with_new_values(taken, [chosen.get(row) for row in places], content)
        tables.append(taken.cast(schema))
        size += taken.nbytes
        if size >= GROUP_BYTES:
            yield pa.concat_tables(tables)
            tables, size = [], 0
    if tables and sum(map(len, tables)):
        yield pa.concat_tables(tables)
    if left:
        raise RewriteError(f"{left:,} rows that are documents cannot be decoded in all columns")


def _with_new_values(taken: pa.Table, rows: list[Tags | NewValues | None], content: Names) -> pa.Table:
    """Return rows with their new values in place of the old ones, in columns of strings or bytes, or their fields."""
    new = {at: iter(row.values) for at, row in enumerate(rows) if isinstance(row, NewValues)}
    for name in content if new else ():
        column, *path = [name] if name in taken.column_names else path_of(taken.column_names, name)
        place = taken.column_names.index(column)
        values = one_chunk(taken.column(place)) if path else taken.column(place)
        taken = taken.set_column(place, taken.schema.field(place), _changed(values, path, new))
    return taken


def _changed(
    column: pa.Array | pa.ChunkedArray, path: Names, new: Mapping[int, Iterator[Value | None]]
) -> pa.Array | pa.ChunkedArray:
    """Return a column with the next new value of each row that has one, in the field to which a path leads."""
    kind = column.type
    if path:
        fields, at = column.flatten(), kind.get_field_index(path[0])
        fields[at] = _changed(fields[at], path[1:], new)
        declared = [kind.field(place) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=declared, mask=column.is_null())

    values, is_changed = column.to_pylist(), False
    for row, texts in new.items():
        old = values[row]
        if old is None or old != old or old in ("", b""):  # noqa: PLR0124 - NaN; what `make_record` leaves out
            continue
        value = with_texts(old, texts) if isinstance(old, list) else next(texts)
        values[row], is_changed = old if value is None else value, is_changed or value is not None
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.array(values, plain).cast(kind) if is_changed else column


def _runs(batch: pa.RecordBatch, places: list[int], start: int) -> list[pa.RecordBatch]:
    """Return the rows of a batch at `places`, which begins at row `start`. Arrow cannot take rows of every type."""
    breaks = [at for at in range(1, len(places)) if places[at] != places[at - 1] + 1]
    pairs = zip([0, *breaks], [*breaks, len(places)], strict=True)
    return [batch.slice(places[low] - start, high - low) for low, high in pairs if high > low]


def _read_batches(
    file: pq.ParquetFile, raw: BinaryIO, group: int, end: int, max_record: int
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the rows of a row group before row `end`, and the place of the first one; fewer if a page is damaged.

    A row group that is too large to be read for its text (`parquet_rows.LARGEST`) is not decoded here either.
    """
    with suppress(TooLargeError, *DAMAGED):
        for batch, at in read_batches(file, raw, group, None, max_record) if end else ():
            yield batch.slice(0, end - at), at
            if at + len(batch) >= end:
                return


def _forms(file: pq.ParquetFile) -> dict[str, object]:
    """Return the writer's options that match the file: its compression, and INT96 timestamps if it has any."""
    metadata = file.metadata
    columns = columns_of(file, 0) if metadata.num_row_groups else []
    compression = columns[0].compression.lower() if columns else "snappy"
    return {
        "compression": {"uncompressed": "none"}.get(compression, compression),
        "use_deprecated_int96_timestamps": any(column.physical_type == "INT96" for column in columns),
    }


class _Sink(io.RawIOBase):
    """A file object whose written bytes are taken away as the writing goes on."""

    def __init__(self) -> None:
        super().__init__()
        self._held = bytearray()
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        self._held += data
        self._at += len(data)
        return len(data)

    def written(self) -> bytes:
        """Take the bytes written since the last call."""
        taken = bytes(self._held)
        self._held.clear()
        return taken
