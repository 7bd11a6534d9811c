"""A run on Spark: its session, settings and store, and the one way to make a table."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nddup.matching.threshold import Threshold
from nddup.mining import streamed_graph
from nddup.mining.edges import Cost
from nddup.run import task_memory
from nddup.run.lineage import made_of
from nddup.run.progress import Progress
from nddup.run.stage import M, Stage, measured
from nddup.settings import derive
from nddup.settings.schema import Config
from nddup.sketching.kinds import Kind
from nddup.spark import schemas
from nddup.spark.reach import Reach, reach
from nddup.storage.session_tables import Store
from nddup.tables import table_called


@dataclass(frozen=True)
class Saved:
    """A table that was made, or found as an earlier attempt left it.

    `counts` are sums over its rows, taken while they were written; `noted` is what else its maker wrote down.
    """

    table: DataFrame
    rows: int
    counts: Mapping[str, int]
    noted: Mapping[str, Any]


@dataclass
class Job:
    """What the steps of one run share: they take it beside the results of earlier steps."""

    spark: SparkSession
    config: Config
    store: Store
    progress: Progress
    resumed: dict[str, None] = field(default_factory=dict)
    """The tables that were taken from an earlier attempt, in order."""

    @property
    def threshold(self) -> Threshold:
        """The threshold of the run, exact."""
        return derive.threshold_of(self.config)

    @property
    def kind(self) -> Kind:
        """What the sketches are."""
        return derive.kind_of(self.config.sketch)

    @property
    def levels(self) -> int:
        """s, where the modulus of a sketch follows the document's length; else 0."""
        return derive.levels_of(self.config)

    @property
    def reach(self) -> Reach:
        """What the session can do beside DataFrames."""
        return reach(self.spark)

    @property
    def task_memory(self) -> int:
        """Bytes that the Python worker of one task may take."""
        return task_memory.task_memory(self.reach.settings())

    def most_edges(self, cost: Cost, nodes: int) -> int:
        """The edges among so many distinct sketches that one task takes."""
        return cost.most_edges(self.task_memory, nodes)

    def most_nodes(self, bits: int) -> int:
        """The nodes of a graph whose edges stream through one task, at so many bits a node."""
        return streamed_graph.most_nodes(self.task_memory, bits)

    def stage(self, name: str, counts: type[M]) -> AbstractContextManager[Stage[M]]:
        """Run a stage: show it, and measure its seconds and the bytes it writes to shuffles."""
        return measured(self.progress, name, counts, resumed=self.resumed, shuffled=self.reach.shuffled_bytes)

    def find(self, name: str) -> Saved | None:
        """A table as an earlier attempt left it, if this one would make the same."""
        kept = self.store.find(name, self._schema(name), **made_of(name, self.config))
        if kept is None:
            return None

        self.resumed[name] = None
        return Saved(kept.table, kept.counted["rows"], kept.counted["counts"], kept.counted["noted"])

    def save(self, name: str, table: DataFrame, **counts: Column) -> Saved:
        """Make a table once: found, or computed, written and sealed. `counts` are sums over its rows. One action."""
        return self.find(name) or self.seal(name, self.write(name, table, **counts))

    def write(self, name: str, table: DataFrame, **counts: Column) -> Saved:
        """Compute and write a table in place of an earlier one. Until it is sealed it counts as not there. One action.

        Rows and `counts` are taken in passing, by an observation; where the store cannot, by the action itself.
        """
        self.progress.describe(name)
        columns = [count.alias(key) for key, count in {"rows": F.count(F.lit(1)), **counts}.items()]
        if self.store.counts_in_passing:
            seen = Observation(name)
            written = self.store.write(name, table.observe(seen, *columns), self._schema(name))
            taken = seen.get
        else:
            written = self.store.write(name, table, self._schema(name))
            taken = written.agg(*columns).collect()[0].asDict()

        found = {key: int(value or 0) for key, value in taken.items()}
        rows = found.pop("rows", 0)
        return Saved(written, rows, dict.fromkeys(counts, 0) | found, {})

    def seal(self, name: str, saved: Saved, **noted: Any) -> Saved:  # noqa: ANN401 - JSON values
        """Say that a table is whole; a later attempt finds it with its counts and with what is noted here."""
        counted = {"rows": saved.rows, "counts": dict(saved.counts), "noted": noted}
        self.store.seal(name, **made_of(name, self.config), counted=counted)
        return Saved(saved.table, saved.rows, saved.counts, noted)

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Forget a working table that nothing reads any more; `made` are the tables made of it."""
        self.store.drop(name, made=made)

    @staticmethod
    def _schema(name: str) -> T.StructType:
        return schemas.schema_of(table_called(name))


@contextmanager
def persisted(table: DataFrame) -> Iterator[DataFrame]:
    """Keep a table on the executors' disks while it is used, and no longer, also after a failure.

    Spark takes what is persisted for any table with the same plan, and two scans of one path have the same plan: what a
    failed run left behind, another one into the same folder would read in place of its own.
    """
    held = table.persist(StorageLevel.DISK_ONLY)
    try:
        yield held
    finally:
        held.unpersist()
