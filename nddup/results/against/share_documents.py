"""Find the shingles that documents of A share with items of B, in a pass over A for each part of B."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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
from nddup.results.against.against_inputs import Items, Side, gather_rejects, reasons, require_some
from nddup.run.limits import require_few_rejects
from nddup.settings.scan_rules import limits_of, text_rule

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
    """

    rows: pa.Table
    ids: list[str]
    sources: list[str]
    holders: Holders
    documents: int
    rejects: pa.Table


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
    require_few_rejects(n_records, len(rejects), reasons(rejects), side.config.input.max_rejects)

    require_some(side, n_records - len(bad), rejects)

    sources = shared["source"].to_pylist()
    made = _number(shared, before).tolist()
    ids = [
        one if one is not None else f"{source}#{record}"
        for one, source, record in zip(shared["doc_id"].to_pylist(), sources, made, strict=True)
    ]
    return Shared(shared, ids, sources, _hold(shared, ids, sources, side), n_records - len(bad), rejects)


def _hold(shared: pa.Table, ids: list[str], sources: list[str], side: Side) -> Holders:
    offsets, numbers = flatten(shared["numbers"])
    order = sorted(range(len(ids)), key=lambda row: (ids[row].encode(), sources[row].encode(), row))
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.arange(len(ids))
    places = {label: place for place, label in enumerate(side.parts)}
    groups = np.array([places[side.labels[source]] for source in sources], np.int64)
    contents = fingerprints_of(shared["content_fingerprint"])
    return Holders(offsets, numbers, contents, shared["n_shingles"].to_numpy().astype(np.int32), ranks, groups)


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
