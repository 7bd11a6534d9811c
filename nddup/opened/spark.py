"""A finished run read by Spark: on a cluster, or where only Hadoop opens the folder."""

import pyarrow as pa
from pyspark.sql import SparkSession

from nddup.opened.finished_run import FinishedRun
from nddup.storage.spark_folder import SparkFolder
from nddup.tables import RESULTS


class SparkRun(FinishedRun):
    """A run in a folder that Spark opens.

    Its tables are views of a session beside the caller's, with the same settings, so that views of the caller keep
    their names.

    Args:
        spark: the session of the caller.
        path: the run's folder.

    Raises:
        OutputError, IncompatibleSketchError: as `FinishedRun`.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._session = _beside(spark)
        folder = SparkFolder(self._session, path)
        super().__init__(folder)
        for name in RESULTS:
            if folder.holds(name):
                folder.table(name).createOrReplaceTempView(name)

    def sql(self, text: str, **tables: pa.Table) -> pa.Table:
        """As `FinishedRun.sql`, with Spark's own errors. One action."""
        try:
            for name, table in tables.items():
                self._session.createDataFrame(table).createOrReplaceTempView(name)
            return self._session.sql(text).toArrow()
        finally:
            for name in tables:
                self._session.catalog.dropTempView(name)


def _beside(spark: SparkSession) -> SparkSession:
    """A session with views of its own and the SQL settings of the other."""
    session = spark.newSession()
    for key, value in spark.conf.getAll.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session
