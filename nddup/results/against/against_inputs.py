"""The two collections of `nddup against`: the items of B with their shingles, and what the documents of A share."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.against.against_tables import REJECTED
from nddup.against.judge import Holders
from nddup.against.read_items import ReadItems
from nddup.against.share_records import ShareRecords
from nddup.against.shingle_table import Known, make_known
from nddup.errors import ConfigError
from nddup.local.columns import fingerprints_of
from nddup.local.reading.read_records import list_silent
from nddup.local.reading.scan import in_collection_order
from nddup.local.reading.workers import Workers
from nddup.run.inputs_found import find_inputs
from nddup.run.limits import require_few_rejects, require_readable
from nddup.scanning.collection import Collection
from nddup.scanning.local_paths import local_path
from nddup.scanning.text_buffers import text_buffers
from nddup.settings.scan_rules import limits_of, text_rule
from nddup.settings.schema import Config
from nddup.storage.local_storage import LocalStorage

By = Literal["source", "folder"]


@dataclass(frozen=True)
class Side:
    """One of the two collections.

    Attributes:
        path: as it was given.
        collection: its files.
        config: how they are read.
        labels: source -> the part of the matrix that it belongs to.
    """

    path: str
    collection: Collection
    config: Config
    labels: dict[str, str]

    @property
    def parts(self) -> list[str]:
        """The labels, each once, in their order."""
        return sorted(set(self.labels.values()))


@dataclass(frozen=True)
class Items:
    """The m documents of B.

    Attributes:
        ids: unique; `source#record` where a record has none, or where an earlier one has the same.
        sources: the file of each.
        texts: the text of each.
        known: their shingles.
        rejects: REJECTED.
        renamed: how many ids an earlier item had.
    """

    ids: list[str]
    sources: list[str]
    texts: list[str]
    known: Known
    rejects: pa.Table
    renamed: int


@dataclass(frozen=True)
class Shared:
    """The n documents of A that have a shingle of B.

    Attributes:
        rows: SHARED, n rows.
        ids: of each.
        sources: of each.
        holders: what `judge` takes.
        documents: how many documents A has.
        rejects: REJECTED.
    """

    rows: pa.Table
    ids: list[str]
    sources: list[str]
    holders: Holders
    documents: int
    rejects: pa.Table


def find_side(path: str, config: Config, by: By) -> Side:
    """The files of a collection.

    Raises:
        ConfigError: if there is no such file or folder, or none that can be read.
        NddupError: if more files than `input.max_unreadable` cannot be opened.
    """
    found = find_inputs(LocalStorage(), [path], config)
    require_readable(found.unread, config.input.max_unreadable)
    is_folder = Path(local_path(path)).is_dir()
    labels = {
        file.source: _label(path, file.source, is_folder=is_folder, by=by) for file in found.listing.files
    }  # fmt: skip
    return Side(path, found, config, labels)


def _label(path: str, source: str, *, is_folder: bool, by: By) -> str:
    if by == "source":
        return source
    return posixpath.join(path, posixpath.dirname(source)).rstrip("/") if is_folder else path


def read_items(side: Side, length: int, workers: Workers) -> Items:
    """The items and their shingles.

    Raises:
        ConfigError: if no document can be read.
        NddupError: if more records than `input.max_rejects` cannot be read.
        CapacityError: for more than 2 GB of text.
    """
    rows = in_collection_order(
        workers.scan(side.collection, ReadItems(text_rule(side.config)), limits_of(side.config)), side.collection
    )
    records = _number_in_source(rows["source"].to_pylist())
    is_good = pc.is_null(rows["reason"])
    rejects = _gather_rejects("B", rows, records, ~is_good.to_numpy(), side)
    require_few_rejects(len(rows), len(rejects), _reasons(rejects), side.config.input.max_rejects)

    _require_some(side, len(rows) - int(pc.sum(pc.invert(is_good)).as_py() or 0), rejects)

    good = rows.filter(is_good)
    sources, texts = good["source"].to_pylist(), good["text"].to_pylist()
    ids, renamed = _distinct(good["doc_id"].to_pylist(), sources, records[is_good.to_numpy()].tolist())
    workers.memory.require(40 * sum(map(len, texts)), f"the shingles of the {len(texts):,} items")
    return Items(ids, sources, texts, make_known(*text_buffers(texts), length), rejects, renamed)


def read_shared(side: Side, known: Path, workers: Workers, *, counts: bool) -> Shared:
    """Where the shingles of B stand in A: one pass over its files.

    Args:
        side: A.
        known: folder of the shingles of B.
        workers: to read with.
        counts: count the distinct shingles of the documents.

    Raises:
        ConfigError: if no document can be read.
        NddupError: if more records than `input.max_rejects` cannot be read, or a worker fails.
        NeedsSparkError: if what is shared may take more than `local.memory`.
    """
    consumer = ShareRecords(str(known), text_rule(side.config), counts)
    rows = workers.scan(side.collection, consumer, limits_of(side.config))
    counted = rows.filter(pc.equal(rows["what"], "count"))
    shared = in_collection_order(rows.filter(pc.equal(rows["what"], "document")), side.collection)
    bad = in_collection_order(rows.filter(pc.equal(rows["what"], "reject")), side.collection)

    before, n_records = _records_before(counted)
    rejects = _gather_rejects("A", bad, _number(bad, before), np.ones(len(bad), np.bool_), side, rows)
    require_few_rejects(n_records, len(rejects), _reasons(rejects), side.config.input.max_rejects)

    _require_some(side, n_records - len(bad), rejects)

    sources = shared["source"].to_pylist()
    made = _number(shared, before).tolist()
    ids = [
        one if one is not None else f"{source}#{record}"
        for one, source, record in zip(shared["doc_id"].to_pylist(), sources, made, strict=True)
    ]
    workers.memory.require(60 * pc.sum(pc.list_value_length(shared["numbers"])).as_py() if ids else 0, "what is shared")
    return Shared(shared, ids, sources, _hold(shared, ids, sources, side), n_records - len(bad), rejects)


def _require_some(side: Side, documents: int, rejects: pa.Table) -> None:
    """Refuse a collection of no documents: everything would be clean, because nothing was compared."""
    if not documents:
        row = next(iter(rejects.slice(0, 1).to_pylist()), None)
        why = f": {row['source']}: {row['reason']} ({row['detail']})" if row else ""
        raise ConfigError(f"{side.path}: no document can be read{why}")


def flatten(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """A column of `array<int>` without nulls: where each row begins, (n + 1,), and the values."""
    sizes = [np.zeros(1, np.int64), *(np.asarray(pc.list_value_length(chunk), np.int64) for chunk in column.chunks)]
    values = [np.empty(0, np.int32), *(np.asarray(chunk.flatten()) for chunk in column.chunks)]
    return np.cumsum(np.concatenate(sizes)), np.concatenate(values)


def _hold(shared: pa.Table, ids: list[str], sources: list[str], side: Side) -> Holders:
    offsets, numbers = flatten(shared["numbers"])
    order = sorted(range(len(ids)), key=lambda row: (ids[row].encode(), sources[row].encode(), row))
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.arange(len(ids))
    places = {label: place for place, label in enumerate(side.parts)}
    groups = np.array([places[side.labels[source]] for source in sources], np.int64)
    contents = fingerprints_of(shared["content_fingerprint"])
    return Holders(offsets, numbers, contents, shared["n_shingles"].to_numpy().astype(np.int32), ranks, groups)


def _number_in_source(sources: Sequence[str]) -> NDArray[np.int64]:
    """The ordinal of each row in its source, from 1; rows of a source are together."""
    numbers, before, count = np.empty(len(sources), np.int64), None, 0
    for row, source in enumerate(sources):
        count = count + 1 if source == before else 1
        numbers[row], before = count, source
    return numbers


def _records_before(counted: pa.Table) -> tuple[dict[tuple[str, int], int], int]:
    """The records of a source that come before each of its splits, and how many there are of all."""
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
    """The ordinal of each record in its source, from 1."""
    places = zip(*(rows[name].to_pylist() for name in ("source", "split", "seq")), strict=True)
    return np.array([before[source, split] + seq + 1 for source, split, seq in places], np.int64)


def _distinct(ids: list[str | None], sources: list[str], records: list[int]) -> tuple[list[str], int]:
    """Names of the items, each once; the first record of an id keeps it."""
    taken = {one for one in ids if one is not None}
    seen: set[str] = set()
    named, renamed = [], 0
    for one, source, record in zip(ids, sources, records, strict=True):
        name = one
        if name is None or name in seen:
            renamed += name is not None
            name = f"{source}#{record}"
            while name in seen or name in taken:
                name += "+"
        seen.add(name)
        named.append(name)
    return named, renamed


def _gather_rejects(  # noqa: PLR0913, PLR0917 - what a row is made of
    collection: str,
    rows: pa.Table,
    records: NDArray[np.int64],
    is_bad: NDArray[np.bool_],
    side: Side,
    read: pa.Table | None = None,
) -> pa.Table:
    """REJECTED of the bad rows, and of the files that gave none; `read` are all rows that came."""
    bad = rows.append_column("record", pa.array(records)).filter(pa.array(is_bad))
    silent = list_silent(side.collection, rows if read is None else read)
    columns = [name for name in REJECTED.names if name != "collection"]
    both = pa.concat_tables([bad.select(columns).cast(silent.schema), silent.select(columns)])
    return both.add_column(0, "collection", pa.array([collection] * len(both), pa.string())).cast(REJECTED.arrow)


def _reasons(rejects: pa.Table) -> dict[str, int]:
    counted = rejects.group_by("reason").aggregate([([], "count_all")])
    return dict(zip(counted["reason"].to_pylist(), counted["count_all"].to_pylist(), strict=True))
