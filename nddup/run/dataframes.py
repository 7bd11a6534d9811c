"""The near-duplicates of a Spark DataFrame, as tables in its session."""

from collections.abc import Mapping
from contextlib import ExitStack

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nddup.metrics import RunMetrics
from nddup.run.job import SparkJob
from nddup.run.session import set_to, settings_for
from nddup.run.spark_progress import SparkProgress
from nddup.settings.schema import Config
from nddup.spark.reach import is_connect
from nddup.spark.reading.scan import number_texts
from nddup.spark.schemas import TEXTS
from nddup.stages.inputs_found import read_forced
from nddup.stages.run import find_clusters
from nddup.stages.stage import metrics_of
from nddup.storage.session_files import files_of
from nddup.storage.session_tables import CheckpointStore, MemoryStore, RemoteMemoryStore, Store
from nddup.tables import ID_COLUMNS, RESULTS


def find_on_spark(
    df: DataFrame, columns: tuple[str, str], config: Config, *, checkpoint: str | None, is_quiet: bool = False
) -> tuple[dict[str, DataFrame], RunMetrics]:
    """Return the tables of a run over a DataFrame, and its metrics.

    Args:
        df: one document a row.
        columns: of ids and of texts.
        config: all settings; those of the session are restored afterwards, even after a failure.
        checkpoint: a folder that every executor sees, for the tables as Parquet; None: they stay in the session.
        is_quiet: report no progress.

    Raises:
        OutputError: if the folder `checkpoint` cannot be made.
    """
    spark = df.sparkSession
    with ExitStack() as meanwhile:
        meanwhile.enter_context(set_to(spark, settings_for(config.spark)))
        store: Store = RemoteMemoryStore() if is_connect(spark) else MemoryStore()
        if checkpoint is not None:
            store = meanwhile.enter_context(CheckpointStore(spark, checkpoint).opened(kept=list(RESULTS)))
        forced = read_forced(files_of(spark), config.keep.force)
        shown = SparkProgress(spark, is_quiet=is_quiet, is_brief=True)
        job = SparkJob(spark, config, store, shown, forced=forced)
        found = find_clusters(job, number_texts(df, id=columns[0], text=columns[1]).select(*TEXTS.fieldNames()))
    return dict(found.tables), metrics_of(config, found.stages, found.unpaired)


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
