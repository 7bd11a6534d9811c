"""One pass over the documents of a run, for any consumer of `nddup.scanning`, and the files of the run written again.

    files      --scan, scan_counting-->    the consumer's table       documents of a collection
    DataFrame  --number_texts-->  TEXTS  --scan_texts-->  the same    documents given as a DataFrame
    FOUND_TEXTS, documents  --name_texts-->  STORED_TEXTS             texts for a reader, by document
    partial counts  --sum_terms-->  TERMS  --choose_terms-->  LEXICON   the arithmetic is `sketching.vocabulary`
    files, VERDICTS  --rewrite-->  PIECES  of the new files, which Spark's text source writes

Spark cuts a plain file into chunks, which many tasks read; any other file is read by one task, from its start. The
workers parse the records and pass them to the consumer; no record is shuffled.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nddup.errors import NddupError
from nddup.ground.columns import WHOLE
from nddup.reading.formats import FileHead
from nddup.reading.streams import PIECE, StoppedError
from nddup.reading.xml_cutting import MARK_BYTES
from nddup.rewriting.cut_records import Cutting
from nddup.rewriting.rewrite_file import NO_FIELDS, Rewritten, Stored, count_written, end_of, judge, rewrite_file
from nddup.rewriting.verdicts import NAMES, SPANS, RewriteError
from nddup.scanning.collection import Collection, Files, Group
from nddup.scanning.file_heads import is_hidden
from nddup.scanning.found import Batches, Consumer, LocatedRecord, RecordLimits
from nddup.scanning.local_files import read_texts
from nddup.scanning.read_again import Tokens
from nddup.scanning.sketch_records import parse_chunks
from nddup.scanning.whole_files import StoredFile, read_files
from nddup.spark import hadoop_files
from nddup.spark.hadoop_files import open_row, read_chunks, rows_of
from nddup.spark.heavy_keys import beside
from nddup.spark.schemas import local_table, map_lists, require, schema_of, table
from nddup.tables import CONTENTS, FILES, FOUND_TEXTS, LEXICON, STORED_TEXTS, TERMS, TEXTS, Table


@dataclass(frozen=True)
class BytesSeen:
    """The bytes read of a group that Spark cuts, to be compared with the sizes of its files after the scan."""

    group: Group
    observation: Observation
    max_record: int

    @property
    def is_short(self) -> bool:
        """Whether bytes may be missing: Spark skips a record that is too long without saying so.

        A separator is counted for each chunk, even if a file ends without one. Byte order marks are not counted; if
        there may be so many that they could hide a record, the answer is yes, and each file is checked.
        """
        files, separator = self.group.files, len(self.group.head.separator)
        expected = sum(entry.file.size + separator * (entry.open_end >= 0) for entry in files)
        came = int(self.observation.get.get("bytes") or 0)
        marks = MARK_BYTES * len(files)
        return marks >= self.max_record or expected - came > marks


PIECES = table("file int, place long, value binary, records long, whole long, plain long")
"""Bytes of the new files, without the byte at which they are cut; `place` numbers the pieces of a file from 1.
`records`, `whole` and `plain`, of `Rewritten`, are with the last piece of a file."""

LEAST_IN_FULL, MOST_IN_FULL = 1e-6, 1e10
"""Floats from the first to below the other are written by Arrow without an exponent."""

MOST_TASKS = 10_000


def scan(
    spark: SparkSession, collection: Collection, consumer: Consumer, *, files: Files, limits: RecordLimits
) -> DataFrame:
    """Scan all files of a collection; return the rows that a consumer makes of them.

    Args:
        collection: the files, and how each is read.
        consumer: makes the rows; it is sent to the workers.
        files: opens the few files that no Spark source reads: remote files with a hidden name.
        limits: the most bytes of a record, and of an expanded file.

    Schema out:  `consumer.table`; empty for a collection without files
    Shuffles:  those of `hadoop_files.list_files`, for the files that are read whole.    Actions:  none.
    """
    parts = [_scan_group(spark, group, consumer, files=files, limits=limits) for group in collection.groups]
    return _together(spark, parts, consumer)


def scan_counting(
    spark: SparkSession, collection: Collection, consumer: Consumer, *, files: Files, limits: RecordLimits
) -> tuple[DataFrame, list[BytesSeen]]:
    """Scan as `scan` does; also return the bytes read of each group that Spark cuts, known once an action has run."""
    seen = [BytesSeen(group, Observation(), limits.max_record) for group in collection.groups]
    parts = [
        _scan_group(spark, one.group, consumer, files=files, limits=limits, observation=one.observation) for one in seen
    ]
    return _together(spark, parts, consumer), [one for one in seen if not one.group.is_whole]


def number_texts(
    df: DataFrame,
    *,
    id: str,  # noqa: A002 - the caller's word
    text: str,
    title: str | None = None,
    read: Sequence[str] = (),
) -> DataFrame:
    """Sort the documents of a DataFrame by id, those of equal ids by text, and number them within their partition.

    Names of columns are literal: they may hold dots, blanks and backticks, and differ in case alone.

    Schema in:   any, with the columns `id`, `text` and perhaps `title`, cast to string; a list becomes `turns`; the
                 columns `read` become `policy`
    Schema out:  TEXTS; `source` is `dataframe`, `split` the partition of the sort
    Shuffles:  one, by ranges of id.    Actions:  Spark samples the range.
    """
    placed = df.toDF(*(f"column{at}" for at in range(len(df.columns))))
    place = df.columns.index(text)
    column, nothing = F.col(f"column{place}"), F.lit(None).cast("string")
    is_list = isinstance(df.schema.fields[place].dataType, T.ArrayType)
    spelled = [_spelled(F.col(f"column{at}"), field.dataType) for at, field in enumerate(df.schema.fields)]
    values = [spelled[df.columns.index(name)] for name in read]
    policy = F.array(*values) if read else F.lit(None).cast("array<string>")
    rows = placed.select(
        spelled[df.columns.index(id)].alias("doc_id"),
        nothing.alias("url"),
        (spelled[df.columns.index(title)] if title else nothing).alias("title"),
        (nothing if is_list else column.cast("string")).alias("text"),
        (F.to_json(column, {"ignoreNullFields": "false"}) if is_list else nothing).alias("turns"),
        policy.alias("policy"),
    ).sort(F.col("doc_id").asc_nulls_last(), "title", "text", "turns", "policy")
    return rows.select(
        "*",
        F.lit("dataframe").alias("source"),
        F.spark_partition_id().cast("long").alias("split"),
        F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1)).alias("seq"),
    )


def _spelled(column: Column, kind: T.DataType) -> Column:
    """Return a value as text, as of a table of Arrow: whole numbers without an exponent, times in UTC; NaN is null.

    The zone of the session would give two times of an autumn night one name.
    """
    if isinstance(kind, T.FloatType | T.DoubleType):
        is_whole = (F.abs(column) < WHOLE) & (F.floor(column) == column)
        digits = F.when(is_whole, column.cast("long").cast("string")).otherwise(_as_arrow_writes(column))
        return F.when(~F.isnan(column), digits)
    if not isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return column.cast("string")
    is_utc = isinstance(kind, T.TimestampType)
    if is_utc:
        seconds = (F.unix_micros(column).cast("decimal(20,0)") * F.lit(Decimal("0.000001"))).cast("decimal(18,6)")
        column = F.lit("1970-01-01").cast("timestamp_ntz") + F.make_dt_interval(secs=seconds)
    parts = F.split(column.cast("string"), "[.]")
    fraction = F.rpad(F.coalesce(F.try_element_at(parts, F.lit(2)), F.lit("")), 6, "0")
    return F.concat(parts[0], F.lit("."), fraction, F.lit("Z" if is_utc else ""))


def _as_arrow_writes(column: Column) -> Column:
    """Return a float as Arrow writes it: `0.0005`, `12345678.5`, `1e-7`, `1.5e+300`, `-inf`; Java has `5.0E-4`."""
    parts, size = F.split(column.cast("string"), "E"), F.abs(column)
    power = F.try_element_at(parts, F.lit(2))
    plain = F.regexp_replace(column.cast("string").cast("decimal(38,24)").cast("string"), "0+$", "")
    sign = F.when(F.startswith(power, F.lit("-")), F.lit("")).otherwise(F.lit("+"))
    signed = F.concat(F.regexp_replace(parts[0], "[.]0$", ""), F.lit("e"), sign, power)
    infinite = F.when(column > 0, F.lit("inf")).otherwise(F.lit("-inf"))
    is_short = (size >= F.lit(LEAST_IN_FULL)) & (size < F.lit(MOST_IN_FULL))
    is_infinite = size == F.lit(float("inf"))
    return F.when(is_infinite, infinite).when(power.isNull(), parts[0]).when(is_short, plain).otherwise(signed)


@dataclass(frozen=True)
class SentTokens:
    """Sends the tokens of the records that it knows, each once in a task."""

    tokens: Tokens
    nodes: Mapping[bytes, int]
    """The node of each `token_fingerprint`."""

    send: Callable[[list[int], pa.Array], Batches]
    """Makes rows of the table of nodes and their tokens."""

    table: Table

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield the rows of one task."""
        sent: set[int] = set()
        for batch in self.tokens.batches(lists, head):
            places: dict[int, int] = {}
            for place, mark in enumerate(batch.column("token_fingerprint").to_pylist()):
                node = self.nodes.get(mark)
                if node is not None and node not in sent:
                    places.setdefault(node, place)
            sent.update(places)
            yield from self.send(list(places), batch.column("tokens").take(pa.array(places.values(), pa.int64())))


def scan_texts(texts: DataFrame, consumer: Consumer) -> DataFrame:
    """Return the rows that a consumer makes of documents with a given text; a null id or text is a reject.

    Schema in:   TEXTS
    Schema out:  `consumer.table`
    Shuffles:  none.    Actions:  none.
    """
    require(texts, TEXTS, stage="sketch")
    return map_lists(texts, partial(_consume_texts, consumer=consumer), TEXTS.arrow, schema_of(consumer.table))


def sources_cut_short(spark: SparkSession, group: Group, *, max_record: int) -> DataFrame:
    """Return the sources of a group that have missing bytes, because Spark skipped a record that is too long.

    Schema out:  source string
    Shuffles:  one, of a row per file and task. The files are read again, in the JVM alone.    Actions:  none.
    """
    sizes = local_table(
        spark, table("source string, size long"), [(entry.file.source, entry.file.size) for entry in group.files]
    )
    chunks = _cut_group(spark, group, max_record=max_record)
    came = chunks.groupBy("source").agg(_bytes_of(group.head).alias("came"))
    is_short = F.col("size") - F.coalesce("came", F.lit(0)) > MARK_BYTES
    return sizes.join(came, "source", "left").where(is_short).select("source")


def key_contents(contents: DataFrame, offsets: DataFrame, splits: int) -> DataFrame:
    """Return the content of every record with its `doc_key`, for writing the kept documents.

    Schema in:   CONTENTS; source string, split long, before long (records before the split), `splits` rows
    Schema out:  doc_key long, content string (decoded, markup kept), line string (JSON lines: the original line)
    Shuffles:  none, because `offsets` is broadcast; but both if there are more than `heavy_keys.MOST_BROADCAST` splits.
    Actions:   none.
    """
    require(contents, CONTENTS, stage="keep")
    return contents.join(beside(offsets, splits), ["source", "split"]).select(
        (F.col("before") + F.col("seq")).alias("doc_key"), "content", "line"
    )


def _scan_group(  # noqa: PLR0913 - as `scan`
    spark: SparkSession,
    group: Group,
    consumer: Consumer,
    *,
    files: Files,
    limits: RecordLimits,
    observation: Observation | None = None,
) -> DataFrame:
    arguments: dict[str, Any] = {"head": group.head, "consumer": consumer, "max_record": limits.max_record}
    if group.is_whole:
        rows = hadoop_files.list_files(spark, whole_files(group, files))
        ends = {entry.file.source: entry.records for entry in group.files if entry.records is not None}
        return rows.mapInArrow(partial(_consume_files, ends=ends, **arguments), schema_of(consumer.table))

    rows = _cut_group(spark, group, max_record=limits.max_record)
    if observation is not None:
        rows = rows.observe(observation, _bytes_of(group.head).alias("bytes"))
    return rows.mapInArrow(partial(_consume_chunks, **arguments), schema_of(consumer.table))


def _cut_group(spark: SparkSession, group: Group, *, max_record: int) -> DataFrame:
    files = [(entry.file.path, entry.file.source, entry.open_end) for entry in group.files]
    return read_chunks(spark, files, group.head, max_record=max_record)


def whole_files(group: Group, files: Files) -> list[hadoop_files.WholeFile]:
    """Return the files of a group; those that no Spark source reads come with their content, if they are small."""
    listed = []
    for file, compression, _, _, most in group.files:
        is_passed_over = is_hidden(file.path) and hadoop_files.is_remote(file.path)
        is_small = file.size <= hadoop_files.FETCHED_BYTES
        content = files.read_part(file.path, 0, file.size) if is_passed_over and is_small else None
        listed.append(hadoop_files.WholeFile(file.path, file.source, compression, most, file.size, content))
    return listed


def _bytes_of(head: FileHead) -> Column:
    return F.sum(F.length("value") + len(head.separator))


def _together(spark: SparkSession, parts: Sequence[DataFrame], consumer: Consumer) -> DataFrame:
    return reduce(DataFrame.unionByName, parts) if parts else local_table(spark, schema_of(consumer.table))


# In a worker ---------------------------------------------------------------------------------------------------------


def _consume_chunks(batches: Batches, *, head: FileHead, consumer: Consumer, max_record: int) -> Batches:
    yield from consumer.batches(parse_chunks(batches, head, max_record), head)


def _consume_files(
    batches: Batches, *, head: FileHead, consumer: Consumer, max_record: int, ends: Mapping[str, int]
) -> Batches:
    """Consume files that are read whole; `ends` has the sources of which only the first records are read: how many."""
    must_seek = head.format.files.is_columnar
    files = (
        StoredFile(
            row["source"],
            row["compression"],
            row["most"],
            partial(open_row, row, must_seek=must_seek),
            ends.get(row["source"]),
        )
        for row in rows_of(batches)
    )
    yield from consumer.batches(read_files(files, head, max_record), head)


def _consume_texts(batches: Batches, *, consumer: Consumer) -> Batches:
    yield from consumer.batches(read_texts(batches), None)


def name_texts(texts: DataFrame, documents: DataFrame) -> DataFrame:
    """Return the texts with the ids of their documents.

    Before, the files are scanned with `nddup.scanning.read_again.Texts`, which explains why a record is recognised by
    its source and its content.

    Schema in:   FOUND_TEXTS; doc_id string, source string, content_fingerprint binary
    Schema out:  STORED_TEXTS, each document once
    Shuffles:  one of the texts; `documents` is broadcast if it is small.    Actions:  none.
    """
    require(texts, FOUND_TEXTS, stage="texts")
    joined = texts.join(documents, ["source", "content_fingerprint"])
    return joined.groupBy("doc_id").agg(F.min("text").alias("text")).select(*STORED_TEXTS.names)


def sum_terms(counted: DataFrame) -> DataFrame:
    """Sum the partial counts of each term.

    Schema in/out:  TERMS
    Shuffles:  one, of a row per term and task.    Actions:  none.
    """
    require(counted, TERMS, stage="lexicon")
    return counted.groupBy("term", "feature").agg(
        F.sum("occurrences").alias("occurrences"), F.sum("documents").alias("documents")
    )


def choose_terms(terms: DataFrame, *, least: int, most: int) -> DataFrame:
    """Return the terms with at least `least` and at most `most` occurrences.

    Schema in:   TERMS
    Schema out:  LEXICON
    Shuffles:  none.    Actions:  none.
    """
    require(terms, TERMS, stage="lexicon")
    return terms.where(F.col("occurrences").between(least, most)).select(*LEXICON.names)


class Rewriting(NamedTuple):
    """How files are rewritten: the arguments of `rewrite_file.judge`, and the limits under which they were read.

    With `cutting` the verdicts have `SPANS`, spelled as JSON.
    """

    is_tagging: bool
    may_go_on: bool
    limits: RecordLimits
    cutting: Cutting | None = None
    added: pa.Schema = NO_FIELDS
    """Other columns of the verdicts, which each document that stays gets."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the verdicts that are read, beside `reason`."""
        if self.cutting is not None:
            return (NAMES[0], *SPANS.names)
        return tuple(dict.fromkeys([*(NAMES if self.is_tagging else NAMES[:1]), *self.added.names]))


class Ending(NamedTuple):
    """How files end.

    Attributes:
        byte: the byte at which they are cut into pieces.
        is_added: whether it is put after the end of each; else each ends with it.
        may_vanish: whether a file of which nothing is left is not written.
    """

    byte: bytes
    is_added: bool = False
    may_vanish: bool = False


class Written(NamedTuple):
    """How files are written: what opens files that no Spark source reads, how they end, their numbers."""

    files: Files
    end: Ending
    numbers: Mapping[str, int]


def ending_of(head: FileHead, compression: str) -> Ending:
    """Return how files of a head and a compression end."""
    if head.format.files.untagged:
        return Ending(b"\n", is_added=True, may_vanish=head.format.files.is_copied)
    return Ending(end_of(head, compression), may_vanish=head.format.files.is_columnar)


def rewrite(
    spark: SparkSession, group: Group, verdicts: DataFrame, rewriting: Rewriting, written: Written
) -> DataFrame:
    """Return the pieces of the new files of a group, which share their compression.

    Spark cannot write a file of bytes. Its text source writes rows, each followed by one byte. So the bytes of a file
    are cut at occurrences of that byte, with which every file must end (`rewrite_file.end_of`). A page, a text or mail
    may end otherwise: it gets the byte of a line end more, which is dropped when the file gets its name.

    Schema out:  PIECES, all of a file in one partition
    Shuffles:  the verdicts, and the bytes of remote files, on the source.    Actions:  none.
    """
    whole = whole_files(group, written.files)
    content = hadoop_files.list_files(spark, whole).drop("task")
    content = content.withColumns({"what": F.lit(1), "place": F.monotonically_increasing_id()})

    sources = local_table(spark, table("source string"), [(one.source,) for one in whole])
    judged = verdicts.join(F.broadcast(sources), "source").withColumns({"what": F.lit(0), "place": F.col("record")})
    together = judged.unionByName(content, allowMissingColumns=True)
    in_order = together.repartition(min(len(whole), MOST_TASKS), "source").sortWithinPartitions(
        "source", "what", "place"
    )
    work = partial(_rewrite_files, head=group.head, rewriting=rewriting, end=written.end, numbers=dict(written.numbers))
    return in_order.mapInArrow(work, PIECES)


# In a worker ---------------------------------------------------------------------------------------------------------


def _rewrite_files(
    batches: Batches, *, head: FileHead, rewriting: Rewriting, end: Ending, numbers: Mapping[str, int]
) -> Batches:
    """Return the pieces of the new files of a task. The verdicts on a file come before its bytes.

    Memory: per record of the file, five bytes where records are only left out, some 60 where it is tagged, and some 100
    for each span.
    """
    waiting: dict[str, list[pa.RecordBatch]] = {}
    for row in rows_of(_split(batches, waiting, rewriting.names)):
        source = row["source"]
        given = waiting.pop(source, [])
        rows = pa.Table.from_batches(given) if given else pa.table({name: [] for name in (*rewriting.names, "reason")})
        cutting = None if rewriting.cutting is None else replace(rewriting.cutting, whole=0, plain=0)
        if cutting is not None:
            rows = _read_spans(rows)
        asked = {"is_tagging": rewriting.is_tagging, "may_go_on": rewriting.may_go_on, "added": rewriting.added}
        verdicts = judge(rows, head.format.kind, **asked, cutting=cutting)
        stored = Stored(row["compression"], row["most"], rewriting.limits.max_record)
        cutter = _Cutter(numbers[source], end)
        try:
            with open_row(row, must_seek=head.format.files.is_columnar) as raw:
                for piece in rewrite_file(raw, head, stored, verdicts):
                    yield from cutter.add(piece)
            yield from cutter.finish(count_written(verdicts))
        except (RewriteError, StoppedError, OSError) as error:
            raise NddupError(f"{source}: {error}") from None
    if waiting:
        raise NddupError(f"{min(waiting)}: is missing or cannot be read; the input changed meanwhile")


def _read_spans(rows: pa.Table) -> pa.Table:
    for span in SPANS:
        texts = rows[span.name].to_pylist()
        lists = pa.array([None if text is None else json.loads(text) for text in texts], span.type)
        rows = rows.set_column(rows.column_names.index(span.name), span, pa.chunked_array([lists]))
    return rows


def _split(
    batches: Batches, waiting: dict[str, list[pa.RecordBatch]], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files; put the verdicts between them into `waiting`, by source: the fields `names`."""
    for batch in batches:
        if not batch.num_rows:
            continue
        ends = pc.run_end_encode(pc.binary_join_element_wise(
            batch.column("source"), pc.cast(batch.column("what"), pa.string()), "\0")).run_ends.to_pylist()  # fmt: skip
        for start, stop in zip([0, *ends[:-1]], ends, strict=True):
            run = batch.slice(start, stop - start)
            rows = pa.array(range(run.num_rows))  # taken, they no longer hold the whole batch in memory
            if run.column("what")[0].as_py() == 0:
                waiting.setdefault(run.column("source")[0].as_py(), []).append(
                    run.select([*names, "reason"]).take(rows)
                )
            else:
                yield run.select([name for name in FILES.names if name != "task"])


@dataclass
class _Cutter:
    """Cuts the bytes of a file at a given byte, which the writer puts after each piece."""

    file: int
    end: Ending
    place: int = 0
    rest: bytes = b""

    def add(self, data: bytes) -> Batches:
        """Add bytes; yield a piece once there are enough, and always hold something back for the last."""
        self.rest += data
        if len(self.rest) >= PIECE and (at := self.rest.rfind(self.end.byte, 0, len(self.rest) - 1)) >= 0:
            yield self._row(self.rest[:at])
            self.rest = self.rest[at + 1 :]

    def finish(self, counted: Rewritten) -> Batches:
        """Yield the last piece, with the counts of the file.

        Raises:
            RewriteError: if the file does not end with the byte.
        """
        if not self.rest:
            return
        if not self.end.is_added and not self.rest.endswith(self.end.byte):
            raise RewriteError("its end does not fit its format; the embedded engine can write it (--engine local)")
        yield self._row(self.rest if self.end.is_added else self.rest[:-1], counted)

    def _row(self, value: bytes, counted: Rewritten | None = None) -> pa.RecordBatch:
        self.place += 1
        counts = [None] * len(Rewritten._fields) if counted is None else counted
        columns = [
            pa.array([self.file], pa.int32()),
            pa.array([self.place], pa.int64()),
            pa.array([value], pa.binary()),
            *(pa.array([count], pa.int64()) for count in counts),
        ]
        return pa.RecordBatch.from_arrays(columns, names=PIECES.fieldNames())
