"""Chunks of files that an engine cuts at separators, several tasks per file -> the records in them."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record, Reject, excerpt
from nddup.reading.records import parse_record
from nddup.reading.streams import too_large
from nddup.scanning.found import Found
from nddup.working_tables import CHUNKS


class _Row(NamedTuple):
    """A row of CHUNKS."""

    value: bytes
    source: str
    split: int
    ends_open: bool


def parse_chunks(batches: Iterable[pa.RecordBatch], head: FileHead, max_record: int) -> Iterator[list[Found]]:
    """Yield the records in the chunks of a task.

    Args:
        batches: of CHUNKS, in file order within a split.
        head: head that the files share.
        max_record: a chunk of more bytes is a reject `too large`.

    Returns:
        About one list per batch. Chunks without a record (a prolog, a blank line) are skipped and not counted.

    Cost: that of `parse_record`. Memory: a batch as Python objects.
    """
    seq, current = 0, ("", -1)
    for rows in _with_ends(batches):
        found = []
        for row, ends_split in rows:
            if (row.source, row.split) != current:
                seq, current = 0, (row.source, row.split)

            record = _parse(row, head, max_record, is_last=row.ends_open and ends_split)
            if record is not None:
                found.append(Found(row.source, row.split, seq, record, row.value))
                seq += 1
        if found:
            yield found


def _with_ends(batches: Iterable[pa.RecordBatch]) -> Iterator[list[tuple[_Row, bool]]]:
    """Yield the rows, each with whether its split ends with it, as the next row, maybe in the next batch, decides."""
    held: list[_Row] = []
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in CHUNKS.names)
        rows = [*held, *map(_Row, *columns)]
        held = rows[-1:]
        yield [(row, (row.source, row.split) != (after.source, after.split)) for row, after in pairwise(rows)]

    yield [(row, True) for row in held]


def _parse(row: _Row, head: FileHead, max_record: int, *, is_last: bool) -> Record | Reject | None:
    if len(row.value) > max_record:
        return too_large(len(row.value), excerpt(row.value))
    return parse_record(row.value, head, is_last=is_last)
