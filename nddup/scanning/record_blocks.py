"""Records of a file that are read together, without an object for each that is plain.

    Block        the records of some lines of JSON, or of some rows of a table (`row_blocks`)
    Places       where some records were when the same files were read before
    divide       a block -> its plain texts, and the other records
    cut_lines    a stream -> the bytes of whole lines
    read_blocks  bytes of whole lines, of one file after another -> blocks; `read_chunks`: CHUNKS -> blocks

A block is also a list of its records: a consumer that knows nothing of blocks reads each as of any other format.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple, Self, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.reading.formats import FileHead
from nddup.reading.json_lines import PlainRecords, find_blank, find_ends, plain_keys, read_lines, starts_of, utf8_of
from nddup.reading.markup import may_begin_markup, may_hold_markup
from nddup.reading.outcomes import Record, Reject, excerpt
from nddup.reading.records import parse_record
from nddup.reading.streams import PIECE, StoppedError, Stream, excerpt_of, too_large
from nddup.scanning.found import LocatedRecord, TextRule, with_source
from nddup.scanning.input_files import columns_of
from nddup.tables import CHUNKS

BLOCK_BYTES = 4 << 20
"""Bytes of records that are read together."""


Bytes = bytes | memoryview


def are_blocks(head: FileHead) -> bool:
    """Return whether the records of files with this head come in blocks."""
    return head.format.files.is_columnar or plain_keys(head) is not None


class Block(Sequence[LocatedRecord]):
    """Records that are read on demand.

    Attributes:
        seq: (n,), the number of each record in its part.
        head: the head of the files.
    """

    seq: NDArray[np.int64]
    head: FileHead

    @property
    @abstractmethod
    def source(self) -> pa.StringArray:
        """The file of each record."""

    @property
    @abstractmethod
    def split(self) -> NDArray[np.int64]:
        """The part of its file, (n,)."""

    def __len__(self) -> int:
        """Return the number of records."""
        return self.seq.size

    @overload
    def __getitem__(self, at: int) -> LocatedRecord: ...
    @overload
    def __getitem__(self, at: slice) -> list[LocatedRecord]: ...
    def __getitem__(self, at: int | slice) -> LocatedRecord | list[LocatedRecord]:
        """Return a record; all are read once."""
        return self._located[at]

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return some of the records; the others are not read."""

    @abstractmethod
    def locate(self, row: int) -> LocatedRecord:
        """Read one record, as of any other format."""

    @property
    @abstractmethod
    def read(self) -> PlainRecords:
        """What was read of the records."""

    @cached_property
    def _located(self) -> list[LocatedRecord]:
        return [self.locate(row) for row in range(len(self))]

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """Where the records of each part of a file begin and end; those of a part lie together."""
        return list(pairwise([*np.flatnonzero(begin_parts(self.source, self.split)).tolist(), len(self)]))

    def among(self, places: "Places") -> Self:
        """Return the records at these places; the others are not read."""
        rows = [np.empty(0, np.int64)]
        for low, high in self.parts:
            part = self.source[low].as_py(), int(self.split[low])
            first, last = places.bounds.get(part, (0, 0))
            there = places.numbers[first:last] - self.seq[low]
            rows.append(low + there[np.searchsorted(there, 0) : np.searchsorted(there, high - low)])
        return self.take(np.concatenate(rows))

    def last_good(self) -> LocatedRecord | None:
        """Return the last record that is no reject; None for none."""
        records = (self.locate(row) for row in reversed(range(len(self))))
        return next((one for one in records if isinstance(one.record, Record)), None)

    def plain_rows(self, rule: TextRule) -> NDArray[np.bool_]:
        """Return which records have their plain text in `read`: those that are plain, without markup by this rule.

        None of a file whose folders have columns, if any are asked for.
        """
        declared = self.head.format.is_markup
        if rule.markup == "html" or (rule.markup == "auto" and declared):
            return np.zeros(len(self), np.bool_)
        is_plain = self.read.is_plain.copy()
        for low, high in self.parts if self.head.format.policy else ():
            is_plain[low:high] &= not columns_of(self.source[low].as_py())
        if rule.markup == "auto" and declared is None:
            data, bounds = self.texts
            tags = np.searchsorted(may_begin_markup(data), bounds)
            for row in np.flatnonzero(is_plain & (tags[1:] > tags[:-1])).tolist():
                is_plain[row] = not any(map(may_hold_markup, self.read.fields(row)))
        return is_plain

    @cached_property
    def texts(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The texts of the records one after another in UTF-8, and where each begins; of a plain record, its text."""
        return utf8_of(self.read.join("\n"))

    @cached_property
    def contents(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Likewise what `content_fingerprint` digests of each record."""
        return utf8_of(self.read.join("\0", end="\0"))

    def text(self, row: int) -> bytes:
        """Return the text of a plain record in UTF-8."""
        data, bounds = self.texts
        return data[bounds[row] : bounds[row + 1]].tobytes()


class Lines(NamedTuple):
    """Whole lines, one after another: line i ends at `ends[i]`, in the part `split[i]` of the file `source[i]`."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int64]
    source: pa.StringArray
    split: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> "Lines":
        """Return some of the lines; their bytes are copied."""
        starts, ends = starts_of(self.ends)[rows], self.ends[rows] + 1
        data = b"".join([self.data[low:high].data for low, high in zip(starts.tolist(), ends.tolist(), strict=True)])
        taken = self.source.take(pa.array(rows)), self.split[rows]
        return Lines(np.frombuffer(data, np.uint8), np.cumsum(ends - starts) - 1, *taken)


@dataclass(frozen=True, eq=False)
class LineBlock(Block):
    """The records of some lines.

    Attributes:
        lines: the lines; none is blank.
        seq: (n,), the number of each record in its part.
        head: the head of the files; its `plain_keys` are not None.
        max_record: the longest line that is no reject.
    """

    lines: Lines
    seq: NDArray[np.int64]
    head: FileHead
    max_record: int

    @property
    def source(self) -> pa.StringArray:
        """As `Block.source`."""
        return self.lines.source

    @property
    def split(self) -> NDArray[np.int64]:
        """As `Block.split`."""
        return self.lines.split

    def take(self, rows: NDArray[np.int64]) -> "LineBlock":
        """As `Block.take`."""
        return replace(self, lines=self.lines.take(rows), seq=self.seq[rows])

    @cached_property
    def read(self) -> PlainRecords:
        """As `Block.read`."""
        keys = plain_keys(self.head)
        if keys is None:
            raise ValueError("the records of such a file are not read by lines")
        return read_lines(self.lines.data, self.lines.ends, keys, self.max_record)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return starts_of(self.lines.ends)

    def locate(self, row: int) -> LocatedRecord:
        """Read one line, as of any other format."""
        lines = self.lines
        chunk = lines.data[self._starts[row] : lines.ends[row]].tobytes()
        place = lines.source[row].as_py(), int(lines.split[row]), int(self.seq[row])
        if len(chunk) > self.max_record:
            return LocatedRecord(*place, too_large(len(chunk), excerpt(chunk)), b"")
        record: Record | Reject
        if self.read.is_plain[row]:
            read = (self.read.ids, self.read.urls, *self.read.columns)
            doc_id, url, *policy = (column[row].as_py() for column in read)
            markup = self.head.format.is_markup
            record = Record(doc_id, url, self.read.fields(row), markup, policy=tuple(policy))
        else:
            record = parse_record(chunk, self.head, is_last=False) or Reject("malformed", "a blank line", "")
        return LocatedRecord(*place, with_source(record, place[0], self.head.format), chunk)

    def last_good(self) -> LocatedRecord | None:
        """As `Block.last_good`; None also if the lines were not read: nothing is known of them then."""
        return super().last_good() if "read" in vars(self) else None


def after_good(reject: Reject, last: LocatedRecord | None) -> Reject:
    """Return the reject of the rest of a file; if it is damaged, with the last good record that was read before it."""
    if reject.reason != "damaged" or last is None or not isinstance(last.record, Record):
        return reject
    return replace(reject, detail=f"{reject.detail}; the last good record is {last.seq + 1} ({last.record.doc_id})")


class Places(NamedTuple):
    """Where some records were when the same parts of files were read before.

    Attributes:
        bounds: for each part, by source and split, where its records are in `numbers`.
        numbers: the number of each record in its part, ascending in each part.
    """

    bounds: Mapping[tuple[str, int], tuple[int, int]]
    numbers: NDArray[np.int64]


class PlainTexts(NamedTuple):
    """The sources of the plain records of a block, their texts in UTF-8, and what their fingerprint digests."""

    sources: list[str]
    texts: list[bytes]
    contents: list[memoryview]


def divide(
    records: Sequence[LocatedRecord], rule: TextRule, places: Places | None = None
) -> tuple[PlainTexts, list[LocatedRecord]]:
    """Return the plain records of a list, and the others; of a block only those at `places`, if these are given."""
    if not isinstance(records, Block):
        return PlainTexts([], [], []), list(records)
    records = records if places is None else records.among(places)
    is_plain = records.plain_rows(rule)
    rows = np.flatnonzero(is_plain)
    sources = records.source.filter(pa.array(is_plain)).to_pylist()
    content, bounds = records.contents
    bounded = zip(bounds[rows].tolist(), bounds[rows + 1].tolist(), strict=True)
    contents = [content.data[low:high] for low, high in bounded]
    plain = PlainTexts(sources, [records.text(row) for row in rows.tolist()], contents)
    return plain, [records.locate(row) for row in np.flatnonzero(~is_plain).tolist()]


def begin_parts(source: pa.StringArray, split: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which records, in order, are of another part than the one before."""
    begins = np.ones(split.size, np.bool_)
    begins[1:] = (split[1:] != split[:-1]) | np.asarray(pc.not_equal(source[1:], source[:-1]))
    return begins


def cut_lines(stream: Stream, max_record: int) -> Iterator[Bytes | Reject]:  # noqa: C901 - one pass over the stream
    """Yield the bytes of a stream as whole lines, each with its end; a longer one than `max_record` as a reject.

    If the stream stops, the last item is a reject with the reason.

    Memory: `max_record` and two pieces.
    """
    pieces: list[bytes] = []  # of the line that is not read to its end
    passed, start = 0, ""  # of a line that is too long: its bytes that are not kept, and how it begins
    while True:
        try:
            piece = stream.read(PIECE)
        except StoppedError as error:
            yield Reject(error.reason, str(error), excerpt_of(b"".join(pieces)))
            return
        if not piece:
            break

        first, end = piece.find(b"\n") + 1, piece.rfind(b"\n") + 1
        if passed:
            passed += first - 1 if first else len(piece)
            if first:
                yield too_large(passed, start)
                passed = 0
        elif first:
            yield b"".join([*pieces, piece[:first]])
            pieces = []
        if end > first:
            yield memoryview(piece)[first:end]
        if not passed:
            pieces.append(piece[end:])
        if sum(map(len, pieces)) > max_record:
            whole = b"".join(pieces)
            passed, start, pieces = len(whole), excerpt(whole), []

    rest = b"".join(pieces)
    if passed:
        yield too_large(passed, start)
    elif rest:
        yield rest + b"\n"


class _Numbering:
    """Numbers the records of each part of a file from 0, whatever blocks they come in."""

    def __init__(self) -> None:
        self.part: tuple[str, int] | None = None
        self.count = 0

    def next(self, source: str, split: int) -> int:
        """Return the number of one more record."""
        if self.part != (source, split):
            self.part, self.count = (source, split), 0
        self.count += 1
        return self.count - 1

    def number(self, source: pa.StringArray, split: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of records in order; those of a part lie together."""
        if not split.size:
            return np.empty(0, np.int64)
        begins = begin_parts(source, split)
        rows = np.arange(split.size)
        firsts = np.where(begins, rows, -self.count)
        firsts[0] = -self.count if self.part == (source[0].as_py(), int(split[0])) else 0
        seq = rows - np.maximum.accumulate(firsts)
        self.part, self.count = (source[-1].as_py(), int(split[-1])), int(seq[-1]) + 1
        return seq


def read_blocks(
    pieces: Iterable[tuple[str, int, Bytes | Reject]], head: FileHead, max_record: int
) -> Iterator[Sequence[LocatedRecord]]:
    """Read lines; in order, and numbered by the parts of files.

    Args:
        pieces: source, split, and whole lines, as of `cut_lines`.
        head: of all files; its `plain_keys` are not None.
        max_record: a longer line is a reject.

    Yields:
        Blocks of at least BLOCK_BYTES, except for the last; and lists of one reject. A reject `damaged` names the last
        good record of its file.
    """
    numbering, lines, last_good = _Numbering(), list[tuple[str, int, Bytes]](), None
    for source, split, piece in chain(pieces, [("", 0, b"")]):
        if not isinstance(piece, Reject) and piece:
            lines.append((source, split, piece))
            if sum(len(line) for _, _, line in lines) < BLOCK_BYTES:
                continue
        if lines:
            block = _block_of(_lines_of(lines), head, max_record, numbering)
            lines = []
            if len(block):
                yield block
            last_good = block.last_good() or last_good
            del block
        if isinstance(piece, Reject):
            is_same = last_good is not None and last_good.source == source
            reject = after_good(piece, last_good if is_same else None)
            yield [LocatedRecord(source, split, numbering.next(source, split), reject, b"")]


def _lines_of(pieces: Sequence[tuple[str, int, Bytes]]) -> Lines:
    data = np.frombuffer(b"".join([piece for _, _, piece in pieces]), np.uint8)
    ends = find_ends(data)
    last = np.cumsum([len(piece) for _, _, piece in pieces])
    of_line = np.searchsorted(last, ends, "right")  # the piece that holds the end of a line
    source = pa.array([source for source, _, _ in pieces], pa.string()).take(pa.array(of_line))
    return Lines(data, ends, source, np.array([split for _, split, _ in pieces], np.int64)[of_line])


def _block_of(lines: Lines, head: FileHead, max_record: int, numbering: _Numbering) -> LineBlock:
    is_blank = find_blank(lines.data, lines.ends)
    if is_blank.any():
        lines = lines.take(np.flatnonzero(~is_blank))
    return LineBlock(lines, numbering.number(lines.source, lines.split), head, max_record)


def read_chunks(batches: Iterable[pa.RecordBatch], head: FileHead, max_record: int) -> Iterator[LineBlock]:
    """Read the lines that Spark cut.

    Args:
        batches: of CHUNKS, in file order within a split.
        head: as for `read_blocks`.
    """
    numbering = _Numbering()
    for batch in batches:
        value, source, split = (batch.column(name) for name in CHUNKS.names[:3])
        data, bounds = utf8_of(pc.binary_join_element_wise(value, b"", b"\n"))
        low = 0
        while low < len(value):
            high = max(low + 1, int(np.searchsorted(bounds, bounds[low] + BLOCK_BYTES, "right")) - 1)
            first, ends = bounds[low], bounds[low + 1 : high + 1] - bounds[low] - 1
            lines = Lines(data[first : bounds[high]], ends, source[low:high], split.to_numpy()[low:high])
            block = _block_of(lines, head, max_record, numbering)
            if len(block):
                yield block
            low = high
