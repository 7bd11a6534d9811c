"""The files of a run written again by Spark: without the removed documents, cut, or with tags in every record.

files, VERDICTS --rewrite--> PIECES of the new files, which Spark's text source writes

Spark cannot write a file of bytes. Its text source writes rows, each followed by one byte. So the bytes of a file are
cut at occurrences of that byte, with which every file must end (`rewrite_file.end_of`). A page, a text
or mail may end otherwise: it gets the byte of a line end more, which is dropped when the file gets its name.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import NddupError
from nddup.reading.formats import FileHead
from nddup.reading.streams import PIECE, StoppedError
from nddup.rewriting.cut_records import Cutting
from nddup.rewriting.rewrite_file import COPIED, UNTAGGED, Rewritten, Stored, count_written, end_of, judge, rewrite_file
from nddup.rewriting.verdicts import NAMES, SPANS, RewriteError
from nddup.scanning.collection import Files, Group
from nddup.scanning.found import Batches, RecordLimits
from nddup.spark.reading import hadoop_files
from nddup.spark.reading.hadoop_files import open_row, rows_of
from nddup.spark.reading.scan import whole_files
from nddup.spark.schemas import local_table, table
from nddup.tables import FILES

PIECES = table("file int, place long, value binary, records long, whole long, plain long")
"""Bytes of the new files, without the byte at which they are cut; `place` numbers the pieces of a file from 1.
`records`, `whole` and `plain`, of `Rewritten`, are with the last piece of a file."""

MOST_TASKS = 10_000


class Rewriting(NamedTuple):
    """How files are rewritten: the arguments of `rewrite_file.judge`, and the limits under which they were read.

    With `cutting` the verdicts have `SPANS`, spelled as JSON.
    """

    is_tagging: bool
    may_go_on: bool
    limits: RecordLimits
    cutting: Cutting | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the verdicts that are read, beside `reason`."""
        if self.cutting is not None:
            return (NAMES[0], *SPANS.names)
        return NAMES if self.is_tagging else NAMES[:1]


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
    if head.format.kind in UNTAGGED:
        return Ending(b"\n", is_added=True, may_vanish=head.format.kind in COPIED)
    return Ending(end_of(head, compression))


def rewrite(spark: SparkSession, group: Group, verdicts: DataFrame, how: Rewriting, written: Written) -> DataFrame:
    """Return the pieces of the new files of a group, which share their compression.

    Args:
        spark: the session.
        group: the files.
        verdicts: VERDICTS of at least their records.
        how: how the files are rewritten.
        written: how the new files are written.

    Schema out:  PIECES, all of a file in one partition
    Shuffles:  the verdicts, and the bytes of remote files, on the source.    Actions:  none.
    """
    whole = whole_files(group, written.files, how.limits)
    content = hadoop_files.list_files(spark, whole).drop("task")
    content = content.withColumns({"what": F.lit(1), "place": F.monotonically_increasing_id()})

    sources = local_table(spark, table("source string"), [(one.source,) for one in whole])
    judged = verdicts.join(F.broadcast(sources), "source").withColumns({"what": F.lit(0), "place": F.col("record")})
    together = judged.unionByName(content, allowMissingColumns=True)
    in_order = together.repartition(min(len(whole), MOST_TASKS), "source").sortWithinPartitions(
        "source", "what", "place"
    )
    work = partial(_rewrite_files, head=group.head, how=how, end=written.end, numbers=dict(written.numbers))
    return in_order.mapInArrow(work, PIECES)


# In a worker ---------------------------------------------------------------------------------------------------------


def _rewrite_files(
    batches: Batches, *, head: FileHead, how: Rewriting, end: Ending, numbers: Mapping[str, int]
) -> Batches:
    """Return the pieces of the new files of a task. The verdicts on a file come before its bytes.

    Memory: per record of the file, five bytes where records are only left out, some 60 where it is tagged, and some 100
    for each span.

    Raises:
        NddupError: if a file cannot be opened, bytes are missing, or it cannot be rewritten.
    """
    held: dict[str, list[pa.RecordBatch]] = {}
    for row in rows_of(_split(batches, held, how.names)):
        source = row["source"]
        given = held.pop(source, [])
        rows = pa.Table.from_batches(given) if given else pa.table({name: [] for name in (*how.names, "reason")})
        cutting = None if how.cutting is None else replace(how.cutting, whole=0, plain=0)
        if cutting is not None:
            rows = _read_spans(rows)
        verdicts = judge(rows, head.format.kind, is_tagging=how.is_tagging, may_go_on=how.may_go_on, cutting=cutting)
        stored = Stored(row["compression"], row["most"], how.limits.max_record)
        cutter = _Cutter(numbers[source], end)
        try:
            with open_row(row, must_seek=head.format.kind == "parquet") as raw:
                for piece in rewrite_file(raw, head, stored, verdicts):
                    yield from cutter.add(piece)
            yield from cutter.finish(count_written(verdicts))
        except (RewriteError, StoppedError, OSError) as error:
            raise NddupError(f"{source}: {error}") from None
    if held:
        raise NddupError(f"{min(held)}: is missing or cannot be read; the input changed meanwhile")


def _read_spans(rows: pa.Table) -> pa.Table:
    """Return verdicts with the lists that were spelled as JSON."""
    for span in SPANS:
        texts = rows[span.name].to_pylist()
        lists = pa.array([None if text is None else json.loads(text) for text in texts], span.type)
        rows = rows.set_column(rows.column_names.index(span.name), span, pa.chunked_array([lists]))
    return rows


def _split(batches: Batches, held: dict[str, list[pa.RecordBatch]], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files; put the verdicts that come between them into `held`, by source: the fields `names`."""
    for batch in batches:
        if not batch.num_rows:
            continue
        ends = pc.run_end_encode(pc.binary_join_element_wise(
            batch.column("source"), pc.cast(batch.column("what"), pa.string()), "\0")).run_ends.to_pylist()  # fmt: skip
        for start, stop in zip([0, *ends[:-1]], ends, strict=True):
            run = batch.slice(start, stop - start)
            rows = pa.array(range(run.num_rows))  # taken, they no longer hold the whole batch in memory
            if run.column("what")[0].as_py() == 0:
                held.setdefault(run.column("source")[0].as_py(), []).append(run.select([*names, "reason"]).take(rows))
            else:
                yield run.select([name for name in FILES.names if name != "task"])


@dataclass
class _Cutter:
    """Cuts the bytes of a file at a given byte, which the writer puts after each piece."""

    file: int
    end: Ending
    place: int = 0
    held: bytes = b""

    def add(self, data: bytes) -> Batches:
        """Add bytes; yield a piece once there are enough, and always hold something back for the last."""
        self.held += data
        if len(self.held) >= PIECE and (at := self.held.rfind(self.end.byte, 0, len(self.held) - 1)) >= 0:
            yield self._row(self.held[:at])
            self.held = self.held[at + 1 :]

    def finish(self, counted: Rewritten) -> Batches:
        """Yield the last piece, with the counts of the file.

        Raises:
            RewriteError: if the file does not end with the byte.
        """
        if not self.held:
            return
        if not self.end.is_added and not self.held.endswith(self.end.byte):
            raise RewriteError("its end does not fit its format; the embedded engine can write it (--engine local)")
        yield self._row(self.held if self.end.is_added else self.held[:-1], counted)

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
