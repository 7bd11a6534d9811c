"""The threads and processes of a run on one machine."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Self, TypeVar, cast

import pyarrow as pa

from nddup.errors import NddupError
from nddup.local.memory import OF_ROWS, Memory
from nddup.local.reading.processes import FEW_BYTES, Processes
from nddup.local.reading.scan import Task, list_tasks, scan_here, scan_texts, spool_texts
from nddup.scanning.collection import Collection
from nddup.scanning.found import Consumer, RecordLimits
from nddup.scanning.local_files import DividedError

FULL = "No space left on device"
"""The system's message for a full disk. The disk is the one written to, not the one read from."""

DIED = "the worker process ended; it may have had too little memory"

T = TypeVar("T")
R = TypeVar("R")

Progress = Callable[[str, int, int], None]
"""Called with a step, how much of it is done, and how much there is: bytes when reading, else rows or parts."""


@dataclass
class Workers:
    """The threads of a run and, where there is enough to read, its processes.

    Attributes:
        count: the number of threads, and of processes.
        processes: the processes, if they have been started already.
        spool: a folder for what the processes write, made if missing; None: the system's temporary folder.
        progress: called as a step advances.
        memory: the memory that the run may take.
        read_again: the files that were divided inside a record, and read again from their start.
    """

    count: int
    processes: Processes | None = None
    spool: Path | None = None
    progress: Progress | None = None
    memory: Memory = field(default_factory=Memory)
    read_again: set[str] = field(default_factory=set)

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
        elif self.processes is not None:
            self.processes.close()

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
            size = sum(task.size for task in tasks)
        else:
            tasks, size = [], source.nbytes
        if self.count == 1 or size < FEW_BYTES:
            made = (
                scan_here(tasks, consumer, limits) if isinstance(source, Collection) else scan_texts(source, consumer)
            )
            return pa.Table.from_batches(made, consumer.table.arrow)
        return self._run_apart(tasks, source, (consumer, limits))

    def run(self, tasks: Sequence[Task], consumer: Consumer, limits: RecordLimits) -> pa.Table:
        """Return the rows of some tasks, in order; errors as of `scan`."""
        if self.count == 1 or sum(task.size for task in tasks) < FEW_BYTES:
            return pa.Table.from_batches(scan_here(tasks, consumer, limits), consumer.table.arrow)
        return self._run_apart(tasks, None, (consumer, limits))

    def _run_apart(
        self, tasks: Sequence[Task], source: Collection | pa.Table | None, order: tuple[Consumer, RecordLimits]
    ) -> pa.Table:
        """Return the rows of tasks, or of TEXTS, made by the processes."""
        if self.spool is not None:
            self.spool.mkdir(parents=True, exist_ok=True)
        spool = Path(mkdtemp(prefix="nddup-", dir=self.spool))
        self.processes = self.processes or Processes()
        if not self.processes.connections:
            self.processes.fork(self.count)
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
        finally:
            shutil.rmtree(spool, ignore_errors=True)
            if self.spool is not None:
                with suppress(OSError):  # not empty if another pass is using it
                    self.spool.rmdir()

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
        waiting = sorted(enumerate(tasks), key=lambda one: (one[1].size, -one[0]))  # the largest is taken first
        busy: dict[Connection, int] = {}
        tables: dict[int, pa.Table] = {}
        divided = set[str]()
        done, whole, rows = 0, sum(task.size for task in tasks), 0
        self.report_progress("reading", 0, whole)
        while waiting or busy:
            while waiting and free:
                number, task = waiting.pop()
                busy[connection := free.pop()] = number
                _send(connection, (task, str(spool / f"{number}.arrow")), task)
            for ready in wait(list(busy)):
                connection = cast("Connection", ready)
                number = busy.pop(connection)
                divided |= _receive(connection, tasks[number])
                tables[number] = _take(spool / f"{number}.arrow")
                free.append(connection)
                done += tasks[number].size
                rows += tables[number].nbytes
                self.report_progress("reading", done, whole)
                self.memory.require(OF_ROWS * rows, f"what was read of {done >> 20:,} of {whole >> 20:,} MB")
        if divided:
            raise DividedError(divided)
        empty = order[0].table.arrow.empty_table()
        return pa.concat_tables([empty, *(tables[number] for number in range(len(tasks)))])


def _send(connection: Connection, message: tuple[object, object], task: Task) -> None:
    try:
        connection.send(message)
    except OSError:
        raise _failed(task, DIED) from None


def _receive(connection: Connection, task: Task) -> set[str]:
    """Receive the answer of a worker: the files divided inside a record.

    Raises:
        NddupError: if it died or answers with an error.
    """
    divided: set[str] = set()
    try:
        error, divided = connection.recv()
    except (EOFError, OSError):
        error = DIED
    if error:
        raise _failed(task, error)
    return divided


def _failed(task: Task, error: str) -> NddupError:
    if FULL in error:
        return NddupError(f"what was read cannot be kept for the next step ({FULL}); free space, and --resume the run")
    names = task.names
    more = f" and {len(names) - 1} more files" if len(names) > 1 else ""
    return NddupError(f"{names[0]}{more}: cannot be read ({error})")


def _take(path: Path) -> pa.Table:
    """Map the rows of a file and unlink it; its disk space is freed with the rows."""
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    path.unlink()
    return table
