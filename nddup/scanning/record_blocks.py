"""Records of a file that are read together, without an object for each that is plain.

    Block     the records of some lines (`line_blocks`), or of some rows of a table (`row_blocks`)
    Places    where some records were when the same files were read before
    divide    a block -> its plain texts, and the other records

A block is also a list of its records: a consumer that knows nothing of blocks reads each as of any other format.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Self, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.reading.formats import FileHead
from nddup.reading.inner_markup import may_begin_markup, may_hold_markup
from nddup.reading.json_lines import PlainRecords, plain_keys, utf8_of
from nddup.reading.outcomes import Record, Reject
from nddup.scanning.found import LocatedRecord, TextRule

BLOCK_BYTES = 4 << 20
"""Bytes of records that are read together."""


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
        found = (self.locate(row) for row in reversed(range(len(self))))
        return next((one for one in found if isinstance(one.record, Record)), None)

    def plain_rows(self, rule: TextRule) -> NDArray[np.bool_]:
        """Return which records have their plain text in `read`: those that are plain, without markup by this rule."""
        declared = self.head.format.is_markup
        if rule.markup == "html" or (rule.markup == "auto" and declared):
            return np.zeros(len(self), np.bool_)
        is_plain = self.read.is_plain.copy()
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
    """The sources of the plain records of a block, and their texts in UTF-8."""

    sources: list[str]
    texts: list[bytes]


def divide(
    some: Sequence[LocatedRecord], rule: TextRule, places: Places | None = None
) -> tuple[PlainTexts, list[LocatedRecord]]:
    """Return the plain records of a list, and the others; of a block only those at `places`, if these are given."""
    if not isinstance(some, Block):
        return PlainTexts([], []), list(some)
    some = some if places is None else some.among(places)
    is_plain = some.plain_rows(rule)
    rows = np.flatnonzero(is_plain).tolist()
    sources = some.source.filter(pa.array(is_plain)).to_pylist()
    return PlainTexts(sources, [some.text(row) for row in rows]), [
        some.locate(row) for row in np.flatnonzero(~is_plain).tolist()
    ]


def begin_parts(source: pa.StringArray, split: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which records, in order, are of another part than the one before."""
    begins = np.ones(split.size, np.bool_)
    begins[1:] = (split[1:] != split[:-1]) | np.asarray(pc.not_equal(source[1:], source[:-1]))
    return begins
