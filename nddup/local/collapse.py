"""Number the records, reject repeated ids, and collapse equal sketches to one before anything is paired.

records   --collapse-->       documents, rejects
documents --name_nodes-->     nodes: arrays, a document named by its place in DOCUMENTS
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.arrays import Ragged, number_keys
from nddup.columns import fingerprints_of, one_chunk, ragged_of, take
from nddup.matching.preference import NO_LENGTH, NO_MOMENT, Order, order_key, values_of, word_key
from nddup.mining.keep_verdicts import FORCED_WEIGHT, Forced
from nddup.sketching.recipe import level_of
from nddup.stages.revisits import COPIED, READ, find_revisited
from nddup.tables import DOCUMENTS, FIRST_SEEN, REJECTS, REPEATED


class Collapsed(NamedTuple):
    """The records as documents, whose `group` tells equal sketches, and as rejects; the records of repeated ids."""

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
        }
        return pa.table(columns)


def collapse(records: pa.Table, silent: pa.Table, *, renames: bool = False) -> Collapsed:
    """Make the documents and the rejects.

    Args:
        records: RECORDS in collection order, those of a source together.
        silent: REJECTS of whole files in which no record was found.
        renames: whether a later record of an id, if its content is another than that of the first, becomes a document
            called `source#record`, and a revisit of a document is one; else every later record, and every revisit, is
            a reject.

    Returns:
        DOCUMENTS in collection order, with the smallest id among equal sketches as `group` (among equal contents, if
        these give an empty sketch); REJECTS: bad records, later records of a repeated id, files without records.

    Cost: one sort of the ids.
    """
    records = _with_revisits(records) if renames else records
    in_file = number_in_file(records["source"])
    is_good = pc.is_null(records["reason"]).to_numpy()
    settled = _settle_ids(records, in_file, is_good, renames=renames)
    columns = {"doc_key": pa.array(np.arange(len(records))), "record": pa.array(in_file), "doc_id": settled.ids}
    numbered = records.drop_columns(["doc_id"])
    for name, column in columns.items():
        numbered = numbered.append_column(name, column)

    is_document = is_good.copy()
    is_document[settled.repeated] = False
    documents = numbered if is_document.all() else numbered.filter(pa.array(is_document))
    rejects = [
        numbered.filter(pa.array(~is_good)).select(REJECTS.names).cast(REJECTS.arrow),
        _repeated(numbered, settled.repeated, settled.first),
        silent,
    ]
    return Collapsed(_with_groups(documents), pa.concat_tables(rejects), settled.later)


def _with_revisits(records: pa.Table) -> pa.Table:
    """Return RECORDS in which the revisits of documents are copies of them."""
    if not pc.any(pc.equal(records["reason"], "revisit")).as_py():
        return records
    from nddup.engines.embedded import DuckEngine  # noqa: PLC0415 - most collections have no revisits

    places = np.arange(len(records))
    engine = DuckEngine("the revisits")
    engine.see("captures", records.append_column("doc_key", pa.array(places)).select(list(READ)))
    found = find_revisited(engine)
    engine.forget()
    revisits = found["revisit"].to_numpy()
    places[revisits] = found["original"].to_numpy()
    for name in (*COPIED, "reason"):
        records = records.set_column(records.schema.get_field_index(name), name, take(records[name], places))
    return records


class _Settled(NamedTuple):
    """The id of each record; the places of the rejected later records of an id, and of the first record of each."""

    ids: pa.ChunkedArray
    repeated: NDArray[np.int64]
    first: NDArray[np.int64]
    later: int


def _settle_ids(
    records: pa.Table, in_file: NDArray[np.int64], is_good: NDArray[np.bool_], *, renames: bool
) -> _Settled:
    """Name the records without an id, and decide what becomes of those whose id an earlier one has."""
    given = records["doc_id"]
    lacking = np.asarray(pc.is_null(given)) & is_good
    ids = given if renames else _name_documents(records, in_file, lacking, None)
    good = np.flatnonzero(is_good & ~lacking if renames else is_good)
    later, first = _find_later(ids, good)
    if not renames:
        return _Settled(ids, later, first, len(later))
    contents = [fingerprints_of(take(records["content_fingerprint"], places)) for places in (later, first)]
    is_same = (contents[0] == contents[1]).all(axis=1)
    lacking[later[~is_same]] = True
    ids = _name_documents(records, in_file, lacking, take(given, good))
    return _Settled(ids, later[is_same], first[is_same], len(later))


def _find_later(ids: pa.ChunkedArray, good: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places, of `good` ones, of the later records of an id, and those of the first record of each."""
    order, is_new = _sort_ids(take(ids, good))
    starts = np.flatnonzero(is_new)
    firsts = np.empty(len(good), np.int64)
    firsts[order] = np.repeat(order[starts], np.diff(np.append(starts, len(order))))
    is_later = firsts != np.arange(len(good))
    return good[is_later], good[firsts[is_later]]


def name_apart(records: pa.Table) -> pa.ChunkedArray:
    """Return distinct ids of documents: one that a record lacks, or an earlier record has, becomes `source#record`.

    Args:
        records: `doc_id`, `source`, `record`, in collection order.
    """
    given = records["doc_id"]
    lacking = np.array(pc.is_null(given))
    named = np.flatnonzero(~lacking)
    lacking[_find_later(given, named)[0]] = True
    return _name_documents(records, records["record"].to_numpy(), lacking, take(given, named))


def name_nodes(documents: pa.Table, *, order: Order, levels: int = 0, forced: Forced | None = None) -> Nodes:
    """Convert DOCUMENTS to arrays, and order them by the keep policy.

    Args:
        documents: DOCUMENTS.
        order: the keep policy.
        levels: sketch size s if the modulus varies, else 0.
        forced: the documents that come first or last whatever the policy says.
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
    own = [level_of(count, levels) if levels else 0 for count in n_features.tolist()]
    return Nodes(
        ids=documents["doc_id"],
        id_rank=names,
        node=groups,
        equals=counts[groups].astype(np.int32),
        sizes=sizes,
        weights=sizes.astype(np.int64) << np.array(own, np.int64),
        policy_rank=turns,
        contents=fingerprints_of(documents["content_fingerprint"]),
        sketches=sketches,
        n_features=n_features,
        forced=classes,
        first_by_policy=best,
        members=members,
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )


def order_documents(
    documents: pa.Table, order: Order, names: NDArray[np.int32], classes: NDArray[np.int8] | None = None
) -> NDArray[np.int64]:
    """Return the documents in the order of the keep policy, (n,).

    Args:
        documents: `source`, `date`, `record_type`, and what the policy reads: `n_tokens`, `url`, `doc_key`; with
            columns in it all of DOCUMENTS.
        order: the keep policy.
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
    """Return the places of n ids among n distinct ones, (n,); fast where most are at their own place."""
    is_own = np.asarray(pc.equal(wanted, ids))
    places = np.arange(len(wanted), dtype=np.int32)
    others = np.flatnonzero(~is_own)
    if len(others):
        places[others] = np.asarray(pc.index_in(take(wanted, others), value_set=one_chunk(ids)))
    return places


def number_in_file(sources: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the ordinal of each record in its file, from 1."""
    ends = np.asarray(pc.run_end_encode(one_chunk(sources)).run_ends) if len(sources) else np.empty(0, np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
    counts = np.diff(np.append(starts, len(sources)))
    return np.asarray(np.arange(1, len(sources) + 1) - np.repeat(starts, counts))


def _name_documents(
    records: pa.Table, in_file: NDArray[np.int64], lacking: NDArray[np.bool_], given: pa.ChunkedArray | None
) -> pa.ChunkedArray:
    """Return the ids, with `source#record` for the records that lack one.

    Of the ids `given`, none is made up again: a name that one of them has gets as many `+` as make it new.
    """
    ids = records["doc_id"]
    if not lacking.any():
        return ids
    places = np.flatnonzero(lacking)
    made = pc.binary_join_element_wise(
        one_chunk(take(records["source"], places)), pa.array(in_file[places]).cast(pa.string()), "#"
    )
    if given is not None:
        bare = pc.utf8_rtrim(one_chunk(given), "+")
        taken = frozenset(one_chunk(given).filter(pc.is_in(bare, value_set=made)).to_pylist())
        if taken:
            names = (((name + "+" * n) for n in range(len(taken) + 1)) for name in made.to_pylist())
            made = pa.array((next(name for name in spelled if name not in taken) for spelled in names), pa.string())
    return pa.chunked_array([pc.replace_with_mask(one_chunk(ids), pa.array(lacking), made)])


def _sort_ids(ids: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the stable order of the ids, and where in it a new id begins."""
    order = pc.array_sort_indices(one_chunk(ids))
    in_order = one_chunk(ids).take(order)
    is_new = np.ones(len(ids), np.bool_)
    if len(ids) > 1:
        is_new[1:] = np.asarray(pc.not_equal(in_order[1:], in_order[:-1]))
    return np.asarray(order).astype(np.int64), is_new


def _repeated(numbered: pa.Table, places: NDArray[np.int64], first: NDArray[np.int64]) -> pa.Table:
    """Return REJECTS of the later records of repeated ids."""
    named = numbered.select(["source", "record", "doc_id"])  # Arrow joins the chunks of all columns to take rows
    rows, before = named.take(pa.array(places)), named.take(pa.array(first))
    said, of = FIRST_SEEN
    detail = pc.binary_join_element_wise(said, before["record"].cast(pa.string()), of, before["source"], "")
    columns = {
        "source": rows["source"],
        "record": rows["record"],
        "doc_id": rows["doc_id"],
        "reason": pa.array([REPEATED] * len(rows), pa.string()),
        "detail": detail,
        "excerpt": pa.array([""] * len(rows), pa.string()),
    }
    return pa.table(columns).cast(REJECTS.arrow)


def _with_groups(documents: pa.Table) -> pa.Table:
    """Make DOCUMENTS of numbered records: add their groups."""
    ids = documents["doc_id"]
    words = fingerprints_of(documents["sketch_fingerprint"])
    halves = [number_keys(np.ascontiguousarray(words[:, half]))[0].astype(np.uint64) for half in range(words.shape[1])]
    equal, _ = number_keys(halves[0] << np.uint64(32) | halves[1])

    # The last id written for equal sketches stays, so they are written in descending order.
    order = np.asarray(pc.array_sort_indices(one_chunk(ids)))[::-1].astype(np.int64)
    smallest = np.empty(len(documents), np.int64)
    smallest[equal[order]] = order
    own = np.arange(len(documents))
    group = smallest[equal]
    grouped = ids if (group == own).all() else take(ids, group)
    return documents.append_column("group", grouped).select(DOCUMENTS.names).cast(DOCUMENTS.arrow)


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
