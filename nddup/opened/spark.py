"""A finished run read by Spark: on a cluster, or where only Hadoop opens the folder."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from nddup.opened.finished_run import Batches, FinishedRun
from nddup.storage.spark_folder import SparkFolder
from nddup.tables import RESULTS


class SparkRun(FinishedRun):
    """A run in a folder that Spark opens.

    Its tables are views of a session beside the caller's, with the same settings, so that views of the caller keep
    their names.

    Args:
        spark: the session of the caller.
        path: the run's folder.

    Attributes:
        session: beside the caller's; what is to be seen is a DataFrame of it.

    Raises:
        OutputError, IncompatibleSketchError: as `FinishedRun`.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.session = _beside(spark)
        folder = SparkFolder(self.session, path)
        super().__init__(folder)
        for name in RESULTS:
            if folder.holds(name):
                folder.table(name).createOrReplaceTempView(name)
        self._kept: dict[str, DataFrame | None] = {}

    def sql(self, text: str, **tables: pa.Table) -> pa.Table:
        """As `FinishedRun.sql`, with Spark's own errors. One action."""
        try:
            for name, table in tables.items():
                self.session.createDataFrame(table).createOrReplaceTempView(name)
            return self.session.sql(text).toArrow()
        finally:
            for name in tables:
                self.session.catalog.dropTempView(name)

    def see(self, name: str, rows: Any) -> None:  # noqa: ANN401
        """As `FinishedRun.see`: a DataFrame of `session`."""
        rows.createOrReplaceTempView(name)
        self._kept[name] = None

    def keep(self, name: str, text: str) -> None:
        """As `FinishedRun.keep`: on the disks of the executors, when it is first asked for."""
        table = self.session.sql(text)
        self._kept[name] = table.persist(StorageLevel.DISK_ONLY)
        table.createOrReplaceTempView(name)

    def rows(
        self, text: str, function: Callable[[Batches], Batches] | None = None, schema: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """As `FinishedRun.rows`: a partition at a time is in the driver's memory."""
        answer = self.session.sql(text)
        table = answer if function is None else answer.mapInArrow(function, schema)
        yield from map(tuple, table.toLocalIterator(prefetchPartitions=True))

    def forget(self) -> None:
        """As `FinishedRun.forget`."""
        for name, table in self._kept.items():
            self.session.catalog.dropTempView(name)
            if table is not None:
                table.unpersist()
        self._kept = {}


def _beside(spark: SparkSession) -> SparkSession:
    """A session with views of its own and the SQL settings of the other."""
    session = spark.newSession()
    for key, value in spark.conf.getAll.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session
