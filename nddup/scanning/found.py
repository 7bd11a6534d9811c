"""What is found in files: records and rejects with their places, and the protocol of what makes a table of them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa

from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record, Reject
from nddup.table_types import Table

Batches = Iterator[pa.RecordBatch]

BATCH_BYTES, BATCH_RECORDS = 16 << 20, 1_000
"""Content and records that are handed on together, and sketched in one call."""

LEAST_EXPANSION = 1 << 30
"""Bytes that any compressed file may expand to: a small one may be very regular."""


class Found(NamedTuple):
    """A record, or the reject that stands for it, at its place: the `seq`-th (from 0) of a split of a source.

    A split is the offset where a part of the file starts; a file read from its start is one split, 0. `chunk` is the
    bytes between two separators that held the record; it is empty where the format has no separator.
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
        """The bytes that a compressed file of so many stored bytes may expand to."""
        return max(stored * self.max_expansion, LEAST_EXPANSION)


class Consumer(Protocol):
    """Makes the rows of one table from found records. An engine sends it to its workers, so it can be pickled."""

    @property
    def table(self) -> Table:
        """The table it makes rows of."""

    def batches(self, found: Iterable[list[Found]], head: FileHead | None) -> Batches:
        """The rows of one task.

        Args:
            found: everything the task reads, a list at a time, in order.
            head: of the files, which all share it; None for texts that were given.
        """


def in_batches(found: Iterable[Found]) -> Iterator[list[Found]]:
    """Lists of at most `BATCH_RECORDS` records and about `BATCH_BYTES` of content; no list is empty."""
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
