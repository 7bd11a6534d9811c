"""The listing of a folder by Hadoop's FileSystem, in a few calls to Java for each folder instead of ten for each file.

Java writes the result of `listStatus` as one JSON text. It reads the fields of the statuses, not their getters: the
getter of the owner would start a program for each file of a local disk. Statuses that cannot be written so are asked
one by one.

The heads of many small files, looked at by Spark tasks; only the findings come back to the driver.

Spark's `binaryFile` source gives a small file as one row; a task looks at it as the driver would, holding all of it.
Files that no task has seen are left to the caller: those that Spark skips or cannot read, and those that changed.
"""

import json
import pickle
import zlib
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.reading.formats import FileHead
from nddup.scanning.file_heads import RAW_HEAD_BYTES, Look, Looked, Seen, WholeContent
from nddup.scanning.found import Batches
from nddup.scanning.input_files import InputFile
from nddup.spark.schemas import table
from nddup.spark.sources import STRICT, reader_of


class Entry(NamedTuple):
    """A file or folder: its URI, its path in its file system, and what the file system says of it."""

    uri: str
    path: str
    is_folder: bool
    size: int
    modified: int
    """In milliseconds."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def list_folder(jvm: Any, system: Any, path: Any) -> list[Entry]:  # noqa: ANN401 - Java objects
    """List a folder, sorted by name; a file gives itself. Raises what Java raises if it is not there.

    Cost: two calls to Java; ten for each file on file systems with unusual statuses.
    """
    statuses = system.listStatus(path)
    try:
        found = [_of_fields(row) for row in json.loads(_mapper_of(jvm).writeValueAsString(statuses))]
    except (Py4JError, AttributeError, KeyError, TypeError, ValueError):
        found = [entry_of(status) for status in statuses]
    return sorted(found, key=lambda entry: entry.name)


@lru_cache(maxsize=1)
def _mapper_of(jvm: Any) -> Any:  # noqa: ANN401 - Java objects
    """Return the mapper that writes fields as JSON, made once for a session: looking up a Java class searches all jars.

    Raises:
        Py4JError, TypeError: in a Spark without the library Jackson.
    """
    jackson = jvm.com.fasterxml.jackson
    visible, of = jackson.annotation.JsonAutoDetect.Visibility, jackson.annotation.PropertyAccessor
    mapper = jackson.databind.ObjectMapper()
    mapper.setVisibility(of.ALL, visible.NONE).setVisibility(of.FIELD, visible.ANY)
    return mapper


def entry_of(status: Any) -> Entry:  # noqa: ANN401 - a Java object
    """Make an entry of a status by asking it for each value."""
    uri = status.getPath().toUri()
    size, modified = int(status.getLen()), int(status.getModificationTime())
    return Entry(str(uri.toString()), str(uri.getPath()), bool(status.isDirectory()), size, modified)


def _of_fields(row: dict[str, Any]) -> Entry:
    """Make an entry of the fields of a status; one of `viewfs` wraps that of another file system.

    Raises:
        KeyError, TypeError: if it has other fields.
    """
    uri = (row["modifiedPath"] if "modifiedPath" in row else row["path"])["uri"]
    facts = row.get("myFs", row)
    size, modified = int(facts["length"]), int(facts["modification_time"])
    return Entry(uri, unquote(urlsplit(uri).path), bool(facts["isdir"]), size, modified)


MOST_BYTES = RAW_HEAD_BYTES
"""Longest file that is read whole for its head: reading a longer one takes more time than the driver's calls for it."""

TASK_FILES = 256
"""Files inspected by one task: a fraction of a second of work."""

LEAST_FILES = 1000
"""Least files for a Spark job: the driver reads the heads of fewer in the time that the job takes."""


def look_in_folders(
    spark: SparkSession, folders: Sequence[str], files: Sequence[InputFile], look: Look
) -> dict[str, Seen]:
    """Return what `look` finds in small files in folders, by path; nothing if they are fewer than `LEAST_FILES`.

    Args:
        spark: the session.
        folders: URIs. All small files below them are read. The JVM lists the folders again.
        files: the files wanted.
        look: looks at a file. Its first argument opens the file, its second gives the path and the size.

    Returns:
        The findings, without the files that Spark skips, cannot read or finds with another size; those of no file where
        Spark cannot list the folders.

    Cost: one action, and one of Spark's own where it lists more than 32 folders. A few bytes a file come back.
    """
    sizes = {file.path: file.size for file in files if file.size <= MOST_BYTES}
    if not folders or len(sizes) < LEAST_FILES:
        return {}

    found = {file.path: look(WholeContent(b""), file) for file in files if not file.size}  # Spark reads none of them
    try:
        rows = _looked(spark, folders, look, tasks=-(-len(sizes) // TASK_FILES))
        for row in rows.collect():
            told = pickle.loads(zlib.decompress(row["told"]))  # noqa: S301 - this run's own tasks wrote it
            found |= {path: seen for path, size, seen in told if sizes.get(path) == size}
    except (PySparkException, Py4JJavaError):
        return {}  # the caller opens the files itself, and reports why any of them cannot be read
    return found


def _looked(spark: SparkSession, folders: Sequence[str], look: Look, *, tasks: int) -> DataFrame:
    """Look at the small files below some folders.

    Schema out:  told binary: a compressed pickle of a list of (path, size, Seen), for each batch of files
    """
    reader = reader_of(spark, "binaryFile").options(**dict.fromkeys(STRICT, "true"))  # the caller tells of such a file
    rows = reader.load([unquote(folder) for folder in folders]).where(F.col("length") <= MOST_BYTES)
    rows = rows.select(F.col("_metadata.file_path").alias("path"), "content").coalesce(tasks)
    return rows.mapInArrow(partial(_look_at_rows, look=look), table("told binary"))


# In a worker ---------------------------------------------------------------------------------------------------------


def _look_at_rows(batches: Batches, *, look: Look) -> Batches:
    """Look at the files of a task; equal heads are written once a batch."""
    for batch in batches:
        heads: dict[FileHead, FileHead] = {}
        told = []
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            data = content.as_py()
            seen = look(WholeContent(data), InputFile(path, unquote(path), len(data), 0))
            if isinstance(seen, Looked):
                seen = seen._replace(head=heads.setdefault(seen.head, seen.head))
            told.append((path, len(data), seen))
        yield pa.RecordBatch.from_pydict({"told": [zlib.compress(pickle.dumps(told), 1)]})
