"""Rewrite a Parquet file: all columns with their types and order, row group by row group."""

import io
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record, Reject, Value
from nddup.reading.parquet_rows import (
    DAMAGED,
    LARGEST,
    ROWS,
    ROWS_BYTES,
    RowPlace,
    columns_of,
    first_line,
    measure_values,
    open_parquet,
    place_rows,
)
from nddup.reading.xml_structure import table_format
from nddup.rewriting.cut_records import Cuts, cut_row
from nddup.rewriting.verdicts import AGAIN, SCHEMA, SPANS, AnyTags, Reader, RewriteError, Verdicts

MOST_ROWS = 4_096
"""Most rows decoded at a time; fewer if they are long."""


class NewValues(NamedTuple):
    """New values of the fields of a row, which are its content columns without nulls; None where a field stays."""

    values: list[Value | None]


Rows = dict[int, AnyTags | NewValues | None]
"""Rows of a row group, in order, with their tags or new values; None where a row has none."""

Names = Sequence[str]
"""Names of columns."""

GROUP_BYTES = 64 << 20
"""Bytes of rows after which a row group is written."""


def rewrite_parquet(
    raw: BinaryIO, head: FileHead, verdicts: Verdicts, *, limit: int | None, max_record: int
) -> Iterator[bytes]:
    """Yield the bytes of the new file, as the verdicts say, compressed as the first column of the old one.

    Args:
        raw: the file, seekable.
        head: its head.
        verdicts: the verdicts on its records.
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
        raise RewriteError(f"cannot be written again: {first_line(error)}") from error
    if verdicts.is_tagging:
        if set(verdicts.names) & set(schema.names):
            raise RewriteError(AGAIN)
        added = SPANS if verdicts.names == SPANS.names else SCHEMA  # an engine's own table may say more of its columns
        schema = pa.schema([*schema, *added], schema.metadata)

    content = table_format(head.format, file.schema_arrow.names).content
    sink = _Sink()
    with pq.ParquetWriter(sink, schema, **forms) as writer:
        found = place_rows(raw, head, limit=limit, max_record=max_record)
        for group, chosen, end in _choose_rows(file, found, verdicts):
            batches = _read_batches(file, raw, group, end, max_record)
            for rows in _read_rows(batches, chosen, schema, verdicts.names, content):
                writer.write_table(rows, row_group_size=len(rows))
                yield sink.written()
    yield sink.written()


def _choose_rows(
    file: pq.ParquetFile, found: Iterator[tuple[Record | Reject, RowPlace | None]], verdicts: Verdicts
) -> Iterator[tuple[int, Rows, int]]:
    """Yield the number of each row group, its rows to write with their tags, and the row before which it is read.

    With tags, all rows are written, also those that were not read for their text, as after `input.max_expansion`.
    """
    reader, chosen, current = Reader(verdicts), Rows(), 0
    for one, place in found:
        verdict = reader.next()
        if reader.is_over:
            break
        while place is not None and place.group > current:
            yield current, chosen, _end_of(file, current, chosen, is_whole=verdicts.is_tagging)
            chosen, current = Rows(), current + 1
        if place is not None and verdict is not False:
            chosen[place.row] = verdict if isinstance(verdict, AnyTags) else None
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
    names: list[str],
    content: Sequence[str],
) -> Iterator[pa.Table]:
    """Yield the rows to write of a row group, in tables of about `GROUP_BYTES`; with tags, all rows.

    Raises:
        RewriteError: if a chosen row cannot be decoded: a page is damaged of a column that was not read for its text.
    """
    held: list[pa.Table] = []
    size, left, is_tagging = 0, len(chosen), bool(names)
    for batch, start in batches:
        places = [row for row in range(start, start + len(batch)) if is_tagging or row in chosen]
        left -= sum(row in chosen for row in places)
        taken = pa.Table.from_batches(_runs(batch, places, start), batch.schema)
        for at, name in enumerate(names):
            values = [None if (tags := chosen.get(row)) is None else tags[at] for row in places]
            taken = taken.append_column(schema.field(name), pa.array(values, schema.field(name).type))
        taken = _with_new_values(taken, [chosen.get(row) for row in places], content)
        held.append(taken.cast(schema))
        size += taken.nbytes
        if size >= GROUP_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held and sum(map(len, held)):
        yield pa.concat_tables(held)
    if left:
        raise RewriteError(f"{left:,} rows that are documents cannot be decoded in all columns")


def _with_new_values(taken: pa.Table, rows: list[AnyTags | NewValues | None], content: Names) -> pa.Table:
    """Return rows with their new values in place of the old ones, in columns of strings or bytes."""
    new = {at: list(row.values) for at, row in enumerate(rows) if isinstance(row, NewValues)}
    for name in content if new else ():
        place = taken.column_names.index(name)
        kind = taken.schema.field(place).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        column, is_changed = taken.column(place).to_pylist(), False
        for at, values in new.items():
            value = values.pop(0) if column[at] is not None and column[at] == column[at] else None
            is_changed |= value is not None
            column[at] = column[at] if value is None else value
        if is_changed:
            taken = taken.set_column(place, taken.schema.field(place), pa.array(column, plain).cast(kind))
    return taken


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
    try:
        columns = columns_of(file, group)
        longest = max(measure_values(columns, raw, [column.path_in_schema for column in columns]), default=0)
    except DAMAGED:
        return
    if longest > LARGEST * max_record:
        return

    most = max(1, min(MOST_ROWS, ROWS_BYTES // max(longest, 1)))
    most -= most % ROWS if most > ROWS else 0
    start = 0
    for rows in (most, min(most, ROWS)):  # after an error, as few as were read for their text
        at = 0
        try:
            for batch in file.iter_batches(rows, row_groups=[group], use_threads=False) if start < end else ():
                if at >= start:
                    few = batch.slice(0, end - at)
                    yield few, at
                    start = at + len(few)
                at += len(batch)
                if start >= end:
                    return
        except DAMAGED:
            continue


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
