"""Passages by shuffles: documents get a task each for good, and what `nddup.passages.divided` asks moves between tasks.

    documents         --place_documents-->  homes      each document in one task: texts packed and compressed, and ids
    homes             --post-->             posts      one row for anchors with equal surroundings, by anchor
    posts             --ask-->              asked      rows whose windows are needed, by home
    homes, asked      --describe-->         details    their windows, by anchor
    posts, details    --judge-->            verdicts   what is repeated, by home
    homes, verdicts   --tabulate-->         FOUND      rows of all tables

Each text crosses the shuffle once, some three bytes a token; each step hashes its tokens anew. Nothing else that moves
holds text. No result depends on how documents or anchors are divided.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.ground.arrays import Ragged
from nddup.matching.preference import Order
from nddup.passages import divided
from nddup.passages.divided import Details, Posts, Verdicts
from nddup.passages.repeats import chain_windows
from nddup.passages.tabulate import Documents, kept_lines, list_verdicts, make_tables
from nddup.rewriting.verdicts import SPANS
from nddup.scanning.found import join_encoded
from nddup.sketching.rolling_hash import hash_rows
from nddup.spark.blocks import (
    Columns,
    Layout,
    block_schema,
    cogroup,
    exchange,
    pack,
    pack_pieces,
    pieces,
    target_of,
    unpack,
    with_rows,
)
from nddup.spark.pairing.collapse import prefer_sources, preference
from nddup.spark.schemas import schema_of, table
from nddup.tables import REJECTS, working
from nddup.tables.features import CUTS, OCCURRENCES, PASSAGES, REPEATING

CODEC = "zstd"
"""The compression of texts on their way: 3.6 times smaller, Spark's own lz4 2.5 times."""

TEXTS: Layout = {"keys": np.int64, "sizes": np.int32}
"""Columns of texts beside `texts`, which is compressed as a whole."""

NAMED = "doc_key long, rank long, doc_id string, source string, record long, as_text boolean"
PACKED = table("target int, keys binary, sizes binary, texts binary")
POSTS: Layout = {
    "origin": np.int32, "row": np.int32, "keys": np.uint64, "digests": np.uint64, "places": np.int64,
    "documents": np.int32, "ranks": np.int64, "tokens": np.int32,
}  # fmt: skip
ASKED: Layout = {"row": np.int32}
DETAILS: Layout = {"origin": np.int32, "row": np.int32, "sizes": np.int32, "windows": np.uint64, "excess": np.int32}
VERDICTS: Layout = {
    "row": np.int32, "starts": np.int32, "sizes": np.int32, "places": np.int64, "documents": np.int32,
    "goes_on": np.bool_, "ranks": np.int64, "tokens": np.int32,
}  # fmt: skip

_WRITTEN = (PASSAGES, OCCURRENCES, CUTS, REPEATING)
FOUND = working(
    "found",
    "what string, doc_key long, second_copies long, allowed long, nddup_kept boolean, nddup_passages string,"
    " nddup_cuts string, "
    + ", ".join({column.name: f"{column.name} {column.type}" for one in _WRITTEN for column in one.columns}.values()),
    "Rows of all tables of `nddup passages`: `what` is the table; `kept`: `doc_key`, and a line in `text`; `verdicts`:"
    " what becomes of a record, its spans as JSON; `counts`: a row for each task, with the second copies that stay and"
    " the tokens that may be cut.",
)

LEAST, MOST = 1, 64
"""Consecutive documents that go to one task together: their texts are compressed together."""

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class PassageRule:
    """What is looked for: tokens of a window, whether repeats within one document count; the number of tasks; and what
    tokens leave out.
    """

    length: int
    within: bool
    partitions: int
    ignore: tuple[str, ...] = ()


class Wanted(NamedTuple):
    """What is made of the passages beside the tables.

    Attributes:
        min_left: documents left with fewer tokens are dropped.
        whole_sentences: whether a sentence is cut as a whole or not at all.
        mark: what stands for a cut in the lines of the documents that are written as texts.
        is_judged: whether files are written again, so the verdicts on all documents are needed.
    """

    min_left: int
    whole_sentences: bool
    mark: str
    is_judged: bool


class Shuffled(NamedTuple):
    """Tables that several steps read; the caller that acts persists them."""

    homes: DataFrame
    posts: DataFrame


def rank_documents(named: DataFrame, order: Order) -> DataFrame:
    """Add `rank`, which ascends in the order of `keep.prefer`, `keep.policy` and the id, with gaps.

    Schema in:   doc_key long, doc_id string, source string, url string, n_tokens int, …
    Shuffles:  one, by range, of narrow rows.    Actions:  Spark samples the range.
    """
    dates = {name: F.lit(None).cast("string") for name in ("date", "record_type")}  # of archives; texts alone are read
    keyed = named.withColumns(dates).withColumns({"from": prefer_sources(order), "key": preference(order.policy)})
    return keyed.sort("from", "key", "doc_id").withColumn("rank", F.monotonically_increasing_id())


def place_documents(texts: DataFrame, ranked: DataFrame, *, partitions: int, documents: int) -> DataFrame:
    """Send each document to its task.

    Args:
        texts: the documents, and perhaps others.
        ranked: their names and ranks, and whether each is written as text.

    Schema in:   doc_key long, text string, …; `NAMED`, …
    Schema out:  PACKED, of texts; `NAMED`, of names
    Shuffles:  one, of compressed texts and of names.    Actions:  none.
    """
    together = max(LEAST, min(MOST, documents // (8 * partitions)))
    target = F.pmod(F.floor(F.col("doc_key") / together), F.lit(partitions)).cast("int").alias("target")
    packed = texts.select(target, "doc_key", "text").mapInArrow(_pack_texts, PACKED)
    named = ranked.select(target, *(name.split()[0] for name in NAMED.split(", ")))
    return exchange(packed.unionByName(named, allowMissingColumns=True), partitions=partitions)


def post(homes: DataFrame, rule: PassageRule) -> DataFrame:
    """Return the anchors of all documents, each in the task of its hash. One shuffle: some 2 bytes a token."""
    return exchange(homes.mapInArrow(partial(_post, rule=rule), block_schema(POSTS)), partitions=rule.partitions)


def find(shuffled: Shuffled, rule: PassageRule, wanted: Wanted) -> DataFrame:
    """Return the rows of all tables.

    Args:
        shuffled: the documents, and their anchors.
        rule: the windows and passages to find.
        wanted: the tables to make.

    Schema out:  FOUND
    Shuffles:  three, of rows of anchors whose surroundings differ, of their windows, and of what is repeated.
    Actions:   none.
    """
    partitions = rule.partitions
    asked = exchange(shuffled.posts.mapInArrow(partial(_ask, rule=rule), block_schema(ASKED)), partitions=partitions)
    described = cogroup(shuffled.homes, asked, partial(_describe, rule=rule), block_schema(DETAILS))
    details = exchange(described, partitions=partitions)
    judged = cogroup(shuffled.posts, details, partial(_judge, rule=rule), block_schema(VERDICTS))
    verdicts = exchange(judged, partitions=partitions)
    task = partial(_tabulate, rule=rule, wanted=wanted)
    return cogroup(shuffled.homes, verdicts, task, schema_of(FOUND))


# In a worker ---------------------------------------------------------------------------------------------------------


class _Home(NamedTuple):
    """The documents of a task, ascending by `doc_key`: names, ranks, texts in UTF-8 and token hashes."""

    named: pa.Table
    ranks: NDArray[np.int64]
    texts: list[bytes]
    hashes: Ragged


def _pack_texts(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        targets = np.asarray(batch.column("target"))
        keys = np.asarray(batch.column("doc_key"))
        texts = batch.column("text").cast(pa.binary()).to_pylist()
        cells: dict[str, list[object]] = {"target": [], "keys": [], "sizes": [], "texts": []}
        for target in np.unique(targets).tolist():
            its = np.flatnonzero(targets == target)
            chosen = [texts[place] for place in its.tolist()]
            cells["target"].append(target)
            cells["keys"].append(keys[its].astype(np.int64).tobytes())
            cells["sizes"].append(np.fromiter(map(len, chosen), np.int32, len(chosen)).tobytes())
            cells["texts"].append(pa.compress(b"".join(chosen), codec=CODEC, asbytes=True))
        kinds = [pa.int32(), pa.binary(), pa.binary(), pa.binary()]
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(cells.values(), kinds, strict=True)], names=list(cells)
        )


def _open_home(batches: Batches, rule: PassageRule) -> _Home:
    keys: list[int] = []
    texts: list[bytes] = []
    names = [name.split()[0] for name in NAMED.split(", ")]
    named = []
    for batch in with_rows(batches):
        for place, cell in enumerate(batch.column("texts").to_pylist()):
            if cell is None:
                continue
            sizes = np.frombuffer(batch.column("sizes")[place].as_py(), np.int32)
            keys += np.frombuffer(batch.column("keys")[place].as_py(), np.int64).tolist()
            whole = pa.decompress(cell, decompressed_size=int(sizes.sum()), codec=CODEC, asbytes=True)
            ends = np.cumsum(sizes, dtype=np.int64).tolist()
            texts += [whole[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
        named.append(batch.select(names).filter(batch.column("rank").is_valid()))
    rows = pa.Table.from_batches(named).sort_by("doc_key")
    by_key = np.argsort(np.array(keys, np.int64))
    places = by_key[np.searchsorted(np.array(keys, np.int64)[by_key], np.asarray(rows["doc_key"]))]
    chosen = [texts[place] for place in places.tolist()]
    return _Home(
        rows, np.asarray(rows["rank"]).astype(np.int64), chosen, hash_rows(*join_encoded(chosen), ignore=rule.ignore)
    )


def _targets(keys: NDArray[np.uint64], rule: PassageRule) -> NDArray[np.int32]:
    return (keys % np.uint64(rule.partitions)).astype(np.int32)


def _post(batches: Batches, *, rule: PassageRule) -> Iterator[pa.RecordBatch]:
    blocks = with_rows(batches)
    if not blocks:
        return
    home = _open_home(blocks, rule)
    posts = divided.post_anchors(home.hashes, home.ranks, rule.length).posts
    count = len(posts.keys)
    columns = {"origin": np.full(count, target_of(blocks), np.int32), "row": np.arange(count), **posts._asdict()}
    yield from pack_pieces(POSTS, _targets(posts.keys, rule), columns, partitions=rule.partitions)


def _open_posts(batches: Batches) -> tuple[Columns, Posts]:
    columns = unpack(batches, POSTS)
    return columns, Posts(*(columns[name] for name in Posts._fields))  # type: ignore[arg-type] # of these dtypes


def _ask(batches: Batches, *, rule: PassageRule) -> Iterator[pa.RecordBatch]:
    columns, posts = _open_posts(with_rows(batches))
    asked = divided.list_asked(posts, within=rule.within)
    origins = columns["origin"][asked].astype(np.int32)
    yield from pack_pieces(ASKED, origins, {"row": columns["row"][asked]}, partitions=rule.partitions)


def _describe(homes: Batches, asked: Batches, *, rule: PassageRule) -> Iterator[pa.RecordBatch]:
    rows = np.sort(unpack(asked, ASKED)["row"]).astype(np.int64)
    if not len(rows):
        return
    blocks = with_rows(homes)
    home = _open_home(blocks, rule)
    posted = divided.post_anchors(home.hashes, home.ranks, rule.length)
    details = divided.describe_windows(home.hashes, posted, rows, rule.length)
    ends = np.append(0, np.cumsum(details.sizes)).astype(np.int64)
    windows = Ragged(ends + np.arange(len(ends)), details.windows)
    excess = Ragged(ends, details.excess.astype(np.uint64))
    columns: Columns = {"origin": np.full(len(rows), target_of(blocks), np.int32), "row": rows, "sizes": details.sizes}
    targets = _targets(posted.posts.keys[rows], rule)
    for part in pieces(8 * details.sizes.astype(np.int64) + 8):
        yield pack(
            DETAILS,
            targets[part],
            {name: column[part] for name, column in columns.items()},
            {
                "windows": Ragged(windows.offsets[part.start : part.stop + 1], windows.values),
                "excess": Ragged(excess.offsets[part.start : part.stop + 1], excess.values),
            },
            partitions=rule.partitions,
        )


def _judge(posted: Batches, described: Batches, *, rule: PassageRule) -> Iterator[pa.RecordBatch]:
    posted_columns, posts = _open_posts(posted)
    given = unpack(described, DETAILS)
    keys, asked = (
        each["origin"].astype(np.int64) << 32 | each["row"].astype(np.int64) for each in (posted_columns, given)
    )
    order = np.argsort(keys)
    places = order[np.searchsorted(keys[order], asked)]
    details = Details(given["sizes"], given["windows"], given["excess"])  # type: ignore[arg-type] # of these dtypes
    verdicts = divided.judge_windows(posts, places, details, within=rule.within)
    origins = posted_columns["origin"][verdicts.rows].astype(np.int32)
    columns: dict[str, Any] = dict(zip(VERDICTS, (posted_columns["row"][verdicts.rows], *verdicts[1:]), strict=True))
    yield from pack_pieces(VERDICTS, origins, columns, partitions=rule.partitions)


def _tabulate(homes: Batches, judged: Batches, *, rule: PassageRule, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    home = _open_home(homes, rule)
    posted = divided.post_anchors(home.hashes, home.ranks, rule.length)
    columns = unpack(judged, VERDICTS)
    verdicts = Verdicts(*(columns[name] for name in VERDICTS))  # type: ignore[arg-type] # of these dtypes
    windows = divided.place_windows(home.hashes, home.ranks, posted, verdicts)
    repeats = chain_windows(home.hashes.offsets, windows, rule.length, within=rule.within)
    nothing, whole = REJECTS.arrow.empty_table(), wanted.whole_sentences
    documents = Documents(_with_texts(home), home.hashes, nothing, ignore=rule.ignore, whole_sentences=whole)
    tables = make_tables(documents, repeats, wanted.min_left)
    counted = {"second_copies": repeats.cuts.second_copies, "allowed": int(repeats.cuts.cut.sum())}
    counts = pa.table({name: pa.array([count], pa.int64()) for name, count in counted.items()})
    yield from _as_found("counts", counts)
    for one in _WRITTEN:
        yield from _as_found(one.name, tables[one.name])
    if wanted.is_judged:
        yield from _as_found("verdicts", _spell_spans(list_verdicts(documents, tables)))
    as_texts = replace(documents, rows=documents.rows.filter(documents.rows["as_text"]))
    if len(as_texts.rows):
        lines = [*kept_lines(as_texts, tables, wanted.mark)]
        yield from _as_found(
            "kept", pa.table({"doc_key": [one[0] for one in lines], "text": [one[1] for one in lines]})
        )


def _spell_spans(verdicts: pa.Table) -> pa.Table:
    for name in SPANS.names:
        texts = pa.array(map(json.dumps, verdicts[name].to_pylist()), pa.string())
        verdicts = verdicts.set_column(verdicts.column_names.index(name), name, texts)
    return verdicts


def _with_texts(home: _Home) -> pa.Table:
    sizes = np.fromiter(map(len, home.texts), np.int64, len(home.texts))
    chunks = [pa.array(home.texts[part], pa.binary()).cast(pa.string()) for part in pieces(sizes)]
    return home.named.append_column("text", pa.chunked_array(chunks, pa.string()))


def _as_found(what: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in rows.to_batches(max_chunksize=10_000):
        given: Mapping[str, pa.Array] = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = [
            pa.array([what] * len(batch), pa.string())
            if field.name == "what"
            else given.get(field.name, pa.nulls(len(batch), field.type)).cast(field.type)
            for field in FOUND.arrow
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=FOUND.arrow)
