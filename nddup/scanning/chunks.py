"""Chunks of files that an engine cuts at separators, several tasks per file -> the records in them."""

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import NamedTuple

import pyarrow as pa

from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Reject, excerpt
from nddup.reading.streams import Chunk, too_large
from nddup.scanning.found import Found, in_batches
from nddup.scanning.whole_files import parse_pieces
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
        Lists as of `found.in_batches`. Chunks without a record (a prolog, a blank line) are skipped and not counted.

    Cost: that of `parse_record`. Memory: a batch as Python objects.
    """
    rows = (pair for some in _with_ends(batches) for pair in some)
    yield from in_batches(
        Found(source, split, seq, record, chunk)
        for (source, split), of_split in groupby(rows, key=lambda pair: (pair[0].source, pair[0].split))
        for seq, (record, chunk) in enumerate(parse_pieces(_cut(of_split, max_record), head, max_record))
    )


def _with_ends(batches: Iterable[pa.RecordBatch]) -> Iterator[list[tuple[_Row, bool]]]:
    """Yield the rows, each with whether its split ends with it, as the next row, maybe in the next batch, decides."""
    held: list[_Row] = []
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in CHUNKS.names)
        rows = [*held, *map(_Row, *columns)]
        held = rows[-1:]
        yield [(row, (row.source, row.split) != (after.source, after.split)) for row, after in pairwise(rows)]

    yield [(row, True) for row in held]


def _cut(rows: Iterable[tuple[_Row, bool]], max_record: int) -> Iterator[Chunk | Reject]:
    """Yield the chunks of a split, each with whether the file ends with it; a chunk that is too long is a reject."""
    for row, ends_split in rows:
        if len(row.value) > max_record:
            yield too_large(len(row.value), excerpt(row.value))
        else:
            yield Chunk(row.value, is_last=row.ends_open and ends_split)
