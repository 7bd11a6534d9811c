"""The tables of a run's folder as Arrow tables, read and written by the embedded engine."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nddup.errors import OutputError, first_line
from nddup.storage.local_storage import LocalStorage, local_path
from nddup.storage.run_folder import STAGES, RunFolder
from nddup.storage.sound_tables import require_sound, require_types
from nddup.tables import table_called

ROWS = 1 << 17
"""Rows of a row group: some 200 MB of sketches."""

ROWS_SCANNED, BUFFER = 1 << 10, 1 << 20
"""Rows of the largest table that are held when it is only read past, and the bytes read of a column at a time."""

FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=BUFFER, pre_buffer=False
    )
)
"""Parquet of which no column is held before it is decoded: half the memory that is touched, half the time."""

RESUME = "; --resume goes on from here"
"""Said after a failure to write a table of a run."""

OnRows = Callable[[int, int], None]
"""Called with the number of rows written, and that of all rows."""


class MemoryTables:
    """The tables of a run that has no folder; it begins empty, so no earlier table is found."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}

    def note(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str]) -> Mapping[str, Any] | None:
        """Return None: there are no notes."""
        del name, settings, reads
        return None

    def write(self, name: str, table: pa.Table, *, on_rows_written: OnRows | None = None) -> None:
        """Store a table."""
        del on_rows_written
        self.tables[name] = table

    def read(self, name: str) -> pa.Table:
        """Return a stored table."""
        return self.tables[name]

    def release(self, name: str, table: pa.Table) -> pa.Table:
        """Return the table itself: there is no other copy."""
        del name
        return table

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Do nothing: a table that is written is whole."""


class LocalFolder(RunFolder):
    """A run's folder on this machine, its tables as Parquet."""

    def __init__(self, path: str, *, advice: str = RESUME) -> None:
        """As `RunFolder`; `advice` is said after a failure to write a table."""
        super().__init__(LocalStorage(), path)
        self._advice = advice

    @property
    def spool(self) -> str:
        """The path of the folder for files that live no longer than an attempt."""
        return self._at(f"{STAGES}/spool")

    def note(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str]) -> Mapping[str, Any] | None:
        """Return the counts of a table as an earlier attempt of either engine noted them, if it is whole.

        None if there is no such table, or if this attempt would make another.
        """
        return self._note(name)["counted"] if self.has(name, settings=settings, reads=reads) else None

    def write(self, name: str, table: pa.Table, *, on_rows_written: OnRows | None = None) -> None:
        """Write a table in place of an earlier one, in parts; it counts only once it is sealed."""
        write_table(self.begin_table(name), name, table, on_rows_written, advice=self._advice)

    def write_onto(
        self, name: str, table: pa.Table, before: "Before", *, on_rows_written: OnRows | None = None
    ) -> None:
        """Write a table that begins with the rows of another run's; its files whose rows are all unchanged are linked.

        Args:
            table: all rows, or those behind the first ones.
            before: the other run, and which of its rows are to be written again.
            on_rows_written: as of `write_table`.
        """
        if before.run is not None:
            before.run.require_same(name)
        write_table(self.begin_table(name), name, table, on_rows_written, before=before, advice=self._advice)

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """Read a table of the folder, or some of its columns, in the declared types.

        Raises:
            OutputError: if it cannot be read so.
        """
        self.require_same(name)
        with as_table(self._place(name), name):
            return open_table(self._place(name), name).to_table(columns)

    def scan(self, name: str) -> Iterator[pa.RecordBatch]:
        """Read a table in its order, some MB at a time; errors as of `read`.

        Cost: .01 CPU s for a million SHINGLES. A scan of Arrow's, which holds a row group or a file, takes .05.
        """
        self.require_same(name)
        table = table_called(name)
        for file in sorted(Path(local_path(self._place(name))).glob("*.parquet")):
            with as_table(str(file), name), pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER) as stored:
                require_types(stored.schema_arrow, name, str(file))
                for batch in stored.iter_batches(ROWS_SCANNED, use_threads=False):
                    yield from pa.Table.from_batches([batch]).select(table.names).cast(table.arrow).to_batches()

    def count_values(self, name: str, column: str) -> int:
        """Return at most how many values the lists of a column hold, by what its files say; errors as of `read`."""
        with as_table(self._place(name), name):
            files = [file.metadata for file in open_table(self._place(name), name).get_fragments()]
        groups = [file.row_group(at) for file in files for at in range(file.num_row_groups)]
        chunks = [group.column(at) for group in groups for at in range(group.num_columns)]
        return sum(chunk.num_values for chunk in chunks if chunk.path_in_schema.partition(".")[0] == column)

    def release(self, name: str, table: pa.Table) -> ds.Dataset:
        """Return what answers for a table that was written: its files, so that none of it is held in memory."""
        del table
        return open_table(self._place(name), name)

    def read_sound(self, name: str, values: int | None = None) -> pa.Table:
        """Read a table that anyone may have written, as `read`; `values` as of `require_sound`.

        Raises:
            OutputError: also if no run writes its values, or its types: a file of it may become one of another run.
        """
        table = self.read(name)
        for file in open_table(self._place(name), name).get_fragments():
            require_types(file.physical_schema, name, file.path)
        require_sound(table, name, self.path, values=values)
        return table

    def scan_shingles(self) -> Iterator[pa.RecordBatch]:
        """Read SHINGLES some MB at a time, each row once, in order.

        Raises:
            OutputError: if no run writes such rows.
        """
        for batch in self.scan("shingles"):
            require_sound(pa.Table.from_batches([batch]), "shingles", self.path)
            yield batch


@contextmanager
def as_table(where: str, name: str) -> Iterator[None]:
    """Say in one line that files cannot be read as the table of this name: OutputError."""
    try:
        yield
    except OutputError:
        raise
    except (pa.ArrowException, KeyError, OSError) as error:
        raise OutputError(f"{where}: cannot be read as the table {name} ({first_line(error)})") from error


def open_table(path: str, name: str) -> ds.Dataset:
    """Return the table of this name in a folder of this machine, in the declared types."""
    return ds.dataset(local_path(path), table_called(name).arrow, format=FORMAT)


class Before(NamedTuple):
    """The rows of another run that a table begins with."""

    run: LocalFolder | None
    """None: there is none, but a later table may begin with this one."""

    changed: NDArray[np.int64]
    """The places of the rows that differ, ascending."""

    absent: int = 0
    """The number of rows that are not given again; none of these differs."""


def write_tables(folder: Path, tables: Mapping[str, pa.Table]) -> None:
    """Write each table as one file of Parquet to a new folder of its own, by its name. Raises OSError."""
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(table, folder / name / "part-00000.zstd.parquet", compression="zstd")


def write_table(  # noqa: PLR0913 - what is written, how it is told, and what a failure says
    path: str,
    name: str,
    table: pa.Table,
    on_rows_written: OnRows | None = None,
    *,
    before: Before | None = None,
    advice: str = RESUME,
) -> None:
    """Write the table of this name as Parquet to a folder of this machine, in place of what is there.

    Args:
        on_rows_written: called as they are written.
        before: whose files stand for its first rows where these are unchanged; the others have `ROWS` rows at most, so
            that a later table can begin with them.
        advice: what a message of failure ends with.

    Raises:
        OutputError: if it cannot be written.
    """
    where, storage = Path(local_path(path)), LocalStorage()
    storage.remove(str(where))
    where.mkdir(parents=True)
    declared = table_called(name).arrow
    strings = [field.name for field in declared if field.type == pa.string()]
    form = {"compression": "zstd", "compression_level": 1, "use_dictionary": strings, "write_page_checksum": True}
    on_rows = on_rows_written or (lambda done, rows: None)  # noqa: ARG005
    on_rows(0, len(table))
    try:
        absent = 0 if before is None else before.absent
        parts = [Part(0, max(len(table), 1))]
        if before is not None:
            parts = list(_divide(before, name, absent + len(table)))
        for number, part in enumerate(parts):
            file = where / f"part-{number:05}.zstd.parquet"
            if part.same is not None:
                _link(part.same, file)
                continue
            with pq.ParquetWriter(file, declared, **form) as writer:
                for low in range(part.low, part.high, ROWS):
                    rows = table.slice(low - absent, min(ROWS, part.high - low)).select(declared.names).cast(declared)
                    writer.write_table(rows, row_group_size=ROWS)
                    on_rows(min(low + ROWS - absent, len(table)), len(table))
    except OSError as error:  # Arrow's message names no file
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OutputError(f"{where}: cannot be written ({reason}){advice}") from error


class Part(NamedTuple):
    """Rows of a table in one file; `same` is another file that holds them, None where there is none."""

    low: int
    high: int
    same: Path | None = None


def _divide(before: Before, name: str, rows: int) -> Iterator[Part]:
    at = 0
    for file in [] if before.run is None else parquet_files(before.run.place(name)):
        end = at + pq.read_metadata(file).num_rows
        is_same = end <= rows and not np.searchsorted(before.changed, end) - np.searchsorted(before.changed, at)
        if end > at:
            yield Part(at, min(end, rows), file if is_same else None)
        at = end
    for low in range(at, rows, ROWS):
        yield Part(low, min(low + ROWS, rows))
    if not rows:
        yield Part(0, 1)


def parquet_files(path: str) -> list[Path]:
    """Return the files of a table in a folder of this machine, in the order in which they are read."""
    return sorted(Path(local_path(path)).glob("*.parquet"))


def link_files(path: str, target: str, name: str) -> None:
    """Link all files of the table of this name in a folder into another one, before those that are there.

    Raises:
        OutputError: if a file has other types than the table.
    """
    for number, file in enumerate(parquet_files(path)):
        require_types(pq.read_schema(file), name, str(file))
        _link(file, Path(local_path(target)) / f"before-{number:05}.parquet")


def _link(file: Path, target: Path) -> None:
    """Give a file another name; copy it where the file system has no second names. Neither is written to again."""
    try:
        target.hardlink_to(file)
    except OSError:
        shutil.copyfile(file, target)
