"""Shuffling arrays: columns cross the shuffle only here, packed into blocks, one per target partition.

    pack       arrays and a target per row  ->  one Arrow batch, one block per target
    exchange   block table                  ->  the same blocks, each in its target partition     (one shuffle)
    cogroup    two block tables             ->  a function of the blocks of both in each task     (no shuffle)
    unpack     blocks of a task             ->  arrays

A row of a block table is a block: its `target` partition and, for each array column, the values as one binary cell.
`unionByName(…, allowMissingColumns=True)` moves tables of different layouts together: the cells of the other layout are
null and unpack to no values. The order of blocks in a task is undefined, and no result may depend on it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from nddup.errors import SchemaError
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import list_column, pieces_of
from nddup.spark.schemas import table
from nddup.tables import TYPES, Column

WIDE = {pa.binary(): pa.large_binary(), pa.string(): pa.large_string()}
"""The type that a session with `useLargeVarTypes` has in place of each of these."""

BATCH_BYTES = 256 << 20
"""Maximum number of bytes of one column in a batch that a task makes: Arrow counts the bytes of a binary column with 31
bits."""

MERGED_BYTES = 64 << 20
"""Maximum number of bytes that a task gathers before it packs them: packing takes three times as many."""

Columns = dict[str, NDArray[np.generic]]
Layout = Mapping[str, type[np.generic]]

OFFSETS: dict[pa.DataType, type[np.generic]] = {pa.binary(): np.int32, pa.large_binary(): np.int64}
"""Arrow types whose cells lie end to end, with the dtype of their offsets. Cells of view types do not."""

BatchesOf = Callable[[Iterable[pa.RecordBatch], Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def layout_of(columns: Iterable[Column]) -> Layout:
    """Return the layout of columns of numbers, as `nddup.tables` declares them."""
    return {column.name: TYPES[column.type].to_pandas_dtype() for column in columns}


def block_schema(layout: Layout) -> T.StructType:
    """Return the Spark schema of a block table with these array columns."""
    return table("target int, " + ", ".join(f"{name} binary" for name in layout))


def exchange(blocks: DataFrame, *, partitions: int) -> DataFrame:
    """Move every block to its target partition.

    Schema in/out:  target int, any binary columns; 0 <= target < partitions.
    Shuffles:  one, of blocks.    Actions:  none.
    """
    return blocks.repartitionById(partitions, F.col("target"))


def cogroup(left: DataFrame, right: DataFrame, task: BatchesOf, schema: T.StructType) -> DataFrame:
    """Apply a function to the blocks of two exchanged tables that went to the same task.

    Args:
        left: blocks, as `exchange` moved them.
        right: other blocks, moved to the same number of partitions.
        task: from a task's blocks of both tables to rows of `schema`; not called for a task without blocks.

    Shuffles:  none, even if a side is persisted.    Actions:  none.
    """
    grouped = left.groupBy("target").cogroup(right.groupBy("target"))
    return grouped.applyInArrow(partial(_cogroup_task, task=task, schema=to_arrow_schema(schema)), schema)


def _cogroup_task(left: pa.Table, right: pa.Table, *, task: BatchesOf, schema: pa.Schema) -> pa.Table:
    made = [batch.select(schema.names) for batch in task(left.to_batches(), right.to_batches())]
    rows = pa.Table.from_batches([pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in made], schema)

    # With `useLargeVarTypes`, blocks arrive as large_binary, and Spark expects wide types back.
    if not any(pa.types.is_large_binary(kind) for kind in (*left.schema.types, *right.schema.types)):
        return rows
    return rows.cast(pa.schema([field.with_type(WIDE.get(field.type, field.type)) for field in schema]))


def merged(batches: Iterable[pa.RecordBatch], least: int) -> Iterator[pa.RecordBatch]:
    """Join small batches into larger ones, each of at least `min(least, MERGED_BYTES)` bytes except the last."""
    blocks: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        blocks.append(batch)
        size += batch.nbytes
        if size >= min(least, MERGED_BYTES):
            yield _joined(blocks)
            blocks, size = [], 0
    if blocks:
        yield _joined(blocks)


def _joined(blocks: list[pa.RecordBatch]) -> pa.RecordBatch:
    return blocks[0] if len(blocks) == 1 else pa.concat_batches(blocks)


def pack(
    layout: Layout,
    targets: NDArray[np.int32],
    columns: Mapping[str, NDArray[np.generic]],
    ragged: Mapping[str, Ragged] | None = None,
    *,
    partitions: int,
) -> pa.RecordBatch:
    """Pack arrays into blocks, one for each target that occurs.

    Args:
        layout: names and dtypes of all columns, in the order of the block table.
        targets: (n,), int32 in [0, partitions).
        columns: arrays of shape (n,). They must include the lengths of each ragged column.
        ragged: ragged arrays of n rows.

    Returns:
        A batch with `target` and the columns; the rows of a target keep their order. Cost: linear.
    """
    order = np.argsort(targets.astype(np.uint16 if partitions <= 1 << 16 else np.int32), kind="stable")
    counts = np.bincount(targets, minlength=partitions)
    present = np.flatnonzero(counts)
    ends = np.cumsum(counts[present])

    arrays: dict[str, pa.Array] = {}
    for name, dtype in layout.items():
        if name in columns:
            arrays[name] = _binary(columns[name][order].astype(dtype, copy=False), ends)
        else:
            moved = take_rows((ragged or {})[name], order)
            arrays[name] = _binary(moved.values.astype(dtype, copy=False), moved.offsets[ends])
    return pa.RecordBatch.from_pydict({"target": pa.array(present.astype(np.int32)), **arrays})


def pack_sketches(
    layout: Layout, targets: NDArray[np.int32], batch: pa.RecordBatch, *, partitions: int
) -> pa.RecordBatch:
    """Pack a batch whose column `sketch` becomes `size` and `ids`; the other columns keep their names.

    Args:
        layout: `size`, `ids`, and the names of the batch's other columns.
        targets: (n,), the target of each row.
        batch: n rows; `sketch` is `array<long>`.
    """
    sketches = list_column(batch.column("sketch"))
    columns: Columns = {name: np.asarray(batch.column(name)) for name in layout if name not in ("size", "ids")}
    columns["size"] = np.diff(sketches.offsets).astype(np.int32)
    return pack(layout, targets, columns, {"ids": sketches}, partitions=partitions)


def pieces(sizes: NDArray[np.integer], most: int | None = None) -> Iterator[slice]:
    """Cut rows into runs whose sizes add up to at most `most`. A row larger than that is a run of its own.

    Without `most`, the sizes are bytes and a run has at most `BATCH_BYTES`. No rows give one empty run.
    """
    yield from pieces_of(sizes, BATCH_BYTES if most is None else most) if len(sizes) else [slice(0, 0)]


def pack_pieces(
    layout: Layout, targets: NDArray[np.int32], columns: Mapping[str, NDArray[np.generic]], *, partitions: int
) -> Iterator[pa.RecordBatch]:
    """Pack all the rows that a task holds, as `pack` does, in batches of at most `BATCH_BYTES` per column."""
    for rows in pieces(np.full(len(targets), 8)):
        yield pack(
            layout, targets[rows], {name: column[rows] for name, column in columns.items()}, partitions=partitions
        )


def unpack(batches: Iterable[pa.RecordBatch], layout: Layout) -> Columns:
    """Return the columns of all blocks of a task, end to end.

    The cells of an Arrow batch lie end to end, so a received column is one buffer, and values are copied only to join
    batches. The buffers are read directly, for the Arrow types of a layout; any other is refused.

    Args:
        batches: Arrow batches of a block table; a null cell counts as an empty one.
        layout: the columns wanted and their dtypes.

    Returns:
        One array per column, empty if there is no block.

    Raises:
        SchemaError: if a column is not binary, or the bytes of a batch are not a whole number of values.
    """
    parts: dict[str, list[NDArray[np.generic]]] = {name: [] for name in layout}
    for batch in batches:
        for name, dtype in layout.items():
            parts[name].append(_values(name, batch.column(name), dtype))
    return {name: np.concatenate(parts[name]) if parts[name] else np.empty(0, dtype) for name, dtype in layout.items()}


def ragged_column(lengths: NDArray[np.generic], values: NDArray[np.generic]) -> Ragged:
    """Return n rows of uint64 from two unpacked columns: their lengths, (n,), and their values end to end."""
    return Ragged(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), values.view(np.uint64))


def with_rows(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the batches that have rows."""
    return [batch for batch in batches if batch.num_rows]


def cell_lengths(column: pa.Array, dtype: np.dtype[np.generic]) -> NDArray[np.int64]:
    """Return the number of values in each cell of a binary column, (n,); 0 for a null cell."""
    ends = np.frombuffer(column.buffers()[1], OFFSETS[column.type])[column.offset : column.offset + len(column) + 1]
    return np.asarray(np.diff(ends) // dtype.itemsize, np.int64)


def target_of(blocks: list[pa.RecordBatch]) -> int:
    """Return the partition that the blocks of a task were sent to; 0 if the task received none."""
    return int(blocks[0].column("target")[0].as_py()) if blocks else 0


def _binary(values: NDArray[np.generic], ends: NDArray[np.int64]) -> pa.Array:
    """Return values as binary cells, of which the i-th ends before value `ends[i]`."""
    offsets = np.zeros(len(ends) + 1, np.int32)
    if values.nbytes > np.iinfo(np.int32).max:
        raise ValueError(f"a batch of blocks holds at most 2 GiB, got {values.nbytes} bytes: use smaller Arrow batches")
    offsets[1:] = ends * values.dtype.itemsize

    return pa.BinaryArray.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
    )


def _values(name: str, column: pa.Array, dtype: type[np.generic]) -> NDArray[np.generic]:
    """Return the values of all cells of a binary column, end to end, without a copy."""
    width = OFFSETS.get(column.type)
    if width is None:
        raise SchemaError(f"blocks: column {name!r} should be {' or '.join(map(str, OFFSETS))}, got {column.type}")
    offsets_buffer, data = column.buffers()[1:3]
    if not len(column) or data is None:
        return np.empty(0, dtype)

    # The column may be a slice of a longer one: take its own cells only.
    ends = np.frombuffer(offsets_buffer, width)[column.offset : column.offset + len(column) + 1]
    start, size = int(ends[0]), int(ends[-1] - ends[0])
    count, rest = divmod(size, np.dtype(dtype).itemsize)
    if rest:
        raise SchemaError(f"blocks: column {name!r} holds {size} bytes, not a whole number of {np.dtype(dtype)}")
    return np.frombuffer(data, dtype, count=count, offset=start) if count else np.empty(0, dtype)
