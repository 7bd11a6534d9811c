"""From files to the rows that a consumer makes: tasks of some MB each, run in worker processes or here.

As on Spark, `nddup.scanning` reads the records and makes the rows; `in_collection_order` sorts them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.columns import one_chunk, pieces_of
from nddup.reading.formats import FileHead
from nddup.scanning.collection import Collection, ListedFile
from nddup.scanning.found import Consumer, RecordLimits
from nddup.scanning.local_files import DividedError, FilePart, cut_file, read_texts, scan_files, scan_part

TASK_BYTES = 8 << 20
"""Most stored bytes that one task reads: a thousand pages, say, or a part of a large file."""

LEAST_TASK_BYTES = 1 << 20
"""Minimum task size: smaller tasks cost more to dispatch than to read."""

LEAST_TASKS = 16
"""Tasks to cut a collection into, if it has enough bytes, so that the workers end at nearly the same time. It does not
depend on their number, so that a run resumed with another number of workers finds the same parts again."""

TEXTS_ROWS = 1_000
"""Most given texts that are sketched in one call."""


class Task(Protocol):
    """What one worker reads at a time. It can be pickled."""

    @property
    def size(self) -> int:
        """Stored bytes."""

    @property
    def names(self) -> list[str]:
        """What it reads, such as paths, for messages."""

    def run(self, consumer: Consumer, limits: RecordLimits) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a consumer makes of it."""


@dataclass(frozen=True)
class WholeFiles:
    """Files that share a head and are read from their start."""

    head: FileHead
    entries: tuple[ListedFile, ...]

    @property
    def size(self) -> int:
        """Stored bytes."""
        return sum(entry.file.size for entry in self.entries)

    @property
    def names(self) -> list[str]:
        """Their paths."""
        return [entry.file.path for entry in self.entries]

    def run(self, consumer: Consumer, limits: RecordLimits) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file after another."""
        return scan_files(self.entries, self.head, consumer, limits)


@dataclass(frozen=True)
class PartOfFile:
    """A part of a plain file."""

    head: FileHead
    part: FilePart

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.part.end - self.part.start

    @property
    def names(self) -> list[str]:
        """The path of the file."""
        return [self.part.path]

    def run(self, consumer: Consumer, limits: RecordLimits) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the records that begin in it."""
        return scan_part(self.part, self.head, consumer, limits)


@dataclass(frozen=True)
class SpooledTexts:
    """Some rows of TEXTS that were written to a file for a worker."""

    path: str
    size: int

    @property
    def names(self) -> list[str]:
        """What the texts are called in messages."""
        return ["the texts"]

    def run(self, consumer: Consumer, limits: RecordLimits) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the texts."""
        del limits
        with pa.memory_map(self.path) as file:
            yield from scan_texts(pa.ipc.open_file(file).read_all(), consumer)


def list_tasks(collection: Collection) -> list[Task]:
    """Return the tasks of each group of files that are read alike: files read whole, then parts of large ones."""
    whole_size = sum(entry.file.size for group in collection.groups for entry in group.files)
    most = min(TASK_BYTES, max(LEAST_TASK_BYTES, whole_size // LEAST_TASKS))
    tasks: list[Task] = []
    for group in collection.groups:
        is_cut = [not group.is_whole and entry.file.size > most for entry in group.files]
        whole = [entry for entry, is_large in zip(group.files, is_cut, strict=True) if not is_large]
        sizes = np.array([entry.file.size for entry in whole], np.int64)
        tasks += [WholeFiles(group.head, tuple(whole[rows])) for rows in pieces_of(sizes, most)]
        for entry, is_large in zip(group.files, is_cut, strict=True):
            parts = cut_file(entry, most) if is_large else []
            tasks += [PartOfFile(group.head, part) for part in parts]
    return tasks


def spool_texts(texts: pa.Table, folder: Path) -> list[Task]:
    """Write TEXTS to files, some rows to each, and return a task for each file, in order."""
    tasks: list[Task] = []
    rows = max(1, int(len(texts) * TASK_BYTES / max(texts.nbytes, 1)))
    for number, low in enumerate(range(0, len(texts), rows)):
        some, path = texts.slice(low, rows), folder / f"texts-{number}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, some.schema) as writer:
            writer.write_table(some)
        tasks.append(SpooledTexts(str(path), some.nbytes))
    return tasks


def scan_texts(texts: pa.Table, consumer: Consumer) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a consumer makes of TEXTS."""
    return consumer.batches(read_texts(texts.to_batches(max_chunksize=TEXTS_ROWS)), None)


def in_collection_order(rows: pa.Table, collection: Collection) -> pa.Table:
    """Sort rows that have source, split and seq by the order of the files, then by split, then by seq.

    Cost: the rows are copied unless they are in order already.
    """
    if not len(rows):
        return rows
    sources = pa.array([file.source for file in collection.listing.files], pa.string())
    file = np.asarray(pc.index_in(one_chunk(rows["source"]), value_set=sources))
    split, seq = (rows[name].to_numpy() for name in ("split", "seq"))
    order = np.lexsort((seq, split, file))
    return rows if (np.diff(order) == 1).all() else rows.take(pa.array(order))


def scan_here(tasks: Iterable[Task], consumer: Consumer, limits: RecordLimits) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all tasks, read in this process.

    Raises:
        DividedError: after all rows, naming the files that were divided inside a record.
    """
    divided = set[str]()
    for task in tasks:
        try:
            yield from task.run(consumer, limits)
        except DividedError as error:
            divided |= error.sources
    if divided:
        raise DividedError(divided)
