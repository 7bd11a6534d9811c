"""Records and rejects found in files, with their places, and the protocol of consumers that make a table of them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa

from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record, Reject
from nddup.table_types import Table

Batches = Iterator[pa.RecordBatch]

BATCH_BYTES, BATCH_RECORDS = 16 << 20, 1_000
"""Bytes of content, and records, that are passed on together and sketched in one call."""

LEAST_EXPANSION = 1 << 30
"""Bytes to which any compressed file may expand: a small file may be very regular."""


class Found(NamedTuple):
    """A record, or the reject that stands for it, and its place: number `seq` (from 0) in a split of a source.

    A split is the offset at which a part of the file starts; a file read from its start is one split, 0. `chunk` holds
    the bytes between two separators that contained the record; it is empty if the format has no separator.
    """

    source: str
    split: int
    seq: int
    record: Record | Reject
    chunk: bytes


class Limits(NamedTuple):
    """The longest record in bytes, and how many times its stored size a compressed file may expand to."""

    max_record: int
    max_expansion: int

    def most_expanded(self, stored: int) -> int:
        """Return the bytes to which a compressed file of `stored` bytes may expand."""
        return max(stored * self.max_expansion, LEAST_EXPANSION)


class Consumer(Protocol):
    """Makes the rows of one table from found records. An engine sends it to its workers, so it must be picklable."""

    @property
    def table(self) -> Table:
        """The table whose rows it makes."""

    def batches(self, found: Iterable[list[Found]], head: FileHead | None) -> Batches:
        """Yield the rows of one task.

        Args:
            found: everything the task reads, one list at a time, in order.
            head: the head that all files of the task share; None for texts passed in (`given_texts`).
        """


def in_batches(found: Iterable[Found]) -> Iterator[list[Found]]:
    """Group records in lists of at most `BATCH_RECORDS` records and about `BATCH_BYTES` of content; none is empty."""
    held: list[Found] = []
    size = 0
    for one in found:
        held.append(one)
        size += sum(map(len, one.record.fields)) if isinstance(one.record, Record) else 0
        if size >= BATCH_BYTES or len(held) >= BATCH_RECORDS:
            yield held
            held, size = [], 0

    if held:
        yield held
