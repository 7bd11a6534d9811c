"""A run on Spark, from INPUT paths to a finished folder, or from a DataFrame to tables in its session.

`SparkJob` and `SketchedOnSpark` give the `steps` as a run takes them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nddup.embedded.given_tables import column_of
from nddup.engines.duck import DuckEngine, DuckRun
from nddup.engines.engine import Engine, EngineTable, FinishedRun
from nddup.errors import NddupError, is_full, reason_of
from nddup.ground.metrics import RunMetrics
from nddup.ground.progress import LogFormat
from nddup.ground.shown import JsonValue
from nddup.scanning.collection import Collection
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.spark.engine import FramesRun, SparkRun, frame_of
from nddup.spark.scan import number_texts
from nddup.spark.session import few_tasks, set_to, settings_for
from nddup.spark.session_access import is_connect
from nddup.spark.session_files import files_of
from nddup.spark.session_tables import CheckpointStore, MemoryStore, RemoteMemoryStore, SparkFolder, Store
from nddup.spark.steps import outputs
from nddup.spark.steps.changed import find_changed, join_pairs
from nddup.spark.steps.clustering import require_one_graph, tell_one_graph
from nddup.spark.steps.documents import Sketched, sketch_documents, take_saved
from nddup.spark.steps.one_task import decide_here
from nddup.spark.steps.pairing import find_pairs, keep_shingles
from nddup.spark.steps.state import Job, PairedOnSpark, SparkProgress, persisted
from nddup.stages.inputs_found import read_forced
from nddup.stages.run import find_clusters, make_run
from nddup.stages.run_engine import Made, New, PairedRun
from nddup.stages.stage import metrics_of
from nddup.tables import ID_COLUMNS, READABLE, TEXTS


class SparkJob(Job):
    """A run on Spark, with every verb that `nddup.stages.run` asks for."""

    is_on_spark = True

    def require_able(self, source: Collection) -> None:
        """As `RunEngine.require_able`."""
        tell_one_graph(self, sum(file.size for file in source.listing.files))
        if self.config.lexicon.saved is not None:
            take_saved(self.spark, self.config.lexicon.saved, plan.words_of(self.config))

    @contextmanager
    def attempt(self, source: Collection) -> Iterator[None]:
        """Shuffle few files to few tasks; onto another run its documents count as well."""
        size = sum(file.size for file in source.listing.files)
        if self.onto is not None:
            size += self.folder_at(self.onto).size_of("documents")
        with set_to(self.spark, few_tasks(self.spark, self.config.spark, size)), ExitStack() as self.resources:
            yield

    write_duplicates = outputs.write_duplicates
    write_context = outputs.write_context
    rewrite = outputs.rewrite_inputs

    def sketch(self, source: EngineTable) -> "SketchedOnSpark":
        """As `RunEngine.sketch`."""
        return SketchedOnSpark(self, sketch_documents(self, source))

    def beside(self) -> "SparkJob":
        """Return a job over some of the documents, whose tables are in the session until this one ends."""
        store = self.resources.enter_context(MemoryStore(self.spark).opened(kept=[]))
        return SparkJob(self.spark, self.config, store, self.progress, shingles=self.shingles)

    def look(self, **tables: DataFrame) -> Engine:
        """As `RunEngine.look`: without Spark jobs where this process sees the folder."""
        if not self.folder.is_here:
            return self.ask(**tables)
        return DuckEngine.over(self.folder.path, **{name: self.folder.dataset(name) for name in tables})

    def hold(self, verdicts: DataFrame) -> AbstractContextManager[DataFrame]:
        """As `RunEngine.hold`: on the executors' disks."""
        return persisted(verdicts)

    def folder_at(self, path: str) -> SparkFolder:
        """As `RunEngine.folder_at`."""
        return SparkFolder(self.spark, path)

    def see_other(self, run: FinishedRun) -> FinishedRun:
        """As `RunEngine.see_other`."""
        asked = {"documents": "SELECT doc_id, doc_key FROM documents", "keep": "SELECT * FROM keep"}
        frames = {name: frame_of(self.spark, run.sql(text)) for name, text in asked.items()}
        return FramesRun(self.spark, frames, run.metrics)

    def open_other(self, path: str) -> FinishedRun:
        """As `RunEngine.open_other`."""
        return SparkRun(self.spark, path)

    def open_finished(self) -> FinishedRun:
        """As `RunEngine.open_finished`: without Spark jobs where this process sees the folder."""
        folder = self.folder
        return DuckRun(folder.path, is_ours=True) if folder.is_here else SparkRun(self.spark, folder.path)


@dataclass(frozen=True)
class SketchedOnSpark:
    """A `SketchedRun`."""

    job: SparkJob
    sketched: Sketched

    @property
    def made(self) -> Made:
        """As of `SketchedRun`."""
        return self.sketched.made

    @property
    def new(self) -> New | None:
        """As of `SketchedRun`."""
        return self.sketched.new

    def pair(self, source: EngineTable, known: EngineTable = None) -> PairedRun:
        """As `SketchedRun.pair`: of a run onto another, only what changed."""
        job, sketched = self.job, self.sketched
        if not (job.config.output.onto and isinstance(source, Collection)):
            return _pair(job, sketched, source, known)
        keep_shingles(job, sketched.documents.table, sketched.inputs)
        changed = find_changed(job, sketched.documents)
        if changed is not None:
            of_changed = Sketched(Made(saved={"documents": changed.documents}, counts={}))
            return join_pairs(job, _pair(job.beside(), of_changed, None, None), changed, sketched.documents)
        paired = _pair(job, sketched, source, known)
        paired.save_candidates(job)
        return paired

    def write_kept(self, source: Collection, chosen: DataFrame) -> int:
        """As `SketchedRun.write_kept`."""
        return outputs.write_kept_documents(self.job, source, self.sketched, chosen)

    def read_texts(self, source: Collection, documents: Mapping[str, tuple[str, bytes]]) -> EngineTable:
        """As `SketchedRun.read_texts`."""
        del source
        return outputs.read_texts(self.job, self.sketched, documents)


def _pair(job: Job, sketched: Sketched, source: EngineTable, known: EngineTable) -> PairedOnSpark:
    """Find the pairs of few documents in one task, else in as many as it takes."""
    decided = decide_here(job, sketched, source)
    if decided is not None:
        return decided
    require_one_graph(job, sketched.documents)
    return find_pairs(job, sketched, source, known)


def run_job(
    spark: SparkSession,
    inputs: list[str],
    output: str,
    config: Config,
    *,
    log_format: LogFormat = "text",
    **arguments: JsonValue,
) -> dict[str, Any]:
    """Make a run on Spark.

    Args:
        inputs: files and folders, any path Hadoop knows.
        **arguments: `overwrite`, `resume`, `first_log_line` and `earlier`, as `nddup.stages.run.make_run` takes them.

    Returns:
        The metrics, as in `metrics.json`.

    Raises:
        NddupError: as `make_run`.
    """
    engine = SparkJob(spark, config, SparkFolder(spark, output), SparkProgress(spark, form=log_format))
    try:
        return make_run(engine, inputs, log_format=log_format, **arguments)
    except Exception as error:
        if isinstance(error, NddupError) or not is_full(error):
            raise
        scratch = "the folders of Spark's own files (spark.local.dir)"
        raise NddupError(
            f"{output}, or {scratch}: cannot be written ({reason_of(error)}); free space, and --resume the run"
        ) from error


def find_on_spark(
    df: DataFrame, columns: Mapping[str, Any], config: Config, *, checkpoint: str | None, is_quiet: bool = False
) -> tuple[dict[str, DataFrame], RunMetrics, Callable[[], None]]:
    """Return the tables of a run over a DataFrame, its metrics, and what frees the tables.

    Whatever else the run made on the executors is freed at the end, all of it after a failure.

    Args:
        df: one document a row.
        columns: the names of those that `number_texts` takes.
        config: all settings; those of the session are restored afterwards, even after a failure.
        checkpoint: a folder that every executor sees, for the tables as Parquet; None: they stay in the session.

    Raises:
        OutputError: if the folder `checkpoint` cannot be made.
    """
    spark = df.sparkSession
    with ExitStack() as meanwhile:
        meanwhile.enter_context(set_to(spark, settings_for(config.spark)))
        made = RemoteMemoryStore(spark) if is_connect(spark) else MemoryStore(spark)
        opened: AbstractContextManager[Store] = made.opened(kept=list(READABLE))
        if checkpoint is not None:
            opened = CheckpointStore(spark, checkpoint).opened(kept=list(READABLE))
        store = meanwhile.enter_context(opened)
        forced = read_forced(files_of(spark), config.keep.force)
        shown = SparkProgress(spark, is_quiet=is_quiet, is_brief=True)
        job = meanwhile.enter_context(closing(SparkJob(spark, config, store, shown, forced=forced)))
        tables = find_clusters(job, number_texts(df, **columns).select(*TEXTS.names))
    return dict(tables.tables), metrics_of(config, tables.stages, tables.unpaired, is_on_spark=True), made.free


def with_fields(df: DataFrame, wanted: Iterable[str | None]) -> DataFrame:
    """Do as `nddup.embedded.given_tables.with_fields` for a DataFrame of Spark. Lazy."""
    numbered = df.toDF(*(f"column{at}" for at in range(len(df.columns))))
    added = list[Column]()
    for name in dict.fromkeys(wanted):
        at = None if name is None else column_of(df.columns, name)
        if name is None or at is None or name == at or df.columns.count(at) != 1:
            continue
        place = df.columns.index(at)
        field = _field_of(F.col(f"column{place}"), df.schema.fields[place].dataType, name[len(at) + 1 :])
        added += [] if field is None else [field.alias(name)]
    if not added:
        return df
    return numbered.select(*(F.col(f"column{at}").alias(name) for at, name in enumerate(df.columns)), *added)


def _field_of(column: Column, kind: T.DataType, path: str) -> Column | None:
    names = kind.names if isinstance(kind, T.StructType) else []
    first = column_of(names, path)
    if names.count(first) != 1 or not isinstance(kind, T.StructType):
        return None
    inner = column.getField(first)
    return inner if first == path else _field_of(inner, kind[first].dataType, path[len(first) + 1 :])


def with_ids_of(tables: Mapping[str, DataFrame], kind: T.DataType) -> dict[str, DataFrame]:
    """Return the tables with their ids as integers of a type, if the caller's are; else unchanged."""
    if not isinstance(kind, T.IntegralType):
        return dict(tables)
    return {name: table.select(*(_typed(field, kind) for field in table.schema)) for name, table in tables.items()}


def _typed(field: T.StructField, kind: T.DataType) -> Column:
    column = F.col(field.name)
    if field.name not in ID_COLUMNS:
        return column
    return column.cast(T.ArrayType(kind) if isinstance(field.dataType, T.ArrayType) else kind).alias(field.name)
