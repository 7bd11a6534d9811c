"""The tables of a run's folder as DataFrames: how Spark reads and writes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from nddup.spark.schemas import local_table, schema_of
from nddup.storage.files import Storage
from nddup.storage.run_folder import RunFolder
from nddup.storage.session_tables import EarlierTable
from nddup.tables import RESULTS


class SparkFolder(RunFolder):
    """A run's folder whose tables Spark writes, as Parquet: a `Store` that remembers earlier attempts."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        super().__init__(Storage(spark), path)
        self._spark = spark

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
        where = self.begin_table(name)
        table.select(*schema.fieldNames()).write.mode("overwrite").parquet(where)
        return self._read(where, schema)

    def table(self, name: str) -> DataFrame:
        """A table of the run, under its schema."""
        return self._read(self._at(name), schema_of(RESULTS[name]))

    def _read(self, path: str, schema: T.StructType) -> DataFrame:
        return self._spark.read.schema(schema).parquet(path)
