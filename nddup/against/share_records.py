"""SHARED: where the shingles of B occur in the documents of A, and the consumers of found records that make it.

    ShareRecords         records of A          -> SHARED, or what a filter lets pass; columns of lists built from arrays
    ReadItems            records of B          -> READ_ITEMS, the texts of B
    verify_filter_hits   SHARED by a filter    -> SHARED without false hits (`find_hits` compares each)
    number_items         tables of the parts   -> the items as numbers of shingles
    join_shared          SHARED of each part   -> SHARED of all, one row per document

Where B is in parts, the shingles of each part are numbered, and looked up in A, separately.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.against.find_hits import Hits, find_hits, find_possible
from nddup.against.judge import Numbered
from nddup.against.shingle_table import Known, open_known
from nddup.errors import CapacityError
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record, Reject
from nddup.reading.records import content_fingerprint
from nddup.scanning.found import Batches, LocatedRecord, TextRule, text_buffers
from nddup.tables import TYPES, Table
from nddup.tables.features import READ_ITEMS, SHARED

CONTEXT = 120
"""Characters before and after a shared text, as context for readers."""


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
    ignore: tuple[str, ...] = ()

    def find(self, texts: Sequence[str], *, counts: bool) -> Hits:
        """As `Shingles.find`; the hits have keys instead of numbers."""
        words = np.frombuffer(self.words, np.uint64)
        return find_possible(*text_buffers(texts), words, self.length, counts=counts, ignore=self.ignore)


@dataclass(frozen=True)
class ShareRecords:
    """Makes a row for each document that has a shingle of B, for each reject, and for the count of each split.

    Args:
        rule: which text of a record counts.
        counts: whether to count the distinct shingles of each document that has one of B.
    """

    shingles: Shingles
    rule: TextRule
    counts: bool
    table: ClassVar[Table] = SHARED

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield SHARED, two batches per list of records."""
        del head
        kinds = [TYPES[column.type] for column in SHARED.columns]
        for records in lists:
            texts = [self.rule.read(one.record).text if isinstance(one.record, Record) else "" for one in records]
            hits = self.shingles.find(texts, counts=self.counts)
            rows = [*_count(records), *_reject(records)]
            columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
            yield SHARED.batch(columns)
            yield _share(records, texts, hits)


MOST_SHINGLES = (1 << 31) - 1
"""Shingles of all parts together: their numbers have 32 bits."""

DOCUMENTS = 1_000
"""Documents whose shingles are compared in one call."""


def _count(records: Sequence[LocatedRecord]) -> Iterator[tuple[object, ...]]:
    for (source, split), n in Counter((one.source, one.split) for one in records).items():
        yield ("count", source, split, n, *[None] * 13)


def _reject(records: Sequence[LocatedRecord]) -> Iterator[tuple[object, ...]]:
    for one in records:
        if isinstance(one.record, Reject):
            reject = one.record
            about = (reject.doc_id, reject.reason, reject.detail, reject.excerpt)
            yield ("reject", one.source, one.split, one.seq, *about, *[None] * 9)


def _share(records: Sequence[LocatedRecord], texts: list[str], hits: Hits) -> pa.RecordBatch:
    """Return the documents with a hit, built column by column, as most of them have hundreds of hits."""
    rows = np.flatnonzero(np.diff(hits.offsets))
    sharing = [records[row] for row in rows.tolist()]
    offsets = np.append(hits.offsets[rows], len(hits.tokens)).astype(np.int32)  # skipped rows have no hits
    cuts = [
        cut_regions(texts[row], hits.begins[low:high], hits.ends[low:high])
        for row, (low, high) in zip(rows.tolist(), pairwise(offsets.tolist()), strict=True)
    ]
    columns = {
        "what": ["document"] * len(sharing),
        "source": [one.source for one in sharing],
        "split": [one.split for one in sharing],
        "seq": [one.seq for one in sharing],
        "doc_id": [one.record.doc_id for one in sharing],
        "content_fingerprint": [content_fingerprint(one.record) for one in sharing if isinstance(one.record, Record)],
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
    made = [columns.get(column.name, [None] * len(sharing)) for column in SHARED.columns]
    kinds = [TYPES[column.type] for column in SHARED.columns]
    return SHARED.batch(
        [one if isinstance(one, pa.Array) else pa.array(one, kind) for one, kind in zip(made, kinds, strict=True)]
    )


def cut_regions(text: str, begins: NDArray[np.int32], ends: NDArray[np.int32]) -> tuple[list[int], list[str]]:
    """Cut the pieces of a text that hold its hits, with `CONTEXT` characters on each side; join pieces that touch.

    Args:
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


def flatten(column: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where each row of an `array<int>` column without nulls begins, (n + 1,), and the values."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    sizes = [np.zeros(1, np.int64), *(np.asarray(pc.list_value_length(chunk), np.int64) for chunk in chunks)]
    values = [np.empty(0, np.int32), *(np.asarray(chunk.flatten()) for chunk in chunks)]
    return np.cumsum(np.concatenate(sizes)), np.concatenate(values)


def list_column(offsets: NDArray[Any], values: NDArray[Any]) -> pa.ListArray:
    """Build the column that `flatten` takes apart; fewer than 2**31 values."""
    return pa.ListArray.from_arrays(offsets.astype(np.int32), values)


def first_numbers(parts: Sequence[Known]) -> list[int]:
    """Return the number of the first shingle of each part, then the total of all shingles.

    Raises:
        CapacityError: for more than `MOST_SHINGLES` shingles.
    """
    numbers = [0, *np.cumsum([len(known.keys) for known in parts], dtype=np.int64).tolist()]
    if numbers[-1] > MOST_SHINGLES:
        raise CapacityError(
            f"B has {numbers[-1]:,} shingles; `against` takes at most {MOST_SHINGLES:,}: give B in parts"
        )
    return numbers


def number_items(parts: Sequence[Known]) -> Numbered:
    """Number the items of all parts. A shingle of several parts has a number in each; the later ones are `repeated`.

    Shingles of two parts are the same if their fingerprints are, as in the count of a document's distinct shingles.
    """
    numbers = first_numbers(parts)
    if len(parts) == 1:
        return Numbered(parts[0].firsts, parts[0].numbers, np.zeros(numbers[-1], np.bool_))
    tokens = np.cumsum([0, *(len(known.numbers) for known in parts)])
    firsts = [known.firsts[:-1] + before for known, before in zip(parts, tokens[:-1], strict=True)]
    moved = [
        np.where(known.numbers >= 0, known.numbers + np.int32(before), -1).astype(np.int32)
        for known, before in zip(parts, numbers[:-1], strict=True)
    ]
    repeated = np.ones(numbers[-1], np.bool_)
    repeated[np.unique(np.concatenate([known.keys for known in parts]), return_index=True)[1]] = False
    return Numbered(np.concatenate([*firsts, tokens[-1:]]), np.concatenate(moved), repeated)


def join_shared(tables: Sequence[pa.Table], first: Sequence[int]) -> pa.Table:
    """Join the documents found for each part, one row per document.

    Returns:
        SHARED. The hits of a document are in the order of the parts; its pieces of text surround all its hits.

    Cost: a sort of the rows; none for one part.
    """
    if len(tables) == 1:
        return tables[0]
    moved = [_move(table, before) for table, before in zip(tables, first[:-1], strict=True)]
    rows = pa.concat_tables(moved).combine_chunks()
    source = np.asarray(pc.rank(rows["source"], tiebreaker="dense"))
    split, seq = rows["split"].to_numpy(), rows["seq"].to_numpy()
    rows = rows.take(pa.array(np.lexsort((seq, split, source))))  # stable: parts stay in their order
    places = [rows[name].to_numpy(zero_copy_only=False) for name in ("source", "split", "seq")]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = np.any([place[1:] != place[:-1] for place in places], axis=0)
    bounds = np.append(np.flatnonzero(is_first), len(rows))

    joined = rows.filter(pa.array(is_first))
    for name in ("tokens", "numbers", "begins", "ends"):
        offsets, values = flatten(rows[name])
        joined = _replace(joined, name, list_column(offsets[bounds], values))
    starts, regions = rows["region_starts"].to_pylist(), rows["regions"].to_pylist()
    pieces = [
        join_pieces(piece for row in range(low, high) for piece in zip(starts[row], regions[row], strict=True))
        for low, high in pairwise(bounds.tolist())
    ]
    joined = _replace(joined, "region_starts", pa.array([[start for start, _ in of_row] for of_row in pieces]))
    return _replace(joined, "regions", pa.array([[text for _, text in of_row] for of_row in pieces])).cast(SHARED.arrow)


def join_pieces(pieces: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Join pieces of one text that touch or overlap; each piece has the place of its first character.

    Example:
        >>> join_pieces([(10, "c"), (0, "one"), (2, "e two")])
        [(0, 'one two'), (10, 'c')]
    """
    joined: list[tuple[int, str]] = []
    for start, text in sorted(pieces):
        if joined and start <= (end := joined[-1][0] + len(joined[-1][1])):
            joined[-1] = (joined[-1][0], joined[-1][1] + text[end - start :])
        else:
            joined.append((start, text))
    return joined


def _move(table: pa.Table, before: int) -> pa.Table:
    offsets, numbers = flatten(table["numbers"])
    moved: NDArray[np.int32] = numbers + np.int32(before)
    return _replace(table, "numbers", list_column(offsets, moved))


def _replace(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


@dataclass(frozen=True)
class ReadItems:
    """Makes one row per record: a document with its text, or a reject with its reason."""

    rule: TextRule
    table: ClassVar[Table] = READ_ITEMS

    def batches(self, lists: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Yield READ_ITEMS, one batch per list of records."""
        del head
        for records in lists:
            rows = [self._row_of(one) for one in records]
            kinds = [TYPES[column.type] for column in READ_ITEMS.columns]
            yield READ_ITEMS.batch(
                [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
            )

    def _row_of(self, one: LocatedRecord) -> tuple[object, ...]:
        place, record = (one.source, one.split, one.seq), one.record
        if isinstance(record, Reject):
            return (*place, record.doc_id, record.reason, record.detail, record.excerpt, "")
        return (*place, record.doc_id, None, "", "", self.rule.read(record).text)


def verify_filter_hits(possible: pa.Table, known: Known) -> pa.Table:
    """Return the rows that a pass with the known shingles themselves would have given.

    Args:
        possible: SHARED, the documents of a pass with a filter that lets every known shingle pass.

    Returns:
        SHARED with numbers, without the places and documents that have no known shingle.

    Cost: a slice of text per possible shingle, and its look-up by `find_hits`.
    """
    settled = [_settle(batch, known) for batch in possible.to_batches(max_chunksize=DOCUMENTS)]
    return pa.Table.from_batches(settled, SHARED.arrow)


def _settle(batch: pa.RecordBatch, known: Known) -> pa.RecordBatch:
    offsets, tokens = flatten(batch["tokens"])
    begins, ends = flatten(batch["begins"])[1], flatten(batch["ends"])[1]
    starts, regions = batch["region_starts"].to_pylist(), batch["regions"].to_pylist()

    # For each shingle, the piece of its document's text that holds it.
    bounds = list(pairwise(offsets.tolist()))
    pieces = np.concatenate(
        [
            np.searchsorted(starts[row], begins[low:high], "right") - 1
            for row, (low, high) in enumerate(bounds)
        ] or [np.empty(0, np.int64)]
    )  # fmt: skip
    texts = [
        regions[row][piece][begin - starts[row][piece] : end - starts[row][piece]]
        for row, (low, high) in enumerate(bounds)
        for piece, begin, end in zip(
            pieces[low:high].tolist(), begins[low:high].tolist(), ends[low:high].tolist(), strict=True
        )
    ]
    hits = find_hits(*text_buffers(texts), known)  # each text is one shingle: it has one hit or none
    is_hit = np.diff(hits.offsets) > 0

    cuts = []
    for row, (low, high) in enumerate(bounds):
        made: tuple[list[int], list[str]] = ([], [])
        for piece in np.unique(pieces[low:high][is_hit[low:high]]).tolist():
            here = np.flatnonzero(is_hit[low:high] & (pieces[low:high] == piece)) + low
            first = starts[row][piece]
            cut = cut_regions(regions[row][piece], begins[here] - first, ends[here] - first)
            made[0].extend(start + first for start in cut[0])
            made[1].extend(cut[1])
        cuts.append(made)

    counts = np.append(0, np.cumsum(is_hit))[offsets].astype(np.int32)
    columns = {
        "tokens": list_column(counts, tokens[is_hit]),
        "numbers": list_column(counts, hits.numbers),
        "keys": pa.nulls(len(batch), SHARED.arrow.field("keys").type),
        "begins": list_column(counts, begins[is_hit]),
        "ends": list_column(counts, ends[is_hit]),
        "region_starts": pa.array([one[0] for one in cuts], SHARED.arrow.field("region_starts").type),
        "regions": pa.array([one[1] for one in cuts], SHARED.arrow.field("regions").type),
    }
    settled = SHARED.batch([columns.get(name, batch[name]) for name in SHARED.names])
    return settled.filter(pa.array(np.diff(counts) > 0))
