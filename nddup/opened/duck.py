"""A finished run read by the embedded engine: no Java, no network, and bounded memory."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nddup.engines.embedded import SQL_TYPES, DuckEngine, as_literal, as_name, reason_of
from nddup.errors import NddupError, OutputError
from nddup.metrics import RunMetrics
from nddup.opened.finished_run import FinishedRun, Folder, Reader
from nddup.storage.local_storage import LocalStorage, local_path
from nddup.storage.run_folder import RunFolder
from nddup.tables import RESULTS, Table

CHUNK = 1 << 24
"""Characters of a text that are read at a time."""


class DuckTables(DuckEngine, FinishedRun):
    """A run whose tables DuckDB reads, in a folder or in memory.

    Args:
        folder: folder of the run, or its stand-in.

    Raises:
        OutputError, IncompatibleSketchError: as `FinishedRun`.
    """

    def __init__(self, folder: Folder) -> None:
        FinishedRun.__init__(self, folder)
        DuckEngine.__init__(self, folder.path)


class DuckRun(DuckTables):
    """A run in a folder of this machine.

    Args:
        path: its folder, a path or a URI `file:/…`.

    Raises:
        ConfigError: for a URI of another file system.
        OutputError, IncompatibleSketchError: as `FinishedRun`.
        NddupError: if a table cannot be read.

    Cost: some 30 ms, and reading the footer of one Parquet file per table.
    """

    def __init__(self, path: str) -> None:
        super().__init__(RunFolder(LocalStorage(), path))
        self._uncompared = set(RESULTS)
        folders = {table: Path(local_path(self.path), table.name) for table in RESULTS.values()}
        files = {
            table: sorted(str(file) for file in folder.iterdir() if file.name[0] not in "_.")
            for table, folder in folders.items()
            if folder.is_dir()
        }
        self.shut([file for some in files.values() for file in some])
        for table, some in files.items():
            self._see(table, some)

    def _compare(self, text: str) -> None:
        """As `DuckTables`. Cost: reads the files of a table once, before the first query that names it."""
        for name in self._uncompared.intersection(re.findall(r"\w+", text)):
            self.require_same(name)
            self._uncompared.remove(name)

    def require_same(self, name: str) -> None:
        """Compare a table with what was noted of it, once.

        Raises:
            OutputError: if a file has changed, is missing or was added.
        """
        self._folder.require_same(name)

    def transform_text(self, table: Table, name: str, reader: Reader) -> None:
        """As `FinishedRun.transform_text`."""
        self._folder.require_same(name)
        path = Path(local_path(self.path), name)
        files = sorted(part for part in path.iterdir() if part.name[0] not in "_.") if path.is_dir() else [path]
        with self.reading():
            self.fill(table, (batch for file in files for batch in reader(_read_chunks(file))))

    def _see(self, table: Table, files: Sequence[str]) -> None:
        """Make the view of a table over its files, with all declared columns and even without files."""
        source = f"read_parquet([{', '.join(map(as_literal, files))}])" if files else ""
        try:
            there = set(self.database.sql(f"FROM {source}").columns) if files else set()
            columns = ", ".join(
                f"CAST({as_name(column.name) if column.name in there else 'NULL'} AS {SQL_TYPES[column.type]})"
                f" AS {as_name(column.name)}"
                for column in table.columns
            )
            rows = f"FROM {source}" if files else "WHERE false"
            self.database.execute(f"CREATE VIEW {as_name(table.name)} AS SELECT {columns} {rows}")
        except (duckdb.Error, RuntimeError, UnicodeError) as error:  # of DuckDB: a damaged name of a column is no text
            self.require_same(table.name)  # says what mends it
            raise NddupError(f"{self.path}/{table.name}: cannot be read ({reason_of(error)})") from error


def _read_chunks(file: Path) -> Iterator[str]:
    """Yield a text in parts, with its line ends unchanged."""
    with file.open(encoding="utf-8", errors="replace", newline="") as text:
        while chunk := text.read(CHUNK):
            yield chunk


class NoFolder:
    """A stand-in for the folder of a run without one: tables, and no files.

    Args:
        path: name of the run in messages.
        tables: names of its tables.
        metrics: metrics of the run.
    """

    def __init__(self, path: str, tables: Collection[str], metrics: RunMetrics) -> None:
        self.path = path
        self._tables, self._metrics = tables, metrics

    def open(self) -> Mapping[str, Any]:
        """Return the metrics, as in `metrics.json`."""
        return self._metrics.dump()

    def holds(self, name: str) -> bool:
        """Return whether there is a table of this name."""
        return name in self._tables

    def require_same(self, name: str) -> bool:
        """Return False: nothing is noted of tables in memory."""
        del name
        return False

    def noted_tables(self) -> list[str]:
        """Return nothing."""
        return []

    def read_text(self, name: str) -> str:
        """Raise OutputError: there are no files."""
        raise OutputError(f"{self.path}: there is no {name}")


class MemoryRun(DuckTables):
    """A run whose tables are in memory.

    Args:
        tables: tables by name, each as `nddup.tables.RESULTS` declares it; not copied.
        metrics: metrics of the run.

    Cost: some 30 ms.
    """

    def __init__(self, tables: Mapping[str, pa.Table], metrics: RunMetrics) -> None:
        super().__init__(NoFolder("run in memory", tables, metrics))
        for name, table in tables.items():
            self.database.register(name, table)
        self.shut()

    def transform_text(self, table: Table, name: str, reader: Reader) -> None:
        """Refuse: there are no files.

        Raises:
            OutputError: always.
        """
        del table, reader
        self.read_text(name)
