"""The embedded engine: DuckDB in this process, with no Java, no network, and bounded memory; a run that it reads."""

import ctypes
import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import copy
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Self
from weakref import WeakSet, finalize

import duckdb
import pyarrow as pa

from nddup.engines.engine import Batches, Engine, EngineTable, FinishedRun, Folder, Kernel, R, Reader
from nddup.errors import NddupError, NeedsSparkError, OutputError, first_line
from nddup.ground.metrics import RunMetrics
from nddup.storage.local_storage import LocalStorage, local_path
from nddup.storage.run_folder import RunFolder
from nddup.tables import READABLE, Table

MEMORY = "25%"
"""DuckDB's share of the memory of the machine or container. Data that does not fit goes to temporary files."""

SETTINGS: dict[str, str | bool] = {
    "memory_limit": MEMORY,
    "autoinstall_known_extensions": False,  # no query makes DuckDB download anything
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,  # a query sees the tables given to it, and no variable of this program
    "default_null_order": "nulls_first_on_asc_last_on_desc",  # Spark's
    "preserve_insertion_order": False,  # rows without ORDER BY have no order, as in Spark
}

MACROS = (
    "CREATE MACRO slice(list, first, length) AS list_slice(list, first, first + length - 1)",
    "CREATE MACRO array_size(list) AS len(list)",
    "CREATE MACRO arrays_overlap(a, b) AS list_has_any(a, b)",
    "CREATE MACRO explode(list) AS unnest(list)",
    "CREATE MACRO element_at(list, place) AS list_extract(list, place)",
    "CREATE MACRO regexp_like(text, pattern) AS regexp_matches(text, pattern)",
    "CREATE MACRO sha2(text, bits) AS sha256(text)",
    "CREATE MACRO xxhash64(first, second) AS hash(first, second)",
    "CREATE MACRO unix_timestamp(moment) AS CAST(floor(epoch(moment)) AS BIGINT)",
    "CREATE MACRO shiftright(number, bits) AS number >> bits",
    "CREATE MACRO struct(first, second) AS row(first, second)",
)
"""Spark's functions that DuckDB has under another name; a hash has another value on each."""

BATCH = 2_048
"""Rows in a batch for a kernel: some MB of sketches."""

BATCH_ROWS = 10_000
"""Rows in a batch of an answer."""

SQL_TYPES = {
    "long": "BIGINT", "int": "INTEGER", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "boolean": "BOOLEAN",
    "array<long>": "BIGINT[]", "array<int>": "INTEGER[]", "array<string>": "VARCHAR[]",
    "array<ledger>": 'STRUCT("name" VARCHAR, "values" STRUCT("value" VARCHAR, documents BIGINT)[], "distinct" BIGINT,'
    " least VARCHAR, greatest VARCHAR)[]",
}  # fmt: skip
"""DuckDB's type for each type of `nddup.tables.TYPES`."""

CHUNK = 1 << 24
"""Characters of a text that are read at a time."""

_shared: "list[Database]" = []
"""The database that the engines of this process share, or none."""

_living: "WeakSet[Database]" = WeakSet()
"""The databases of this process."""


class Database:
    """A DuckDB in memory, with a limit of memory and a folder of temporary files of its own.

    Cost: some 25 ms; DuckDB itself takes some 130 ms to load.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        spilled = mkdtemp(prefix="nddup-")
        finalize(self, _remove, spilled, self._process)
        settings: dict[str, str | bool | int | float | list[str]] = {**SETTINGS, "temp_directory": spilled}
        self._first = duckdb.connect(":memory:", config=settings)
        self._first.execute("; ".join(MACROS))
        self._numbers = count()
        _living.add(self)

    def connect(self, catalog: str = "memory") -> duckdb.DuckDBPyConnection:
        """Return a connection that finds the tables of a catalog."""
        connection = self._first.cursor()
        connection.execute(f"SET search_path = '{catalog}.main,memory.main'")
        # A bar would be mixed into the output. In a notebook without ipywidgets it is off, and cannot even be set.
        with suppress(duckdb.Error):
            connection.execute("SET enable_progress_bar = false")
        return connection

    def attach(self) -> str:
        """Return the name of a new catalog, which is empty."""
        name = f"tables{next(self._numbers)}"
        with self._first.cursor() as other:
            other.execute(f"ATTACH ':memory:' AS {name}")
        return name

    def forget(self, connection: duckdb.DuckDBPyConnection, catalog: str) -> None:
        """Free the tables of a catalog, unless in a process that was forked: a lock may be taken by a lost thread."""
        if os.getpid() != self._process:
            return
        connection.close()
        with self._first.cursor() as other:
            other.execute(f"DETACH {catalog}")


def shared_database() -> Database:
    """Return the database of all engines of this process over its own tables, which share its limit of memory."""
    database = _shared[0] if _shared else Database()
    _shared[:] = [database]
    return database


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _leave() -> None:
    """Never close the databases of the process from which this one was forked: their threads are not here.

    DuckDB crashes if one is collected, or as Python ends.
    """
    for database in _living:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))
    _living.clear()


os.register_at_fork(before=_shared.clear, after_in_child=_leave)


class DuckEngine(Engine):
    """DuckDB over tables of this process, and over files if the caller asks for it.

    A run may come from anyone, and so may the text of a query. So its opener gives it a database of its own, and calls
    `shut` before the first query: from then on DuckDB opens the files that it is given and its own temporary ones, and
    nothing else.

    Args:
        path: name of the run, for messages.
        database: one of its own; without, its tables are a catalog of `shared_database`, freed with this object.

    Cost: below one ms, and of the first one that of the database.
    """

    def __init__(self, path: str, database: Database | None = None) -> None:
        self.path = path
        self._database, self._catalog = database or shared_database(), "memory"
        if database is None:
            self._catalog = self._database.attach()
        self.connection = self._database.connect(self._catalog)
        if database is None:
            finalize(self, self._database.forget, self.connection, self._catalog).atexit = False
        self._made: list[str] = []
        self._seen: list[str] = []
        self._broken: NddupError | None = None

    @classmethod
    def over(cls, path: str, **tables: pa.Table) -> Self:
        """Return an engine that sees these tables by their names."""
        engine = cls(path)
        for name, table in tables.items():
            engine.see(name, table)
        return engine

    def _compare(self, text: str) -> None:
        """Compare the files of the tables that a text names with the notes on them; in memory there are none."""

    def sql(self, text: str, **tables: pa.Table) -> pa.Table:
        """As `Engine.sql`."""
        self._compare(text)
        with self.reading(tables):
            return self.connection.sql(text).to_arrow_table()

    def answer(
        self, text: str, kernel: Kernel | None = None, table: Table | None = None, *, by: tuple[str, ...] = ()
    ) -> pa.Table:
        """As `Engine.answer`: an Arrow table."""
        if kernel is None or table is None:
            return self.sql(text)
        self._compare(text)
        with self.reading():
            rows = self.connection.sql(_in_order(text, by)).to_arrow_reader(BATCH_ROWS)
            return pa.Table.from_batches(kernel(iter(rows)), table.arrow)

    def join(  # noqa: PLR0913 - as declared
        self, name: str, rows: str, groups: str, *, key: str, by: str, many: int | None = None
    ) -> None:
        """As `Engine.join`: a view."""
        del by
        verb = "JOIN" if many is None else "LEFT JOIN"
        joined = f"SELECT r.*, g.* EXCLUDE ({key}, n) FROM {rows} AS r {verb} ({groups}) AS g ON r.{key} = g.{key}"  # noqa: S608
        with self.reading():
            self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {joined}")
            self._made += [view for view in (f"VIEW {name}",) if view not in self._made]

    def see(self, name: str, rows: EngineTable) -> None:
        """As `Engine.see`; `rows` is an Arrow table, or a reader of batches, which can be read only once."""
        if isinstance(rows, pa.RecordBatchReader):
            rows = pa.RecordBatchReader.from_batches(rows.schema, self._noting(rows))
        self.connection.register(name, rows)
        self._seen.append(name)

    def rows(self, text: str, kernel: Kernel | None = None, schema: str = "") -> Iterator[tuple[Any, ...]]:
        """As `Engine.rows`; one batch at a time is in memory."""
        del schema
        self._compare(text)
        with self.reading():
            batches: Batches = iter(self.connection.sql(text).to_arrow_reader(BATCH_ROWS))
            for batch in batches if kernel is None else kernel(batches):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def put(self, name: str, table: pa.Table) -> None:
        """As `Engine.put`."""
        with self.reading({"given": table}):
            self.connection.execute(f"CREATE TABLE {as_name(name)} AS FROM given")
            self._made.append(f"TABLE {as_name(name)}")

    def materialise(self, name: str, text: str, *, is_wide: bool = False) -> None:
        """As `Engine.materialise`; a wide table is a view."""
        self._compare(text)
        kind = "VIEW" if is_wide else "TABLE"
        with self.reading():
            self.connection.execute(f"CREATE {kind} {as_name(name)} AS {text}")
            self._made.append(f"{kind} {as_name(name)}")

    def transform(self, table: Table, text: str, kernel: Kernel, *, by: tuple[str, ...] = ()) -> None:
        """As `Engine.transform`; the answer is streamed, with a few batches in memory."""
        self._compare(text)
        with self.reading(), self._database.connect(self._catalog) as other:
            rows = other.sql(_in_order(text, by)).to_arrow_reader(BATCH)
            self.fill(table, kernel(iter(rows)) if by else _on_all_cores(kernel, rows))

    def forget(self) -> None:
        """As `Engine.forget`."""
        for made in reversed(self._made):
            self.connection.execute(f"DROP {made}")
        for name in self._seen:
            self.connection.unregister(name)
        self._made.clear()
        self._seen.clear()

    def _noting(self, batches: Batches) -> Batches:
        """Yield the same batches and note an error in them, because DuckDB would report it as an error of its own."""
        try:
            yield from batches
        except NddupError as error:
            self._broken = error
            raise

    def fill(self, table: Table, batches: Iterable[pa.RecordBatch]) -> None:
        """Make a table of batches as they arrive."""
        columns = ", ".join(f"{as_name(column.name)} {SQL_TYPES[column.type]}" for column in table.columns)
        self.connection.execute(f"CREATE TABLE {as_name(table.name)} ({columns})")
        self._made.append(f"TABLE {as_name(table.name)}")
        for group in _together(batches):
            self.connection.register("given", pa.Table.from_batches(group))
            self.connection.execute(f"INSERT INTO {as_name(table.name)} BY NAME FROM given")
            self.connection.unregister("given")

    def shut(self, files: Sequence[str] = ()) -> None:
        """Let DuckDB open no other file than these and its temporary ones, and change no setting any more."""
        # A file is looked up as it is written in the query, with its wildcards escaped, and opened under its own name.
        allowed = ", ".join(text for file in files for text in {as_literal(file), as_text(file)})
        self.connection.execute(f"SET allowed_paths = [{allowed}]")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    @contextmanager
    def reading(self, tables: Mapping[str, pa.Table] | None = None) -> Iterator[None]:
        """Give tables their names for the duration, and turn errors of DuckDB into messages for users."""
        try:
            for name, table in (tables or {}).items():
                self.connection.register(name, table)
            yield
        except duckdb.Error as error:
            if self._broken is not None:
                raise self._broken from None
            kind = NeedsSparkError if isinstance(error, duckdb.OutOfMemoryException) else NddupError
            raise kind(f"{self.path}: cannot be read ({first_line(error)})") from error
        finally:
            for name in tables or {}:
                self.connection.unregister(name)


def _in_order(text: str, by: tuple[str, ...]) -> str:
    return f"SELECT * FROM ({text}) AS answer ORDER BY {', '.join(by)}" if by else text  # noqa: S608


def _on_all_cores(kernel: Kernel, batches: Iterable[pa.RecordBatch]) -> Batches:
    """Run a kernel on each batch by itself, on all cores, a few batches ahead of the consumer."""
    cores = len(os.sched_getaffinity(0))
    waiting: deque[Future[list[pa.RecordBatch]]] = deque()
    with ThreadPoolExecutor(cores) as pool:
        for batch in batches:
            waiting.append(pool.submit(lambda one: list(kernel(iter([one]))), batch))
            if len(waiting) > 2 * cores:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Group batches to some `BATCH_ROWS` rows each, because a statement costs more than a small batch."""
    group: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        group.append(batch)
        rows += len(batch)
        if rows >= BATCH_ROWS:
            yield group
            group, rows = [], 0
    if rows:
        yield group


def as_literal(path: str) -> str:
    """Return a path as an SQL literal that matches this file only: glob wildcards are escaped with brackets.

    Example:
        >>> as_literal("/it's/a[1]*.parquet")
        "'/it''s/a[[]1][*].parquet'"
    """
    plain = "".join(f"[{character}]" if character in "[*?" else character for character in path)
    return as_text(plain)


def as_text(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def as_name(name: str) -> str:
    """Return a name as an SQL identifier, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


class DuckTables(DuckEngine, FinishedRun):
    """A run whose tables DuckDB reads, in a folder or in memory.

    Args:
        is_ours: whether this process has just made it, and asks of it what its own code says; `shut` is then not
            called, and the database shared.

    Raises:
        OutputError, IncompatibleSketchError: as `FinishedRun`.
    """

    def __init__(self, folder: Folder, *, is_ours: bool = False) -> None:
        FinishedRun.__init__(self, folder)
        DuckEngine.__init__(self, folder.path, None if is_ours else Database())


class DuckRun(DuckTables):
    """A run in a folder of this machine.

    Args:
        path: its folder, a path or a URI `file:/…`.
        is_ours: as of `DuckTables`.

    Raises:
        ConfigError: for a URI of another file system.
        OutputError, IncompatibleSketchError: as `FinishedRun`.
        NddupError: if a table cannot be read.

    Cost: some 30 ms, of a run of ours 5, and reading the footer of one Parquet file per table.
    """

    def __init__(self, path: str, *, is_ours: bool = False) -> None:
        super().__init__(RunFolder(LocalStorage(), path), is_ours=is_ours)
        self._uncompared = set(READABLE)
        folders = {table: Path(local_path(self.path), table.name) for table in READABLE.values()}
        files = {
            table: sorted(str(file) for file in folder.iterdir() if file.name[0] not in "_.")
            for table, folder in folders.items()
            if folder.is_dir()
        }
        if not is_ours:
            self.shut([file for paths in files.values() for file in paths])
        for table, paths in files.items():
            self._see(table, paths)

    def _compare(self, text: str) -> None:
        """As `DuckTables`. Cost: reads the files of a table once, before the first query that names it."""
        for name in self._uncompared.intersection(re.findall(r"\w+", text)):
            self.require_same(name)
            self._uncompared.discard(name)

    def require_same(self, name: str) -> None:
        """Compare a table with its note, once.

        Raises:
            OutputError: if a file has changed, is missing or was added.
        """
        self._folder.require_same(name)

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1)

    def meanwhile(self, ask: Callable[..., R], *arguments: EngineTable) -> Callable[[], R]:
        """As `FinishedRun.meanwhile`: at once, in another thread, over the tables of the folder."""
        other = copy(self)
        other.connection = self._database.connect(self._catalog)
        return self._thread.submit(ask, other, *arguments).result

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
            there = set(self.connection.sql(f"FROM {source}").columns) if files else set()
            columns = ", ".join(
                f"CAST({as_name(column.name) if column.name in there else 'NULL'} AS {SQL_TYPES[column.type]})"
                f" AS {as_name(column.name)}"
                for column in table.columns
            )
            rows = f"FROM {source}" if files else "WHERE false"
            self.connection.execute(f"CREATE VIEW {as_name(table.name)} AS SELECT {columns} {rows}")
        except (duckdb.Error, RuntimeError, UnicodeError) as error:  # of DuckDB: a damaged name of a column is no text
            self.require_same(table.name)  # says what mends it
            raise NddupError(f"{self.path}/{table.name}: cannot be read ({first_line(error)})") from error


def _read_chunks(file: Path) -> Iterator[str]:
    """Yield a text in parts, with its line ends unchanged."""
    with file.open(encoding="utf-8", errors="replace", newline="") as text:
        while chunk := text.read(CHUNK):
            yield chunk


class NoFolder:
    """A stand-in for the folder of a run without one: tables, and no files.

    Args:
        path: name of the run in messages.
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

    Cost: some 30 ms.
    """

    def __init__(self, tables: Mapping[str, pa.Table], metrics: RunMetrics) -> None:
        super().__init__(NoFolder("run in memory", tables, metrics))
        for name, table in tables.items():
            self.connection.register(name, table)
        self.shut()

    def transform_text(self, table: Table, name: str, reader: Reader) -> None:
        """Refuse: there are no files.

        Raises:
            OutputError: always.
        """
        del table, reader
        self.read_text(name)
