"""Find the shingles that documents of A share with items of B, in a pass over A for each part of B."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from mimetypes import guess_type

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.against.join_parts import first_numbers, join_shared
from nddup.against.judge import Holders
from nddup.against.lists import flatten
from nddup.against.share_records import SavedShingles, ShareRecords
from nddup.local.columns import fingerprints_of
from nddup.local.reading.scan import in_collection_order
from nddup.local.reading.workers import Workers
from nddup.results.against.against_inputs import Items, Side, gather_rejects, require_few
from nddup.settings.scan_rules import limits_of, text_rule

TEXTLESS = frozenset({"no content", "deleted", "short"})
"""Reasons of rejects that hold no text to be compared."""

MEDIA = ("image/", "audio/", "video/", "font/", "text/css", "text/javascript", "application/javascript")
"""Beginnings of the types of files that hold no text of documents."""

OF_HIT = 60
"""Bytes of memory for each occurrence of a shingle of B in A."""


@dataclass(frozen=True)
class Shared:
    """The n documents of A that have a shingle of B.

    Attributes:
        rows: SHARED, n rows.
        ids: id of each document.
        sources: file of each document.
        holders: the documents in the form that `judge` takes.
        documents: number of all documents of A.
        rejects: REJECTED.
        is_all_read: whether no reject may hold a text.
    """

    rows: pa.Table
    ids: list[str]
    sources: list[str]
    holders: Holders
    documents: int
    rejects: pa.Table
    is_all_read: bool


Share = Callable[[Side, Items, bool], Sequence[pa.Table]]
"""Reads A; returns SHARED for each part of B. Last argument: whether to count the distinct shingles of documents."""


def share_here(workers: Workers) -> Share:
    """Make a `Share` with one pass over the files for each part of B; each worker holds the shingles of one part."""

    def share(side: Side, items: Items, counts: bool) -> Iterator[pa.Table]:  # noqa: FBT001 - as `Share`
        for part in items.parts:
            consumer = ShareRecords(SavedShingles(str(part.folder)), text_rule(side.config), counts)
            yield workers.scan(side.collection, consumer, limits_of(side.config))

    return lambda side, items, counts: list(share(side, items, counts))


def read_shared(side: Side, items: Items, workers: Workers, share: Share, *, counts: bool) -> Shared:
    """Find the shingles of B in the documents of A.

    Args:
        side: A.
        items: B.
        workers: give the memory limit.
        share: reads A.
        counts: whether to count the distinct shingles of the documents.

    Raises:
        ConfigError: if no document can be read.
        NddupError: if more records than `input.max_rejects` cannot be read, or a worker fails.
        NeedsSparkError: if the shared shingles may take more than `local.memory`.
    """
    passes = share(side, items, counts)
    rows = passes[0]  # the rejects and the records are the same in each pass
    found = [one.filter(pc.equal(one["what"], "document")) for one in passes]
    hits = sum(pc.sum(pc.list_value_length(one["numbers"])).as_py() or 0 for one in found)
    workers.memory.require(OF_HIT * hits, "what is shared")
    shared = in_collection_order(join_shared(found, first_numbers(items.tables)), side.collection)
    counted = rows.filter(pc.equal(rows["what"], "count"))
    bad = in_collection_order(rows.filter(pc.equal(rows["what"], "reject")), side.collection)

    before, n_records = _records_before(counted)
    rejects = gather_rejects("A", bad, _number(bad, before), np.ones(len(bad), np.bool_), side, rows)
    with_documents = _with_documents(counted, bad)
    require_few(side, n_records - len(bad), with_documents, rejects)

    sources = shared["source"].to_pylist()
    made = _number(shared, before).tolist()
    ids = [
        one if one is not None else f"{source}#{record}"
        for one, source, record in zip(shared["doc_id"].to_pylist(), sources, made, strict=True)
    ]
    return Shared(shared, ids, sources, _hold(shared, ids, sources, side), n_records - len(bad), rejects,
                  _is_all_read(rejects, with_documents, side))  # fmt: skip


def _hold(shared: pa.Table, ids: list[str], sources: list[str], side: Side) -> Holders:
    offsets, numbers = flatten(shared["numbers"])
    order = sorted(range(len(ids)), key=lambda row: (ids[row].encode(), sources[row].encode(), row))
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.arange(len(ids))
    places = {label: place for place, label in enumerate(side.parts)}
    groups = np.array([places[side.labels[source]] for source in sources], np.int64)
    contents = fingerprints_of(shared["content_fingerprint"])
    return Holders(offsets, numbers, contents, shared["n_shingles"].to_numpy().astype(np.int32), ranks, groups)


def _is_all_read(rejects: pa.Table, with_documents: pa.ChunkedArray, side: Side) -> bool:
    """Return whether no reject of A may hold a text.

    Records without text, among others that have one, hold none; nor do empty files, and those whose names are of
    images, sounds, films, fonts, styles and scripts.
    """
    sizes = {file.source: file.size for file in side.collection.listing.files}
    known = frozenset(with_documents.to_pylist())
    for source, reason in set(zip(rejects["source"].to_pylist(), rejects["reason"].to_pylist(), strict=True)):
        is_without_text = reason in TEXTLESS if source in known else not sizes.get(source) or _is_media(source)
        if not is_without_text:
            return False
    return True


def _is_media(name: str) -> bool:
    return str(guess_type(name)[0]).startswith(MEDIA)


def _with_documents(counted: pa.Table, bad: pa.Table) -> pa.ChunkedArray:
    """Return the sources with more records than rejects."""
    records = counted.group_by("source").aggregate([("seq", "sum")])
    rejects = {row["values"]: row["counts"] for row in pc.value_counts(bad["source"]).to_pylist()}
    told = zip(records["source"].to_pylist(), records["seq_sum"].to_pylist(), strict=True)
    return pa.chunked_array([pa.array([source for source, n in told if n > rejects.get(source, 0)], pa.string())])


def _records_before(counted: pa.Table) -> tuple[dict[tuple[str, int], int], int]:
    """Return the number of records of a source before each of its splits, and the number of all records."""
    sums = counted.group_by(["source", "split"]).aggregate([("seq", "sum")]).sort_by(
        [("source", "ascending"), ("split", "ascending")]
    )  # fmt: skip
    before: dict[tuple[str, int], int] = {}
    last, within, total = None, 0, 0
    for row in sums.to_pylist():
        within = within if row["source"] == last else 0
        before[row["source"], row["split"]] = within
        last, within, total = row["source"], within + row["seq_sum"], total + row["seq_sum"]
    return before, total


def _number(rows: pa.Table, before: dict[tuple[str, int], int]) -> NDArray[np.int64]:
    """Return the ordinal of each record in its source, from 1."""
    places = zip(*(rows[name].to_pylist() for name in ("source", "split", "seq")), strict=True)
    return np.array([before[source, split] + seq + 1 for source, split, seq in places], np.int64)
