"""How a stage of Spark stores its tables: in a run's folder, in a folder of the caller's, or in Spark's own storage.

`find_duplicates` keeps them in Spark's storage, or as Parquet in a folder that the caller chooses: there, losing an
executor loses no table.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Protocol, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from nddup.scanning.input_files import is_of_this_machine
from nddup.spark.schemas import frame_of_rows, local_table, read_table, schema_of
from nddup.spark.session_access import access_of, is_connect
from nddup.spark.session_files import files_at
from nddup.storage.local_folder import link_files, open_table, parquet_files, write_table
from nddup.storage.local_storage import LocalStorage
from nddup.storage.run_folder import STAGES, RunFolder
from nddup.tables import table_called

MOST_LINKED = 1_000
"""Files of a table up to which a run onto another links them: each night adds some, and more are written as few."""

UNMARKED = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""Options to write a table without Hadoop's file `_SUCCESS`: only its seal tells that a table is whole."""


@dataclass(frozen=True)
class EarlierTable:
    """A table of an earlier attempt, and the counts of its making."""

    table: DataFrame
    counted: Mapping[str, Any]


class Store(Protocol):
    """Stores a table so that it is computed once: found, or written and then sealed."""

    counts_in_passing: bool
    """Whether observations of a table are made while `write` runs; else they are when the table is first read."""

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> EarlierTable | None:
        """Return the table as an earlier attempt left it, if this one would make the same; None if it must be made.

        A session, and a new folder, begin empty.
        """
        del name, schema, settings, reads
        return None

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Compute `table` and store it in place of an earlier one; return a DataFrame that reads it."""

    def write_rows(self, spark: SparkSession, name: str, rows: pa.Table, schema: T.StructType) -> DataFrame:
        """Store rows of this process as `write` stores a table."""

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Mark the table as whole, and note the counts of its making; nothing to do where no attempt comes back."""
        del name, settings, reads, counted

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Forget a working table that nothing reads any more.

        Args:
            made: the tables that were made of it: while these exist, a later attempt does not need it.
        """


class MemoryStore(Store):
    """Tables in Spark's block storage, on the executors' disks, until they are freed.

    Spark itself frees a checkpoint only when the JVMs of driver and executors happen to collect what refers to it.
    """

    counts_in_passing = True

    def __init__(self, spark: SparkSession) -> None:
        self._access = access_of(spark)
        self._mark = f"nddup-{uuid4().hex}"

    @contextmanager
    def opened(self, *, kept: Sequence[str]) -> Iterator[Self]:
        """Free at the end all tables but `kept`; after a failure all, with what an interrupted `write` left."""
        try:
            yield self
        except BaseException:
            self.free()
            raise
        self.free(but=kept)

    def free(self, *, but: Sequence[str] = ()) -> None:
        """Free every table that was written here, except some. They can no longer be read."""
        left = {self._marked(name) for name in but}
        self._access.free(lambda mark: mark.startswith(self._mark) and mark not in left)

    def _marked(self, name: str) -> str:
        return f"{self._mark} {name}"

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Store a table as a checkpoint, as `Store.write`. One action.

        A checkpoint forgets how the table was made. The plan of a table that is only persisted holds the plan of every
        table under it, once for each time it is read: doubling stage by stage, it fills the driver's memory.
        """
        with self._access.marking(self._marked(name)):
            return table.select(*schema.fieldNames()).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)

    def write_rows(self, spark: SparkSession, name: str, rows: pa.Table, schema: T.StructType) -> DataFrame:
        """Give the rows to the session, as `Store.write_rows`."""
        del name
        return frame_of_rows(spark, rows, schema)

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Free a table at once, as `Store.drop`."""
        del made
        self._access.free(lambda mark: mark == self._marked(name))


class RemoteMemoryStore(MemoryStore):
    """A `MemoryStore` for Spark Connect, whose client does not get the observations made during a checkpoint.

    A client cannot free a table: the server does once the client no longer refers to it and its JVM collects garbage.
    """

    counts_in_passing = False

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Store a table, as `Store.write`, but without an action: the caller's first read of all of it does so."""
        del name
        columns = table.select(*schema.fieldNames())
        return columns.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)


class CheckpointStore(Store):
    """A `Store` without memory of earlier attempts: a new folder within `folder` for each call.

    It uses Parquet, not `DataFrame.checkpoint`, which needs a folder set for the caller's whole application, and keeps
    whole rows, of which the stages mostly read a few columns.
    """

    counts_in_passing = True

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._storage = files_at(spark, folder)
        self.path = f"{folder.rstrip('/')}/nddup-{uuid4().hex}"

    @contextmanager
    def opened(self, *, kept: Sequence[str]) -> Iterator["CheckpointStore"]:
        """Make the folder; at the end only the tables `kept` stay in it, and after a failure the folder is removed.

        Raises:
            OutputError: if the folder cannot be made.
        """
        self._storage.make_folder(self.path)
        try:
            yield self
        except BaseException:
            self._storage.remove(self.path)
            raise
        for name in self._storage.children(self.path):
            if name not in kept:
                self._storage.remove(f"{self.path}/{name}")

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Write a table, as `Store.write`. One action."""
        where = f"{self.path}/{name}"
        spelled = self._storage.spelled(where)
        table.select(*schema.fieldNames()).write.mode("overwrite").options(**UNMARKED).parquet(spelled)
        return read_table(self._spark, spelled, schema)

    def write_rows(self, spark: SparkSession, name: str, rows: pa.Table, schema: T.StructType) -> DataFrame:
        """Write the rows, as `Store.write_rows`. One action."""
        return self.write(name, frame_of_rows(spark, rows, schema), schema)

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Remove the files of a table at once, as `Store.drop`."""
        del made
        self._storage.remove(f"{self.path}/{name}")


ATTEMPT = "attempt-"
"""Prefix of the folder, among the working tables, where an attempt writes what it has not moved to its place yet."""


class SparkFolder(RunFolder):
    """A run's folder whose tables Spark writes, as Parquet: a `Store` that remembers earlier attempts."""

    counts_in_passing = True

    def __init__(self, spark: SparkSession, path: str) -> None:
        # Hadoop takes `run-10:30` for a URI, but not `./run-10:30`.
        is_mistaken = is_of_this_machine(path) and ":" in path.partition("/")[0] and path[:5].lower() != "file:"
        self._files = files_at(spark, path)
        super().__init__(self._files, f"./{path}" if is_mistaken else path)
        self._spark = spark
        self._attempt = f"{ATTEMPT}{token_hex(8)}" if is_connect(spark) else ""

    def start(self, **arguments: Any) -> bool:  # noqa: ANN401 - as `RunFolder.start`
        """Start the run, as `RunFolder.start`, and remove what operations of earlier attempts wrote apart."""
        is_finished = super().start(**arguments)
        if self._attempt and not is_finished:
            for name in self._storage.children(f"{self.path}/{STAGES}"):
                if name.startswith(ATTEMPT):
                    self._storage.remove(f"{self.path}/{STAGES}/{name}")
        return is_finished

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Remove what this attempt wrote apart, and finish the run, as `RunFolder.finish`."""
        if self._attempt:
            self._storage.remove(f"{self.path}/{STAGES}/{self._attempt}")
        super().finish(metrics)

    def aside(self, name: str) -> str:
        """Return where an operation writes what is then moved to its place, or gathered.

        A Spark Connect server goes on for some minutes with an operation whose client was killed. So each attempt has
        its own folder there, and nobody reads what an earlier one wrote too late.
        """
        return "/".join(part for part in (self.path, STAGES, self._attempt, name) if part)

    @property
    def is_here(self) -> bool:
        """Whether this process and Hadoop see the folder at the same place of this machine."""
        return isinstance(self._files, LocalStorage)

    def spelled(self, path: str) -> str:
        """Return a path within the folder as Spark's own readers and writers take it."""
        return self._files.spelled(path)

    def stage_output(self, name: str) -> str:
        """Remove an output, and return the path to write the new one to, as `RunFolder.stage_output`."""
        super().stage_output(name)
        return self.aside(name)

    def publish(self, name: str) -> None:
        """Move the output from its staging path to its place, as `RunFolder.publish`."""
        self._claim.check()
        self._storage.move(self.aside(name), self._place(name))

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> EarlierTable | None:
        """Find a table, as `Store.find`: its note has the right fingerprint, and its files are those the note names.

        A dropped table counts as found while all tables made of it are there; an empty one is returned for it.
        """
        if not self.has(name, settings=settings, reads=reads):
            return None

        note = self._note(name)
        is_there = not note.get("dropped")
        table = self._read(self._place(name), schema) if is_there else local_table(self._spark, schema)
        return EarlierTable(table, note["counted"])

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Write a table as Parquet, as `Store.write`. One action."""
        where, rows = self.begin_table(name), table.select(*schema.fieldNames())
        if self._attempt:
            rows.write.mode("overwrite").options(**UNMARKED).parquet(self.spelled(self.aside(name)))
            self._storage.remove(where)
            self._storage.move(self.aside(name), where)
        else:
            rows.write.mode("overwrite").options(**UNMARKED).parquet(self.spelled(where))
        return self._read(where, schema)

    def write_rows(self, spark: SparkSession, name: str, rows: pa.Table, schema: T.StructType) -> DataFrame:
        """Write the rows, as `Store.write_rows`: itself where this process sees the folder, else in one action."""
        if not self.is_here or self._attempt:
            return self.write(name, frame_of_rows(spark, rows, schema), schema)
        where = self.begin_table(name)
        write_table(where, name, rows)
        return self._read(where, schema)

    def links(self, name: str, other: "SparkFolder") -> bool:
        """Return whether the files of a table of another run can be files of this one: both folders are here."""
        is_seen = self.is_here and other.is_here and not self._attempt
        return is_seen and len(parquet_files(other.place(name))) <= MOST_LINKED

    def write_beside(self, name: str, table: DataFrame, other: "SparkFolder", schema: T.StructType) -> DataFrame:
        """Write a table that also has all rows of another run's, whose files are linked (`links`). One action.

        Raises:
            OutputError: if a file of the other run is not as it was written, or of other types.
        """
        other.require_same(name)
        self.write(name, table, schema)
        link_files(other.place(name), self.place(name), name)
        return self._read(self.place(name), schema)

    def table(self, name: str) -> DataFrame:
        """Return a table of the finished run, with its schema."""
        self.require_same(name)
        return self._read(self._place(name), schema_of(table_called(name)))

    def dataset(self, name: str) -> "ds.Dataset":
        """Return a table as this process reads it, where it sees the folder."""
        return open_table(self._place(name), name)

    def _read(self, path: str, schema: T.StructType) -> DataFrame:
        return read_table(self._spark, self.spelled(path), schema)
