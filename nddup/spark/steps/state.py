"""A run on Spark: its session, settings and store, the one way to make a table, and its progress."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, cast

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nddup.engines import choose as engines
from nddup.ground.progress import LogFormat, Progress, StageNotes, bar, doing
from nddup.ground.shown import JsonValue
from nddup.matching.threshold import Threshold
from nddup.mining import pair_graph
from nddup.mining.keep_verdicts import Forced
from nddup.mining.pair_graph import Cost
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.sketching.kinds import Kind
from nddup.spark import schemas
from nddup.spark.engine import SparkEngine, session_beside
from nddup.spark.session_access import SessionAccess, access_of
from nddup.spark.session_files import SessionFiles, files_of
from nddup.spark.session_tables import SparkFolder, Store
from nddup.stages.run_engine import NO_COUNTS, PairedRun, RunEngine, Saved
from nddup.stages.stage import dependencies_of
from nddup.tables import table_called


class OldTables(NamedTuple):
    """The tables of the finished run that a run goes on from."""

    folder: SparkFolder
    documents: DataFrame
    rejects: DataFrame
    given: DataFrame
    shingles: DataFrame
    candidates: DataFrame | None
    """None where none are stored."""
    table: Callable[[str], DataFrame]
    """Reads another table of the run."""
    n_records: int
    """Its records, which those of NEW are numbered after."""
    noted: Mapping[str, Any]
    """What is noted with its documents."""
    reasons: Mapping[str, int]
    """Its rejects by reason."""
    metrics: Mapping[str, Any]
    """As in its `metrics.json`."""
    has_revisits: bool
    """Whether a record was a revisit: a later one may be what it repeats."""

    @property
    def is_forced(self) -> bool:
        """Whether documents were forced in the run."""
        return self.metrics["settings"]["keep"].get("force") is not None


@dataclass
class Job(RunEngine):
    """State shared by the steps of one run; each step takes it together with the results of earlier steps."""

    spark: SparkSession
    config: Config
    store: Store
    progress: Progress
    resumed: dict[str, None] = field(default_factory=dict)
    """The tables reused from an earlier attempt, in order."""
    forced: Forced | None = None
    """The documents of `keep.force`."""
    onto: str | None = None
    without: Sequence[Sequence[str]] = ()
    old: OldTables | None = None
    """What `onto` names, once it is opened."""
    shingles: DataFrame | None = None
    """SHINGLES of all documents, once they are saved for a later run: texts are not read again then."""
    resources: ExitStack = field(default_factory=ExitStack)
    """What is freed with the attempt."""

    @property
    def threshold(self) -> Threshold:
        """The exact threshold of the run."""
        return plan.threshold_of(self.config)

    @property
    def kind(self) -> Kind:
        """The kind of the sketches."""
        return plan.kind_of(self.config.sketch)

    @property
    def levels(self) -> int:
        """The sketch size s, if the modulus of a sketch depends on the document's length; else 0."""
        return plan.levels_of(self.config)

    @property
    def access(self) -> SessionAccess:
        """What the session can do besides DataFrames."""
        return access_of(self.spark)

    @cached_property
    def engine(self) -> SparkEngine:
        """The engine that answers the relational steps, over views beside those of the caller."""
        return SparkEngine(session_beside(self.spark))

    def close(self) -> None:
        """Drop the views of the engine: they hold the tables of the run."""
        if "engine" in vars(self):
            self.engine.forget()

    @property
    def task_memory(self) -> int:
        """Bytes of memory that the Python worker of one task may take."""
        return engines.task_memory(self.access.settings())

    def most_edges(self, cost: Cost, nodes: int) -> int:
        """Return how many edges among `nodes` distinct sketches one task can hold."""
        return cost.most_edges(self.task_memory, nodes)

    def most_nodes(self, bits: int) -> int:
        """Return how many nodes a graph may have whose edges stream through one task, at `bits` bits a node."""
        return pair_graph.most_nodes(self.task_memory, bits)

    @property
    def folder(self) -> SparkFolder:
        """As `RunEngine.folder`."""
        return cast("SparkFolder", self.store)

    @property
    def files(self) -> SessionFiles:
        """The file system of the session."""
        return files_of(self.spark)

    def shuffled_bytes(self) -> int:
        """As `RunEngine.shuffled_bytes`."""
        return self.access.shuffled_bytes()

    def ask(self, **tables: DataFrame) -> SparkEngine:
        """As `RunEngine.ask`."""
        for name, table in tables.items():
            self.engine.see(name, table)
        return self.engine

    def find(self, name: str) -> Saved | None:
        """As `RunEngine.find`."""
        kept = self.store.find(name, self._schema(name), **dependencies_of(name, self.config))
        if kept is None:
            return None

        self.resumed[name] = None
        return Saved(kept.table, kept.counted["rows"], kept.counted["counts"], kept.counted["noted"])

    def save(self, name: str, table: DataFrame, counts: Mapping[str, str] = NO_COUNTS) -> Saved:
        """Find a table, or compute, write and seal it. `counts` are aggregates of it. One action, if not found."""
        return self.find(name) or self.seal(name, self.write(name, table, counts))

    def write(self, name: str, table: DataFrame, counts: Mapping[str, str] = NO_COUNTS) -> Saved:
        """Compute and write a table, replacing an earlier one. Until it is sealed it counts as missing. One action.

        An observation counts rows and `counts` during the write; for a store without observations, an aggregation does.
        """
        self.progress.describe(name)
        columns = [F.expr(count).alias(key) for key, count in {"rows": "count(*)", **counts}.items()]
        if self.store.counts_in_passing:
            seen = Observation(name)
            written = self.store.write(name, table.observe(seen, *columns), self._schema(name))
            taken = seen.get
        else:
            written = self.store.write(name, table, self._schema(name))
            taken = written.agg(*columns).collect()[0].asDict()

        totals = {key: int(value or 0) for key, value in taken.items()}
        rows = totals.pop("rows", 0)
        return Saved(written, rows, dict.fromkeys(counts, 0) | totals, {})

    def write_onto(self, name: str, new: DataFrame, old: OldTables, counts: Mapping[str, str] = NO_COUNTS) -> Saved:
        """As `write`, a table with all rows of the run before, and new ones.

        Cost: the old files are linked where both folders are on this machine (`SparkFolder.links`), and then an action
        more counts; else the old rows are written again.
        """
        if not self.folder.links(name, old.folder):
            return self.write(name, old.folder.table(name).unionByName(new), counts)
        self.progress.describe(name)
        written = self.folder.write_beside(name, new, old.folder, self._schema(name))
        columns = [F.expr(count).alias(key) for key, count in {"rows": "count(*)", **counts}.items()]
        sums = {key: int(value or 0) for key, value in written.agg(*columns).collect()[0].asDict().items()}
        return Saved(written, sums.pop("rows"), sums, {})

    def seal(self, name: str, saved: Saved, **noted: JsonValue) -> Saved:
        """Mark a table as complete; a later attempt finds it with its counts and the values in `noted`."""
        counted = {"rows": saved.rows, "counts": dict(saved.counts), "noted": noted}
        self.store.seal(name, **dependencies_of(name, self.config), counted=counted)
        return Saved(saved.table, saved.rows, saved.counts, noted)

    def noted(self, name: str) -> Mapping[str, Any] | None:
        """Return the note on a table that `find` would find; None if there is none."""
        kept = self.store.find(name, self._schema(name), **dependencies_of(name, self.config))
        return None if kept is None else kept.counted

    def put_rows(self, name: str, rows: pa.Table, counts: Mapping[str, Any], **noted: JsonValue) -> Saved:
        """Write and seal a table that the driver has."""
        self.progress.describe(name)
        table = self.store.write_rows(self.spark, name, rows, self._schema(name))
        return self.seal(name, Saved(table, len(rows), counts, {}), **noted)

    def put(self, name: str, table: DataFrame | pa.Table, **noted: JsonValue) -> Saved:
        """As `RunEngine.put`."""
        if isinstance(table, pa.Table):
            return self.put_rows(name, table, NO_COUNTS, **noted)
        return self.seal(name, self.write(name, table), **noted)

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Forget a working table that nothing reads any more; `made` are the tables made from it."""
        self.store.drop(name, made=made)

    @staticmethod
    def _schema(name: str) -> T.StructType:
        return schemas.schema_of(table_called(name))


class PairedOnSpark(PairedRun, Protocol):
    """A run with its pairs, which a later run may go on from."""

    def save_candidates(self, job: Job, before: DataFrame | None = None) -> None:
        """Save CANDIDATES of a job: those of the documents whose pairs were found, and those `before`."""


class SparkProgress(Progress):
    """Shows the tasks of the running Spark stages, and names the jobs in Spark's UI."""

    def __init__(
        self, spark: SparkSession, *, is_quiet: bool = False, form: LogFormat = "text", is_brief: bool = False
    ) -> None:
        super().__init__(is_quiet=is_quiet, form=form, is_brief=is_brief)
        self._access = access_of(spark)
        self._stage = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[StageNotes]:
        """As `Progress.stage`; afterwards Spark's job description is restored."""
        self._stage = name
        with self._access.describing(), super().stage(name) as shown:
            yield shown

    def describe(self, name: str) -> None:
        """Tell Spark's UI what the jobs that follow are for."""
        self._access.describe(self._spell(name))

    def how_far(self) -> str:
        """Return how many tasks of the running Spark stages are done."""
        finished, total = self._access.tasks()
        return f"{bar(finished, total)} {finished}/{total} tasks"

    def _spell(self, name: str) -> str:
        of_stage = "" if name == self._stage else f" {self._stage}:"
        return f"nddup{of_stage} {name}: {doing(name)}"


@contextmanager
def persisted(table: DataFrame) -> Iterator[DataFrame]:
    """Persist a table on the executors' disks within the block; free it at the end, even after an error.

    Spark uses persisted data for any table with the same plan, and two scans of one path have the same plan. Data that
    a failed run left persisted would be read by the next run into the same folder in place of its own.
    """
    stored = table.persist(StorageLevel.DISK_ONLY)
    try:
        yield stored
    finally:
        stored.unpersist()
