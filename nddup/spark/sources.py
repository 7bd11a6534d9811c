"""How Spark's file sources read and write here, whatever the session's settings say.

    reader_of    a source that takes paths literally and loses no file and no record in silence
    read_table   a table that Spark or the embedded engine wrote
    WHOLE        options of a text file that must not be cut into several

Spark has settings by which a file that is missing or damaged counts as one without rows, and by which a file is cut
after so many rows. A cluster may set them for all its sessions. The options of a source take precedence over them.
"""

from typing import Final

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import types as T

STRICT: Final = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""A file that is missing or damaged fails the task that reads it."""

LITERAL: Final = {"recursiveFileLookup": "true", "__globPaths__": "false"}
"""Folder names are no columns, and `[1]` in a name is part of the name."""

WHOLE: Final = {"compression": "none", "maxRecordsPerFile": "0"}
"""A task writes its text as one plain file for each partition value."""


def reader_of(spark: SparkSession, source: str) -> DataFrameReader:
    """Return a reader of a Spark source: `text`, `binaryFile` or `parquet`.

    Paths are those that Hadoop's `Path` spells: without percent encoding.
    """
    return spark.read.format(source).options(**LITERAL, **STRICT)


def read_table(spark: SparkSession, path: str, schema: T.StructType) -> DataFrame:
    """Return the Parquet table in a folder, with this schema. No action."""
    return spark.read.options(__globPaths__="false", **STRICT).schema(schema).parquet(path)
