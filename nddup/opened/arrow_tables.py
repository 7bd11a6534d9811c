"""A run that leaves no folder: its tables are Arrow tables in this process, read by DuckDB."""

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from nddup.errors import OutputError
from nddup.metrics import RunMetrics
from nddup.opened.duck import DuckTables
from nddup.opened.finished_run import Reader
from nddup.table_types import Table


class NoFolder:
    """What stands for the folder of a run that leaves none: its tables, and no files.

    Args:
        path: what to call it.
        tables: by name.
        metrics: what was counted.
    """

    def __init__(self, path: str, tables: Collection[str], metrics: RunMetrics) -> None:
        self.path = path
        self._tables, self._metrics = tables, metrics

    def open(self) -> Mapping[str, Any]:
        """The metrics, as in `metrics.json`."""
        return self._metrics.dump()

    def holds(self, name: str) -> bool:
        """Whether there is a table of this name."""
        return name in self._tables

    def read_text(self, name: str) -> str:
        """There is no file."""
        raise OutputError(f"{self.path}: there is no {name}")


class MemoryRun(DuckTables):
    """A run whose tables are in memory.

    Args:
        tables: by name, each as `nddup.tables.RESULTS` declares it. Nothing is copied.
        metrics: what was counted.

    Cost: some 30 ms.
    """

    def __init__(self, tables: Mapping[str, pa.Table], metrics: RunMetrics) -> None:
        super().__init__(NoFolder("run in memory", tables, metrics))
        for name, table in tables.items():
            self._database.register(name, table)
        self._database.execute("SET lock_configuration = true")

    def transform_text(self, table: Table, name: str, reader: Reader) -> None:
        """There is no file.

        Raises:
            OutputError: always.
        """
        del table, reader
        self.read_text(name)
