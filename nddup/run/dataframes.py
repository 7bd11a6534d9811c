"""The near-duplicates of a DataFrame, as tables in its session."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from nddup.errors import ConfigError
from nddup.run.measures import metrics_of
from nddup.run.pipeline import find_clusters
from nddup.run.session import set_to, settings_for
from nddup.run.spark_progress import SparkProgress
from nddup.run.state import Job
from nddup.settings.load import build_config
from nddup.spark.reading.scan import number_texts
from nddup.spark.schemas import TEXTS
from nddup.storage.checkpoint import CheckpointStore
from nddup.storage.session_tables import MemoryStore, Store
from nddup.tables import RESULTS


@dataclass(frozen=True)
class Tables:
    """What `find_duplicates` gives: the tables of a run, and what was counted."""

    documents: DataFrame
    rejects: DataFrame
    pairs: DataFrame
    clusters: DataFrame
    members: DataFrame
    keep: DataFrame
    false_components: DataFrame
    metrics: dict[str, Any]


def find_duplicates(
    df: DataFrame,
    id: str = "id",  # noqa: A002 - the caller's word
    text: str = "text",
    *,
    checkpoint: str | None = None,
    **settings: Any,  # noqa: ANN401
) -> Tables:
    """Find the near-duplicates among the rows of a DataFrame.

    Args:
        df: one document a row.
        id: its column of ids; compared and returned as strings. Null and repeated ids go to `rejects`.
        text: its column of texts; null goes to `rejects`.
        checkpoint: a folder that every executor sees, `hdfs:///tmp/x`. The tables are kept there as Parquet, in a new
            folder of each call, and outlive executors and the session; removing it is the caller's.
        **settings: sections of the configuration, `pairs={"threshold": 0.9}`, or keys `**{"pairs.threshold": 0.9}`.

    Returns:
        The tables of a run. `record` is the rank of the id. Without `checkpoint` they lie on the executors' disks until
        the session ends: an executor that is lost takes its share along, and the call, or a later reading, fails.
        The settings of the session are as they were, also after a failure; meanwhile they are those of the run.

    Raises:
        ConfigError: for an unknown column or a wrong setting.
        OutputError: if the folder `checkpoint` cannot be made.

    Example:
        tables = nddup.find_duplicates(pages, id="url", text="body", pairs={"threshold": 0.9})
        tables.keep.where("kept").join(pages, F.col("doc_id") == F.col("url"))
    """
    for column in (id, text):
        if column not in df.columns:
            raise ConfigError(f"find_duplicates: no column {column!r}; there are {', '.join(df.columns)}")
    config = build_config(_nested(settings), origin="find_duplicates")
    spark = df.sparkSession
    with ExitStack() as meanwhile:
        meanwhile.enter_context(set_to(spark, settings_for(config.spark)))
        store: Store = MemoryStore()
        if checkpoint is not None:
            store = meanwhile.enter_context(CheckpointStore(spark, checkpoint).opened(kept=list(RESULTS)))
        job = Job(spark, config, store, SparkProgress(spark, is_quiet=True))
        found = find_clusters(job, number_texts(df, id=id, text=text).select(*TEXTS.fieldNames()))
    return Tables(**found.tables, metrics=metrics_of(config, found.stages, found.sketched.documents.unpaired).dump())


def _nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Keys with a point as sections."""
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        if not name and not isinstance(value, dict):
            raise ConfigError(
                f"find_duplicates: {section}: expected a section such as {section}={{...}}, got {value!r}"
            )
        given = ({key: value} if section == "spark" else {name: value}) if name else value
        nested[section] = {**nested.get(section, {}), **given}
    return nested
