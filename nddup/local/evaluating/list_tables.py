"""A reference list on this machine as a stream of its entries, a batch of lines at a time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from nddup.errors import NddupError
from nddup.reading.reference_lists.layouts import GROUPS, PAIRS, Layout, entries_of, lines_of
from nddup.reading.streams import PIECE, Expanded, StoppedError


def read_list(path: str, layout: Layout, *, compression: str) -> pa.RecordBatchReader:
    """Stream the entries of a list, as PAIRS or GROUPS of `nddup.reading.reference_lists.layouts`.

    Args:
        path: the file, as an absolute path.
        layout: how its lines are read.
        compression: as `compression_of` gives it; empty for a plain file.

    Raises:
        NddupError: while the stream is read, if the file is damaged or cannot be opened.

    Cost: a few microseconds a line; a batch of lines is in memory.
    """
    entries = entries_of(_lines(path, compression), layout)
    if layout.kind == "pairs":
        return pa.RecordBatchReader.from_batches(PAIRS, entries)
    return pa.RecordBatchReader.from_batches(GROUPS, _memberships(entries))


def _memberships(entries: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn GROUP_LINES into GROUPS, a row a member; number the groups from 0."""
    first = 0
    for batch in entries:
        members = batch.column(0).fill_null([None])  # a line without ids keeps one row, whose id is null
        set_ids = np.repeat(np.arange(first, first + len(members)), members.value_lengths().to_numpy())
        yield pa.RecordBatch.from_arrays([pa.array(set_ids), members.flatten()], schema=GROUPS)
        first += len(members)


def _lines(path: str, compression: str) -> Iterator[str]:
    try:
        with Path(path).open("rb", buffering=0) as raw:
            stream = Expanded(raw, compression) if compression else raw
            yield from lines_of(iter(lambda: stream.read(PIECE), b""))
    except StoppedError as error:
        raise NddupError(f"{path}: {error.reason}: {error}") from error
    except OSError as error:
        raise NddupError(f"{path}: cannot be read ({error.strerror})") from error
