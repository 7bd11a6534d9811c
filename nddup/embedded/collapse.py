"""Number the records, reject repeated ids, and collapse equal sketches to one before anything is paired.

records   --collapse-->       documents, rejects
documents --name_nodes-->     nodes: arrays, a document named by its place in DOCUMENTS
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.errors import OutputError
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import fingerprints_of, lists_of, one_chunk, ragged_of, take
from nddup.matching.preference import NO_LENGTH, NO_MOMENT, Order, order_key, values_of, word_key
from nddup.matching.probes import Take
from nddup.mining.keep_verdicts import FORCED_WEIGHT, Forced
from nddup.sketching.recipe import level_of
from nddup.stages.settle import (
    COPIED,
    READ,
    REJECTED,
    REPEATS,
    SETTLED_BY,
    TAKEN,
    find_revisited,
    list_documents,
    settle,
)
from nddup.tables import DOCUMENTS, REJECTS

if TYPE_CHECKING:
    from nddup.engines.duck import DuckEngine


class Collapsed(NamedTuple):
    """The records as documents, with `group` equal for equal sketches, and as rejects; the records of repeated ids."""

    documents: pa.Table
    rejects: pa.Table
    later: int
    """Good records whose id an earlier one has: those renamed and those rejected."""


@dataclass(frozen=True)
class Nodes:
    """The n documents as arrays; a node, or distinct sketch, is the place of its `group` document.

    Attributes:
        ids: (n,), their ids.
        id_rank: (n,), the rank of each id among all ids, compared as bytes.
        node: (n,), the node of each document.
        equals: (n,), the number of documents of the same node.
        sizes: (n,), the number of ids in the sketch.
        weights: (n,), the size times what one id stands for: for containment, heavier documents are preferred.
        policy_rank: (n,), the place of each document in the order of the keep policy, ties by id.
        contents: (n, 2), the fingerprint of the content.
        sketches: n rows.
        n_features: (n,), the number of distinct shingles.
        forced: (n,), whether `keep.force` keeps the document (-1), removes it (1), or leaves it alone (0).
        first_by_policy: (n,), at a node, its first document by the keep policy; -1 elsewhere.
        members: (n,), the documents sorted by node, those of a node by id.
        starts: (n + 1,), where the members of each node begin.
        guards: (n,), the number of the values of each document in the columns of `keep.same`.
    """

    ids: pa.ChunkedArray
    id_rank: NDArray[np.int32]
    node: NDArray[np.int32]
    equals: NDArray[np.int32]
    sizes: NDArray[np.int32]
    weights: NDArray[np.int64]
    policy_rank: NDArray[np.int32]
    contents: NDArray[np.uint64]
    sketches: Ragged
    n_features: NDArray[np.int32]
    forced: NDArray[np.int8]
    first_by_policy: NDArray[np.int32]
    members: NDArray[np.int32]
    starts: NDArray[np.int64]
    guards: NDArray[np.int64]

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Whether each document is the `group` document that names its node, (n,)."""
        return np.asarray(self.node == np.arange(len(self.node)))

    @property
    def distinct(self) -> NDArray[np.int32]:
        """The nodes whose sketch is not empty, ascending."""
        return np.flatnonzero(self.is_first & (self.sizes > 0)).astype(np.int32)

    @property
    def table(self) -> pa.Table:
        """NODES, by the places of the documents."""
        n = len(self.node)
        contents = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), n, [None, pa.py_buffer(self.contents)])
        columns = {
            "doc_key": pa.array(np.arange(n)),
            "doc_id": self.ids,
            "first_id": self.ids if self.is_first.all() else take(self.ids, self.node),
            "node": pa.array(self.node.astype(np.int64)),
            "size": pa.array(self.sizes),
            "weight": pa.array(self.weights - self.forced * np.int64(FORCED_WEIGHT)),
            "policy": pa.array(self.policy_rank.astype(np.int64)),
            "content_fingerprint": contents,
            "n_features": pa.array(self.n_features),
            "n": pa.array(self.equals.astype(np.int64)),
            "guard": pa.array(self.guards),
        }
        return pa.table(columns)

    def list_sketches(self, nodes: NDArray[np.int32]) -> pa.Table:
        """Return SKETCHES of some nodes."""
        chosen = take_rows(self.sketches, nodes.astype(np.int64))
        lists = lists_of(chosen.offsets, pa.array(chosen.values.view(np.int64)))
        return pa.table({"node": pa.chunked_array([nodes.astype(np.int64)]), "sketch": lists})


DISTINCT = ("doc_id", "sketch_fingerprint")
"""Columns of which no two records have the same value where nothing is to be decided, and DuckDB need not be loaded."""


RENAMED = ("doc_key", "final_id", "first_id")
"""Columns of the settled documents that DOCUMENTS take over."""


def collapse(
    records: pa.Table,
    silent: pa.Table,
    *,
    renames: bool = False,
    without: pa.Table | None = None,
    take: Take = take_rows,
) -> Collapsed:
    """Make the documents and the rejects.

    Args:
        records: RECORDS in collection order, those of a source together; or some of them, with the columns that
            `number_records` adds, and no revisit.
        silent: REJECTS of whole files in which no record was found.
        renames: whether a later record of an id, if its content is another than that of the first, becomes a document
            called `source#record`, and a revisit of a document is one; else every later record, and every revisit, is
            a reject.
        without: `doc_id`, each once, of the documents that leave the collection once all have their names.
        take: copies the sketches of the documents, if a record that is none of them has one.

    Returns:
        DOCUMENTS in collection order, with the smallest id among equal sketches as `group` (among equal contents, if
        these give an empty sketch); REJECTS: bad records, later records of a repeated id, files without records.

    Cost: that of `stages.settle`, in narrow rows; the others are copied if there are rejects.
    """
    records = _with_revisits(records) if renames else records
    numbered = (records if "doc_key" in records.column_names else number_records(records)).drop_columns("sketch")
    is_good = pc.is_null(records["reason"])
    good = numbered if records["reason"].null_count == len(records) else numbered.filter(is_good)
    listed, rejects, later = (
        good.select(["doc_key", "doc_id", "doc_id"]),
        [numbered.filter(pc.invert(is_good)), silent],
        0,
    )
    nested = 0
    is_plain = not good["doc_id"].null_count and without is None
    if not is_plain or any(pc.count_distinct(good[name]).as_py() < len(good) for name in DISTINCT):
        engine, nested = _settle(good, renames=renames, without=without), len(good) - good["parent"].null_count
        listed = list_documents(engine, many=len(good), nested=nested)
        listed = listed.select([*RENAMED, *(["final_parent"] if nested else [])]).sort_by("doc_key")
        rejects.append(engine.answer(REJECTED))
        later = engine.count("repeats", {"later": "sum(n - 1)"})["later"]
        engine.forget()

    kept = listed.column(0).to_numpy()
    documents = good if len(kept) == len(good) else good.filter(pa.array(np.isin(good["doc_key"].to_numpy(), kept)))
    documents = documents.drop_columns("doc_id").append_column("doc_id", listed.column(1))
    if nested:
        documents = documents.drop_columns("parent").append_column("parent", listed.column(3))
    sketches = records["sketch"]
    if len(documents) < len(records):
        at = np.searchsorted(numbered["doc_key"].to_numpy(), documents["doc_key"].to_numpy())
        sketches = _take_sketches(sketches, at, take)
    documents = documents.append_column("group", listed.column(2)).append_column("sketch", sketches)
    documents = documents.select(DOCUMENTS.names).cast(DOCUMENTS.arrow)
    rejected = pa.concat_tables([part.select(REJECTS.names).cast(REJECTS.arrow) for part in rejects])
    return Collapsed(documents, rejected, later)


def _take_sketches(column: pa.ChunkedArray, at: NDArray[np.int64], take: Take) -> pa.ChunkedArray:
    """Return some sketches, by their places, ascending; without a copy if all others are empty."""
    rows = ragged_of(column)
    sizes = np.diff(rows.offsets)
    if sizes[at].sum() == len(rows.values):
        rows = Ragged(np.append(rows.offsets[at], len(rows.values)), rows.values)
    else:
        rows = take(rows, at)
    return lists_of(rows.offsets, pa.array(rows.values.view(np.int64)))


def number_records(records: pa.Table, first: int = 0) -> pa.Table:
    """Return records with `doc_key`, their place in the collection from `first` on, and `record`, in their file."""
    numbered = records.append_column("doc_key", pa.array(np.arange(first, first + len(records))))
    return numbered.append_column("record", pa.array(number_in_file(records["source"])))


def _with_revisits(records: pa.Table) -> pa.Table:
    """Return RECORDS in which the revisits of documents are copies of them."""
    if not pc.any(pc.equal(records["reason"], "revisit")).as_py():
        return records
    places = np.arange(len(records))
    engine = _engine(captures=records.append_column("doc_key", pa.array(places)).select(list(READ)))
    revisited = find_revisited(engine)
    engine.forget()
    revisits = revisited["revisit"].to_numpy()
    places[revisits] = revisited["original"].to_numpy()
    for name in (*COPIED, "reason"):
        records = records.set_column(records.schema.get_field_index(name), name, take(records[name], places))
    return records


def _settle(good: pa.Table, *, renames: bool, without: pa.Table | None = None) -> "DuckEngine":
    """Return an engine with `repeats` and `settled` of good records; without `renames` a made-up name is an id."""
    is_made = pc.is_null(good["doc_id"])
    narrow = good.select([name for name in SETTLED_BY if name in good.column_names])
    if not renames and good["doc_id"].null_count:
        made = pc.binary_join_element_wise(good["source"], good["record"].cast(pa.string()), "#")
        narrow = narrow.set_column(narrow.column_names.index("doc_id"), "doc_id", pc.coalesce(good["doc_id"], made))
        is_made = pc.is_null(narrow["doc_id"])
    engine = _engine(good=narrow.append_column("is_made", is_made))
    for name, query in (("repeats", REPEATS), ("taken", TAKEN)):
        engine.see(name, engine.answer(query))
    if without is not None:
        engine.see("taken_out", without)
    settle(engine, renames=renames, many=len(good), without=without is not None)
    return engine


def _engine(**tables: pa.Table) -> "DuckEngine":
    from nddup.engines.duck import DuckEngine  # noqa: PLC0415 - a run loads it when the first step asks

    return DuckEngine.over("the records", **tables)


def name_apart(records: pa.Table) -> pa.ChunkedArray:
    """Return distinct ids of documents: one that a record lacks, or an earlier record has, becomes `source#record`.

    Args:
        records: `doc_id`, `source`, `record`, in collection order.
    """
    keys = pa.array(np.arange(len(records)))
    rows = records.append_column("doc_key", keys)
    rows = rows.append_column("content_fingerprint", keys.cast(pa.string()).cast(pa.binary()))
    engine = _settle(rows, renames=True)
    return engine.sql("SELECT final_id FROM settled ORDER BY doc_key")["final_id"]


def name_nodes(
    documents: pa.Table, *, order: Order, levels: int = 0, forced: Forced | None = None, same: Sequence[int | None] = ()
) -> Nodes:
    """Convert DOCUMENTS to arrays, and order them by the keep policy.

    Args:
        levels: sketch size s if the modulus varies, else 0.
        forced: the documents that come first or last whatever the policy says.
        same: the columns of `keep.same`: places in `policy`, None for the source.
    """
    n = len(documents)
    sketches = ragged_of(documents["sketch"])
    sizes = np.diff(sketches.offsets).astype(np.int32)
    names = rank_ids(documents["doc_id"])
    by_name = np.argsort(names)
    groups = _places_of(documents["group"], documents["doc_id"])
    n_features = documents["n_features"].to_numpy()
    turns = np.empty(n, np.int32)
    classes = np.zeros(n, np.int8) if forced is None else forced.classes(documents["doc_id"])
    by_turn = order_documents(documents, order, names, classes)
    turns[by_turn] = np.arange(n, dtype=np.int32)

    # The last document written to a node stays, so they are written in reverse order of the policy.
    best = np.full(n, -1, np.int32)
    best[groups[by_turn[::-1]]] = by_turn[::-1]
    counts = np.bincount(groups, minlength=n)
    members = by_name[np.argsort(groups[by_name], kind="stable")].astype(np.int32)
    node_levels = [level_of(count, levels) if levels else 0 for count in n_features.tolist()]
    return Nodes(
        ids=documents["doc_id"],
        id_rank=names,
        node=groups,
        equals=counts[groups].astype(np.int32),
        sizes=sizes,
        weights=sizes.astype(np.int64) << np.array(node_levels, np.int64),
        policy_rank=turns,
        contents=fingerprints_of(documents["content_fingerprint"]),
        sketches=sketches,
        n_features=n_features,
        forced=classes,
        first_by_policy=best,
        members=members,
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        guards=_number_values(documents, same),
    )


def _number_values(documents: pa.Table, places: Sequence[int | None]) -> NDArray[np.int64]:
    """Return a number for each document, (n,): equal ones have equal values in all columns, null equal to null."""
    numbers = np.zeros(len(documents), np.int64)
    for place in places:
        column = documents["source"] if place is None else pc.list_element(documents["policy"], place)
        codes = one_chunk(column).dictionary_encode(null_encoding="encode").indices.to_numpy()
        numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return numbers


def order_documents(
    documents: pa.Table, order: Order, names: NDArray[np.int32], classes: NDArray[np.int8] | None = None
) -> NDArray[np.int64]:
    """Return the documents in the order of the keep policy, (n,).

    Args:
        documents: `source`, `date`, `record_type`, and what the policy reads: `n_tokens`, `url`, `doc_key`; with
            columns in it all of DOCUMENTS.
        names: (n,), from `rank_ids`.
        classes: (n,), smaller for documents that come first whatever the policy says; None where there are none.
    """
    sources, is_last = _sources(documents, order.prefer), _is_revisit(documents["record_type"])
    keys = (names, *_preference(documents, order), sources, is_last)
    return np.asarray(np.lexsort(keys if classes is None else (*keys, classes)))


def rank_ids(ids: pa.ChunkedArray) -> NDArray[np.int32]:
    """Return the rank of each id among all, compared as bytes, (n,); the ids must be distinct."""
    ranks = np.empty(len(ids), np.int32)
    ranks[np.asarray(pc.array_sort_indices(one_chunk(ids)))] = np.arange(len(ids), dtype=np.int32)
    return ranks


def _places_of(wanted: pa.ChunkedArray, ids: pa.ChunkedArray) -> NDArray[np.int32]:
    """Return the places of n ids among n distinct ones, (n,); fast where most are at their own place.

    Raises:
        OutputError: if one is not among them: the documents are those of a run that anyone may have written.
    """
    is_own = np.asarray(pc.equal(wanted, ids))
    places = np.arange(len(wanted), dtype=np.int32)
    others = np.flatnonzero(~is_own)
    if len(others):
        at = pc.index_in(take(wanted, others), value_set=one_chunk(ids))
        if at.null_count:
            raise OutputError("documents holds what nddup does not write: a group that no document names")
        places[others] = np.asarray(at)
    return places


def number_in_file(sources: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the ordinal of each record in its file, from 1."""
    ends = np.asarray(pc.run_end_encode(one_chunk(sources)).run_ends) if len(sources) else np.empty(0, np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
    counts = np.diff(np.append(starts, len(sources)))
    return np.asarray(np.arange(1, len(sources) + 1) - np.repeat(starts, counts))


def _preference(documents: pa.Table, order: Order) -> NDArray[np.int64]:
    """Return keys that are smaller for a document the policy prefers, (1, n) or (2, n), the stronger one last."""
    if order.columns:
        return np.stack([_moments(documents["date"]), _rank_keys(documents, order)])
    values: dict[str, Callable[[], pa.ChunkedArray | NDArray[np.int64]]] = {
        "doc_key": lambda: documents["doc_key"],
        "length": lambda: documents["n_tokens"],
        "url_length": lambda: pc.fill_null(_url_lengths(documents), NO_LENGTH),
        "moment": lambda: _moments(documents["date"]),
    }
    return np.stack([word_key(order.policy, lambda name: np.asarray(values[name]()).astype(np.int64))])


def _moments(dates: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the second of each date since 1970, (n,); `NO_MOMENT` without a date."""
    if dates.null_count == len(dates):
        return np.full(len(dates), NO_MOMENT, np.int64)
    seconds = dates.cast(pa.timestamp("s", "UTC")).cast(pa.int64())
    known = np.clip(pc.fill_null(seconds, 0).to_numpy(), 0, NO_MOMENT - 1)
    return np.asarray(np.where(pc.is_null(dates).to_numpy(), NO_MOMENT, known))


def _is_revisit(types: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(pc.equal(types, "revisit"), False).to_numpy())  # noqa: FBT003 - the value that fills


def _url_lengths(documents: pa.Table) -> pa.ChunkedArray:
    return pc.utf8_length(documents["url"]).cast(pa.int64())


def _rank_keys(documents: pa.Table, order: Order) -> NDArray[np.int64]:
    """Return the place of each document by the columns of the policy, (n,); equal values have equal places."""
    derived = (documents["n_tokens"], _url_lengths(documents), documents["doc_id"], documents["doc_key"])
    rows = zip(*(column.to_pylist() for column in (*derived, documents["policy"])), strict=True)
    keys = pa.array([order_key(values_of(order.columns, row[:-1], row[-1] or ()), order.columns) for row in rows],
                    pa.large_binary())  # fmt: skip
    by_key = pc.array_sort_indices(keys)
    in_order = keys.take(by_key)
    places = np.zeros(len(keys), np.int64)
    places[1:] = np.cumsum(np.asarray(pc.not_equal(in_order[1:], in_order[:-1]))) if len(keys) > 1 else 0
    ranks = np.empty(len(keys), np.int64)
    ranks[np.asarray(by_key)] = places
    return ranks


def _sources(documents: pa.Table, prefer: Sequence[str]) -> NDArray[np.int64]:
    """Return the index of the first glob that each document's source matches, (n,); the number of globs if none."""
    if not prefer:
        return np.zeros(len(documents), np.int64)
    encoded = one_chunk(documents["source"]).dictionary_encode()
    globs = [re.compile(glob) for glob in prefer]
    places = [
        next((at for at, glob in enumerate(globs) if glob.match(source)), len(globs))
        for source in encoded.dictionary.to_pylist()
    ]
    return np.asarray(np.array(places, np.int64)[np.asarray(encoded.indices)])
