"""The tables of `nddup.tables` as Spark schemas, the check of each stage's input, and how Spark's sources read files.
    reader_of    a source that takes paths literally and loses no file and no record in silence
    read_table   a table that Spark or the embedded engine wrote
    WHOLE        options of a text file that must not be cut into several

Spark has settings by which a file that is missing or damaged counts as one without rows, and by which a file is cut
after so many rows. A cluster may set them for all its sessions. The options of a source take precedence over them.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
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
