"""How workers get the bytes of files: whole files from their start, chunks of files that many tasks read, lists.

    list_files    files                -> FILES, a partition for each task
    rows_of       FILES, in a worker   -> one row per file
    open_row      a row                -> the bytes of its file, as a stream
    read_chunks   files of one head    -> CHUNKS, the bytes between two separators, in the JVM alone
    read_list     a reference list     -> its entries; many tasks read it if it is not compressed

The worker opens a local file itself: its bytes never pass through the JVM. Spark reads any other file, with its own
connector, settings and credentials. So any file that Hadoop can open can be read, and Python gets no secrets.
"""

import io
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from itertools import chain, groupby
from tempfile import TemporaryFile, gettempdir
from typing import BinaryIO, NamedTuple, TypedDict, cast
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from nddup.errors import NddupError, first_line
from nddup.reading.formats import FileHead
from nddup.reading.reference_lists import Layout, entries_of, lines_of
from nddup.reading.streams import PIECE, Expanded, StoppedError
from nddup.reading.xml_cutting import Pieces
from nddup.scanning.file_heads import is_hidden, is_refused
from nddup.scanning.found import Batches
from nddup.scanning.walk import open_stored
from nddup.spark.heavy_keys import in_parts
from nddup.spark.schemas import local_table, reader_of, schema_of, table
from nddup.tables import CHUNKS, FILES

TASK_BYTES = 8 << 20
"""Stored bytes of small files that one task reads: a thousand pages."""

FETCHED_BYTES = 64 << 20
"""Maximum number of stored bytes of a file that Spark returns as one row: the JVM holds about three copies of such a
row."""

FEW_FILES = 32
"""Maximum number of files whose names are in the plan of a scan."""

PASSTHROUGH = {
    "io.compression.codecs": "org.apache.hadoop.io.compress.PassthroughCodec",
    "io.compress.passthrough.extension": "{}",
    "org.apache.hadoop.shaded.io.compress.passthrough.extension": "{}",  # its name in Spark's client jar
}
"""Options that set Hadoop's pass-through codec for an ending of names: it decodes nothing, and prevents splitting."""


class WholeFile(NamedTuple):
    """A file to be read from its start: `path` is a URI, `most` the bytes it may expand to, `content` None or known."""

    path: str
    source: str
    compression: str
    most: int
    size: int
    content: bytes | None = None


class FileRow(TypedDict):
    """A row of FILES in a worker. `content` is None if the worker opens the file, else the pieces of the file."""

    path: str
    source: str
    compression: str
    most: int
    size: int
    task: int
    content: Iterator[bytes] | None


LISTED_PAIRS = table("doc_a string, doc_b string, score double")

GROUP_LINES = table("members array<string>")
"""The entries of a pair list and of a group list, as in `nddup.reading.reference_lists`."""


def is_remote(path: str) -> bool:
    """Whether a path is on a file system other than the machine's own."""
    return urlsplit(path).scheme not in ("", "file")


def list_files(spark: SparkSession, files: Sequence[WholeFile]) -> DataFrame:
    """Return a table of files; remote files come with their content.

    Args:
        files: any files. No Spark source reads a file that is remote and hidden (`is_hidden`): its content must be
            given.

    Schema out:  FILES
    Shuffles:  one, of a row per file; for long remote files without an ending one more, of their bytes.
    Actions:   none.
    """
    packed, fetched = [], []
    pieces: dict[str, list[WholeFile]] = {}
    for file in files:
        if not is_remote(file.path) or is_hidden(file.path):
            packed.append(file)
        elif file.size <= FETCHED_BYTES:
            fetched.append(file)
        else:
            pieces.setdefault(_ending(file.path), []).append(file)

    parts = [pack_files(spark, packed)] if packed or not files else []
    parts += [_fetch_files(spark, part) for part in in_parts(fetched) if part]
    parts += [_fetch_pieces(spark, part, ending) for ending, same in pieces.items() for part in in_parts(same)]
    return reduce(DataFrame.unionByName, parts)


def pack_files(spark: SparkSession, files: Sequence[WholeFile]) -> DataFrame:
    """Return a table of files in which small files share a task, because a task costs more than a page.

    Schema out:  FILES
    Shuffles:  one, of a row per file.    Actions:  none.
    """
    rows, task, size = [], 0, 0
    for file in sorted(files, key=lambda file: (-file.size, file.source)):
        if size and size + file.size > TASK_BYTES:
            task, size = task + 1, 0
        rows.append((file.path, file.source, file.compression, file.most, file.size, task, file.content))
        size += file.size

    return local_table(spark, schema_of(FILES), rows).repartitionById(task + 1, F.col("task"))


def _fetch_files(spark: SparkSession, files: Sequence[WholeFile]) -> DataFrame:
    """Return FILES with their content, one row per file: the source `binaryFile` returns a file whole."""
    rows = _load(reader_of(spark, "binaryFile"), [file.path for file in files])
    return _described(spark, rows.select(F.col("_metadata.file_path").alias("path"), "content"), files)


def _fetch_pieces(spark: SparkSession, files: Sequence[WholeFile], ending: str) -> DataFrame:
    """Return FILES with their content, one row per line, in file order within a partition.

    Spark returns a short file as one row. Of its sources, only `text` returns a long file in several rows, cut at line
    ends. `Pieces` joins the lines again, and checks by the size of the file that none is missing.

    Hadoop chooses a codec by the ending of a name, and does not split a file that has a codec. A file without an ending
    is split: its lines are shuffled to one task and sorted.
    """
    reader = reader_of(spark, "text").option("lineSep", "\n")
    for key, value in PASSTHROUGH.items() if ending else ():
        reader = reader.option(key, value.format(ending))
    rows = _load(reader, [file.path for file in files]).select(
        F.col("value").cast("binary").alias("content"),
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_block_start").alias("split"),
    )

    if not ending:
        placed = rows.withColumn("place", F.monotonically_increasing_id())
        rows = placed.repartition(len(files), "path").sortWithinPartitions("path", "split", "place")
    return _described(spark, rows, files)


def _load(reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """Return the rows of files, given as URIs; Spark takes names as they are, and gives them back as URIs."""
    try:
        for path in paths:
            if not is_remote(path):
                open_stored(path).close()
        return reader.load([unquote(path) for path in paths])
    except OSError as error:
        raise NddupError(f"{error.filename}: cannot be read ({error.strerror})") from error
    except AnalysisException as error:
        raise NddupError(f"a file cannot be read any more: {first_line(error)}") from error


def _described(spark: SparkSession, rows: DataFrame, files: Sequence[WholeFile]) -> DataFrame:
    schema = table("path string, source string, compression string, most long, size long, task int")
    known = local_table(spark, schema, [(*file[:5], 0) for file in files])
    return rows.join(F.broadcast(known), "path").select(*FILES.names)


def _ending(path: str) -> str:
    """Return the ending of a name from its last point, in lower case; empty unless it is of letters, digits, _ or -."""
    match = re.search(r"[^/](\.[a-z0-9_-]+)$", unquote(path).lower())
    return match[1] if match else ""


# In a worker ---------------------------------------------------------------------------------------------------------


def rows_of(batches: Batches) -> Iterator[FileRow]:
    """Return the files of a task, one row each.

    The pieces of a file are the bytes between line ends; lines that came in one batch are one piece. Pieces not yet
    taken when the next row is requested are skipped.
    """
    runs = (run for batch in batches for run in _runs(batch))
    for _, same in groupby(runs, key=lambda run: run[0]["path"]):
        row, piece = next(same)
        rest = (more for _, more in same if more is not None)  # noqa: B031 - taken once
        yield {**row, "content": None if piece is None else chain([piece], rest)}


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[FileRow, bytes | None]]:
    if not batch.num_rows:
        return

    content = batch.column("content")
    ends = pc.run_end_encode(batch.column("path")).run_ends.to_pylist()
    starts = [0, *ends[:-1]]
    rows = batch.select([name for name in batch.schema.names if name != "content"]).take(pa.array(starts)).to_pylist()

    for row, start, end in zip(rows, starts, ends, strict=True):
        lines = content.slice(start, end - start)
        if end - start > 1:
            lines = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, end - start], pa.int32()), lines), b"\n")
        yield cast("FileRow", row), lines[0].as_py()


def open_row(row: FileRow, *, must_seek: bool = False) -> BinaryIO:
    """Open the stored bytes of the file of a row of `rows_of`, from its start.

    Args:
        row: can be opened once, before the next row is requested.
        must_seek: whether the stream must be able to seek, as Parquet requires; a file that came in pieces is then
            written to the worker's disk first.

    Raises:
        OSError: if the file cannot be opened.
        NddupError: as `in_one_place`.
        StoppedError: with `must_seek`, if bytes are missing; otherwise reading the stream raises it.
    """
    content = row["content"]
    if content is None:
        return open_uri(row["path"])

    first = next(content)
    if len(first) == row["size"]:
        return io.BytesIO(first)
    pieces: BinaryIO = Pieces(chain([first], content), row["size"])  # type: ignore[assignment]
    return in_one_place(pieces) if must_seek else pieces


def in_one_place(raw: BinaryIO) -> BinaryIO:
    """Copy a stream to an unnamed temporary file on the worker's disk, which can seek.

    Raises:
        StoppedError: if bytes are missing.
        NddupError: if the disk cannot be written, as it is full: that is no fault of the file.
    """
    disk = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or gettempdir()  # Spark sets it for its workers
    try:
        written = TemporaryFile(dir=disk)  # noqa: SIM115 - the caller closes it
        try:
            with raw:
                shutil.copyfileobj(raw, written, PIECE)
            written.seek(0)
        except BaseException:
            written.close()
            raise
    except OSError as error:  # `raw` is in memory
        raise NddupError(f"{disk}, a disk of Spark's workers: cannot be written ({error.strerror or error})") from error
    return written


def open_uri(uri: str) -> BinaryIO:
    """Open the stored bytes of a local file, given as a URI.

    Raises:
        OSError: if it cannot be opened, or is remote.
    """
    if is_remote(uri):  # a hidden file that is too long to be passed as content
        raise OSError(f"{uri}: Spark skips names that begin with _ or a point; rename the file")
    return open_stored(uri)


def read_chunks(
    spark: SparkSession, files: Sequence[tuple[str, str, int]], head: FileHead, *, max_record: int
) -> DataFrame:
    """Return the chunks of files that share a head.

    Spark's text source cuts at the separator; its strings are cast to binary, so that any encoding is kept. The
    separator of a file has been detected from its head (`nddup.scanning.file_heads`); files with equal heads are read
    together.

    Args:
        files: (path as a Hadoop URI, source, open end as `streams.find_open_end` gives) of each; paths are literal, and
            `nddup.scanning.file_heads.can_cut` holds for each.
        max_record: Spark skips a chunk that is longer by more than a separator, and never holds it in memory. The sum
            of the lengths then falls short of the file's size.

    Schema out:  CHUNKS, in file order within a split; the bytes after the last separator of a file are a chunk too.
    Shuffles:  none; more than `FEW_FILES` are broadcast, in parts where they are many (`heavy_keys`).
    Actions:  none.
    """
    parts = [_read_part(spark, part, head, max_record) for part in in_parts(files)]
    return reduce(DataFrame.unionByName, parts)


def _read_part(
    spark: SparkSession, files: Sequence[tuple[str, str, int]], head: FileHead, max_record: int
) -> DataFrame:
    """Read the chunks of files that are broadcast together."""
    longest = str(max_record + len(head.separator) + 2)
    reader = reader_of(spark, "text").option("lineSep", head.separator_text)
    reader = reader.option("mapreduce.input.linerecordreader.line.maxlength", longest)
    if head.encoding.startswith("utf-16"):
        reader = reader.option("encoding", head.encoding.replace("utf-16-", "UTF-16").upper())

    rows = _load(reader, [path for path, *_ in files]).select(
        F.col("value").cast("binary").alias("value"),
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_block_start").alias("split"),
        F.col("_metadata.file_block_length").alias("length"),
    )

    in_split = F.col("open_end") - F.col("split")
    chunks = _with_known(spark, rows, files).withColumn("ends_open", (in_split >= 0) & (in_split < F.col("length")))
    return chunks.select(*CHUNKS.names)


def _with_known(spark: SparkSession, rows: DataFrame, files: Sequence[tuple[str, str, int]]) -> DataFrame:
    """Add source and open end by path; those of few files are in the plan, because a broadcast is a job of its own."""
    if len(files) > FEW_FILES:
        known = local_table(spark, table("path string, source string, open_end long"), files)
        return rows.join(F.broadcast(known), "path")
    places = {name: [F.lit(value) for file in files for value in (file[0], file[at])]
              for at, name in enumerate(("source", "open_end"), 1)}  # fmt: skip
    return rows.withColumns({name: F.create_map(*pairs)[F.col("path")] for name, pairs in places.items()})


def read_list(spark: SparkSession, path: str, layout: Layout, *, compression: str, size: int) -> DataFrame:
    """Read the entries of a list. Many tasks read a plain file, one task a compressed file.

    Args:
        path: the file as a Hadoop URI, taken literally.
        compression: as `compression_of` gives; empty for a plain file.
        size: stored bytes of the file.

    Schema out:  doc_a string, doc_b string, score double; or set_id long, doc_id string: save these, because the
        numbers depend on the partitions
    Shuffles:  none.    Actions:  none.

    Raises:
        NddupError: in the task, if a compressed file is damaged.
    """
    if compression or is_refused(path):
        lines, read = list_files(spark, [WholeFile(path, path, compression, 0, size)]), _read_compressed
    else:
        source = reader_of(spark, "text").load([unquote(path)])
        lines, read = source.select(F.col("value").cast("binary").alias("value")), _read_plain

    if layout.kind == "pairs":
        return lines.mapInArrow(partial(read, layout=layout), LISTED_PAIRS)
    groups = lines.mapInArrow(partial(read, layout=layout), GROUP_LINES)
    numbered = groups.withColumn("set_id", F.monotonically_increasing_id())
    return numbered.select("set_id", F.explode_outer("members").alias("doc_id"))


def _read_plain(batches: Batches, *, layout: Layout) -> Batches:
    for batch in batches:
        lines = (value.decode("utf-8", "replace") for value in batch.column("value").to_pylist() if value)
        yield from entries_of(lines, layout)


def _read_compressed(batches: Batches, *, layout: Layout) -> Batches:
    for row in rows_of(batches):
        try:
            with open_row(row) as raw:
                stream = Expanded(raw, row["compression"])
                yield from entries_of(lines_of(iter(stream.read, b"")), layout)
        except StoppedError as error:
            raise NddupError(f"{row['path']}: {error.reason}: {error}") from error
