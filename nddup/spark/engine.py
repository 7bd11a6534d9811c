"""The Spark engine: the same verbs over DataFrames of a session, on one machine or a cluster.

A finished run is read by it in a folder, on a cluster or one that only Hadoop can open, or as DataFrames of a session.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from nddup.engines.duck import NoFolder
from nddup.engines.engine import Batches, Engine, EngineTable, FinishedRun, Folder, Kernel, Reader
from nddup.errors import ConfigError, OutputError, first_line
from nddup.ground.metrics import RunMetrics
from nddup.spark.heavy_keys import join_found, join_parted
from nddup.spark.schemas import frame_of_rows, reader_of, schema_of
from nddup.spark.session_access import access_of, is_connect
from nddup.spark.session_tables import SparkFolder
from nddup.tables import READABLE, Table


class SparkEngine(Engine):
    """Views of a session beside the caller's, so that views of the caller keep their names.

    Args:
        session: the session beside the caller's (`session_beside`).
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.stored: dict[str, DataFrame] = {}
        self._seen: list[str] = []
        self._passed: dict[str, Any] = {}

    @classmethod
    def over(cls, spark: SparkSession, **tables: DataFrame) -> Self:
        """Return an engine beside a session that sees these tables by their names."""
        engine = cls(session_beside(spark))
        for name, table in tables.items():
            engine.see(name, table)
        return engine

    def sql(self, text: str, **tables: pa.Table) -> pa.Table:
        """As `Engine.sql`, in one action; errors are Spark's own."""
        if not tables:
            return self._ask(text).toArrow()
        try:
            for name, table in tables.items():
                frame_of(self.session, table).createOrReplaceTempView(name)
            return self.session.sql(text).toArrow()
        finally:
            for name in tables:
                self.session.catalog.dropTempView(name)

    def answer(
        self, text: str, kernel: Kernel | None = None, table: Table | None = None, *, by: tuple[str, ...] = ()
    ) -> DataFrame:
        """As `Engine.answer`; under Spark Connect, in the session of the tables seen: no other can read them."""
        rows = self._ask(put_in_place(text))
        if by:
            rows = rows.repartition(by[0]).sortWithinPartitions(*by)
        return rows if kernel is None or table is None else rows.mapInArrow(kernel, schema_of(table))

    def _ask(self, text: str) -> DataFrame:
        if not self._passed:
            return self.session.sql(text)
        defined = set(re.findall(r"\b(\w+) AS \(", text))  # what a query names itself hides a table of that name
        passed = {name: rows for name, rows in self._passed.items() if name not in defined}
        named = re.sub(
            r"\b(FROM|JOIN) (\w+)", lambda match: f"{match[1]} {{{match[2]}}}" if match[2] in passed else match[0], text
        )
        session: SparkSession = next(iter(self._passed.values())).sparkSession
        return session.sql(named, **passed)

    def join(  # noqa: PLR0913 - as declared
        self, name: str, rows: str, groups: str, *, key: str, by: str, many: int | None = None
    ) -> None:
        """As `Engine.join`; shuffles both sides on the key and the part, unless the groups are few."""
        whole = self._passed[rows] if rows in self._passed else self.session.table(rows)
        group_rows = self._ask(put_in_place(groups))
        # Columns of their own: Spark cannot tell those of a UNION from those of a table that both sides come from.
        group_rows = group_rows.select(*(F.col(column).alias(column) for column in group_rows.columns))
        if many is None:
            self.see(name, join_parted(whole, group_rows, key, by=by))
        else:
            self.see(name, join_found(whole, group_rows, key, by=by, many=many, how="left"))

    def see(self, name: str, rows: EngineTable) -> None:
        """As `Engine.see`; `rows` is a DataFrame of any session."""
        if rows.sparkSession is self.session:
            rows.createOrReplaceTempView(name)
        else:
            self.share(name, rows)
            if is_connect(rows.sparkSession):
                self._passed[name] = rows
        self._seen.append(name)

    def rows(self, text: str, kernel: Kernel | None = None, schema: str = "") -> Iterator[tuple[Any, ...]]:
        """As `Engine.rows`; the driver holds one partition in memory and prefetches the next."""
        answer = self._ask(put_in_place(text))
        table = answer if kernel is None else answer.mapInArrow(kernel, schema)
        yield from map(tuple, table.toLocalIterator(prefetchPartitions=True))

    def put(self, name: str, table: pa.Table) -> None:
        """As `Engine.put`."""
        self.hold(name, frame_of(self.session, table))

    def materialise(self, name: str, text: str, *, is_wide: bool = False) -> None:
        """As `Engine.materialise`, wide or not; computed on first use."""
        del is_wide
        self.hold(name, self._ask(put_in_place(text)))

    def transform(self, table: Table, text: str, kernel: Kernel, *, by: tuple[str, ...] = ()) -> None:
        """As `Engine.transform`."""
        self.hold(table.name, self.answer(text, kernel, table, by=by))

    def forget(self) -> None:
        """As `Engine.forget`."""
        # The last first: Spark plans again what reads a freed table. A remote plan is resolved anew: views go after it.
        for rows in reversed(self.stored.values()):
            rows.unpersist()
        for name in (*self.stored, *self._seen):
            self.session.catalog.dropTempView(name)
        self.stored.clear()
        self._seen.clear()
        self._passed.clear()

    def hold(self, name: str, rows: DataFrame) -> None:
        """Persist rows on the executors' disks as a view of this name, computed on first use, until `forget`."""
        self.stored[name] = rows.persist(StorageLevel.DISK_ONLY)
        self.stored[name].createOrReplaceTempView(name)

    def share(self, name: str, frame: DataFrame) -> None:
        """Make a view in `session` of a DataFrame of another session; only a global view can pass between the two."""
        passing = f"nddup_{uuid4().hex}"
        frame.createGlobalTempView(passing)
        try:
            self.session.table(f"global_temp.{passing}").createOrReplaceTempView(name)
        finally:
            self.session.catalog.dropGlobalTempView(passing)


WHOLE_FILES = dict.fromkeys(("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"), str(1 << 40))
"""Settings under which one task reads each file, in order."""


def put_in_place(query: str) -> str:
    """Return a query of ours with each table that it defines by WITH as a subquery after each FROM or JOIN.

    Spark does so too, but again each time that it analyses anything made of the answer, and renames the whole plan for
    it: in `nddup passages` over few texts that is half of all CPU time.

    Example:
        >>> put_in_place("WITH a AS (SELECT 1 AS n), b AS (SELECT n FROM a) SELECT * FROM b JOIN a AS c USING (n)")
        'SELECT * FROM (SELECT n FROM (SELECT 1 AS n) AS a) AS b JOIN (SELECT 1 AS n) AS c USING (n)'
    """
    defined: dict[str, str] = {}

    def put(text: str) -> str:
        def one(match: re.Match[str]) -> str:
            word, name, alias = match.groups()
            return f"{word} ({defined[name]}){alias or f' AS {name}'}" if name in defined else match[0]

        return re.sub(r"\b(FROM|JOIN)\s+(\w+)\b(\s+AS\s+\w+)?", one, text)

    rest, begins = query, r"\s*WITH\s+(\w+) AS \("
    while begun := re.match(begins, rest):
        end = _end_of(rest, begun.end())
        defined[begun[1]] = put(rest[begun.end() : end])
        rest, begins = rest[end + 1 :], r"\s*,\s*(\w+) AS \("
    return put(rest).strip() if defined else query


def _end_of(text: str, place: int) -> int:
    """Return the place of the bracket that closes the one before `place`; those in strings are none."""
    depth = 1
    for match in re.compile(r"'[^']*'|[()]").finditer(text, place):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if not depth:
            return match.start()
    raise ValueError(f"a bracket is not closed: {text}")


def frame_of(session: SparkSession, table: EngineTable) -> DataFrame:
    """Make a DataFrame of a table of the caller; an Arrow table keeps its types even without rows."""
    if isinstance(table, pa.Table):
        return frame_of_rows(session, table, from_arrow_schema(table.schema))
    return session.createDataFrame(table)


def session_beside(spark: SparkSession) -> SparkSession:
    """Open a session with views of its own and the SQL settings of the other."""
    session = access_of(spark).sibling_session()
    there = session.conf.getAll
    for key, value in spark.conf.getAll.items():
        if key.startswith("spark.sql.") and there.get(key) != value and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


class _SparkTables(SparkEngine, FinishedRun):
    """A run whose tables are views of a session beside the caller's.

    Args:
        session: the session beside the caller's.
    """

    def __init__(self, session: SparkSession, folder: Folder) -> None:
        FinishedRun.__init__(self, folder)
        SparkEngine.__init__(self, session)
        self._access, self._mark = access_of(session), f"nddup {uuid4().hex}"

    def hold(self, name: str, rows: DataFrame) -> None:
        """As `SparkEngine.hold`, but as a checkpoint, as the run's own tables are.

        What is only persisted has the plan of all tables under it, once for each time that one is read.
        """
        with self._access.marking(f"{self._mark} {name}"):
            self.stored[name] = self._access.checkpoint(rows)
        self.stored[name].createOrReplaceTempView(name)

    def forget(self) -> None:
        """As `Engine.forget`."""
        super().forget()
        self._access.free(lambda mark: mark.startswith(self._mark))

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
            self.stored[table.name].count()
        finally:
            for key, was in before.items():
                self.session.conf.set(key, was or "")

    def _read_pieces(self, name: str) -> DataFrame:
        """Return the pieces between the tabs of a text in the run's folder. OutputError: there is no folder."""
        raise OutputError(f"{self.path}: has no {name}")


class SparkRun(_SparkTables):
    """A run in a folder that Spark opens.

    Attributes:
        session: a session beside the caller's with the same SQL settings; tables given to `see` are DataFrames of it.

    Raises:
        OutputError, IncompatibleSketchError: as `FinishedRun`.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        session = session_beside(spark)
        self._place = SparkFolder(session, path)
        super().__init__(session, self._place)
        for name in READABLE:
            if self._place.holds(name):
                self._place.table(name).createOrReplaceTempView(name)

    def _read_pieces(self, name: str) -> DataFrame:
        where = self._place.spelled(f"{self.path}/{name}")
        return reader_of(self.session, "text").option("lineSep", "\t").load(where).select("value")


class FramesRun(_SparkTables):
    """A run without a folder: its tables are DataFrames of the caller's session.

    Args:
        frames: tables by name, each as `nddup.tables.RESULTS` declares it.
    """

    def __init__(self, spark: SparkSession, frames: Mapping[str, DataFrame], metrics: RunMetrics) -> None:
        super().__init__(session_beside(spark), NoFolder("run on Spark", frames, metrics))
        self._names = set(frames)
        for name, frame in frames.items():
            self.share(name, frame)

    def see(self, name: str, rows: EngineTable) -> None:
        """As `Engine.see`; also under Spark Connect in the session of the run, whose tables are views there."""
        if rows.sparkSession is self.session:
            rows.createOrReplaceTempView(name)
        else:
            self.share(name, rows)
        self._seen.append(name)

    def close(self) -> None:
        """Drop every view, so that nothing here refers to the tables."""
        self.forget()
        for name in self._names:
            self.session.catalog.dropTempView(name)

    def frame(self, text: str, **tables: EngineTable) -> DataFrame:
        """Return the answer to one query as a DataFrame of `session`, not yet computed.

        Args:
            text: one SELECT in Spark's SQL.
            tables: the caller's own tables, by the name that the text uses: DataFrames of Spark or pandas, or Arrow
                tables. Later queries can use them too.

        Raises:
            ConfigError: if Spark cannot parse the text, or it names an unknown table or column.
        """
        self._names.update(tables)
        for name, table in tables.items():
            if isinstance(table, DataFrame):
                self.share(name, table)
            else:
                frame_of(self.session, table).createOrReplaceTempView(name)
        try:
            return self.session.sql(text)
        except (AnalysisException, ParseException) as error:
            raise ConfigError(f"sql: {first_line(error)}") from error


def _with_tabs(batches: Batches) -> Iterator[str]:
    """Yield the parts of a text that was split at its tabs, with the tabs restored."""
    is_first = True
    for batch in batches:
        for piece in batch.column(0).to_pylist():
            yield piece if is_first else f"\t{piece}"
            is_first = False
