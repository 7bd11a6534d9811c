"""A run without a folder: its tables are Arrow tables in this process, read by DuckDB."""

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from nddup.errors import OutputError
from nddup.metrics import RunMetrics
from nddup.opened.duck import DuckTables
from nddup.opened.finished_run import Reader
from nddup.tables import Table


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
