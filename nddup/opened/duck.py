"""A finished run read by DuckDB, in this process: no Java, no network, and bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from nddup.errors import NddupError
from nddup.opened.finished_run import Batches, FinishedRun
from nddup.storage.local_storage import LocalStorage, local_path
from nddup.storage.run_folder import RunFolder
from nddup.table_types import Table
from nddup.tables import RESULTS

MEMORY = "25%"
"""Of the machine's memory, or of the container's. What does not fit is written to the folder for temporary files."""

BATCH_ROWS = 10_000
"""Rows of an answer that are taken at a time."""

SETTINGS: dict[str, str | bool] = {
    "memory_limit": MEMORY,
    "autoinstall_known_extensions": False,  # nothing is fetched, whatever a text names
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "default_null_order": "nulls_first_on_asc_last_on_desc",  # Spark's
    "preserve_insertion_order": False,  # rows without ORDER BY have no order, as in Spark
}

MACROS = (
    "CREATE MACRO slice(list, first, length) AS list_slice(list, first, first + length - 1)",
    "CREATE MACRO arrays_overlap(a, b) AS list_has_any(a, b)",
    "CREATE MACRO shiftright(number, bits) AS number >> bits",
)
"""Functions that Spark has under a name which DuckDB does not know."""

_TYPES = {
    "long": "BIGINT",
    "int": "INTEGER",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "boolean": "BOOLEAN",
    "array<long>": "BIGINT[]",
    "array<int>": "INTEGER[]",
    "array<string>": "VARCHAR[]",
}
"""DuckDB's type of each type of `nddup.tables.TYPES`."""


class DuckRun(FinishedRun):
    """A run in a folder of this machine.

    Args:
        path: its folder, a path or a URI `file:/…`.

    Raises:
        ConfigError: for a URI of another file system.
        OutputError, IncompatibleSketchError: as `FinishedRun`.
        NddupError: if a table cannot be read.

    Cost: some 30 ms, and the footer of one Parquet file a table.
    """

    def __init__(self, path: str) -> None:
        super().__init__(RunFolder(LocalStorage(), path))
        self._spilled = TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True)
        settings: dict[str, str | bool | int | float | list[str]] = {**SETTINGS, "temp_directory": self._spilled.name}
        self._database = duckdb.connect(":memory:", config=settings)
        for macro in MACROS:
            self._database.execute(macro)

        for table in RESULTS.values():
            folder = Path(local_path(self.path), table.name)
            if folder.is_dir():
                self._see(table, sorted(str(file) for file in folder.iterdir() if file.name[0] not in "_."))
        self._database.execute("SET enable_progress_bar = false")  # it would stand among the results
        self._database.execute("SET lock_configuration = true")
        self._seen: list[str] = []  # names of the caller's rows, and of answers
        self._kept: list[str] = []
        self._broken: NddupError | None = None

    def sql(self, text: str, **tables: pa.Table) -> pa.Table:
        """As `FinishedRun.sql`."""
        with self._named():
            try:
                for name, table in tables.items():
                    self._database.register(name, table)
                return self._database.sql(text).to_arrow_table()
            finally:
                for name in tables:
                    self._database.unregister(name)

    def see(self, name: str, rows: Any) -> None:  # noqa: ANN401
        """As `FinishedRun.see`: an Arrow table, or a reader of batches, which is read once."""
        if isinstance(rows, pa.RecordBatchReader):
            rows = pa.RecordBatchReader.from_batches(rows.schema, self._noting(rows))
        self._database.register(name, rows)
        self._seen.append(name)

    def keep(self, name: str, text: str) -> None:
        """As `FinishedRun.keep`."""
        with self._named():
            self._database.execute(f"CREATE TABLE {_name(name)} AS {text}")
        self._kept.append(name)

    def rows(
        self, text: str, function: Callable[[Batches], Batches] | None = None, schema: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """As `FinishedRun.rows`: a batch at a time is in memory."""
        del schema
        with self._named():
            batches: Batches = iter(self._database.sql(text).to_arrow_reader(BATCH_ROWS))
            for batch in batches if function is None else function(batches):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def forget(self) -> None:
        """As `FinishedRun.forget`."""
        for name in self._kept:
            self._database.execute(f"DROP TABLE {_name(name)}")
        for name in self._seen:
            self._database.unregister(name)
        self._kept, self._seen = [], []

    def _noting(self, batches: Batches) -> Batches:
        """The same batches; why they ended early is noted, for the database would tell it as its own error."""
        try:
            yield from batches
        except NddupError as error:
            self._broken = error
            raise

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the run in errors of the database."""
        try:
            yield
        except duckdb.Error as error:
            if self._broken is not None:
                raise self._broken from None
            raise NddupError(f"{self.path}: cannot be read ({_reason(error)})") from error

    def _see(self, table: Table, files: Sequence[str]) -> None:
        """Give a table its name: a view of its files with all declared columns, also if there is no file."""
        source = f"read_parquet([{', '.join(map(_literal, files))}])" if files else ""
        try:
            there = set(self._database.sql(f"FROM {source}").columns) if files else set()
            columns = ", ".join(
                f"CAST({_name(column.name) if column.name in there else 'NULL'} AS {_TYPES[column.type]})"
                f" AS {_name(column.name)}"
                for column in table.columns
            )
            rows = f"FROM {source}" if files else "WHERE false"
            self._database.execute(f"CREATE VIEW {_name(table.name)} AS SELECT {columns} {rows}")
        except duckdb.Error as error:
            raise NddupError(f"{self.path}/{table.name}: cannot be read ({_reason(error)})") from error


def _literal(path: str) -> str:
    """A path as an SQL literal that matches this file only: glob wildcards are escaped with brackets.

    Example:
        >>> _literal("/it's/a[1]*.parquet")
        "'/it''s/a[[]1][*].parquet'"
    """
    plain = "".join(f"[{character}]" if character in "[*?" else character for character in path)
    return "'" + plain.replace("'", "''") + "'"


def _name(name: str) -> str:
    return f'"{name}"'


def _reason(error: Exception) -> str:
    """What went wrong, in a line."""
    return str(error).strip().splitlines()[0]
