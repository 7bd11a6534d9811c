"""How a stage keeps its tables: in a run's folder (`run_folder`), or here in Spark's own storage, for a notebook."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import types as T

UNMARKED = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""How a table is written: without Hadoop's file `_SUCCESS`. What is sealed is whole, and is asked of nothing else."""


@dataclass(frozen=True)
class EarlierTable:
    """A table of an earlier attempt, and what was counted while it was made."""

    table: DataFrame
    counted: Mapping[str, Any]


class Store(Protocol):
    """Keeps a table so that it is computed once: found, or written and then sealed."""

    counts_in_passing: bool
    """Whether an observation of a table is made while it is written; else it is computed when it is first read."""

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> EarlierTable | None:
        """The table as an earlier attempt left it, if this one would make the same; None if it is to be made."""

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Compute `table` and keep it in the place of an earlier one; the DataFrame given back reads what was kept."""

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Say that the table is whole, and what was counted while it was made."""

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Forget a working table that nothing reads any more.

        Args:
            name: of the table.
            made: the tables that were made of it: while they are there, a later attempt does not need it.
        """


class MemoryStore:
    """Tables in Spark's block storage, on disk of the executors, as long as something refers to them."""

    counts_in_passing = True

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> EarlierTable | None:
        """Nothing: a session begins empty."""
        del name, schema, settings, reads
        return None

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """As `Store.write`. One action.

        A checkpoint, for it forgets how the table was made. The plan of a table that is only persisted holds the plan
        of every table under it, once for each time it is read: doubling stage by stage, it fills the driver's memory.
        """
        del name
        return table.select(*schema.fieldNames()).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Nothing: what is written is whole."""

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """As `Store.drop`: Spark frees a checkpoint by itself."""
        del name, made


class RemoteMemoryStore(MemoryStore):
    """As `MemoryStore`, behind Spark Connect: its client hears nothing of what was observed while it checkpoints."""

    counts_in_passing = False

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """As `Store.write`, but the action is the caller's: the first that reads the whole table keeps it."""
        del name
        columns = table.select(*schema.fieldNames())
        return columns.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)
