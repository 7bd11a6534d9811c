"""Conversion of Arrow columns to arrays and back, in chunks where Arrow's 32-bit offsets require it; fields."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from nddup.errors import SchemaError
from nddup.ground.arrays import Ragged, take_rows

MOST_VALUES = 1 << 30
"""Maximum number of values in one list array; its offsets have 31 bits."""

TAKEN = 1 << 20
"""Maximum number of rows in a chunk that `take` makes: some 60 MB of ids."""

WHOLE = 1e18
"""Whole numbers below this, in a column of floats, are spelled without an exponent; on both engines."""

WORDS = 2
"""64-bit words in a fingerprint."""


def in_utc(kind: pa.DataType) -> pa.DataType:
    """Return the type of moments in UTC for one of moments in another zone, where a night has two 02:30, else the same.

    Example:
        >>> in_utc(pa.timestamp("us", "Europe/Berlin"))
        TimestampType(timestamp[us, tz=UTC])
    """
    return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind


def ragged_of(column: pa.ChunkedArray) -> Ragged:
    """Return a column of `array<long>` as rows of uint64; a null row becomes empty.

    Chunks that lie one after another in memory, as `lists_of` makes them, are not copied.
    """
    parts = [list_column(chunk) for chunk in column.chunks if len(chunk)]
    if len(parts) == 1:
        return parts[0]
    sizes = [np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)]
    return Ragged(np.cumsum(np.concatenate(sizes)), _join_values([part.values for part in parts]))


def _join_values(parts: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the values of all parts in one array: that of the first where each begins at the end of the one before."""
    if not parts or any(one.ctypes.data + one.nbytes != after.ctypes.data for one, after in pairwise(parts)):
        return np.concatenate([np.empty(0, np.uint64), *parts])
    return as_strided(parts[0], (sum(map(len, parts)),), writeable=False)


def sizes_of(column: pa.ChunkedArray) -> NDArray[np.int32]:
    """Return how many values each row of a column of lists has, (n,); a null row has none."""
    sizes: NDArray[np.int32] = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int32, copy=False)
    return sizes


def list_column(column: pa.Array) -> Ragged:
    """Return a column of `array<long>` as a ragged array of uint64; a null row becomes an empty one.

    Without a null row, nothing is copied.

    Raises:
        SchemaError: if the column is of another type, or a list holds a null.
    """
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or kind.value_type != pa.int64():
        raise SchemaError(f"a column of numbers should be list<int64> or large_list<int64>, got {kind}")
    if column.values.null_count:
        raise SchemaError("a list of numbers holds a null")
    offsets = np.asarray(column.offsets).astype(np.int64)
    values = np.asarray(column.values).view(np.uint64)
    if column.null_count:
        return take_rows(Ragged(offsets, values), np.arange(len(column)))
    return Ragged(offsets - offsets[0], values[offsets[0] : offsets[-1]])


def lists_of(offsets: NDArray[np.int64], values: pa.Array, most: int = MOST_VALUES) -> pa.ChunkedArray:
    """Return rows of different lengths as a list column, in chunks of at most `most` values."""
    chunks = []
    for rows in pieces_of(np.diff(offsets), most):
        ends = offsets[rows.start : rows.stop + 1]
        of_piece = values.slice(ends[0], ends[-1] - ends[0])
        chunks.append(pa.ListArray.from_arrays(pa.array(ends - ends[0], pa.int32()), of_piece))
    return pa.chunked_array(chunks, pa.list_(values.type))


def pieces_of(sizes: NDArray[np.integer], most: int) -> Iterator[slice]:
    """Yield consecutive slices of rows whose sizes add up to at most `most`; a larger row is a slice of its own.

    No rows give no slices.

    Example:
        >>> [(rows.start, rows.stop) for rows in pieces_of(np.array([3, 1, 2, 9, 1]), most=4)]
        [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    low = 0
    while low < len(ends):
        before = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, before + most, "right")))
        yield slice(low, high)
        low = high


def take(column: pa.ChunkedArray, places: NDArray[np.integer]) -> pa.ChunkedArray:
    """Return the values at some places, in chunks of `TAKEN` rows; a negative place gives null."""
    whole = one_chunk(column)
    chunks = [
        whole.take(pa.array(part, mask=part < 0) if (part < 0).any() else pa.array(part))
        for part in (places[low : low + TAKEN] for low in range(0, len(places), TAKEN))
    ]
    return pa.chunked_array(chunks, column.type)


def nulls(rows: int, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column of nulls; its chunks share the memory of one."""
    chunk = pa.nulls(min(rows, TAKEN), kind)
    return pa.chunked_array([chunk.slice(0, min(TAKEN, rows - low)) for low in range(0, rows, TAKEN)], kind)


def mean_bytes(column: pa.ChunkedArray) -> float:
    """Return the mean size of a value in bytes; 0 for an empty column."""
    return float(column.nbytes / len(column)) if len(column) else 0.0


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a whole column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])


def fingerprints_of(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return a column of n 16-byte values without nulls as (n, 2) uint64 words."""
    parts = [np.empty((0, WORDS), np.uint64)]
    for chunk in column.chunks:
        data = chunk.buffers()[2]
        if len(chunk) and data is not None:
            offsets = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
            raw = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
            parts.append(np.ascontiguousarray(raw).view(np.uint64).reshape(-1, WORDS))
    return np.concatenate(parts)


def fields_in(schema: pa.Schema) -> list[str]:
    """Return the names of the columns, each followed by those of the fields of its objects, as `meta.id`.

    Example:
        >>> fields_in(pa.schema({"id": pa.string(), "meta": pa.struct({"of": pa.struct({"a": pa.string()})})}))
        ['id', 'meta', 'meta.of', 'meta.of.a']
    """
    return [name for at, column in enumerate(schema.names) for name in _names_of(column, schema.types[at])]


def _names_of(name: str, kind: pa.DataType) -> list[str]:
    inner = [kind.field(at) for at in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    return [name, *(deeper for one in inner for deeper in _names_of(f"{name}.{one.name}", one.type))]


def kind_of(schema: pa.Schema, name: str) -> pa.DataType:
    """Return the type of a column, or of a field of its objects; KeyError where `fields_in` does not list the name."""
    if name in schema.names:
        return schema.field(name).type
    column, *path = path_of(schema.names, name)
    kind = schema.field(column).type
    for inner in path:
        kind = kind.field(inner).type
    return kind


def path_of(columns: list[str], name: str) -> list[str]:
    """Return the column of a field, then the names that lead to it; ValueError where no column begins the name."""
    column = max((one for one in columns if name.startswith(f"{one}.")), key=len)
    return [column, *name[len(column) + 1 :].split(".")]


def field_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the values of a field that `fields_in` lists but that is no column; null where there is no object."""
    column, *path = path_of(batch.schema.names, name)
    return pc.struct_field(batch.column(column), path)
