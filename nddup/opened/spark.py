"""A finished run read by Spark: a folder, on a cluster or one that only Hadoop can open, or DataFrames of a session."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from nddup.engines.engine import Batches
from nddup.engines.spark_engine import SparkEngine, frame_of, session_beside
from nddup.errors import ConfigError, OutputError
from nddup.metrics import RunMetrics
from nddup.opened.duck import NoFolder
from nddup.opened.finished_run import FinishedRun, Folder, Reader
from nddup.spark.schemas import schema_of
from nddup.spark.sources import reader_of
from nddup.storage.session_tables import SparkFolder
from nddup.tables import RESULTS, Table

WHOLE_FILES = dict.fromkeys(("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"), str(1 << 40))
"""Settings under which one task reads each file, in order."""


class _SparkTables(SparkEngine, FinishedRun):
    """A run whose tables are views of a session beside the caller's.

    Args:
        session: the session beside the caller's.
        folder: folder of the run, or its stand-in.
    """

    def __init__(self, session: SparkSession, folder: Folder) -> None:
        FinishedRun.__init__(self, folder)
        SparkEngine.__init__(self, session)

    def transform_text(self, table: Table, name: str, reader: Reader) -> None:
        """As `FinishedRun.transform_text`. A line may be too long for a row, so Spark splits the text at tabs."""

        def join(batches: Batches) -> Batches:
            return reader(_with_tabs(batches))

        before = {key: self.session.conf.get(key) for key in WHOLE_FILES}
        try:
            for key, value in WHOLE_FILES.items():
                self.session.conf.set(key, value)
            pieces = self._read_pieces(name)
            self.hold(table.name, pieces.mapInArrow(join, schema_of(table)))
            self.kept[table.name].count()
        finally:
            for key, was in before.items():
                self.session.conf.set(key, was or "")

    def _read_pieces(self, name: str) -> DataFrame:
        """Return the pieces between the tabs of a text in the run's folder. OutputError: there is no folder."""
        raise OutputError(f"{self.path}: has no {name}")


class SparkRun(_SparkTables):
    """A run in a folder that Spark opens.

    Args:
        spark: the session of the caller.
        path: the run's folder.

    Attributes:
        session: a session beside the caller's with the same SQL settings; tables given to `see` are DataFrames of it.

    Raises:
        OutputError, IncompatibleSketchError: as `FinishedRun`.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        session = session_beside(spark)
        self._place = SparkFolder(session, path)
        super().__init__(session, self._place)
        for name in RESULTS:
            if self._place.holds(name):
                self._place.table(name).createOrReplaceTempView(name)

    def _read_pieces(self, name: str) -> DataFrame:
        where = self._place.spelled(f"{self.path}/{name}")
        return reader_of(self.session, "text").option("lineSep", "\t").load(where).select("value")


class FramesRun(_SparkTables):
    """A run without a folder: its tables are DataFrames of the caller's session.

    Args:
        spark: the session of the caller.
        frames: tables by name, each as `nddup.tables.RESULTS` declares it.
        metrics: metrics of the run.
    """

    def __init__(self, spark: SparkSession, frames: Mapping[str, DataFrame], metrics: RunMetrics) -> None:
        super().__init__(session_beside(spark), NoFolder("run on Spark", frames, metrics))
        for name, frame in frames.items():
            self.share(name, frame)

    def frame(self, text: str, **tables: Any) -> DataFrame:  # noqa: ANN401
        """Return the answer to one query as a DataFrame of `session`, not yet computed.

        Args:
            text: one SELECT in Spark's SQL.
            tables: the caller's own tables, by the name that the text uses: DataFrames of Spark or pandas, or Arrow
                tables. Later queries can use them too.

        Raises:
            ConfigError: if Spark cannot parse the text, or it names an unknown table or column.
        """
        for name, table in tables.items():
            if isinstance(table, DataFrame):
                self.share(name, table)
            else:
                frame_of(self.session, table).createOrReplaceTempView(name)
        try:
            return self.session.sql(text)
        except (AnalysisException, ParseException) as error:
            raise ConfigError(f"sql: {str(error).partition(chr(10))[0]}") from error


def _with_tabs(batches: Batches) -> Iterator[str]:
    """Yield the parts of a text that was split at its tabs, with the tabs restored."""
    is_first = True
    for batch in batches:
        for piece in batch.column(0).to_pylist():
            yield piece if is_first else f"\t{piece}"
            is_first = False
