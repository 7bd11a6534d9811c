"""A consumer of found records: SHARED, where the shingles of B occur, or may occur, in the documents of A."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.against.against_tables import SHARED
from nddup.against.find_hits import Hits, find_hits, find_possible
from nddup.against.shingle_table import open_known
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record, Reject
from nddup.reading.records import content_fingerprint
from nddup.scanning.found import Batches, Found
from nddup.scanning.rules import TextRule
from nddup.scanning.text_buffers import text_buffers
from nddup.table_types import TYPES, Table

CONTEXT = 120
"""Characters kept before and after a shared text, as context for readers."""


class Shingles(Protocol):
    """The shingles of B, in a form that can be sent to the workers."""

    def find(self, texts: Sequence[str], *, counts: bool) -> Hits:
        """Find where they occur in texts; `counts`: also count the distinct shingles of each text with a hit."""


@dataclass(frozen=True)
class SavedShingles:
    """Exactly the shingles of B, in a folder of this machine that `Known.save` wrote."""

    folder: str

    def find(self, texts: Sequence[str], *, counts: bool) -> Hits:
        """As `Shingles.find`."""
        return find_hits(*text_buffers(texts), open_known(self.folder), counts=counts)


@dataclass(frozen=True)
class FilteredShingles:
    """A filter that lets all shingles of B pass, and a few others; `words` are the bytes of `make_filter`."""

    words: bytes
    length: int

    def find(self, texts: Sequence[str], *, counts: bool) -> Hits:
        """As `Shingles.find`; the hits have keys instead of numbers."""
        return find_possible(*text_buffers(texts), np.frombuffer(self.words, np.uint64), self.length, counts=counts)


@dataclass(frozen=True)
class ShareRecords:
    """Makes a row for each document that has a shingle of B, for each reject, and for the count of each split.

    Args:
        shingles: the shingles of B.
        rule: which text of a record counts.
        counts: whether to count the distinct shingles of each document that has one of B.
    """

    shingles: Shingles
    rule: TextRule
    counts: bool
    table: ClassVar[Table] = SHARED

    def batches(self, found: Iterable[list[Found]], head: FileHead | None) -> Batches:
        """Yield SHARED, two batches per list of records."""
        del head
        kinds = [TYPES[column.type] for column in SHARED.columns]
        for some in found:
            texts = [self.rule.read(one.record).text if isinstance(one.record, Record) else "" for one in some]
            hits = self.shingles.find(texts, counts=self.counts)
            rows = [*_count(some), *_reject(some)]
            columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
            yield SHARED.batch(columns)
            yield _share(some, texts, hits)


def _count(some: list[Found]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each split, with its number of records."""
    for (source, split), records in Counter((one.source, one.split) for one in some).items():
        yield ("count", source, split, records, *[None] * 13)


def _reject(some: list[Found]) -> Iterator[tuple[object, ...]]:
    for one in some:
        if isinstance(one.record, Reject):
            told = one.record
            yield ("reject", one.source, one.split, one.seq, told.doc_id, told.reason, told.detail, told.excerpt,
                   *[None] * 9)  # fmt: skip


def _share(some: list[Found], texts: list[str], hits: Hits) -> pa.RecordBatch:
    """Return the documents with a hit, built column by column, as most of them have hundreds of hits."""
    rows = np.flatnonzero(np.diff(hits.offsets))
    held = [some[row] for row in rows.tolist()]
    offsets = np.append(hits.offsets[rows], len(hits.tokens)).astype(np.int32)  # skipped rows have no hits
    cuts = [
        cut_regions(texts[row], hits.begins[low:high], hits.ends[low:high])
        for row, (low, high) in zip(rows.tolist(), pairwise(offsets.tolist()), strict=True)
    ]
    columns = {
        "what": ["document"] * len(held),
        "source": [one.source for one in held],
        "split": [one.split for one in held],
        "seq": [one.seq for one in held],
        "doc_id": [one.record.doc_id for one in held],
        "content_fingerprint": [content_fingerprint(one.record) for one in held if isinstance(one.record, Record)],
        "n_shingles": hits.n_shingles[rows],
        "tokens": pa.ListArray.from_arrays(offsets, hits.tokens),
        "begins": pa.ListArray.from_arrays(offsets, hits.begins),
        "ends": pa.ListArray.from_arrays(offsets, hits.ends),
        "region_starts": [starts for starts, _ in cuts],
        "regions": [pieces for _, pieces in cuts],
    }
    if len(hits.keys):
        columns["keys"] = pa.ListArray.from_arrays(offsets, hits.keys.view(np.int64))
    else:
        columns["numbers"] = pa.ListArray.from_arrays(offsets, hits.numbers)
    made = [columns.get(column.name, [None] * len(held)) for column in SHARED.columns]
    kinds = [TYPES[column.type] for column in SHARED.columns]
    return SHARED.batch(
        [one if isinstance(one, pa.Array) else pa.array(one, kind) for one, kind in zip(made, kinds, strict=True)]
    )


def cut_regions(text: str, begins: NDArray[np.int32], ends: NDArray[np.int32]) -> tuple[list[int], list[str]]:
    """Cut the pieces of a text that hold its hits, with `CONTEXT` characters on each side; join pieces that touch.

    Args:
        text: the text of the document.
        begins: the first character of each hit, ascending; at least one.
        ends: the character after each hit, ascending.

    Returns:
        The first character of each piece, and the pieces.

    Example:
        >>> cut_regions("x" * 500 + "shared" + "y" * 500, np.array([500]), np.array([506]))[0]
        [380]
    """
    apart = np.flatnonzero(begins[1:] > ends[:-1] + 2 * CONTEXT)
    starts = np.maximum(np.append(begins[:1], begins[apart + 1]) - CONTEXT, 0).tolist()
    stops = (np.append(ends[apart], ends[-1:]) + CONTEXT).tolist()
    return starts, [text[low:high] for low, high in zip(starts, stops, strict=True)]
