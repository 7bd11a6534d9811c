"""The tables of `nddup.tables` as Spark schemas, the check of each stage's input, and how Spark's sources read files.
    reader_of    a source that takes paths literally and loses no file and no record in silence
    read_table   a table that Spark or the embedded engine wrote
    WHOLE        options of a text file that must not be cut into several
    map_lists    a task over rows whose lists may be null

Spark has settings by which a file that is missing or damaged counts as one without rows, and by which a file is cut
after so many rows. A cluster may set them for all its sessions. The options of a source take precedence over them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

from nddup import tables
from nddup.errors import SchemaError

_TYPES: dict[str, T.DataType] = {
    "long": T.LongType(),
    "int": T.IntegerType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "binary": T.BinaryType(),
    "boolean": T.BooleanType(),
    "array<long>": T.ArrayType(T.LongType()),
    "array<int>": T.ArrayType(T.IntegerType()),
    "array<string>": T.ArrayType(T.StringType()),
    "array<ledger>": from_arrow_type(tables.TYPES["array<ledger>"]),
}
"""The Spark type of each type of `nddup.tables.TYPES`."""

STRICT: Final = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""A file that is missing or damaged fails the task that reads it."""

LITERAL: Final = {"recursiveFileLookup": "true", "__globPaths__": "false"}
"""Folder names are no columns, and `[1]` in a name is part of the name."""

WHOLE: Final = {"compression": "none", "maxRecordsPerFile": "0"}
"""A task writes its text as one plain file for each partition value."""

LACKS: Final = "lacks"
"""Of a row that goes to a task: the sum of 2**i for each list i that is null."""

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def table(text: str) -> T.StructType:
    """Return a schema from `name type` pairs separated by commas, as in SQL. (Spark's own parser needs a session.)"""
    pairs = (column.split() for column in text.split(","))
    return T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in pairs])


def schema_of(declared: tables.Table) -> T.StructType:
    """Return the Spark schema of a table; the meaning of each column becomes its comment."""
    return T.StructType(
        [
            T.StructField(
                column.name, _TYPES[column.type], metadata={"comment": column.meaning} if column.meaning else {}
            )
            for column in declared.columns
        ]
    )


def local_table(spark: SparkSession, schema: T.StructType, rows: Sequence[Sequence[object]] = ()) -> DataFrame:
    """Return a small table of rows from the driver. It goes to the JVM as one Arrow batch, without a Python worker."""
    arrow = to_arrow_schema(schema)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, arrow, strict=True)]
    return frame_of_rows(spark, pa.Table.from_arrays(arrays, schema=arrow), schema)


def frame_of_rows(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> DataFrame:
    """Return the rows of an Arrow table as a DataFrame, without a job. Spark takes no table whose columns have no part.

    An empty table needs its schema: Spark would infer it from the rows.
    """
    return spark.createDataFrame(rows if rows.num_rows else rows.schema.empty_table(), schema)


def map_lists(rows: DataFrame, task: Task, declared: pa.Schema, schema: T.StructType) -> DataFrame:
    """Return what a task makes of rows with these columns, as `mapInArrow`, where lists may be null.

    For each row, Spark's writer of Arrow goes over all nulls before it in a batch, for each list that ends in them: a
    batch of 10,000 rows takes a second. So null lists are sent as empty ones, and made null again by the task.
    """
    return fill_lists(rows, declared).mapInArrow(partial(_with_nulls, task=task, lists=_lists_in(declared)), schema)


def fill_lists(rows: DataFrame, declared: pa.Schema) -> DataFrame:
    """Return rows with empty lists in place of null ones, and `LACKS`."""
    lists = _lists_in(declared)
    lacks = sum((F.isnull(name).cast("int") * (1 << at) for at, name in enumerate(lists)), F.lit(0))
    nothing = {name: F.array().cast(from_arrow_type(declared.field(name).type)) for name in lists}
    return rows.withColumns({name: F.coalesce(name, nothing[name]) for name in lists} | {LACKS: lacks})


def _lists_in(declared: pa.Schema) -> list[str]:
    return [field.name for field in declared if pa.types.is_list(field.type)]


def _with_nulls(batches: Iterable[pa.RecordBatch], *, task: Task, lists: Sequence[str]) -> Iterator[pa.RecordBatch]:
    return task(map(partial(put_nulls, lists=lists), batches))


def put_nulls(batch: pa.RecordBatch, *, lists: Sequence[str]) -> pa.RecordBatch:
    """Return a batch of `fill_lists` with the nulls that were there."""
    lacks = batch.column(LACKS)
    for at, name in enumerate(lists):
        column, place = batch.column(name), batch.schema.get_field_index(name)
        is_null = pc.not_equal(pc.bit_wise_and(lacks, 1 << at), 0)
        batch = batch.set_column(place, name, pc.if_else(is_null, pa.scalar(None, column.type), column))
    return batch.drop_columns([LACKS])


def require(table: DataFrame, declared: tables.Table, *, stage: str) -> None:
    """Check that a table has the columns that are declared, by name and type; other columns are allowed.

    Args:
        table: any DataFrame; only its schema is read, no Spark job runs.
        declared: the columns that the stage reads.
        stage: the stage's name, for the message.

    Raises:
        SchemaError: if a column is missing or has another type; it names the stage, the column and both types.
    """
    came = {field.name: field.dataType for field in table.schema.fields}
    for field in schema_of(declared).fields:
        if field.name not in came:
            raise SchemaError(f"{stage}: expected a column {field.name!r}, got {sorted(came)}")
        if came[field.name].simpleString() != field.dataType.simpleString():
            raise SchemaError(
                f"{stage}: column {field.name!r} should be {field.dataType.simpleString()},"
                f" got {came[field.name].simpleString()}"
            )


def reader_of(spark: SparkSession, source: str) -> DataFrameReader:
    """Return a reader of a Spark source: `text`, `binaryFile` or `parquet`.

    Paths are those that Hadoop's `Path` spells: without percent encoding.
    """
    return spark.read.format(source).options(**LITERAL, **STRICT)


def read_table(spark: SparkSession, path: str, schema: T.StructType) -> DataFrame:
    """Return the Parquet table in a folder, with this schema. No action."""
    return spark.read.options(__globPaths__="false", **STRICT).schema(schema).parquet(path)
