"""Rewrite a Parquet file: all columns with their types and order, row group by row group."""

import io
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nddup.reading.formats import FileHead
from nddup.reading.parquet_rows import ROWS_BYTES, measure_values, place_rows
from nddup.rewriting.tag_records import AGAIN
from nddup.rewriting.verdicts import NAMES, SCHEMA, Reader, RewriteError, Tags, Verdicts

MOST_ROWS = 4_096
"""Most rows decoded at a time; fewer if they are long."""

Rows = dict[int, Tags | None]
"""Rows of a row group, in order, with their tags; None where a row has none."""

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
        RewriteError: if the file has more or fewer records than the run found, or already has tags.

    Cost: the columns that the records are made of are decoded twice. Memory: a row group of about `GROUP_BYTES`.
    """
    file = pq.ParquetFile(raw, pre_buffer=False)
    schema = file.schema_arrow
    if verdicts.is_tagging:
        if set(NAMES) & set(schema.names):
            raise RewriteError(AGAIN)
        schema = pa.schema([*schema, *SCHEMA], schema.metadata)

    sink = _Sink()
    with pq.ParquetWriter(sink, schema, **_forms(file)) as writer:
        for group, chosen in _choose_rows(raw, head, verdicts, limit=limit, max_record=max_record):
            for rows in _read_rows(file, raw, group, chosen, schema):
                writer.write_table(rows, row_group_size=len(rows))
                yield sink.written()
    yield sink.written()


def _choose_rows(
    raw: BinaryIO, head: FileHead, verdicts: Verdicts, *, limit: int | None, max_record: int
) -> Iterator[tuple[int, Rows]]:
    """Yield row groups: the number of each, and the rows to write, in order, with their tags; it may have none."""
    reader, chosen, current = Reader(verdicts), Rows(), 0
    for _, place in place_rows(raw, head, limit=limit, max_record=max_record):
        verdict = reader.next()
        if reader.is_over:
            break
        if place is None or verdict is False:
            continue
        if place.group != current:
            yield current, chosen
            chosen, current = Rows(), place.group
        chosen[place.row] = verdict if isinstance(verdict, Tags) else None
    yield current, chosen
    reader.require_all(verdicts.count)


def _read_rows(file: pq.ParquetFile, raw: BinaryIO, group: int, chosen: Rows, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the chosen rows of a row group, in tables of about `GROUP_BYTES`."""
    if not chosen:
        return
    names = [file.metadata.row_group(group).column(at).path_in_schema for at in range(file.metadata.num_columns)]
    longest = max(measure_values(file.metadata.row_group(group), raw, names))
    rows_at_once = max(1, min(MOST_ROWS, ROWS_BYTES // max(longest, 1)))

    held: list[pa.Table] = []
    start = size = 0
    for batch in file.iter_batches(rows_at_once, row_groups=[group], use_threads=False):
        places = [row for row in range(start, start + len(batch)) if row in chosen]
        start += len(batch)
        taken = pa.Table.from_batches([batch]).take(pa.array(np.array(places, np.int64) - start + len(batch)))
        for at, name in enumerate(NAMES if len(schema) > len(taken.schema) else ()):
            values = [None if (tags := chosen[row]) is None else tags[at] for row in places]
            taken = taken.append_column(SCHEMA.field(name), pa.array(values, SCHEMA.field(name).type))
        held.append(taken.cast(schema))
        size += taken.nbytes
        if size >= GROUP_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held and sum(map(len, held)):
        yield pa.concat_tables(held)


def _forms(file: pq.ParquetFile) -> dict[str, object]:
    """Return the writer's options that match the file: its compression, and INT96 timestamps if it has any."""
    metadata = file.metadata
    first = metadata.row_group(0) if metadata.num_row_groups else None
    columns = [first.column(at) for at in range(metadata.num_columns)] if first else []
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
