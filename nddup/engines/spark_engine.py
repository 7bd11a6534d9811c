"""The Spark engine: the same verbs over DataFrames of a session, on one machine or a cluster."""

import re
from collections.abc import Iterator
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from nddup.engines.engine import Engine, Kernel
from nddup.spark.heavy_keys import join_parted
from nddup.spark.reach import is_connect, reach
from nddup.spark.schemas import schema_of
from nddup.tables import Table


class SparkEngine(Engine):
    """Views of a session beside the caller's, so that views of the caller keep their names.

    Args:
        session: the session beside the caller's (`session_beside`).
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.kept: dict[str, DataFrame] = {}
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
            return self.answer(text).toArrow()
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
        rows = self._ask(text)
        if by:
            rows = rows.repartition(by[0]).sortWithinPartitions(*by)
        return rows if kernel is None or table is None else rows.mapInArrow(kernel, schema_of(table))

    def _ask(self, text: str) -> DataFrame:
        if not self._passed:
            return self.session.sql(text)
        own = set(re.findall(r"\b(\w+) AS \(", text))  # what a query names itself hides a table of that name
        passed = {name: rows for name, rows in self._passed.items() if name not in own}
        named = re.sub(
            r"\b(FROM|JOIN) (\w+)",
            lambda found: f"{found[1]} {{{found[2]}}}" if found[2] in passed else found[0],
            text,
        )
        session: SparkSession = next(iter(self._passed.values())).sparkSession
        return session.sql(named, **passed)

    def join(self, name: str, rows: str, groups: str, *, key: str, by: str) -> None:
        """As `Engine.join`; shuffles both sides on the key and the part, unless the groups are few."""
        whole = self._passed[rows] if rows in self._passed else self.session.table(rows)
        self.see(name, join_parted(whole, self._ask(groups), key, by=by))

    def see(self, name: str, rows: Any) -> None:  # noqa: ANN401
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
        answer = self._ask(text)
        table = answer if kernel is None else answer.mapInArrow(kernel, schema)
        yield from map(tuple, table.toLocalIterator(prefetchPartitions=True))

    def put(self, name: str, table: pa.Table) -> None:
        """As `Engine.put`."""
        self.hold(name, frame_of(self.session, table))

    def keep(self, name: str, text: str, *, is_wide: bool = False) -> None:
        """As `Engine.keep`, wide or not; computed on first use."""
        del is_wide
        self.hold(name, self.session.sql(text))

    def transform(self, table: Table, text: str, kernel: Kernel, *, by: tuple[str, ...] = ()) -> None:
        """As `Engine.transform`."""
        self.hold(table.name, self.answer(text, kernel, table, by=by))

    def forget(self) -> None:
        """As `Engine.forget`."""
        for name, kept in self.kept.items():
            kept.unpersist()
            self.session.catalog.dropTempView(name)
        for name in self._seen:
            self.session.catalog.dropTempView(name)
        self.kept.clear()
        self._seen.clear()
        self._passed.clear()

    def hold(self, name: str, rows: DataFrame) -> None:
        """Keep rows on the executors' disks as a view of this name, computed on first use, until `forget`."""
        self.kept[name] = rows.persist(StorageLevel.DISK_ONLY)
        self.kept[name].createOrReplaceTempView(name)

    def share(self, name: str, frame: DataFrame) -> None:
        """Make a view in `session` of a DataFrame of another session; only a global view can pass between the two."""
        passing = f"nddup_{uuid4().hex}"
        frame.createGlobalTempView(passing)
        try:
            self.session.table(f"global_temp.{passing}").createOrReplaceTempView(name)
        finally:
            self.session.catalog.dropGlobalTempView(passing)


def frame_of(session: SparkSession, table: Any) -> DataFrame:  # noqa: ANN401 - of Arrow or pandas
    """Make a DataFrame of a table of the caller; an Arrow table keeps its types even without rows."""
    if isinstance(table, pa.Table):
        return session.createDataFrame(table, from_arrow_schema(table.schema))
    return session.createDataFrame(table)


def session_beside(spark: SparkSession) -> SparkSession:
    """Open a session with views of its own and the SQL settings of the other."""
    session = reach(spark).beside()
    there = session.conf.getAll
    for key, value in spark.conf.getAll.items():
        if key.startswith("spark.sql.") and there.get(key) != value and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session
