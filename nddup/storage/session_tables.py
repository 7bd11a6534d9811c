"""How a stage keeps its tables: in a run's folder (`run_folder`) or, for a notebook, in Spark's own storage (here)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import types as T

UNMARKED = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""Options to write a table without Hadoop's file `_SUCCESS`: only its seal tells that a table is whole."""


@dataclass(frozen=True)
class EarlierTable:
    """A table of an earlier attempt, and what was counted while it was made."""

    table: DataFrame
    counted: Mapping[str, Any]


class Store(Protocol):
    """Keeps a table so that it is computed once: found, or written and then sealed."""

    counts_in_passing: bool
    """Whether observations of a table are made while `write` runs; else they are when the table is first read."""

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> EarlierTable | None:
        """Return the table as an earlier attempt left it, if this one would make the same; None if it must be made."""

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Compute `table` and keep it in place of an earlier one; return a DataFrame that reads what was kept."""

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Mark the table as whole, and note what was counted while it was made."""

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Forget a working table that nothing reads any more.

        Args:
            name: the name of the table.
            made: the tables that were made of it: while these exist, a later attempt does not need it.
        """


class MemoryStore:
    """Tables in Spark's block storage, on the executors' disks, as long as something refers to them."""

    counts_in_passing = True

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> EarlierTable | None:
        """Return None: a session begins empty."""
        del name, schema, settings, reads
        return None

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Keep a table as a checkpoint, as `Store.write`. One action.

        A checkpoint forgets how the table was made. The plan of a table that is only persisted holds the plan of every
        table under it, once for each time it is read: doubling stage by stage, it fills the driver's memory.
        """
        del name
        return table.select(*schema.fieldNames()).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Do nothing: a table that is written is whole."""

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Do nothing: Spark frees a checkpoint by itself."""
        del name, made


class RemoteMemoryStore(MemoryStore):
    """A `MemoryStore` for Spark Connect, whose client does not get the observations made during a checkpoint."""

    counts_in_passing = False

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Keep a table, as `Store.write`, but without an action: the caller's first read of all of it keeps it."""
        del name
        columns = table.select(*schema.fieldNames())
        return columns.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)
