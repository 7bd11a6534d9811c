"""The tables of a run's folder as Arrow tables: how the embedded engine reads and writes them."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from nddup.errors import OutputError
from nddup.storage.local_storage import LocalStorage, local_path
from nddup.storage.run_folder import STAGES, RunFolder
from nddup.tables import table_called

ROWS = 1 << 17
"""Of a row group: some 200 MB of sketches."""


Told = Callable[[int, int], None]
"""Is told the rows that were written, and those there are."""


def untold(done: int, rows: int) -> None:
    """Nobody is told."""


class EarlierTable(NamedTuple):
    """A table of an earlier attempt, and what its note says of it."""

    table: pa.Table
    counted: Mapping[str, Any]


class MemoryTables:
    """The tables of a run that leaves no folder; nothing is found, for it begins empty."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}

    def note(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str]) -> Mapping[str, Any] | None:
        """Nothing is noted of any table."""
        del name, settings, reads
        return None

    def write(self, name: str, table: pa.Table, *, told: Told = untold) -> None:
        """Keep a table."""
        del told
        self.tables[name] = table

    def read(self, name: str) -> pa.Table:
        """A table that was kept."""
        return self.tables[name]

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """What is written is whole."""


class LocalFolder(RunFolder):
    """A run's folder on this machine, its tables as Parquet."""

    def __init__(self, path: str) -> None:
        super().__init__(LocalStorage(), path)

    @property
    def spool(self) -> str:
        """A folder for what lives no longer than an attempt."""
        return self._at(f"{STAGES}/spool")

    def find(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str]) -> EarlierTable | None:
        """A table as an earlier attempt of either engine left it, if this one would make the same."""
        if not self.has(name, settings=settings, reads=reads):
            return None
        return EarlierTable(self.read(name), self._note(name)["counted"])

    def note(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str]) -> Mapping[str, Any] | None:
        """What is noted of a table that `find` would find, without reading it."""
        return self._note(name)["counted"] if self.has(name, settings=settings, reads=reads) else None

    def write(self, name: str, table: pa.Table, *, told: Told = untold) -> None:
        """Write a table in place of an earlier one; TOLD hears how far it is. Until it is sealed it is not there."""
        where = Path(local_path(self.begin_table(name)))
        self._storage.remove(str(where))
        where.mkdir(parents=True)
        declared = table_called(name).arrow
        strings = [field.name for field in declared if field.type == pa.string()]
        form = {"compression": "zstd", "compression_level": 1, "use_dictionary": strings}
        told(0, len(table))
        try:
            with pq.ParquetWriter(where / "part-00000.zstd.parquet", declared, **form) as file:
                for low in range(0, max(len(table), 1), ROWS):
                    file.write_table(table.slice(low, ROWS).select(declared.names).cast(declared), row_group_size=ROWS)
                    told(min(low + ROWS, len(table)), len(table))
        except OSError as error:  # Arrow's own words name no file
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise OutputError(f"{where}: cannot be written ({reason}); --resume goes on from here") from error

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """A table of the folder, whole or some columns of it, as they are declared."""
        whole = ds.dataset(local_path(self._place(name)), table_called(name).arrow, format="parquet")
        return whole.to_table(columns)
