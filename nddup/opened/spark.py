"""A finished run read by Spark: a folder, on a cluster or one that only Hadoop can open, or DataFrames of a session."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from nddup.errors import ConfigError
from nddup.metrics import RunMetrics
from nddup.opened.arrow_tables import NoFolder
from nddup.opened.finished_run import Batches, FinishedRun, Folder, Kernel, Reader
from nddup.spark.reach import reach
from nddup.spark.schemas import schema_of
from nddup.storage.session_tables import SparkFolder
from nddup.tables import RESULTS, Table

WHOLE_FILES = dict.fromkeys(("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"), str(1 << 40))
"""Settings under which one task reads each file, in order."""


class _SparkTables(FinishedRun):
    """A run whose tables are views of a session beside the caller's, so that views of the caller keep their names.

    Args:
        session: the session beside the caller's; tables given to `see` are DataFrames of it.
        folder: folder of the run, or its stand-in.
    """

    def __init__(self, session: SparkSession, folder: Folder) -> None:
        super().__init__(folder)
        self.session = session
        self._kept: dict[str, DataFrame] = {}
        self._seen: list[str] = []

    def sql(self, text: str, **tables: pa.Table) -> pa.Table:
        """As `FinishedRun.sql`, in one action; errors are Spark's own."""
        try:
            for name, table in tables.items():
                _frame(self.session, table).createOrReplaceTempView(name)
            return self.session.sql(text).toArrow()
        finally:
            for name in tables:
                self.session.catalog.dropTempView(name)

    def see(self, name: str, rows: Any) -> None:  # noqa: ANN401
        """As `FinishedRun.see`; `rows` is a DataFrame of `session`."""
        rows.createOrReplaceTempView(name)
        self._seen.append(name)

    def rows(self, text: str, kernel: Kernel | None = None, schema: str = "") -> Iterator[tuple[Any, ...]]:
        """As `FinishedRun.rows`; the driver holds one partition in memory and prefetches the next."""
        answer = self.session.sql(text)
        table = answer if kernel is None else answer.mapInArrow(kernel, schema)
        yield from map(tuple, table.toLocalIterator(prefetchPartitions=True))

    def put(self, name: str, table: pa.Table) -> None:
        """As `FinishedRun.put`."""
        self._keep(name, _frame(self.session, table))

    def keep(self, name: str, text: str, *, is_wide: bool = False) -> None:
        """As `FinishedRun.keep`, wide or not; computed on first use."""
        del is_wide
        self._keep(name, self.session.sql(text))

    def transform(self, table: Table, text: str, kernel: Kernel, *, by: tuple[str, ...] = ()) -> None:
        """As `FinishedRun.transform`."""
        rows = self.session.sql(text)
        if by:
            rows = rows.repartition(by[0]).sortWithinPartitions(*by)
        self._keep(table.name, rows.mapInArrow(kernel, schema_of(table)))

    def transform_text(self, table: Table, name: str, reader: Reader) -> None:
        """As `FinishedRun.transform_text`. A line may be too long for a row, so Spark splits the text at tabs."""

        def join(batches: Batches) -> Batches:
            return reader(_with_tabs(batches))

        before = {key: self.session.conf.get(key) for key in WHOLE_FILES}
        try:
            for key, value in WHOLE_FILES.items():
                self.session.conf.set(key, value)
            pieces = self.session.read.text(f"{self.path}/{name}", lineSep="\t").select("value")
            self._keep(table.name, pieces.mapInArrow(join, schema_of(table)))
            self._kept[table.name].count()
        finally:
            for key, was in before.items():
                self.session.conf.set(key, was or "")

    def forget(self) -> None:
        """As `FinishedRun.forget`."""
        for name, kept in self._kept.items():
            kept.unpersist()
            self.session.catalog.dropTempView(name)
        for name in self._seen:
            self.session.catalog.dropTempView(name)
        self._kept.clear()
        self._seen.clear()

    def _keep(self, name: str, rows: DataFrame) -> None:
        self._kept[name] = rows.persist(StorageLevel.DISK_ONLY)
        self._kept[name].createOrReplaceTempView(name)


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
        session = _beside(spark)
        folder = SparkFolder(session, path)
        super().__init__(session, folder)
        for name in RESULTS:
            if folder.holds(name):
                folder.table(name).createOrReplaceTempView(name)


class FramesRun(_SparkTables):
    """A run without a folder: its tables are DataFrames of the caller's session.

    Args:
        spark: the session of the caller.
        frames: tables by name, each as `nddup.tables.RESULTS` declares it.
        metrics: metrics of the run.
    """

    def __init__(self, spark: SparkSession, frames: Mapping[str, DataFrame], metrics: RunMetrics) -> None:
        super().__init__(_beside(spark), NoFolder("run on Spark", frames, metrics))
        for name, frame in frames.items():
            self._share(name, frame)

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
                self._share(name, table)
            else:
                _frame(self.session, table).createOrReplaceTempView(name)
        try:
            return self.session.sql(text)
        except (AnalysisException, ParseException) as error:
            raise ConfigError(f"sql: {str(error).partition(chr(10))[0]}") from error

    def _share(self, name: str, frame: DataFrame) -> None:
        """Make a view in `session` of a DataFrame of another session; only a global view can pass between the two."""
        passing = f"nddup_{uuid4().hex}"
        frame.createGlobalTempView(passing)
        try:
            self.session.table(f"global_temp.{passing}").createOrReplaceTempView(name)
        finally:
            self.session.catalog.dropGlobalTempView(passing)


def _with_tabs(batches: Batches) -> Iterator[str]:
    """Yield the parts of a text that was split at its tabs, with the tabs restored."""
    is_first = True
    for batch in batches:
        for piece in batch.column(0).to_pylist():
            yield piece if is_first else f"\t{piece}"
            is_first = False


def _frame(session: SparkSession, table: Any) -> DataFrame:  # noqa: ANN401 - of Arrow or pandas
    """Make a DataFrame of a table of the caller; an Arrow table keeps its types even without rows."""
    if isinstance(table, pa.Table):
        return session.createDataFrame(table, from_arrow_schema(table.schema))
    return session.createDataFrame(table)


def _beside(spark: SparkSession) -> SparkSession:
    """Open a session with views of its own and the SQL settings of the other."""
    session = reach(spark).beside()
    there = session.conf.getAll
    for key, value in spark.conf.getAll.items():
        if key.startswith("spark.sql.") and there.get(key) != value and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session
