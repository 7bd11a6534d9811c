"""Near-duplicates among the rows of a table: a Spark DataFrame on Spark; any other table in this process."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Literal

import pyarrow as pa

from nddup.api.run_object import Run
from nddup.compiling.install import PARTS, USUAL, compile_once
from nddup.embedded.given_tables import (
    Columns,
    GivenTable,
    Look,
    Rows,
    as_table,
    choose_columns,
    holds_something,
    is_polars,
    named,
    not_text,
    to_arrow,
    wanted_columns,
    with_fields,
)
from nddup.embedded.memory import Memory
from nddup.embedded.read_records import number_texts
from nddup.embedded.run import LocalJob
from nddup.embedded.workers import Workers
from nddup.engines.choose import memory_of
from nddup.engines.duck import MemoryRun
from nddup.errors import ConfigError
from nddup.ground.metrics import RunMetrics
from nddup.ground.progress import LocalProgress, Steps, is_quiet_for
from nddup.matching.preference import DATED
from nddup.reading.chats import holds_texts
from nddup.reading.xml_structure import FIRST_ROWS, MARKUP_NAME
from nddup.settings.load import build_config, nest_settings
from nddup.settings.plan import is_usual, processes_of
from nddup.settings.schema import (
    ClustersConfig,
    Config,
    InputConfig,
    KeepConfig,
    LexiconConfig,
    LocalConfig,
    PairsConfig,
    SketchConfig,
)
from nddup.settings.sections import ShingleConfig, TokensConfig
from nddup.stages.inputs_found import read_forced
from nddup.stages.run import find_clusters
from nddup.stages.stage import metrics_of
from nddup.storage.local_folder import MemoryTables
from nddup.storage.local_storage import LocalStorage
from nddup.tables import ID_COLUMNS, READABLE

SPARK_TEXTS = ("string", "binary", "varchar", "char", "void")


def find_duplicates(  # noqa: PLR0913 - the sections of the configuration, so that an editor completes them
    df: GivenTable,
    id: str | None = None,  # noqa: A002 - the caller's word
    text: str | None = None,
    *,
    checkpoint: str | None = None,
    progress: bool | None = None,
    engine: Literal["auto", "local", "spark"] = "auto",
    input: InputConfig | Mapping[str, Any] | None = None,  # noqa: A002 - the name of the section
    tokens: TokensConfig | Mapping[str, Any] | None = None,
    shingle: ShingleConfig | Mapping[str, Any] | None = None,
    sketch: SketchConfig | Mapping[str, Any] | None = None,
    lexicon: LexiconConfig | Mapping[str, Any] | None = None,
    pairs: PairsConfig | Mapping[str, Any] | None = None,
    clusters: ClustersConfig | Mapping[str, Any] | None = None,
    keep: KeepConfig | Mapping[str, Any] | None = None,
    local: LocalConfig | Mapping[str, Any] | None = None,
    spark: Mapping[str, str] | None = None,
    **settings: Any,  # noqa: ANN401
) -> Run:
    """Find the near-duplicates among the rows of a table.

    Args:
        df: a table with one document per row: a DataFrame of Spark, pandas or Polars; an Arrow table; a list of
            dictionaries; or whatever gives its rows as a stream of Arrow (`__arrow_c_stream__`: a Dataset of Hugging
            Face, a relation of DuckDB, a RecordBatchReader) or by the interchange protocol (`__dataframe__`).
        id: name of the column of ids, of pandas also of the index. They are compared as text: their exact value, with
            all blanks. Null and repeated ids go to `rejects`. None: the column `id` if there is one; else each row has
            its number, from 0, as its id. Fields of objects are named with dots, here and below: `row.text`.
        text: name of the column of texts: strings, lists of strings, or chats (lists of `{role, content}`). None: a
            title and a text by their usual names, as in files (`title`; `content`, `text`, `body`, …, `messages`). What
            `html` is called holds markup. Rows with nothing in them go to `rejects`.
        checkpoint: for a Spark DataFrame, a folder that every executor can reach, such as `hdfs:///tmp/x`. Each call
            writes its tables there as Parquet, in a new folder that outlives the session and that the caller removes.
        progress: None: one line on a terminal and in a notebook, erased at the end; elsewhere log lines of level INFO
            of the logger `nddup`. True: these lines go to standard error. False: no output.
        engine: `spark` requires a Spark DataFrame.
        input: how texts are read; keys about files have no effect.
        tokens: differences of spelling that do not count, such as `tokens={"ignore": ["numbers"]}`.
        shingle: what a feature is.
        sketch: how a document is reduced to a sketch.
        lexicon: settings of the kinds made of words.
        pairs: when two documents are near-duplicates, such as `pairs={"threshold": 0.9}`.
        clusters: how clusters are mined.
        keep: which of several near-duplicates is kept.
        local: memory and processes of the embedded engine.
        spark: Spark's own settings, under their full names.
        **settings: keys with dots, such as `**{"pairs.threshold": 0.9}`.

    Returns:
        A run, as `nddup.open` returns it, with tables of the same library as `df` where that is Spark, pandas or
        Polars, else Arrow's. `record` is the rank of the id, or the row where `keep.policy` is `first`. If the ids are
        integers, so are those in the tables, which then join with `df`; for `sql` they are text. For a Spark DataFrame,
        `sql` returns a DataFrame, and the session has the run's settings during the call and its own again afterwards,
        also after a failure. Without `checkpoint`, Spark tables lie on the executors' disks until `Run.close`, else
        until the session ends: if an executor is lost, its part of them is lost, and the call or a later read fails.
        Nothing else that the call made stays on the executors, also after a failure.

    Raises:
        ConfigError: for an unknown column, another kind of table, or a wrong setting.
        NeedsSparkError: if a table of pandas, Polars or Arrow needs more than `local.memory`.
        OutputError: if the folder `checkpoint` cannot be created.

    Example:
        run = nddup.find_duplicates(pages, id="url", text="body", pairs={"threshold": 0.9})
        kept = pages[pages["url"].isin(run.keep.query("kept")["doc_id"])]

        with nddup.find_duplicates(df, id="url") as run:  # of Spark: its tables are freed at the end
            df.join(run.keep.where("kept"), df.url == run.keep.doc_id, "left_semi").write.parquet("kept")
    """
    sections = {
        "input": input, "tokens": tokens, "shingle": shingle, "sketch": sketch, "lexicon": lexicon, "pairs": pairs,
        "clusters": clusters, "keep": keep, "local": local, "spark": spark,
    }  # fmt: skip
    given = settings | {name: section for name, section in sections.items() if section is not None}
    nested = nest_settings(given, origin="find_duplicates") | ({"engine": engine} if engine != "auto" else {})
    config = build_config(nested, origin="find_duplicates")
    _require_for_tables(config, is_on_spark=hasattr(df, "sparkSession"))
    if isinstance(df, list | tuple) and not df:  # no rows have any columns
        df = pa.table({name: pa.nulls(0, pa.string()) for name in (id or "id", text or "text", *config.keep.read)})
    with named("find_duplicates"):
        df = as_table(df, partial(wanted_columns, id=id, text=text, read=config.keep.read))
        df = (_with_fields_on_spark if hasattr(df, "sparkSession") else with_fields)(df, (id, text, *config.keep.read))
        look = Look(_holds_on_spark, _filled_on_spark) if hasattr(df, "sparkSession") else None
        columns = choose_columns(df, id, text, config.keep.read, look=look)
    if config.input.markup == "auto" and MARKUP_NAME.fullmatch(str(columns.text)):  # as in files
        config = config.model_copy(update={"input": config.input.model_copy(update={"markup": "html"})})
    if hasattr(df, "sparkSession"):
        from nddup.spark.engine import FramesRun  # noqa: PLC0415 - Spark is loaded for its own tables only
        from nddup.spark.run import find_on_spark, with_ids_of  # noqa: PLC0415

        if df.isStreaming:
            raise ConfigError(
                "find_duplicates: a streaming DataFrame never ends: give a table, or each batch by"
                " writeStream.foreachBatch"
            )
        if columns.id is None:
            raise ConfigError(
                "find_duplicates: rows on Spark have no numbers: name the column of ids with id=…, or add one, such as"
                ' df.withColumn("id", pyspark.sql.functions.monotonically_increasing_id())'
            )
        kinds = {field.name: field.dataType for field in df.schema.fields}
        with named("find_duplicates"):
            _require_kinds(df, columns, kinds)
        is_quiet = is_quiet_for(progress=progress)
        run_tables, metrics, free = find_on_spark(
            df, columns._asdict(), config, checkpoint=checkpoint, is_quiet=is_quiet
        )
        frames: dict[str, Any] = with_ids_of(run_tables, kinds[columns.id])
        reader = partial(FramesRun, df.sparkSession, run_tables, metrics)
        return Run(**frames, metrics=metrics, _open_frames=reader, _free=free)

    if checkpoint is not None or config.engine == "spark":
        raise ConfigError("find_duplicates: checkpoint and engine=spark are for a DataFrame of Spark")
    with named("find_duplicates"):
        rows = to_arrow(df, columns)
    tables, metrics = _find_here(
        number_texts(
            rows,
            id="id",
            text="text",
            policy=rows["policy"] if columns.read else None,
            in_rows=config.keep.order.is_of_rows,
        ),
        config,
        is_quiet=is_quiet_for(progress=progress),
    )
    kind = rows.schema.field("id").type
    shown: dict[str, Any] = {name: _as_given(_with_ids(table, kind), df) for name, table in tables.items()}
    return Run(**shown, metrics=metrics, _opened=MemoryRun(tables, metrics))


def _require_for_tables(config: Config, *, is_on_spark: bool) -> None:
    """Refuse what a table, or one of Spark, has not."""
    if config.keep.prefer or None in (*config.keep.same_places, *config.keep.ledger_places):
        raise ConfigError(
            "find_duplicates: keep.prefer, and nddup_source in keep.same or keep.ledger: a table has no sources"
        )
    if config.keep.policy in DATED:
        raise ConfigError(
            f"find_duplicates: keep.policy {config.keep.policy}: needs a WARC or ARC file; a table has none"
        )
    if config.keep.policy == "shortest-url" or "url_length" in (column.path for column in config.keep.order.columns):
        raise ConfigError("find_duplicates: keep.policy: addresses of a table are not read; name another column of it")
    if config.input.limit is not None:
        raise ConfigError("find_duplicates: input.limit: give the first rows of the table")
    if is_on_spark and config.keep.order.is_of_rows:
        raise ConfigError("find_duplicates: keep.policy first: rows on Spark have no order; name a column, or first-id")


def _with_fields_on_spark(df: GivenTable, wanted: Iterable[str | None]) -> GivenTable:
    from nddup.spark.run import with_fields  # noqa: PLC0415 - Spark is loaded for its own tables only

    return with_fields(df, wanted)


def _holds_on_spark(df: GivenTable, name: str, *, only_chats: bool = False) -> bool:
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415 - loaded with the caller's table

    kind = next(field.dataType for field in df.schema.fields if field.name == name)
    return kind.typeName() == "array" and holds_texts(to_arrow_type(kind), only_chats=only_chats)


def _filled_on_spark(df: GivenTable, names: Sequence[str]) -> list[str]:
    """Return which columns hold something in some first rows. One job, of few tasks; none of a stream."""
    numbered = df.toDF(*map(str, range(len(df.columns))))  # two names may differ in case alone
    places = {name: str(df.columns.index(name)) for name in names}
    rows = [] if df.isStreaming else numbered.select([numbered[place] for place in places.values()]).take(FIRST_ROWS)
    values = [row.asDict(recursive=True) for row in rows]  # a chat as dictionaries
    return [name for name, place in places.items() if any(holds_something(row[place]) for row in values)]


def _require_kinds(df: GivenTable, columns: Columns, kinds: Mapping[str, Any]) -> None:
    for name in filter(None, (*columns[:2], *columns.read)):
        if kinds[name].typeName() in ("array", "map", "struct"):
            raise not_text(name, kinds[name].simpleString())
    if kinds[columns.text].typeName() not in SPARK_TEXTS and not _holds_on_spark(df, columns.text):
        raise not_text(columns.text, kinds[columns.text].simpleString())


def _find_here(texts: pa.Table, config: Config, *, is_quiet: bool) -> tuple[dict[str, pa.Table], RunMetrics]:
    with Steps("find_duplicates", 1, is_quiet=is_quiet) as steps:
        compile_once(steps, USUAL if is_usual(config) else PARTS)
    progress = LocalProgress(is_quiet=is_quiet, is_brief=True)
    store = MemoryTables()
    memory = Memory(memory_of(config), advice="give it as a DataFrame of Spark")
    with Workers(processes_of(config), progress=progress.step, memory=memory) as workers:
        job = LocalJob(config, store, workers, progress, forced=read_forced(LocalStorage(), config.keep.force))
        made = find_clusters(job, texts)

    tables = {name: store.tables[name] for name in READABLE if name in store.tables}
    return tables, metrics_of(config, made.stages, made.unpaired)


def _with_ids(table: pa.Table, kind: pa.DataType) -> pa.Table:
    if not pa.types.is_integer(kind):
        return table
    for name in ID_COLUMNS & set(table.column_names):
        at = table.schema.get_field_index(name)
        of_list = pa.types.is_list(table.schema.field(at).type)
        table = table.set_column(at, name, table[name].cast(pa.list_(kind) if of_list else kind))
    return table


def _as_given(table: pa.Table, df: GivenTable) -> GivenTable:
    if isinstance(df, pa.Table | Rows):
        return table
    if is_polars(df):
        return import_module("polars").from_arrow(table)
    frame = table.to_pandas()
    for name in ID_COLUMNS & set(table.column_names):
        kind = table.schema.field(name).type
        if pa.types.is_integer(kind) and table[name].null_count:  # as floats they would lose digits
            nullable = (
                import_module("pandas").array([], dtype=str(kind).replace("int", "Int").replace("uI", "UI")).dtype
            )
            frame[name] = table[name].to_pandas(types_mapper={kind: nullable}.get)
    return frame
