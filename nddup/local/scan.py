"""From files to the rows of a consumer: tasks of some MB each, in worker processes or here, in collection order.

The records are read and the rows are made by `nddup.scanning`, as on Spark.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.local.columns import one_chunk
from nddup.reading.formats import FileHead
from nddup.scanning.collection import Collection, Entry
from nddup.scanning.found import Consumer, Limits
from nddup.scanning.local_files import FilePart, cut_file, scan_files, scan_part

TASK_BYTES = 8 << 20
"""Stored bytes that one task reads: of small files a thousand pages, of a large one a part."""


@dataclass(frozen=True)
class Task:
    """What one worker reads at a time: whole files, or a part of one."""

    head: FileHead
    entries: tuple[Entry, ...] = ()
    part: FilePart | None = None

    @property
    def size(self) -> int:
        """Stored bytes."""
        return self.part.end - self.part.start if self.part else sum(entry.file.size for entry in self.entries)

    @property
    def names(self) -> list[str]:
        """The paths of its files."""
        return [self.part.path] if self.part else [entry.file.path for entry in self.entries]

    def run(self, consumer: Consumer, limits: Limits) -> Iterator[pa.RecordBatch]:
        """The rows of what it reads."""
        if self.part is not None:
            return scan_part(self.part, self.head, consumer, limits)
        return scan_files(self.entries, self.head, consumer, limits)


def list_tasks(collection: Collection) -> list[Task]:
    """The tasks of a collection, in the order of its files as far as these are read alike."""
    tasks = []
    for group in collection.groups:
        held: list[Entry] = []
        size = 0
        for entry in group.files:
            if not group.is_whole and entry.file.size > TASK_BYTES:
                tasks += [Task(group.head, part=part) for part in cut_file(entry, TASK_BYTES)]
                continue
            if held and size + entry.file.size > TASK_BYTES:
                tasks.append(Task(group.head, tuple(held)))
                held, size = [], 0
            held.append(entry)
            size += entry.file.size
        if held:
            tasks.append(Task(group.head, tuple(held)))
    return tasks


def in_collection_order(rows: pa.Table, collection: Collection) -> pa.Table:
    """Rows with source, split and seq in the order of their files, of their splits, and within these.

    Cost: the rows are copied unless they are in order.
    """
    if not len(rows):
        return rows
    sources = pa.array([file.source for file in collection.listing.files], pa.string())
    file = np.asarray(pc.index_in(one_chunk(rows["source"]), value_set=sources))
    split, seq = (rows[name].to_numpy() for name in ("split", "seq"))
    order = np.lexsort((seq, split, file))
    return rows if (np.diff(order) == 1).all() else rows.take(pa.array(order))


def scan_here(tasks: Iterable[Task], consumer: Consumer, limits: Limits) -> pa.Table:
    """The rows of all tasks, read in this process."""
    batches = [batch for task in tasks for batch in task.run(consumer, limits)]
    return pa.Table.from_batches(batches, consumer.table.arrow)
