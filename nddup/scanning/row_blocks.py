"""Rows of a Parquet file in blocks of some MB, whose plain records are read together, without an object for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.reading.formats import FileHead
from nddup.reading.json_lines import PlainRecords
from nddup.reading.outcomes import Reject
from nddup.reading.parquet_rows import Rows, limit_rows, read_plain, read_rows
from nddup.scanning.found import LocatedRecord, with_source
from nddup.scanning.record_blocks import BLOCK_BYTES, Block, after_good


@dataclass(frozen=True, eq=False)
class RowBlock(Block):
    """The records of some rows of a file.

    Attributes:
        seq: (n,), the number of each record in the file.
        max_record: the most bytes of a record.
    """

    rows: Rows
    name: str
    seq: NDArray[np.int64]
    head: FileHead
    max_record: int

    @property
    def source(self) -> pa.StringArray:
        """As `Block.source`."""
        return pa.repeat(self.name, len(self))

    @property
    def split(self) -> NDArray[np.int64]:
        """As `Block.split`."""
        return np.zeros(len(self), np.int64)

    def take(self, rows: NDArray[np.int64]) -> "RowBlock":
        """As `Block.take`."""
        return replace(self, rows=self.rows._replace(batch=self.rows.batch.take(pa.array(rows))), seq=self.seq[rows])

    @cached_property
    def read(self) -> PlainRecords:
        """As `Block.read`."""
        return read_plain(self.rows, self.max_record)

    def locate(self, row: int) -> LocatedRecord:
        """As `Block.locate`."""
        record = self.rows.read(row, self.max_record)
        return LocatedRecord(self.name, 0, int(self.seq[row]), with_source(record, self.name, self.head.format), b"")


def read_row_blocks(
    raw: BinaryIO, head: FileHead, source: str, *, most: int, max_record: int
) -> Iterator[Sequence[LocatedRecord]]:
    """Read the rows of a file.

    Args:
        raw: the file, seekable.
        most: the most bytes, as `limit_rows` counts them.
        max_record: the most bytes of a record.

    Yields:
        Blocks of at least BLOCK_BYTES, except for those before a reject and the last; and lists of one reject.
    """
    count, tables, waiting, last_good = 0, list[Rows](), 0, None
    for part in chain(limit_rows(read_rows(raw, head, max_record), raw, most), [None]):
        if isinstance(part, Rows):
            tables.append(part)
            waiting += part.batch.nbytes
            if waiting < BLOCK_BYTES:
                continue
        if tables:
            rows = tables[0]._replace(batch=pa.concat_batches([one.batch for one in tables]))
            block = RowBlock(rows, source, np.arange(count, count + rows.batch.num_rows), head, max_record)
            count, tables, waiting = count + len(block), [], 0
            yield block
            last_good = block.last_good() or last_good
            del rows, block
        if isinstance(part, Reject):
            yield [LocatedRecord(source, 0, count, after_good(part, last_good), b"")]
            count += 1
