"""A run in this process: its folder or tables in memory, its workers, and the one way to save a table of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.embedded.old_run import Old
from nddup.embedded.read_records import read_documents
from nddup.embedded.workers import Workers
from nddup.ground.progress import Progress
from nddup.ground.shown import JsonValue
from nddup.mining.keep_verdicts import Forced
from nddup.settings.schema import Config
from nddup.stages.run_engine import RunEngine, Saved
from nddup.stages.stage import dependencies_of
from nddup.storage.local_folder import Before, LocalFolder, MemoryTables
from nddup.storage.local_storage import LocalStorage
from nddup.tables import ONTO

if TYPE_CHECKING:
    from nddup.engines.duck import DuckEngine

PAIRED = ("pairs", "clusters", "members", "false_components", "keep")
"""The tables that follow from the documents. They are made together, in memory."""


class _Writer(Thread):
    """A thread that writes a table; the end of the process does not wait for it."""

    def __init__(self, write: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._write, self._errors = write, list[BaseException]()
        self.start()

    def run(self) -> None:
        """As of `Thread`; an error is kept for `end`."""
        try:
            self._write()
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            self._errors.append(error)

    def end(self) -> None:
        """Wait for the end; raise what went wrong."""
        self.join()
        for error in self._errors:
            raise error


@dataclass
class Job(RunEngine):
    """State shared by the steps of one run."""

    config: Config
    store: LocalFolder | MemoryTables
    workers: Workers
    progress: Progress
    resumed: dict[str, None] = field(default_factory=dict)
    forced: Forced | None = None
    onto: str | None = None
    without: Sequence[Sequence[str]] = ()
    _writer: "_Writer | None" = None

    @property
    def folder(self) -> LocalFolder:
        """As `RunEngine.folder`."""
        return cast("LocalFolder", self.store)

    @property
    def files(self) -> LocalStorage:
        """The files of this machine."""
        return LocalStorage()

    @cached_property
    def _duck(self) -> "DuckEngine":
        from nddup.engines.duck import DuckEngine  # noqa: PLC0415 - not every run asks a question

        return DuckEngine("this run")

    def ask(self, **tables: pa.Table) -> "DuckEngine":
        """As `RunEngine.ask`; one that an earlier attempt left is read."""
        for name, table in tables.items():
            self._duck.see(name, self.store.read(name) if table is None else table)
        return self._duck

    def find(self, name: str) -> Saved | None:
        """As `RunEngine.find`; the table itself is not read."""
        noted = self.note(name)
        if noted is None:
            return None
        self.resumed[name] = None
        return Saved(None, noted["rows"], noted["counts"], noted["noted"])

    def note(self, name: str) -> Mapping[str, Any] | None:
        """Return the note on a table that `find` would find; None if there is none."""
        return self.store.note(name, **dependencies_of(name, self.config))

    def put(self, name: str, table: pa.Table, **noted: JsonValue) -> Saved:
        """As `RunEngine.put`."""
        return self.save(name, table, **noted)

    def save(  # noqa: PLR0913 - what is written, and how
        self,
        name: str,
        table: pa.Table,
        *,
        counts: Mapping[str, int] | None = None,
        changed: NDArray[np.int64] | None = None,
        absent: int = 0,
        is_behind: bool = False,
        **noted: JsonValue,
    ) -> Saved:
        """Write a table and seal it; a later attempt of either engine finds it with its counts and what is noted.

        Where `changed` is given, the table begins with the rows of the run that this one goes on from, in which only
        those places have changed; as many as `absent` are not in `table`.

        Where it `is_behind`, a thread writes it while the run goes on with what does not read the folder: on two cores
        a tenth of the time of a run. Errors come with the next table, or with the end of the attempt.
        """
        self.end_writing()
        counts = counts or {}
        counted = {"rows": absent + len(table), "counts": counts, "noted": noted}
        on_rows = None if is_behind else partial(self.workers.report_progress, f"write {name}")

        def write() -> None:
            if changed is None:
                self.store.write(name, table, on_rows_written=on_rows)
            else:
                old = None if self.onto is None else LocalFolder(self.onto)
                self.folder.write_onto(name, table, Before(old, changed, absent), on_rows_written=on_rows)
            self.store.seal(name, **dependencies_of(name, self.config), counted=counted)

        self.progress.describe(name)
        if is_behind:
            self._writer = _Writer(write)
        else:
            write()
        return Saved(table, len(table), counts, noted)

    def end_writing(self) -> None:
        """Wait until the table that is written behind the run is sealed.

        Raises:
            OutputError: if it cannot be written.
        """
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.end()

    def take(self, *names: str) -> dict[str, Saved]:
        """Return those of these tables that an earlier attempt left, read; DOCUMENTS as `read_documents` reads them."""
        saved = {name: one for name in names if (one := self.find(name)) is not None}
        return {name: replace(one, table=self._read(name)) for name, one in saved.items()}

    def _read(self, name: str) -> pa.Table:
        return read_documents(self.folder, self.workers) if name == "documents" else self.store.read(name)

    def counts_before(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the counts of pairs, clusters and keep, if an earlier attempt left all their tables; else none."""
        notes = {name: self.note(name) for name in (*PAIRED, *(ONTO if self.config.output.onto else ()))}
        last = notes["keep"]
        return {} if last is None or None in notes.values() else last["noted"].get("stages", {})

    @cached_property
    def old(self) -> Old | None:
        """What this run goes on from: nothing for the first of several; None where no later one goes on from it."""
        if self.onto is not None:
            return Old.open(self.onto, len(self.config.keep.read)).without(self.without)
        return Old.nothing() if self.config.output.onto else None
