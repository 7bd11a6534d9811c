"""The near-duplicates among the rows of a table: of Spark, on Spark; of pandas, Polars or Arrow, in this process."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa

from nddup.errors import ConfigError
from nddup.local.memory import Memory
from nddup.local.reading.given_texts import number_texts
from nddup.local.reading.workers import Workers
from nddup.metrics import RunMetrics, Stages
from nddup.run.engines import memory_of
from nddup.run.local_stages import LocalJob, find_clusters, sketch_documents
from nddup.run.measures import metrics_of
from nddup.run.progress import Progress
from nddup.settings.derive import processes_of
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.storage.local_folder import MemoryTables


@dataclass(frozen=True)
class Tables:
    """What `find_duplicates` gives: the tables of a run, and what was counted.

    They are of the kind of table that was given: Spark DataFrames, pandas or Polars frames, or Arrow tables.
    """

    documents: Any
    rejects: Any
    pairs: Any
    clusters: Any
    members: Any
    keep: Any
    false_components: Any
    metrics: dict[str, Any]


def find_duplicates(
    df: Any,  # noqa: ANN401 - of several libraries, none of which is loaded here
    id: str = "id",  # noqa: A002 - the caller's word
    text: str = "text",
    *,
    checkpoint: str | None = None,
    **settings: Any,  # noqa: ANN401
) -> Tables:
    """Find the near-duplicates among the rows of a table.

    Args:
        df: one document a row: a DataFrame of Spark, pandas or Polars, or an Arrow table.
        id: its column of ids; compared and returned as strings. Null and repeated ids go to `rejects`.
        text: its column of texts; null goes to `rejects`.
        checkpoint: of a Spark DataFrame, a folder that every executor sees, `hdfs:///tmp/x`. The tables are kept there
            as Parquet, in a new folder of each call, and outlive the session; removing it is the caller's.
        **settings: sections of the configuration, `pairs={"threshold": 0.9}`, or keys `**{"pairs.threshold": 0.9}`.

    Returns:
        The tables of a run. `record` is the rank of the id. Those of Spark, without `checkpoint`, lie on the executors'
        disks until the session ends: if an executor is lost, so is its part of the tables, and the call or a later read
        fails. The settings of the session are as they were, also after a failure; meanwhile they are those of the run.

    Raises:
        ConfigError: for an unknown column, another kind of table, or a wrong setting.
        NeedsSparkError: if a table of pandas, Polars or Arrow needs more than `local.memory`.
        OutputError: if the folder `checkpoint` cannot be made.

    Example:
        tables = nddup.find_duplicates(pages, id="url", text="body", pairs={"threshold": 0.9})
        kept = pages[pages["url"].isin(tables.keep.query("kept")["doc_id"])]
    """
    names = list(df.column_names if isinstance(df, pa.Table) else df.columns)
    for column in (id, text):
        if column not in names:
            raise ConfigError(f"find_duplicates: no column {column!r}; there are {', '.join(map(str, names))}")
    config = build_config(nest_settings(settings), origin="find_duplicates")

    if hasattr(df, "sparkSession"):
        from nddup.run.dataframes import find_on_spark  # noqa: PLC0415 - Spark is loaded for its own tables only

        found, metrics = find_on_spark(df, (id, text), config, checkpoint=checkpoint)
        return Tables(**found, metrics=metrics.dump())

    if checkpoint is not None or config.engine == "spark":
        raise ConfigError("find_duplicates: checkpoint and engine=spark are for a DataFrame of Spark")
    given = _to_arrow(df, [id, text])
    tables, metrics = _find_here(number_texts(given, id=id, text=text), config)
    return Tables(**{name: _as_given(table, df) for name, table in tables.items()}, metrics=metrics.dump())


def _find_here(texts: pa.Table, config: Config) -> tuple[dict[str, pa.Table], RunMetrics]:
    """The tables of a run over TEXTS, in memory."""
    store = MemoryTables()
    memory = Memory(memory_of(config), advice="give it as a DataFrame of Spark")
    with Workers(processes_of(config), memory=memory) as workers:
        job = LocalJob(config, store, workers, Progress(is_quiet=True))
        sketched = sketch_documents(job, texts)
        found = find_clusters(job, sketched)

    pairs, clusters, keep = found.stages
    stages = Stages(sketch=sketched.metrics, pairs=pairs, clusters=clusters, keep=keep)
    names = [name for name in Tables.__dataclass_fields__ if name != "metrics"]
    return {name: store.tables[name] for name in names}, metrics_of(config, stages, found.unpaired)


def _to_arrow(df: Any, columns: list[str]) -> pa.Table:  # noqa: ANN401
    """Two columns of a table, as text. Each stays null where it is."""
    if isinstance(df, pa.Table):
        table = df.select(columns)
    elif hasattr(df, "to_arrow"):  # Polars
        table = df.select(columns).to_arrow()
    elif hasattr(df, "iloc"):  # pandas
        values = [df[name].map(str, na_action="ignore") for name in columns]
        table = pa.table([pa.array(value, pa.string(), from_pandas=True) for value in values], names=columns)
    else:
        raise ConfigError(
            f"find_duplicates: expected a table of Spark, pandas, Polars or Arrow, got {type(df).__name__}"
        )
    return pa.table([table[name].cast(pa.string()) for name in columns], names=columns)


def _as_given(table: pa.Table, df: Any) -> Any:  # noqa: ANN401
    """A table as one of the kind that was given."""
    if isinstance(df, pa.Table):
        return table
    if hasattr(df, "to_arrow"):
        return import_module("polars").from_arrow(table)
    return table.to_pandas()


def _keys_of(section: Any) -> list[str]:  # noqa: ANN401 - a class of settings, or a plain type
    return list(getattr(section, "model_fields", {}))


def nest_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Keys with a point as sections."""
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        if not name and not isinstance(value, dict):
            sections = [known for known, one in Config.model_fields.items() if section in _keys_of(one.annotation)]
            hint = (
                f"; {section} is a setting of {sections[0]}: {sections[0]}={{{section!r}: {value!r}}}"
                if sections
                else ""
            )
            raise ConfigError(
                f"find_duplicates: {section}: expected a section such as pairs={{...}}, got {value!r}{hint}"
            )
        if section == "output":
            raise ConfigError(
                "find_duplicates: output: it writes no folder, the tables are returned; `nddup run` writes one"
            )
        given = ({key: value} if section == "spark" else {name: value}) if name else value
        nested[section] = {**nested.get(section, {}), **given}
    return nested
