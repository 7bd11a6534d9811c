"""The tables of a run's folder as DataFrames: how Spark reads and writes them."""

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from nddup.spark.reach import is_connect
from nddup.spark.schemas import local_table, schema_of
from nddup.storage.run_folder import STAGES, RunFolder
from nddup.storage.session_files import files_at
from nddup.storage.session_tables import UNMARKED, EarlierTable
from nddup.tables import RESULTS

ATTEMPT = "attempt-"
"""Begins the name of the folder, among the working tables, of what one attempt has not put in its place yet."""


class SparkFolder(RunFolder):
    """A run's folder whose tables Spark writes, as Parquet: a `Store` that remembers earlier attempts."""

    counts_in_passing = True

    def __init__(self, spark: SparkSession, path: str) -> None:
        super().__init__(files_at(spark, path), path)
        self._spark = spark
        self._attempt = f"{ATTEMPT}{token_hex(8)}" if is_connect(spark) else ""

    def start(self, **how: Any) -> bool:  # noqa: ANN401 - as `RunFolder.start`
        """As `RunFolder.start`; what operations of earlier attempts left apart is removed."""
        is_finished = super().start(**how)
        if self._attempt and not is_finished:
            for name in self._storage.children(f"{self.path}/{STAGES}"):
                if name.startswith(ATTEMPT):
                    self._storage.remove(f"{self.path}/{STAGES}/{name}")
        return is_finished

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """As `RunFolder.finish`."""
        if self._attempt:
            self._storage.remove(f"{self.path}/{STAGES}/{self._attempt}")
        super().finish(metrics)

    def aside(self, name: str) -> str:
        """Where an operation writes what is then put in its place, or gathered.

        A server of Spark Connect goes on for some minutes with an operation whose client was killed. So each attempt
        has a folder of its own there, and what the last one wrote too late is read by nobody.
        """
        return "/".join(part for part in (self.path, STAGES, self._attempt, name) if part)

    def begin_apart(self, name: str) -> str:
        """As `RunFolder.begin_apart`."""
        super().begin_apart(name)
        return self.aside(name)

    def put(self, name: str) -> None:
        """As `RunFolder.put`."""
        self._claim.check()
        self._storage.move(self.aside(name), self._place(name))

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> EarlierTable | None:
        """As `Store.find`: its note has the fingerprint, and its files are those that the note names.

        A table that was dropped counts as there while all that was made of it is there; it is given back empty.
        """
        if not self.has(name, settings=settings, reads=reads):
            return None

        note = self._note(name)
        is_there = not note.get("dropped")
        table = self._read(self._place(name), schema) if is_there else local_table(self._spark, schema)
        return EarlierTable(table, note["counted"])

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """As `Store.write`: Parquet. One action."""
        where, rows = self.begin_table(name), table.select(*schema.fieldNames())
        if self._attempt:
            rows.write.mode("overwrite").options(**UNMARKED).parquet(self.aside(name))
            self._storage.remove(where)
            self._storage.move(self.aside(name), where)
        else:
            rows.write.mode("overwrite").options(**UNMARKED).parquet(where)
        return self._read(where, schema)

    def table(self, name: str) -> DataFrame:
        """A table of the run, under its schema."""
        return self._read(self._at(name), schema_of(RESULTS[name]))

    def _read(self, path: str, schema: T.StructType) -> DataFrame:
        return self._spark.read.schema(schema).parquet(path)
