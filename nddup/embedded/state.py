"""A run in this process: its folder or tables in memory, its workers, and the one way to save a table of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
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

    def save(
        self,
        name: str,
        table: pa.Table,
        *,
        counts: Mapping[str, int] | None = None,
        changed: NDArray[np.int64] | None = None,
        absent: int = 0,
        **noted: JsonValue,
    ) -> Saved:
        """Write a table and seal it; a later attempt of either engine finds it with its counts and what is noted.

        Where `changed` is given, the table begins with the rows of the run that this one goes on from, in which only
        those places have changed; as many as `absent` are not in `table`.
        """
        self.progress.describe(name)
        counts, on_rows = counts or {}, partial(self.workers.report_progress, f"write {name}")
        if changed is None:
            self.store.write(name, table, on_rows_written=on_rows)
        else:
            old = None if self.onto is None else LocalFolder(self.onto)
            self.folder.write_onto(name, table, Before(old, changed, absent), on_rows_written=on_rows)
        counted = {"rows": absent + len(table), "counts": counts, "noted": noted}
        self.store.seal(name, **dependencies_of(name, self.config), counted=counted)
        return Saved(table, len(table), counts, noted)

    def take(self, *names: str) -> dict[str, Saved]:
        """Return those of these tables that an earlier attempt left, read; DOCUMENTS as `read_documents` reads them."""
        saved = {name: one for name in names if (one := self.find(name)) is not None}
        return {name: replace(one, table=self._read(name)) for name, one in saved.items()}

    def _read(self, name: str) -> pa.Table:
        return read_documents(self.folder, self.workers) if name == "documents" else self.store.read(name)

    @cached_property
    def counts_before(self) -> Mapping[str, Mapping[str, Any]]:
        """The counts of pairs, clusters and keep by stage, if an earlier attempt left all their tables; else empty."""
        notes = {name: self.note(name) for name in (*PAIRED, *(ONTO if self.config.output.onto else ()))}
        last = notes["keep"]
        return {} if last is None or None in notes.values() else last["noted"].get("stages", {})

    @cached_property
    def old(self) -> Old | None:
        """What this run goes on from: nothing for the first of several; None where no later one goes on from it."""
        if self.onto is not None:
            return Old.open(self.onto, len(self.config.keep.read)).without(self.without)
        return Old.nothing() if self.config.output.onto else None
