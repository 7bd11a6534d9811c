"""From files to the rows that a consumer makes: tasks of some MB each, run in worker processes or in threads here.

As on Spark, `nddup.scanning` reads the records and makes the rows; `in_collection_order` sorts them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import TracebackType
from typing import Protocol, Self, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded.memory import ID_BYTES, OF_MAPPED_ROWS, OF_ROWS, OF_TEXT, Memory
from nddup.embedded.processes import FEW_BYTES, Processes, weigh
from nddup.errors import FULL, NddupError
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import one_chunk, pieces_of
from nddup.reading.formats import FileHead
from nddup.remote.addresses import is_remote
from nddup.scanning.collection import Collection, ListedFile
from nddup.scanning.found import Consumer, RecordLimits
from nddup.scanning.local_files import DividedError, FilePart, cut_file, read_texts, scan_files, scan_part
from nddup.tables import RECORDS, TOKENS

TASK_BYTES = 8 << 20
"""Maximum number of stored bytes that one task reads: a thousand pages, say, or a part of a large file."""

LEAST_TASK_BYTES = 1 << 20
"""Minimum task size: smaller tasks cost more to dispatch than to read."""

LEAST_TASKS = 16
"""Tasks to cut a collection into, if it has enough bytes, so that the workers end at nearly the same time. It does not
depend on their number, so that a run resumed with another number of workers finds the same parts again."""

TAKEN_IDS = 1 << 23
"""Ids that are copied at a time to a file: 64 MB."""

TEXTS_ROWS = 1_000
"""Maximum number of given texts that are sketched in one call."""


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


DIED = "the worker process ended; it may have had too little memory"

T = TypeVar("T")

R = TypeVar("R")

Progress = Callable[[str, int, int], None]
"""Called with a step, how much of it is done, and how much there is: bytes when reading, else rows or parts."""


def list_tasks(collection: Collection) -> list[Task]:
    """Return the tasks of each group of files that are read alike: files read whole, then parts of large ones."""
    whole_size = sum(file.size for file in collection.listing.files)  # also if only some are read
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
        part, path = texts.slice(low, rows), folder / f"texts-{number}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, part.schema) as writer:
            writer.write_table(part)
        tasks.append(SpooledTexts(str(path), part.nbytes))
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


def reading_order(tasks: Sequence[Task], passes: int) -> list[int]:
    """Return the places of tasks as they are begun: the largest first, so that all workers end at about the same time.

    Where any of their files lie elsewhere, one file comes after another instead, from the last in the first of these
    passes, from the first in the next: of the copies that have no room together (`nddup.remote.kept_copies`), those
    that a pass, or the look at all heads, has left are then the first to be read.
    """
    if any(is_remote(name) for task in tasks for name in task.names):
        return sorted(range(len(tasks)), key=lambda place: (tasks[place].names[0], place), reverse=passes % 2 == 0)
    return sorted(range(len(tasks)), key=lambda place: (-tasks[place].size, place))


def scan_here(
    tasks: Sequence[Task], order: Iterable[int], consumer: Consumer, limits: RecordLimits
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all tasks, read in this process in an order of their places, in the order of the tasks.

    Raises:
        DividedError: after all rows, naming the files that were divided inside a record.
    """
    divided = set[str]()
    made: dict[int, list[pa.RecordBatch]] = {}
    for place in order:
        batches = made.setdefault(place, [])
        try:
            batches.extend(tasks[place].run(consumer, limits))
        except DividedError as error:
            divided |= error.sources
    for place in range(len(tasks)):
        yield from made.pop(place)
    if divided:
        raise DividedError(divided)


@dataclass
class Workers:
    """The threads of a run and, where there is enough to read, its processes.

    Attributes:
        count: the number of threads, and of processes.
        processes: the processes, if they have been started already.
        spool: a folder for what the processes write, made if missing; None: the system's temporary folder.
        progress: called as a step advances.
        memory: the memory that the run may take.
        most_compared: most pairs of sketches that the search may compare; None: any number.
        read_again: the files that were divided inside a record, and read again from their start.
        parts: PARTS of the collection as it was read first, if it was: where a later pass looks for records.
        passes: how often tasks were read.
    """

    count: int
    processes: Processes | None = None
    spool: Path | None = None
    progress: Progress | None = None
    memory: Memory = field(default_factory=Memory)
    most_compared: int | None = None
    read_again: set[str] = field(default_factory=set)
    parts: pa.Table | None = None
    passes: int = 0

    def __post_init__(self) -> None:
        """Make the pool of threads; a thread starts when it is first needed."""
        self.threads = ThreadPoolExecutor(self.count)

    def __enter__(self) -> Self:
        """Return the workers; leaving the context ends them."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the threads and the processes; after an error, do not wait for what a process is doing."""
        self.threads.shutdown(cancel_futures=True)
        if self.processes is not None and error is not None:
            self.processes.kill()
        else:
            self.end_processes()

    def end_processes(self) -> None:
        """End the processes, whose memory is then free; others are started where there is something to read again."""
        if self.processes is not None:
            self.processes.close()
            self.processes = None

    def report_progress(self, step: str, done: int, size: int) -> None:
        """Report how far a step is."""
        if self.progress is not None:
            self.progress(step, done, size)

    def work(self, step: str, work: Callable[[T], R], parts: Sequence[T]) -> Iterator[R]:
        """Yield the result of each part of a step, in order, computed by the threads; report how many are done."""
        self.report_progress(step, 0, len(parts))
        for number, made in enumerate(self.threads.map(work, parts), 1):
            self.report_progress(step, number, len(parts))
            yield made

    def scan(self, source: Collection | pa.Table, consumer: Consumer, limits: RecordLimits) -> pa.Table:
        """Return the rows that a consumer makes of files or of TEXTS, in the order of the tasks.

        Where files were divided inside a record, everything is read once more, these from their start.

        Raises:
            NddupError: if a worker fails or dies, naming the files it was reading.
        """
        if not isinstance(source, Collection):
            return self._scan(source, consumer, limits)
        try:
            return self._scan(source, consumer, limits)
        except DividedError as error:
            self.read_again |= error.sources
            return self._scan(source.read_whole(error.sources), consumer, limits)

    def _scan(self, source: Collection | pa.Table, consumer: Consumer, limits: RecordLimits) -> pa.Table:
        if isinstance(source, Collection):
            tasks = list_tasks(source)
            size = sum(weigh(task.names[0], task.size) for task in tasks)
        else:
            tasks, size = [], source.nbytes
        if self.count == 1 or size < FEW_BYTES:
            if isinstance(source, Collection):
                return self._run_here(tasks, consumer, limits)
            return pa.Table.from_batches(scan_texts(source, consumer), consumer.table.arrow)
        return self._run_apart(tasks, source, (consumer, limits))

    def run(self, tasks: Sequence[Task], consumer: Consumer, limits: RecordLimits) -> pa.Table:
        """Return the rows of some tasks, in order; errors as of `scan`."""
        if self.count == 1 or sum(weigh(task.names[0], task.size) for task in tasks) < FEW_BYTES:
            return self._run_here(tasks, consumer, limits)
        return self._run_apart(tasks, None, (consumer, limits))

    def _run_here(self, tasks: Sequence[Task], consumer: Consumer, limits: RecordLimits) -> pa.Table:
        order = reading_order(tasks, self.passes)
        self.passes += 1
        return pa.Table.from_batches(scan_here(tasks, order, consumer, limits), consumer.table.arrow)

    def _run_apart(
        self, tasks: Sequence[Task], source: Collection | pa.Table | None, order: tuple[Consumer, RecordLimits]
    ) -> pa.Table:
        self.processes = self.processes or Processes()
        if not self.processes.connections:
            self.processes.fork(self.count)
        with self.room() as spool:
            try:
                if isinstance(source, pa.Table):
                    tasks = spool_texts(source, spool)
                return self._hand_out(tasks, self.processes.connections, order, spool)
            except DividedError:
                raise  # all processes have answered
            except BaseException:
                self.processes.kill()  # nobody will take what they are making
                self.processes = None
                raise

    @contextmanager
    def room(self) -> Iterator[Path]:
        """Make a folder in the spool, and remove it at the end; what is mapped by then stays readable."""
        if self.spool is not None:
            self.spool.mkdir(parents=True, exist_ok=True)
        try:
            with TemporaryDirectory(prefix="nddup-", dir=self.spool, ignore_cleanup_errors=True) as folder:
                yield Path(folder)
        finally:
            if self.spool is not None:
                with suppress(OSError):  # not empty if another pass is using it
                    self.spool.rmdir()

    def join_ids(self, parts: Iterable[NDArray[np.uint64]], count: int) -> NDArray[np.uint64]:
        """Join parts of `count` ids in memory or, if they are many, in a mapped file, whose name is gone at once.

        Raises:
            NddupError: if the file cannot be written.
        """
        if ID_BYTES * count <= self.memory.mapped_from:
            values, at = np.empty(count, np.uint64), 0
            for ids in parts:
                values[at : at + len(ids)] = ids
                at += len(ids)
            return values
        try:
            with self.room() as folder, (folder / "ids").open("w+b") as file:
                for ids in parts:
                    file.write(ids.data)
                file.flush()
                return np.asarray(np.memmap(file, np.uint64, "r"))
        except OSError as error:
            raise unkept(error.strerror or error, self.spool) from error

    def take_rows(self, rows: Ragged, order: NDArray[np.int64]) -> Ragged:
        """Return rows of ids in the order given, as `take_rows`; of very many ids, in a mapped file (`join_ids`)."""
        sizes = rows.offsets[order + 1] - rows.offsets[order]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if ID_BYTES * offsets[-1] <= self.memory.mapped_from:
            ids = take_rows(rows, order).values
        else:
            parts = (take_rows(rows, order[piece]).values for piece in pieces_of(sizes, TAKEN_IDS))
            ids = self.join_ids(parts, int(offsets[-1]))
        return Ragged(offsets, ids)

    def _hand_out(
        self, tasks: Sequence[Task], workers: Sequence[Connection], order: tuple[Consumer, RecordLimits], spool: Path
    ) -> pa.Table:
        """Hand each task to a free worker; map the rows from the files that the workers wrote.

        Raises:
            DividedError: once all is read, naming the files that were divided inside a record.
        """
        free = list(workers)
        for connection in free:
            _send(connection, order, tasks[0])
        waiting = reading_order(tasks, self.passes)[::-1]
        self.passes += 1
        busy: dict[Connection, int] = {}
        tables: dict[int, pa.Table] = {}
        divided = set[str]()
        done, whole, count, rows, ids = 0, sum(task.size for task in tasks), 0, 0, 0
        self.report_progress("reading", 0, whole)
        while waiting or busy:
            while waiting and free:
                number = waiting.pop()
                busy[connection := free.pop()] = number
                _send(connection, (tasks[number], str(spool / f"{number}.arrow")), tasks[number])
            for ready in wait(list(busy)):
                connection = cast("Connection", ready)
                number = busy.pop(connection)
                divided |= _receive(connection, tasks[number], self.spool)
                tables[number] = _take(spool / f"{number}.arrow")
                free.append(connection)
                done += tasks[number].size
                count += len(tables[number])
                rows += tables[number].nbytes
                ids += tables[number]["sketch"].nbytes if order[0].table is RECORDS else 0
                self.report_progress("reading", done, whole)
                needed = OF_MAPPED_ROWS * (rows - ids) if ids > self.memory.mapped_from else OF_ROWS * rows
                needed = OF_TEXT * count if order[0].table is TOKENS else needed
                text = f"what was read of {done >> 20:,} of {whole >> 20:,} MB"
                self.memory.require(needed, text, part=done / whole)
        if divided:
            raise DividedError(divided)
        empty = order[0].table.arrow.empty_table()
        return pa.concat_tables([empty, *(tables[number] for number in range(len(tasks)))])


def _send(connection: Connection, message: tuple[object, object], task: Task) -> None:
    try:
        connection.send(message)
    except OSError:
        raise _failed(task, DIED) from None


def _receive(connection: Connection, task: Task, spool: Path | None) -> set[str]:
    """Receive the answer of a worker, which writes into a folder: the files divided inside a record.

    Raises:
        NddupError: if it died or answers with an error.
    """
    divided: set[str] = set()
    try:
        error, divided = connection.recv()
    except (EOFError, OSError):
        error = DIED
    if full := next((mark for mark in FULL if mark in error), None):
        raise unkept(full, spool)
    if error:
        raise _failed(task, error)
    return divided


def _failed(task: Task, error: str) -> NddupError:
    names = task.names
    more = f" and {len(names) - 1} more files" if len(names) > 1 else ""
    return NddupError(f"{names[0]}{more}: cannot be read ({error})")


def unkept(why: object, spool: Path | None) -> NddupError:
    """Return the error for rows that cannot be written to disk, in the spool of the workers."""
    place = spool or gettempdir()
    return NddupError(
        f"{place}: what was read cannot be kept for the next step ({why}); free space, and --resume the run"
    )


def _take(path: Path) -> pa.Table:
    """Map the rows of a file and unlink it; its disk space is freed with the rows."""
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    path.unlink()
    return table
