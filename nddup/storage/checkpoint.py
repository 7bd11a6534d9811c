"""The tables of `find_duplicates` as Parquet in a folder that the caller chooses: losing an executor loses no table."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from nddup.storage.session_files import files_at
from nddup.storage.session_tables import UNMARKED, EarlierTable


class CheckpointStore:
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

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> EarlierTable | None:
        """Return None: the folder begins empty."""
        del name, schema, settings, reads
        return None

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Write a table, as `Store.write`. One action."""
        where = f"{self.path}/{name}"
        table.select(*schema.fieldNames()).write.mode("overwrite").options(**UNMARKED).parquet(where)
        return self._spark.read.schema(schema).parquet(where)

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Do nothing: a table that is written is whole."""

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Remove the files of a table at once, as `Store.drop`."""
        del made
        self._storage.remove(f"{self.path}/{name}")
