"""The files of the input, written again by the workers: without the removed documents, cut, or with tags.

files, VERDICTS --rewrite--> a folder of files of the same names
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.embedded.workers import Workers
from nddup.errors import NddupError, OutputError
from nddup.ground.columns import one_chunk
from nddup.reading.formats import FileHead
from nddup.reading.streams import StoppedError
from nddup.rewriting.cut_records import Cutting
from nddup.rewriting.rewrite_file import NO_FIELDS, Rewritten, Stored, count_written, judge, rewrite_file
from nddup.rewriting.verdicts import NAMES, RewriteError, Verdicts
from nddup.scanning.collection import Collection, ListedFile
from nddup.scanning.found import Batches, Consumer, LocatedRecord, RecordLimits
from nddup.scanning.walk import open_stored
from nddup.storage.local_storage import LocalStorage, require_new, writing, written_apart
from nddup.tables import REWRITTEN, VERDICTS, Table

UNWRITTEN = "cannot be written"
"""How the problem of a file begins that is the output's, not the input's."""


def verdicts_of(documents: pa.Table, rejects: pa.Table) -> pa.Table:
    """Return VERDICTS, sorted by source and record, that only say which records stay.

    Args:
        documents: `source`, `record`, and `stays` of each document.
        rejects: `source`, `record` and `reason` of each reject.
    """
    stays = documents.select(["source", "record"]).append_column(NAMES[0], documents["stays"])
    both = pa.concat_tables([stays, rejects.select(["source", "record", "reason"])], promote_options="default")
    for name in VERDICTS.names:
        if name not in both.column_names:
            both = both.append_column(name, pa.nulls(len(both)))
    return in_order(both)


def in_order(verdicts: pa.Table, table: Table = VERDICTS) -> pa.Table:
    """Return VERDICTS, or a table like it with more columns, sorted by source and record."""
    whole = verdicts.select(table.names).cast(table.arrow)
    return whole.sort_by([("source", "ascending"), ("record", "ascending")])


def write_apart(rewriter: "Rewriter", output: str, workers: Workers) -> int:
    """Write files again into a new folder, which gets its name when it is complete; return the number of records.

    Raises:
        OutputError: if the folder exists or cannot be made.
        NddupError: as `Rewriter.write`.
    """
    require_new(LocalStorage(), (), output)
    with written_apart(output) as apart:
        return rewriter.write(apart, workers).records


class Rewriter(NamedTuple):
    """Writes the files of a collection again.

    Attributes:
        verdicts: VERDICTS of all their records.
        is_tagging: whether every record is written, with its tags; else only those that stay.
        is_first: whether files may go on after the last record that was read (`input.limit`).
        limits: those with which the files were read.
        cutting: how the texts were read, if the verdicts say what is cut of them.
        added: other columns of the verdicts, which each document that stays gets.
    """

    collection: Collection
    verdicts: pa.Table
    is_tagging: bool
    is_first: bool
    limits: RecordLimits
    cutting: Cutting | None = None
    added: pa.Schema = NO_FIELDS

    def write(self, folder: Path, workers: Workers) -> Rewritten:
        """Write the files into a folder, which is new or empty.

        Files of no known format are copied as they are, but not with `is_first`.

        Raises:
            OutputError: if a file cannot be written.
            NddupError: if one cannot be read as before, or has no place for the change.
        """
        folder.mkdir(parents=True, exist_ok=True)
        path = folder.parent / f"{folder.name}.arrow"
        try:
            with writing(folder):
                with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, self.verdicts.schema) as writer:
                    writer.write_table(self.verdicts)
                tasks = list(self._tasks(folder, str(path)))
                written = workers.run(tasks, Written(), self.limits)
                for file in () if self.is_first else self.collection.foreign:
                    _copy(file.path, place_of(folder, file.source))
        finally:
            with suppress(OSError):
                path.unlink()
        for row in written.filter(pc.is_valid(written["problem"])).sort_by("source").to_pylist():
            kind = OutputError if row["problem"].startswith(UNWRITTEN) else NddupError
            raise kind(f"{folder.name}/{row['source']}: {row['problem']}")
        return Rewritten(*(int(pc.sum(written[name]).as_py() or 0) for name in Rewritten._fields))

    def _tasks(self, folder: Path, path: str) -> Iterator["RewrittenFile"]:
        starts = _starts(one_chunk(self.verdicts["source"]))
        for group in self.collection.groups:
            for entry in group.files:
                rows = starts.get(entry.file.source, (0, 0))
                flags = self.is_tagging, self.is_first
                yield RewrittenFile(group.head, entry, folder, path, rows, *flags, self.cutting, self.added)


def place_of(folder: Path, source: str) -> Path:
    """Return where a file is written, and make its folders."""
    target = folder / source.replace("://", "/")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _copy(path: str, target: Path) -> None:
    with open_stored(path) as raw, target.open("wb") as copy:
        shutil.copyfileobj(raw, copy)


def _starts(sources: pa.StringArray) -> dict[str, tuple[int, int]]:
    """Return where the rows of each source begin and end; rows of one source must lie together."""
    if not len(sources):
        return {}
    runs = pc.run_end_encode(sources)
    ends = np.asarray(runs.run_ends)
    begins = np.concatenate([[0], ends[:-1]])
    names = runs.values.to_pylist()
    return {name: (int(low), int(high)) for name, low, high in zip(names, begins, ends, strict=True)}


@dataclass(frozen=True)
class Written:
    """The consumer that names the table of rewriting tasks: one row for each file written."""

    table: ClassVar[Table] = REWRITTEN

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Make no rows: a task that writes a file makes its own."""
        del lists, head
        yield from ()


@dataclass(frozen=True)
class RewrittenFile:
    """One file to be written again: a task of `Workers`.

    Attributes:
        head: the head of the file.
        verdicts: the path of an Arrow file with VERDICTS.
        rows: where the rows of this file begin and end in VERDICTS.
        is_tagging: as of `Rewriter`.
    """

    head: FileHead
    entry: ListedFile
    folder: Path
    verdicts: str
    rows: tuple[int, int]
    is_tagging: bool
    is_first: bool
    cutting: Cutting | None = None
    added: pa.Schema = NO_FIELDS

    @property
    def size(self) -> int:
        """Stored bytes."""
        return self.entry.file.size

    @property
    def names(self) -> list[str]:
        """Its path."""
        return [self.entry.file.path]

    def run(self, consumer: Consumer, limits: RecordLimits) -> Iterator[pa.RecordBatch]:
        """Write the file; yield one row: how many of its records stay, or what went wrong."""
        verdicts = self._judge()
        file, problem, is_full = self.entry.file, None, False
        stored = Stored(self.entry.compression, self.entry.most, limits.max_record)
        try:
            with open_stored(file.path) as raw:
                pieces = rewrite_file(raw, self.head, stored, verdicts)
                is_full = True
                self._write(pieces)
        except (RewriteError, StoppedError) as error:
            problem, is_full = str(error), False
        except OSError as error:
            problem = f"{UNWRITTEN if is_full else 'cannot be read'} ({error.strerror or error})"
        values = (file.source, *count_written(verdicts), problem)
        yield consumer.table.batch(
            [pa.array([value], kind) for value, kind in zip(values, REWRITTEN.arrow.types, strict=True)]
        )

    def _judge(self) -> Verdicts:
        low, high = self.rows
        cutting = None if self.cutting is None else replace(self.cutting, whole=0, plain=0)
        with pa.memory_map(self.verdicts) as source:
            rows = pa.ipc.open_file(source).read_all().slice(low, high - low)
            options = {"is_tagging": self.is_tagging, "may_go_on": self.is_first}
            return judge(rows, self.head.format.kind, **options, added=self.added, cutting=cutting)

    def _write(self, pieces: Iterator[bytes]) -> None:
        first = next(filter(None, pieces), b"")
        if not first and (self.head.format.files.is_copied or self.head.format.files.is_columnar):
            return  # of many files of one record each, most parts get none: making a file costs more than reading one
        with place_of(self.folder, self.entry.file.source).open("wb") as file:
            file.writelines(chain([first], pieces))
