"""The shingle ids of the stored texts: one Arrow file a segment, written in a stream, of which a few rows are read.

Ids are hashes, which no encoding makes smaller: each takes 8 bytes, and the file is mapped as it is. So only the rows
that are asked for are read, and a merge holds one batch at a time. Each row that is read is compared with the
fingerprint of its node, so the file need not be read whole to be trusted.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.local.pairing.confirm import Row
from nddup.repository.segments.layout import SHINGLES

TOGETHER = 1 << 19
"""Most ids of a batch, 4 MB, unless one text has more."""

Shingled = Iterable[tuple[int, Row]]
"""Nodes, ascending, each with the place of its shingle ids."""


class StoredShingles(NamedTuple):
    """The mapped rows of n nodes, in b batches."""

    nodes: NDArray[np.int64]  # (n,), ascending
    starts: NDArray[np.int64]  # (b + 1,), the place of the first node of each batch
    batches: list[tuple[NDArray[np.uint64], NDArray[np.int32]]]  # the ids of each, and the ends of its rows

    def row(self, place: int) -> Row:
        """Return the row of the node at a place."""
        number = int(np.searchsorted(self.starts, place, "right")) - 1
        ids, ends = self.batches[number]
        low, high = ends[place - self.starts[number] :][:2].tolist()
        return Row(ids, low, high)

    def only(self, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, Row]]:
        """Yield the chosen nodes with their rows."""
        for place in np.flatnonzero(chosen).tolist():
            yield int(self.nodes[place]), self.row(place)


NO_SHINGLES = StoredShingles(np.empty(0, np.int64), np.zeros(1, np.int64), [])
"""Those of a segment whose sketches hold all shingles."""


def write_shingles(path: Path, shingled: Shingled) -> int:
    """Write SHINGLES to a file, and return the number of rows; no file is made for none.

    Cost: memory for one batch.
    """
    count = 0
    writer: pa.ipc.RecordBatchFileWriter | None = None
    try:
        for batch in _in_batches(shingled):
            writer = writer or pa.ipc.new_file(str(path), SHINGLES.arrow)
            writer.write_batch(batch)
            count += len(batch)
    finally:
        if writer is not None:
            writer.close()
    return count


def _in_batches(shingled: Shingled) -> Iterator[pa.RecordBatch]:
    nodes, rows, held = list[int](), list[Row](), 0
    for node, row in shingled:
        if rows and held + row.high - row.low > TOGETHER:
            yield _batch(nodes, rows)
            nodes, rows, held = [], [], 0
        nodes.append(node)
        rows.append(row)
        held += row.high - row.low
    if rows:
        yield _batch(nodes, rows)


def _batch(nodes: list[int], rows: list[Row]) -> pa.RecordBatch:
    ends = np.cumsum([0, *(row.high - row.low for row in rows)]).astype(np.int32)
    ids = np.concatenate([row.values[row.low : row.high] for row in rows])
    lists = pa.ListArray.from_arrays(pa.array(ends), pa.array(ids.view(np.int64)))
    return pa.RecordBatch.from_arrays([pa.array(nodes, pa.int64()), lists], schema=SHINGLES.arrow)


def map_shingles(path: Path) -> StoredShingles:
    """Map the file of a segment.

    Raises:
        OSError: if it is missing.
        ArrowInvalid: if it is damaged.

    Cost: reads the nodes and the ends of the rows, some 12 bytes each, and no shingle.
    """
    nodes, batches = [np.empty(0, np.int64)], []
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            batch.validate()
            lists = batch["shingles"]
            nodes.append(batch["node"].to_numpy())
            batches.append((lists.values.to_numpy().view(np.uint64), lists.offsets.to_numpy()))
    return StoredShingles(np.concatenate(nodes), np.cumsum([len(part) for part in nodes]), batches)


def fingerprint_of(row: Row) -> bytes:
    """Return the BLAKE2b-128 of a row's ids, as its node has it."""
    return blake2b(row.values[row.low : row.high].tobytes(), digest_size=16).digest()
