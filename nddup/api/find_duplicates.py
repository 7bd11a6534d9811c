"""Near-duplicates among the rows of a table: a Spark DataFrame on Spark; any other table in this process."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from nddup.api.run_object import Run
from nddup.compiling.install import compile_once
from nddup.embedded.memory import Memory
from nddup.embedded.read_records import CHUNK_BYTES, cut, number_texts
from nddup.embedded.run import LocalJob
from nddup.embedded.workers import Workers
from nddup.engines.choose import memory_of
from nddup.engines.duck import MemoryRun
from nddup.errors import ConfigError
from nddup.ground.columns import one_chunk
from nddup.ground.metrics import RunMetrics
from nddup.ground.progress import LocalProgress, Steps, is_quiet_for
from nddup.matching.preference import DATED
from nddup.reading.chats import CHAT_NAMES, holds_texts, is_chat, texts_of
from nddup.reading.xml_structure import BODY_NAMES, TITLE_NAMES, text_fields
from nddup.settings.load import build_config, nest_settings
from nddup.settings.plan import processes_of
from nddup.settings.schema import (
    ClustersConfig,
    Config,
    InputConfig,
    KeepConfig,
    LexiconConfig,
    LocalConfig,
    PairsConfig,
    ShingleConfig,
    SketchConfig,
)
from nddup.stages.inputs_found import read_forced
from nddup.stages.run import find_clusters
from nddup.stages.stage import metrics_of
from nddup.storage.local_folder import MemoryTables
from nddup.storage.local_storage import LocalStorage
from nddup.tables import ID_COLUMNS, RESULTS

SPARK_TEXTS = ("string", "binary", "varchar", "char", "void")
TEXT_KINDS = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary,
)  # fmt: skip


def find_duplicates(  # noqa: PLR0913 - the sections of the configuration, so that an editor completes them
    df: Any,  # noqa: ANN401 - a table of several libraries, none of which is loaded here
    id: str | None = None,  # noqa: A002 - the caller's word
    text: str | None = None,
    *,
    checkpoint: str | None = None,
    progress: bool | None = None,
    engine: Literal["auto", "local", "spark"] = "auto",
    input: InputConfig | Mapping[str, Any] | None = None,  # noqa: A002 - the name of the section
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
        id: name of the column of ids, which are compared as text: their exact value. Null and repeated ids go to
            `rejects`. None: the column `id` if there is one; else each row has its number, from 0, as its id.
        text: name of the column of texts: strings, lists of strings, or chats (lists of `{role, content}`). None: a
            title and a text by their usual names, as in files (`title`; `content`, `text`, `body`, …, `messages`). Rows
            with nothing in them go to `rejects`.
        checkpoint: for a Spark DataFrame, a folder that every executor can reach, such as `hdfs:///tmp/x`. Each call
            writes its tables there as Parquet, in a new folder that outlives the session and that the caller removes.
        progress: None: one line on a terminal and in a notebook, erased at the end; elsewhere log lines of level INFO
            of the logger `nddup`. True: these lines go to standard error. False: no output.
        engine: `spark` requires a Spark DataFrame.
        input: how texts are read; keys about files have no effect.
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
        Polars, else Arrow's. `record` is the rank of the id. If
        the ids are integers, so are those in the tables, which then join with `df`; for `sql` they are text. For a
        Spark DataFrame, `sql` returns a DataFrame, and the session has the run's settings during the call and its
        own again afterwards, also after a failure. Without `checkpoint`, Spark tables lie on the executors' disks until
        `Run.close`, else until the session ends: if an executor is lost, its part of them is lost, and the call or a
        later read fails. Nothing else that the call made stays on the executors, also after a failure.

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
        "input": input, "shingle": shingle, "sketch": sketch, "lexicon": lexicon, "pairs": pairs, "clusters": clusters,
        "keep": keep, "local": local, "spark": spark,
    }  # fmt: skip
    given = settings | {name: section for name, section in sections.items() if section is not None}
    nested = nest_settings(given, origin="find_duplicates") | ({"engine": engine} if engine != "auto" else {})
    config = build_config(nested, origin="find_duplicates")
    if config.keep.prefer or None in config.keep.same_places:
        raise ConfigError("find_duplicates: keep.prefer, and nddup_source in keep.same: a table has no sources")
    if config.keep.policy in DATED:
        raise ConfigError(
            f"find_duplicates: keep.policy {config.keep.policy}: needs a WARC or ARC file; a table has none"
        )
    if config.input.limit is not None:
        raise ConfigError("find_duplicates: input.limit: give the first rows of the table")

    df = _as_table(df, partial(_wanted, id=id, text=text, read=config.keep.read))
    columns = _choose_columns(df, id, text, config.keep.read)
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
        _require_kinds(df, columns, kinds)
        is_quiet = is_quiet_for(progress=progress)
        found, metrics, free = find_on_spark(df, columns._asdict(), config, checkpoint=checkpoint, is_quiet=is_quiet)
        frames: dict[str, Any] = with_ids_of(found, kinds[columns.id])
        reader = partial(FramesRun, df.sparkSession, found, metrics)
        return Run(**frames, metrics=metrics, _open_frames=reader, _free=free)

    if checkpoint is not None or config.engine == "spark":
        raise ConfigError("find_duplicates: checkpoint and engine=spark are for a DataFrame of Spark")
    rows = _to_arrow(df, columns)
    tables, metrics = _find_here(
        number_texts(rows, id="id", text="text", policy=rows["policy"] if columns.read else None),
        config,
        is_quiet=is_quiet_for(progress=progress),
    )
    kind = rows.schema.field("id").type
    shown: dict[str, Any] = {name: _as_given(_with_ids(table, kind), df) for name, table in tables.items()}
    return Run(**shown, metrics=metrics, _opened=MemoryRun(tables, metrics))


class _Rows(NamedTuple):
    """A list of dictionaries, and all their keys."""

    rows: Sequence[Mapping[str, Any]]
    columns: list[str]


class Columns(NamedTuple):
    """The names of the columns of a table that are read; None for none."""

    id: str | None
    title: str | None
    text: str
    read: tuple[str, ...] = ()
    """Those of `keep.policy` and `keep.same`."""


def _wanted(names: list[str], *, id: str | None, text: str | None, read: tuple[str, ...] = ()) -> list[str]:  # noqa: A002
    """Return the columns that may be read; all, for the message, if the text column is not among them."""
    usual = {*TITLE_NAMES, *BODY_NAMES, *CHAT_NAMES}
    texts = [text] if text else [name for name in names if name.lower() in usual]
    found = [name for name in dict.fromkeys(["id" if id is None else id, *texts, *read]) if names.count(name) == 1]
    return found if set(texts) & set(found) else names


def _choose_columns(df: Any, id: str | None, text: str | None, read: tuple[str, ...]) -> Columns:  # noqa: A002, ANN401
    """Choose the columns that are read.

    Raises:
        ConfigError: for one that does not exist, or twice, or if no column looks like the text.
    """
    names = list(df.column_names if isinstance(df, pa.Table) else df.columns)
    id = "id" if id is None and "id" in names else id  # noqa: A001
    usual = [str(name) for name in names]
    chats = [name for name in usual if name.lower() in CHAT_NAMES and _holds_lists(df, name, only_chats=True)]
    *title, found = (text,) if text else text_fields(usual, chats) or (None,)
    if found is None:
        raise ConfigError(f"find_duplicates: no column of texts; there are {', '.join(usual)}; name it with text=…")
    _require_columns(names, [name for name in (id, *title, found, *read) if name is not None])
    return Columns(id, next(iter(title), None), found, read)


def _holds_lists(df: Any, name: str, *, only_chats: bool = False) -> bool:  # noqa: ANN401
    """Return whether a column holds chats or lists of strings; in a table without types, its first value decides."""
    if hasattr(df, "sparkSession"):
        from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415 - loaded with the caller's table

        kind = next(field.dataType for field in df.schema.fields if field.name == name)
        return kind.typeName() == "array" and holds_texts(to_arrow_type(kind), only_chats=only_chats)
    if isinstance(df, pa.Table):
        return holds_texts(df.schema.field(name).type, only_chats=only_chats)
    if _is_polars(df):
        return holds_texts(df.head(0).select(name).to_arrow().schema.field(name).type, only_chats=only_chats)
    first = next((value for value in _values(df, name) if value is not None and not _is_missing(value)), None)
    given = json.loads(_as_json(first)) if _is_list(first) else None
    return is_chat(given) if only_chats else bool(texts_of(given))


def _values(df: Any, name: str) -> Iterator[Any]:  # noqa: ANN401
    """Yield the values of a column of any table but one of Spark, as those of Python."""
    if isinstance(df, _Rows):
        yield from (row.get(name) for row in df.rows)
    elif hasattr(df, "iloc"):
        yield from df[name]
    else:
        chunks = df[name].chunks if isinstance(df, pa.Table) else df.select(name).to_arrow().column(0).chunks
        yield from (value.as_py() for chunk in chunks for value in chunk)


def _is_missing(value: object) -> bool:
    """Return whether a value stands for null, also NaN, as pandas has it."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")
    )


def _is_list(value: object) -> bool:
    return isinstance(value, list) or type(value).__name__ == "ndarray"


def _turns_of(df: Any, name: str) -> pa.ChunkedArray:  # noqa: ANN401
    """Return a column of lists as JSON."""
    held, chunks, size = list[str | None](), list[pa.Array](), 0
    for value in _values(df, name):
        held.append(None if _is_missing(value) else _as_json(value))
        size += len(held[-1] or "")
        if size > CHUNK_BYTES:
            chunks.append(pa.array(held, pa.string()))
            held, size = [], 0
    return pa.chunked_array([*chunks, pa.array(held, pa.string())])


def _as_json(value: object) -> str:
    """Return a chat or a list as JSON; pandas gives lists as arrays of numpy."""
    return json.dumps(value, default=lambda one: one.tolist() if _is_list(one) else str(one))


def _require_kinds(df: Any, columns: Columns, kinds: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Refuse columns of a DataFrame of Spark whose types hold no text.

    Raises:
        ConfigError: naming the column.
    """
    for name in filter(None, (*columns[:2], *columns.read)):
        if kinds[name].typeName() in ("array", "map", "struct"):
            raise _not_text(name, kinds[name].simpleString())
    if kinds[columns.text].typeName() not in SPARK_TEXTS and not _holds_lists(df, columns.text):
        raise _not_text(columns.text, kinds[columns.text].simpleString())


def _require_columns(names: list[str], wanted: list[str]) -> None:
    for column in wanted:
        if names.count(column) != 1:
            told = f"{names.count(column)} columns {column!r}" if column in names else f"no column {column!r}"
            raise ConfigError(f"find_duplicates: {told}; there are {', '.join(map(str, names))}")


def _find_here(texts: pa.Table, config: Config, *, is_quiet: bool) -> tuple[dict[str, pa.Table], RunMetrics]:
    """Run the embedded engine over TEXTS; return the tables of the run, in memory, and its metrics."""
    with Steps("find_duplicates", 1, is_quiet=is_quiet) as steps:
        compile_once(steps)
    progress = LocalProgress(is_quiet=is_quiet, is_brief=True)
    store = MemoryTables()
    memory = Memory(memory_of(config), advice="give it as a DataFrame of Spark")
    with Workers(processes_of(config), progress=progress.step, memory=memory) as workers:
        job = LocalJob(config, store, workers, progress, forced=read_forced(LocalStorage(), config.keep.force))
        found = find_clusters(job, texts)

    tables = {name: store.tables[name] for name in RESULTS if name in store.tables}
    return tables, metrics_of(config, found.stages, found.unpaired)


def _as_table(given: Any, wanted: Callable[[list[str]], list[str]]) -> Any:  # noqa: ANN401 - any table
    """Return a DataFrame of Spark, pandas or Polars, or an Arrow table, as it is; any other table as an Arrow table.

    Args:
        given: the table.
        wanted: names -> those of the columns that are needed; others are not held in memory where they can be left out.

    Raises:
        ConfigError: if it is no table; the message says how to make one of it.
    """
    if isinstance(given, pa.Table) or hasattr(given, "sparkSession") or hasattr(given, "iloc") or _is_polars(given):
        found = given
    elif type(given).__module__.startswith("polars.") and hasattr(given, "collect_schema"):
        names = given.collect_schema().names()
        found = given.select(wanted(names)).collect()
    elif isinstance(given, list | tuple) and given and all(isinstance(row, Mapping) for row in given):
        names = list(dict.fromkeys(name for row in given for name in row))
        found = _Rows(given, names)
    elif hasattr(given, "__arrow_c_stream__"):
        found = _of_stream(given, wanted)
    elif hasattr(given, "__dataframe__"):
        found = import_module("pyarrow.interchange").from_dataframe(given)
    else:
        raise _no_table(given)
    if not isinstance(found, pa.Table) and not hasattr(found, "columns"):
        raise _no_table(given)
    return found


def _is_polars(given: object) -> bool:
    return type(given).__module__.startswith("polars.") and type(given).__name__ == "DataFrame"


def _of_stream(given: Any, wanted: Callable[[list[str]], list[str]]) -> pa.Table:  # noqa: ANN401
    """Read a stream of Arrow, a batch at a time; of columns that are not wanted nothing stays in memory."""
    try:
        reader = pa.RecordBatchReader.from_stream(given)
    except (pa.ArrowException, TypeError) as error:  # a single column, for example
        raise _no_table(given) from error
    names = reader.schema.names
    chosen = wanted(names)
    if any(names.count(name) > 1 for name in chosen):
        return reader.schema.empty_table()
    schema = pa.schema([reader.schema.field(name) for name in chosen])
    return pa.Table.from_batches((batch.select(chosen) for batch in reader), schema)


def _to_arrow(df: Any, columns: Columns) -> pa.Table:  # noqa: ANN401
    """Return `id`, `title`, `text` and `turns` of a table as Arrow strings, or integers for ids; null stays null.

    Text that is not Unicode, such as half a surrogate pair or other bytes, stays as it is: reading makes it a reject.
    Without a column of ids each row gets its number.

    Raises:
        ConfigError: if a column holds something else.
    """
    found: dict[str, Any] = dict.fromkeys(("id", "title", "text", "turns"))
    for kind, name in zip(("id", "title"), columns[:2], strict=True):
        found[kind] = name and _as_strings(_column(df, name, is_id=True), name, is_id=True)
    if _holds_lists(df, columns.text):
        found["turns"] = _turns_of(df, columns.text)
    else:
        found["text"] = _as_strings(_column(df, columns.text, is_id=False), columns.text, is_id=False)
    rows = len(found["text"] if found["turns"] is None else found["turns"])
    found["id"] = pa.array(np.arange(rows)) if found["id"] is None else found["id"]
    found = {name: pa.nulls(rows, pa.string()) if column is None else column for name, column in found.items()}
    values = [_as_strings(_column(df, name, is_id=True), name, is_id=True).cast(pa.string()) for name in columns.read]
    if values:
        places = (np.arange(rows)[:, None] + np.arange(len(values)) * rows).ravel()
        flat = one_chunk(pa.chunked_array([chunk for value in values for chunk in value.chunks], pa.string()))
        offsets = pa.array(np.arange(rows + 1) * len(values), pa.int32())
        found["policy"] = pa.ListArray.from_arrays(offsets, flat.take(pa.array(places)))
    return pa.table(found)


def _column(df: Any, name: str, *, is_id: bool) -> pa.ChunkedArray:  # noqa: ANN401
    """Return a column of any table but one of Spark."""
    if isinstance(df, pa.Table):
        return df[name]
    if _is_polars(df):
        return df.select(name).to_arrow().column(0)
    if isinstance(df, _Rows):
        return _of_rows(_values(df, name), name, is_id=is_id)
    if hasattr(df, "iloc"):
        return _of_pandas(df[name], name, is_id=is_id)
    raise _no_table(df)


def _of_pandas(column: Any, name: str, *, is_id: bool) -> pa.ChunkedArray:  # noqa: ANN401 - a Series
    """Return integers as they are, other ids as pandas writes them, and text and bytes unchanged; null stays null."""
    pandas = import_module("pandas")
    kind = column.cat.categories.dtype.kind if hasattr(column, "cat") else column.dtype.kind
    if kind in "iu" or (kind == "O" and pandas.api.types.infer_dtype(column) == "integer"):
        with suppress(OverflowError, pa.ArrowException):  # Python's integers have no end
            return pa.chunked_array([pa.array(column, from_pandas=True)])
    is_missing = lambda value: pandas.api.types.is_scalar(value) and pandas.isna(value)  # noqa: E731
    return _of_values(column, name, is_missing, is_id=is_id)


def _of_rows(values: Iterable[Any], name: str, *, is_id: bool) -> pa.ChunkedArray:
    """Do as `_of_pandas` for the values of one key in a list of dictionaries; a missing one is null."""
    held = list(values)
    if is_id and all(value is None or type(value) is int for value in held):
        with suppress(OverflowError, pa.ArrowException):
            return pa.chunked_array([pa.array(held, pa.int64())])
    return _of_values(held, name, lambda value: value is None, is_id=is_id)


def _of_values(column: Iterable[Any], name: str, is_missing: Callable[[Any], bool], *, is_id: bool) -> pa.ChunkedArray:
    chunks, held, size = list[pa.Array](), list[bytes | None](), 0
    for row, value in enumerate(column):
        known = value
        if not isinstance(value, str | bytes):
            if is_missing(value):
                known = None
            elif is_id:
                known = str(value)
            else:
                raise _not_text(name, type(value).__name__, f" in row {row}")
        held.append(known.encode("utf-8", "surrogatepass") if isinstance(known, str) else known)
        size += len(held[-1] or b"")
        if size > CHUNK_BYTES:
            chunks.append(pa.array(held, pa.binary()))
            held, size = [], 0
    return pa.chunked_array([*chunks, pa.array(held, pa.binary())])


def _as_strings(column: pa.ChunkedArray, name: str, *, is_id: bool) -> pa.ChunkedArray:
    """Return a column as strings, in chunks below 2 GB; integers for ids."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if is_id and pa.types.is_integer(kind):
        return column
    is_text = any(is_kind(kind) for is_kind in TEXT_KINDS)
    if not is_text and (not is_id or pa.types.is_nested(kind)) and not pa.types.is_null(kind):
        raise _not_text(name, str(kind))
    parts = [part for chunk in column.chunks for part in cut(chunk)]
    # Without a check of UTF-8: reading makes a reject of each value that is none.
    return pa.chunked_array([part.cast(pa.string(), safe=not is_text) for part in parts], pa.string())


def _not_text(name: str, kind: str, where: str = "") -> ConfigError:
    return ConfigError(f"find_duplicates: column {name!r} holds {kind}{where}; expected text")


def _with_ids(table: pa.Table, kind: pa.DataType) -> pa.Table:
    """Return a table with its ids as integers of a type, if the caller's are; else unchanged."""
    if not pa.types.is_integer(kind):
        return table
    for name in ID_COLUMNS & set(table.column_names):
        at = table.schema.get_field_index(name)
        of_list = pa.types.is_list(table.schema.field(at).type)
        table = table.set_column(at, name, table[name].cast(pa.list_(kind) if of_list else kind))
    return table


def _no_table(given: object) -> ConfigError:
    kind = type(given).__name__
    if isinstance(given, str):
        way = "of a file, `nddup run` finds them, and nddup.open reads the result"
    elif isinstance(given, Mapping):
        way = "of columns, `pyarrow.table({…})` makes one; of texts by id, `[{'id': id, 'text': text}, …]`"
    elif isinstance(given, Iterable):
        way = "give a list of dictionaries, such as `[{'text': text} for text in …]`"
    else:
        way = "whatever pandas.DataFrame(…) or pyarrow.table(…) can be made of can be given as that"
    return ConfigError(
        f"find_duplicates: expected a table of Spark, pandas, Polars or Arrow, or a list of dictionaries, got {kind};"
        f" {way}"
    )


def _as_given(table: pa.Table, df: Any) -> Any:  # noqa: ANN401
    """Convert an Arrow table to the library of `df`."""
    if isinstance(df, pa.Table | _Rows):
        return table
    if _is_polars(df):
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
