"""Tables that a caller gives: which of their columns are the id, the title and the text, and these as Arrow strings.

    as_table         any table        -> one of Spark, pandas, Polars or Arrow
    with_fields      table, names     -> the table with columns for the fields of objects that are named, as `row.text`
    choose_columns   a table          -> its columns that are read, by the rule of files
    to_arrow         table, columns   -> id, title, text, turns

`nddup.find_duplicates` and a repository read tables alike. A table of Spark is only looked at.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.embedded.read_records import CHUNK_BYTES, cut
from nddup.errors import ConfigError
from nddup.ground.columns import WHOLE, in_utc, one_chunk
from nddup.reading.chats import CHAT_NAMES, holds_texts, is_chat, texts_of
from nddup.reading.formats import Format
from nddup.reading.xml_structure import BODY_NAMES, DESCRIBED, FIRST_ROWS, TITLE_NAMES, is_filled, rivals, text_fields

GivenTable: TypeAlias = Any
"""A table of one of several libraries, or a column of one; none of them is loaded here."""

TEXT_KINDS = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary,
)  # fmt: skip

OBJECTS = ("Object", "Int128", "UInt128")
"""Types of Polars whose values Arrow does not have: of objects it would get addresses in memory."""


@contextmanager
def named(caller: str) -> Iterator[None]:
    """Put the name of what was called before the message of a table that is refused."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{caller}: {error}") from error


class Rows(NamedTuple):
    """A list of dictionaries, and all their keys."""

    rows: Sequence[Mapping[str, Any]]
    columns: list[str]


class Columns(NamedTuple):
    """The names of the columns of a table that are read; None for none."""

    id: str | None
    title: str | None
    text: str
    read: tuple[str, ...] = ()
    """Those of `keep.policy`, `keep.same` and `keep.ledger`."""


class Look(NamedTuple):
    """How to look into a table: whether a column holds chats or lists; and which columns hold something at its start.

    The arguments are those of `holds_lists`, and the table with the names of columns.
    """

    holds: Callable[..., bool]
    filled: Callable[[GivenTable, Sequence[str]], list[str]]


def as_table(given: GivenTable, wanted: Callable[[list[str]], list[str]]) -> GivenTable:
    """Return a DataFrame of Spark, pandas or Polars, or an Arrow table, as it is; any other table as an Arrow table.

    Args:
        wanted: names -> those of the columns that are needed; others are not held in memory where they can be left out.

    Raises:
        ConfigError: if it is no table; the message says how to make one of it.
    """
    if isinstance(given, pa.Table) or hasattr(given, "sparkSession") or is_polars(given):
        table = given
    elif hasattr(given, "iloc"):
        table = _with_index(given)
    elif type(given).__module__.startswith("polars.") and hasattr(given, "collect_schema"):
        names = given.collect_schema().names()
        table = import_module("polars").collect_all([given.select(wanted(names))])[0]
    elif isinstance(given, list | tuple) and given and all(isinstance(row, Mapping) for row in given):
        names = list(dict.fromkeys(name for row in given for name in row))
        table = Rows(given, names)
    elif hasattr(given, "__arrow_c_stream__"):
        table = _of_stream(given, wanted)
    elif hasattr(given, "__dataframe__"):
        table = import_module("pyarrow.interchange").from_dataframe(given)
    else:
        raise no_table(given)
    if not isinstance(table, pa.Table) and not hasattr(table, "columns"):
        raise no_table(given)
    return table


def _with_index(df: GivenTable) -> GivenTable:
    """Return a DataFrame of pandas whose index has names with a column for each name; it shares all other columns."""
    columns = getattr(df, "columns", None)
    if columns is None or columns.nlevels > 1:
        return df
    names = [name for name in df.index.names if name is not None and name not in columns]
    if not names:
        return df
    whole = df.copy(deep=False)
    for name in names:
        whole[name] = df.index.get_level_values(name)
    return whole


def _of_stream(given: GivenTable, wanted: Callable[[list[str]], list[str]]) -> pa.Table:
    """Read a stream of Arrow, a batch at a time; of columns that are not wanted nothing stays in memory."""
    try:
        reader = pa.RecordBatchReader.from_stream(given)
    except (pa.ArrowException, TypeError) as error:  # a single column, for example
        raise no_table(given) from error
    names = reader.schema.names
    chosen = wanted(names)
    if any(names.count(name) > 1 for name in chosen):
        return reader.schema.empty_table()
    schema = pa.schema([reader.schema.field(name) for name in chosen])
    return pa.Table.from_batches((batch.select(chosen) for batch in reader), schema)


def wanted_columns(names: list[str], *, id: str | None, text: str | None, read: tuple[str, ...] = ()) -> list[str]:  # noqa: A002
    """Return the columns that may be read; all, for the message, if the text column is not among them."""
    usual = {*TITLE_NAMES, *BODY_NAMES, *DESCRIBED, *CHAT_NAMES}
    texts = [column_of(names, text)] if text is not None else [name for name in names if name.lower() in usual]
    others = [column_of(names, name) for name in ("id" if id is None else id, *read)]
    columns = [name for name in dict.fromkeys([*others, *texts]) if names.count(name) == 1]
    return columns if set(texts) & set(columns) else names


def column_of(names: Sequence[str], name: str) -> str:
    """Return the column that a name stands for: `row` for `row.text` where no column is called that."""
    column = name
    while column not in names:
        column, dot, _ = str(column).rpartition(".")
        if not dot:
            return name
    return column


def with_fields(df: GivenTable, wanted: Iterable[str | None]) -> GivenTable:
    """Return a table with a column for each field of objects in a column that is named with dots; null stays null.

    Names that are no field are left to `choose_columns`, which refuses them.

    Args:
        df: a table as of `as_table`, but of Spark.
        wanted: names, such as `row.text`; those of columns change nothing.
    """
    names = _names_of(df)
    for name in dict.fromkeys(wanted):
        column = name if name is None else column_of(names, name)
        if name == column or column is None or names.count(column) != 1:
            continue
        path = str(name)[len(column) + 1 :]
        if isinstance(df, Rows) or hasattr(df, "iloc"):
            fields = [list(_inside(cell, path)) for cell in _values(df, column)]
            if not any(fields):
                continue
            inner = [next(iter(values), None) for values in fields]
            if isinstance(df, Rows):
                rows = [{**row, name: value} for row, value in zip(df.rows, inner, strict=True)]
                df = Rows(rows, [*df.columns, str(name)])
            else:
                df = df.copy(deep=False)
                df[name] = import_module("pandas").Series(inner, index=df.index, dtype=object)
            continue
        field = _field_of(df[column] if isinstance(df, pa.Table) else df.select(column).to_arrow().column(0), path)
        if field is not None and isinstance(df, pa.Table):
            df = df.append_column(name, field)
        elif field is not None:
            df = df.with_columns(import_module("polars").from_arrow(field).alias(name))
    return df


def _names_of(df: GivenTable) -> list[str]:
    return list(df.column_names if isinstance(df, pa.Table) else df.columns)


def _inside(cell: object, path: str) -> Iterator[object]:
    """Yield the value of a field of an object, also of one inside it, if it is there."""
    if isinstance(cell, Mapping):
        first = column_of(list(cell), path)
        if first in cell:
            yield from [cell[first]] if first == path else _inside(cell[first], path[len(first) + 1 :])


def _field_of(column: pa.ChunkedArray, path: str) -> pa.ChunkedArray | None:
    """Do as `_inside` for a column of Arrow; None where its objects have no such field."""
    if not pa.types.is_struct(column.type):
        return None
    names = column.type.names
    first = column_of(names, path)
    if names.count(first) != 1:
        return None
    inner = pc.struct_field(column, [names.index(first)])
    return inner if first == path else _field_of(inner, path[len(first) + 1 :])


def choose_columns(  # noqa: PLR0913 - what a caller may say of a table
    df: GivenTable,
    id: str | None,  # noqa: A002
    text: str | None,
    read: tuple[str, ...] = (),
    *,
    look: "Look | None" = None,
    advice: str = "name it with text=…",
) -> Columns:
    """Choose the columns that are read: those that are named, else those of usual names, as in files.

    Args:
        df: a table, also of Spark.
        id: name of the column of ids; None: `id` if there is one.
        text: name of the column of texts; None: a title, if there is one, and a text, or chats.
        read: further columns.
        look: how to look into the table; None: one that knows all but a table of Spark.
        advice: what to do where no column has a usual name.

    Raises:
        ConfigError: for one that does not exist, or twice, or if no column looks like the text.
    """
    look = look or Look(holds_lists, _filled_in)
    names = _names_of(df)
    id = "id" if id is None and "id" in names else id  # noqa: A001
    usual = [str(name) for name in names]
    chats = [name for name in usual if name.lower() in CHAT_NAMES and look.holds(df, name, only_chats=True)]
    doubtful = rivals(usual, Format("parquet", id="id", url="url"), chats) if text is None else []
    filled = look.filled(df, [name for name in doubtful if name in names]) if doubtful else []
    *title, body = (text,) if text is not None else text_fields(usual, chats, filled) or (None,)
    if body is None:
        there = f"no column of texts; there are {', '.join(usual)}; {advice}"
        raise ConfigError(there if usual else "a table without columns")
    _require_columns(names, [name for name in (id, *title, body, *read) if name is not None])
    return Columns(id, next(iter(title), None), body, read)


def holds_lists(df: GivenTable, name: str, *, only_chats: bool = False) -> bool:
    """Return whether a column of any table but one of Spark holds chats or lists of strings.

    In a table without types, its first value decides.
    """
    if isinstance(df, pa.Table):
        return holds_texts(df.schema.field(name).type, only_chats=only_chats)
    if is_polars(df):
        return holds_texts(df.head(0).select(name).to_arrow().schema.field(name).type, only_chats=only_chats)
    first = next((value for value in _values(df, name) if value is not None and not _is_missing(value)), None)
    given = json.loads(_as_json(first)) if _is_list(first) else None
    return is_chat(given) if only_chats else bool(texts_of(given))


def _filled_in(df: GivenTable, names: Sequence[str]) -> list[str]:
    """Return which columns hold something in the first FIRST_ROWS rows, as of a file."""
    return [name for name in names if any(map(holds_something, islice(_values(df, name), FIRST_ROWS)))]


def holds_something(value: object) -> bool:
    """Return whether a value of a table is neither null nor blank; a list holds something if its texts do."""
    if _is_missing(value):
        return False
    return is_filled(json.loads(_as_json(value)) if _is_list(value) else value)


def _values(df: GivenTable, name: str) -> Iterator[Any]:
    if isinstance(df, Rows):
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
    return isinstance(value, list | tuple) or type(value).__name__ == "ndarray"


def _turns_of(df: GivenTable, name: str) -> pa.ChunkedArray:
    turns, chunks, size = list[str | None](), list[pa.Array](), 0
    for value in _values(df, name):
        turns.append(None if _is_missing(value) else _as_json(value))
        size += len(turns[-1] or "")
        if size > CHUNK_BYTES:
            chunks.append(pa.array(turns, pa.string()))
            turns, size = [], 0
    return pa.chunked_array([*chunks, pa.array(turns, pa.string())])


def _as_json(value: object) -> str:
    """Return a chat or a list as JSON, spelled as by Spark, which orders rows by it; lists of pandas are arrays."""
    text = json.dumps(
        value,
        default=lambda one: one.tolist() if _is_list(one) else str(one),
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return text.encode("utf-8", "backslashreplace").decode()  # half a character stays an escape


def _require_columns(names: list[str], wanted: list[str]) -> None:
    for column in wanted:
        if names.count(column) != 1:
            fault = f"{names.count(column)} columns {column!r}" if column in names else f"no column {column!r}"
            raise ConfigError(f"{fault}; there are {', '.join(map(str, names))}")


def is_polars(given: object) -> bool:
    """Return whether a value is a DataFrame of Polars, which is not loaded for that."""
    return type(given).__module__.startswith("polars.") and type(given).__name__ == "DataFrame"


def to_arrow(df: GivenTable, columns: Columns) -> pa.Table:
    """Return `id`, `title`, `text` and `turns` of a table as Arrow strings, or integers for ids; null stays null.

    Text that is not Unicode, such as half a surrogate pair or other bytes, stays as it is: reading makes it a reject.
    Without a column of ids each row gets its number.

    Raises:
        ConfigError: if a column holds something else.
    """
    arrays: dict[str, Any] = dict.fromkeys(("id", "title", "text", "turns"))
    for kind, name in zip(("id", "title"), columns[:2], strict=True):
        if name is not None:  # pandas may have a column 0
            column = _column(df, name, is_id=True)
            arrays[kind] = _as_strings(_as_integers(column) if kind == "id" else column, name, is_id=True)
    if holds_lists(df, columns.text):
        arrays["turns"] = _turns_of(df, columns.text)
    else:
        arrays["text"] = _as_strings(_column(df, columns.text, is_id=False), columns.text, is_id=False)
    rows = len(arrays["text"] if arrays["turns"] is None else arrays["turns"])
    arrays["id"] = pa.array(np.arange(rows)) if arrays["id"] is None else arrays["id"]
    arrays = {name: pa.nulls(rows, pa.string()) if column is None else column for name, column in arrays.items()}
    values = [_as_strings(_column(df, name, is_id=True), name, is_id=True).cast(pa.string()) for name in columns.read]
    if values:
        places = (np.arange(rows)[:, None] + np.arange(len(values)) * rows).ravel()
        flat = one_chunk(pa.chunked_array([chunk for value in values for chunk in value.chunks], pa.string()))
        offsets = pa.array(np.arange(rows + 1) * len(values), pa.int32())
        arrays["policy"] = pa.ListArray.from_arrays(offsets, flat.take(pa.array(places)))
    return pa.table(arrays)


def _column(df: GivenTable, name: str, *, is_id: bool) -> pa.ChunkedArray:
    if isinstance(df, pa.Table):
        return df[name]
    if is_polars(df):
        if str(df.schema[name]) in OBJECTS:
            return _of_rows(df[name].to_list(), name, is_id=is_id)
        return df.select(name).to_arrow().column(0)
    if isinstance(df, Rows):
        return _of_rows(_values(df, name), name, is_id=is_id)
    if hasattr(df, "iloc"):
        return _of_pandas(df[name], name, is_id=is_id)
    raise no_table(df)


def _as_integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return floats as integers if all are: pandas has integers with a missing one as floats; others unchanged."""
    if not pa.types.is_floating(column.type):
        return column
    values, whole = _whole_of(column)
    return whole if whole.null_count == values.null_count else column


def _of_pandas(column: GivenTable, name: str, *, is_id: bool) -> pa.ChunkedArray:
    """Return numbers, truth values and times as Arrow has them, text and bytes unchanged, other ids as Python does.

    Null stays null.
    """
    pandas = import_module("pandas")
    kind = column.cat.categories.dtype.kind if hasattr(column, "cat") else column.dtype.kind
    if (
        kind in "iu"
        or (is_id and kind in "fbmM")
        or (kind == "O" and pandas.api.types.infer_dtype(column) == "integer")
    ):
        with suppress(OverflowError, TypeError, pa.ArrowException):  # Python's integers have no end
            return pa.chunked_array([pa.array(column, from_pandas=True)])
    is_missing = lambda value: pandas.api.types.is_scalar(value) and pandas.isna(value)  # noqa: E731
    return _of_values(column, name, is_missing, is_id=is_id)


def _of_rows(values: Iterable[Any], name: str, *, is_id: bool) -> pa.ChunkedArray:
    """Do as `_of_pandas` for the values of one key in a list of dictionaries; a missing one is null."""
    cells = list(values)
    if is_id and all(value is None or type(value) is int or isinstance(value, np.integer) for value in cells):
        with suppress(OverflowError, pa.ArrowException):
            return pa.chunked_array([pa.array(cells, pa.int64())])
    return _of_values(cells, name, _is_missing, is_id=is_id)


def _of_values(column: Iterable[Any], name: str, is_missing: Callable[[Any], bool], *, is_id: bool) -> pa.ChunkedArray:
    chunks, cells, size = list[pa.Array](), list[bytes | None](), 0
    for row, value in enumerate(column):
        known = value
        if not isinstance(value, str | bytes):
            if is_missing(value):
                known = None
            elif is_id:
                known = _spell(value, name)
            else:
                raise not_text(name, type(value).__name__, f" in row {row}")
        cells.append(known.encode("utf-8", "surrogatepass") if isinstance(known, str) else known)
        size += len(cells[-1] or b"")
        if size > CHUNK_BYTES:
            chunks.append(pa.array(cells, pa.binary()))
            cells, size = [], 0
    return pa.chunked_array([*chunks, pa.array(cells, pa.binary())])


def _spell(value: object, name: str) -> str:
    """Return an id as text: numbers, truth values and times as in a column of Arrow, others as Python does."""
    if isinstance(value, float | bool | np.generic | datetime | timedelta):
        with suppress(TypeError, pa.ArrowException):
            return str(_as_strings(pa.chunked_array([pa.array([value])]), name, is_id=True).cast(pa.string())[0])
    return str(value)


def _as_strings(column: pa.ChunkedArray, name: str, *, is_id: bool) -> pa.ChunkedArray:
    """Return a column as strings, in chunks below 2 GB; integers for ids."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)
    if is_id and getattr(column.type, "extension_name", "") == "arrow.uuid":
        written = (pa.array([value and str(value) for value in chunk.to_pylist()]) for chunk in column.chunks)
        column = pa.chunked_array(written, pa.string())
    kind = column.type
    if is_id and pa.types.is_integer(kind):
        return column
    if is_id and pa.types.is_timestamp(kind):
        column = column.cast(in_utc(kind))
    if is_id and pa.types.is_floating(kind):
        column = _spell_floats(column)
        kind = column.type
    is_text = any(is_kind(kind) for is_kind in TEXT_KINDS)
    if not is_text and (not is_id or pa.types.is_nested(kind)) and not pa.types.is_null(kind):
        raise not_text(name, str(kind))
    parts = [part for chunk in column.chunks for part in cut(chunk)]
    # Without a check of UTF-8: reading makes a reject of each value that is none.
    try:
        return pa.chunked_array([part.cast(pa.string(), safe=not is_text) for part in parts], pa.string())
    except pa.ArrowNotImplementedError as error:  # months and days, for example
        raise not_text(name, str(kind)) from error


def _spell_floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whole numbers in full and others as Arrow writes them; NaN stands for null where a column has no other."""
    values, whole = _whole_of(column)
    return pc.coalesce(whole.cast(pa.string()), values.cast(pa.string()))


def _whole_of(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return a column of floats without NaN, and those of its values that are whole numbers; the others are null."""
    column = column.cast(pa.float32()) if column.type == pa.float16() else column
    values = pc.if_else(pc.is_nan(column), None, column)
    is_whole = pc.and_(pc.less(pc.abs(values), WHOLE), pc.equal(pc.floor(values), values))
    return values, pc.if_else(is_whole, values, None).cast(pa.int64())


def not_text(name: str, kind: str, where: str = "") -> ConfigError:
    """Return the error for a column that holds no text, with its type."""
    return ConfigError(f"column {name!r} holds {kind}{where}; expected text")


def no_table(given: object) -> ConfigError:
    """Return the error for a value that is no table; its message says how to make one of it."""
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
        f"expected a table of Spark, pandas, Polars or Arrow, or a list of dictionaries, got {kind}; {way}"
    )
