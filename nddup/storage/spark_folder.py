"""The tables of a run's folder as DataFrames, read and written by Spark."""

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from nddup.scanning.local_paths import is_of_this_machine
from nddup.spark.reach import is_connect
from nddup.spark.schemas import local_table, schema_of
from nddup.storage.run_folder import STAGES, RunFolder
from nddup.storage.session_files import files_at
from nddup.storage.session_tables import UNMARKED, EarlierTable
from nddup.tables import RESULTS

ATTEMPT = "attempt-"
"""Prefix of the folder, among the working tables, where an attempt keeps what it has not moved to its place yet."""


class SparkFolder(RunFolder):
    """A run's folder whose tables Spark writes, as Parquet: a `Store` that remembers earlier attempts."""

    counts_in_passing = True

    def __init__(self, spark: SparkSession, path: str) -> None:
        # Hadoop takes `run-10:30` for a URI, but not `./run-10:30`.
        is_mistaken = is_of_this_machine(path) and ":" in path.partition("/")[0] and path[:5].lower() != "file:"
        super().__init__(files_at(spark, path), f"./{path}" if is_mistaken else path)
        self._spark = spark
        self._attempt = f"{ATTEMPT}{token_hex(8)}" if is_connect(spark) else ""

    def start(self, **how: Any) -> bool:  # noqa: ANN401 - as `RunFolder.start`
        """Start the run, as `RunFolder.start`, and remove what operations of earlier attempts wrote apart."""
        is_finished = super().start(**how)
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

    def begin_apart(self, name: str) -> str:
        """Remove an output, and return the path to write the new one to, as `RunFolder.begin_apart`."""
        super().begin_apart(name)
        return self.aside(name)

    def put(self, name: str) -> None:
        """Move what was written apart to its place, as `RunFolder.put`."""
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
            rows.write.mode("overwrite").options(**UNMARKED).parquet(self.aside(name))
            self._storage.remove(where)
            self._storage.move(self.aside(name), where)
        else:
            rows.write.mode("overwrite").options(**UNMARKED).parquet(where)
        return self._read(where, schema)

    def table(self, name: str) -> DataFrame:
        """Return a table of the run's results, with its schema."""
        self.require_same(name)
        return self._read(self._at(name), schema_of(RESULTS[name]))

    def _read(self, path: str, schema: T.StructType) -> DataFrame:
        return self._spark.read.schema(schema).parquet(path)
