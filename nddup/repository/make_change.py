"""One change of a repository: from the documents added and removed to the tables of a new segment.

A change touches the components of removed documents, of stored sketches that a new document has, and of those that may
be near to new sketches. Components close over equal sketches too: a smaller id changes `group`, hence stars and
names. The table `changes` has the differences between the state of documents before and after.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded.confirm import Row
from nddup.embedded.workers import Workers
from nddup.ground.columns import lists_of, one_chunk
from nddup.matching.lookups import distinct
from nddup.repository.batch_nodes import BatchNodes, name_batch
from nddup.repository.close_components import Closed, Scope, Totals, close, make_totals, replaced_totals
from nddup.repository.segment_files import CHANGES, DOCUMENTS, GONE, REPLACED, RESULTS, STATE, table_of
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.tables import DOCUMENTS as RUN_DOCUMENTS
from nddup.tables import KEEP, TYPES

KEPT, REMOVED, ABSENT = "kept", "removed", "absent"


@dataclass(frozen=True)
class Settled:
    """The state of n documents: those that stay, then the new ones.

    Attributes:
        keys: (n,), their numbers.
        ids: (n,), their ids.
        kept: (n,), whether each is kept.
        targets: (n,), the number of the kept near-duplicate; -1 where the document is kept.
        reasons: (n,), as in `keep`.
        leads: (n,), as `leader` in `keep`.
        n_stay: how many documents stay.
    """

    keys: NDArray[np.int64]
    ids: pa.Array
    kept: NDArray[np.bool_]
    targets: NDArray[np.int64]
    reasons: pa.Array
    leads: pa.Array
    n_stay: int

    @property
    def duplicate_of(self) -> pa.Array:
        """The id of each document's kept near-duplicate; null where it is kept."""
        order = np.argsort(self.keys)
        at = order[np.minimum(np.searchsorted(self.keys[order], self.targets), max(len(order) - 1, 0))]
        return self.ids.take(pa.array(at, pa.int64(), mask=self.targets < 0))

    @property
    def keep(self) -> pa.Table:
        """The state as rows of KEEP, in the order of the documents; `resemblance` and `lost` are not stored."""
        unknown = pa.nulls(len(self.ids), pa.float64())
        columns = [self.ids, pa.array(self.kept), self.duplicate_of, self.reasons, unknown, unknown, self.leads]
        return pa.Table.from_arrays(columns, schema=KEEP.arrow)

    def with_lasting(self, old: pa.Table) -> "Settled":
        """Return the same, but with the old `duplicate_of` wherever its target is still there.

        Args:
            old: STATE of the documents that stay, in their order.
        """
        before = pc.fill_null(old["duplicate_key"], -1).to_numpy().astype(np.int64)
        lasts = np.zeros(len(self.keys), np.bool_)
        lasts[: self.n_stay] = (before >= 0) & np.isin(before, self.keys)
        targets = self.targets.copy()
        targets[: self.n_stay] = np.where(lasts[: self.n_stay], before, targets[: self.n_stay])
        rest = pa.nulls(len(self.keys) - self.n_stay, pa.string())
        reasons = pa.concat_arrays([one_chunk(old["reason"]).cast(pa.string()), rest])
        return replace(self, targets=targets, reasons=pc.if_else(pa.array(lasts), reasons, self.reasons))


def list_changes(ids: pa.ChunkedArray, old: pa.Table, now: Settled, gone: NDArray[np.int64]) -> pa.Table:
    """Return CHANGES between a version and the next, ordered by id.

    Args:
        ids: the ids of the touched documents of the version before.
        old: STATE of these documents, in the same order.
        now: the state of the documents that stay and of new ones.
        gone: numbers of the removed documents.
    """
    names, going = ids.to_pylist(), set(gone.tolist())
    was = dict(zip(names, (KEPT if kept else REMOVED for kept in old["kept"].to_pylist()), strict=True))
    went = {doc_id for doc_id, key in zip(names, old["doc_key"].to_pylist(), strict=True) if key in going}

    rows = []
    after = zip(now.ids.to_pylist(), now.kept.tolist(), now.duplicate_of.to_pylist(), strict=True)
    for place, (doc_id, kept, duplicate_of) in enumerate(after):
        before, becomes = was.get(doc_id, ABSENT), KEPT if kept else REMOVED
        is_new = place >= now.n_stay
        if not is_new and before == becomes:
            continue
        cause = ("replaced" if doc_id in went else "added") if is_new else "promoted" if kept else "demoted"
        rows.append((doc_id, before, becomes, duplicate_of, cause))
        went.discard(doc_id)
    rows += [(doc_id, was[doc_id], ABSENT, None, "removed") for doc_id in went]
    rows.sort(key=lambda row: row[0].encode())
    return table_of(CHANGES, rows)


def count_changes(changes: pa.Table) -> dict[str, int]:
    """Count the documents added, removed, replaced, promoted and demoted."""
    counts = Counter(changes["cause"].to_pylist())
    return {cause: counts[cause] for cause in ("added", "removed", "replaced", "promoted", "demoted")}


@dataclass(frozen=True)
class Change:
    """The rows of the new segment, and the totals and counts that its commit records.

    Attributes:
        tables: tables of `layout.SEGMENT` by name, without postings.
        gone: numbers of the removed documents, ascending.
        totals: by table, what is added to its row count and digest.
        counts: candidates, touched documents, and changes by cause.
        shingled: the new rows of SHINGLES.
    """

    tables: dict[str, pa.Table]
    gone: NDArray[np.int64]
    components: int
    totals: Totals
    counts: dict[str, int] = field(default_factory=dict)
    shingled: Sequence[tuple[int, Row]] = ()


class Touched(NamedTuple):
    """The stored documents of the touched components, ascending by number: their DOCUMENTS and STATE rows."""

    documents: pa.Table
    state: pa.Table

    @property
    def keys(self) -> NDArray[np.int64]:
        """Their numbers."""
        return np.asarray(self.documents["doc_key"].to_numpy())

    @property
    def components(self) -> NDArray[np.int64]:
        """Their distinct components, ascending."""
        return distinct(self.state["component_key"].to_numpy())

    def only(self, chosen: NDArray[np.bool_]) -> "Touched":
        """Return the chosen documents."""
        return Touched(*(table.filter(pa.array(chosen)) for table in self))


def make_change(
    snapshot: Snapshot,
    added: pa.Table,
    gone: NDArray[np.int64],
    workers: Workers,
    source: Collection | pa.Table | None = None,
) -> Change:
    """Return the tables, totals and counts of the next version.

    Args:
        snapshot: the version before.
        added: DOCUMENTS of a run, numbered by the repository; their ids are not live, except for documents in `gone`.
        gone: numbers of the live documents to remove.
        source: what the documents were read from; needed where all shingles decide.

    Cost: grows with the batch and the components it touches.
    """
    batch = name_batch(snapshot, added, workers, source)
    touched = _touch(snapshot, batch, gone)
    stays = touched.only(~np.isin(touched.keys, gone))
    scope = _scope_of(snapshot, added, batch, stays)
    closed = close(scope, snapshot.identity, workers)
    reported = _settle(snapshot, scope, closed, stays)
    settled, stored = reported, np.ones(len(scope.nodes), np.bool_)
    if snapshot.identity.store == "kept":
        # A new document with a kept near-duplicate is reported but not stored, so components form without it.
        stored = reported.kept | (np.arange(len(stored)) < len(stays.keys))
        scope = scope.only(stored)
        closed = close(scope, snapshot.identity, workers)
        settled = _settle(snapshot, scope, closed, stays)

    n_stay, components = len(stays.keys), touched.components
    changes = list_changes(touched.documents["doc_id"], touched.state, reported, gone)
    is_new = np.flatnonzero(stored)[n_stay:] - n_stay
    tables = {
        **_document_tables(snapshot, added.take(pa.array(is_new)), batch, batch.nodes[is_new]),
        "gone": touched.only(np.isin(touched.keys, gone)).documents.select(GONE.names),
        "replaced": pa.Table.from_arrays([pa.array(components)], schema=REPLACED.arrow),
        "changes": changes,
    }
    first = snapshot.commit.next_component
    closed = closed._replace(keep=settled.keep)  # what is stored is what is digested
    tables |= _result_tables(closed, settled, first)
    made, tables["digests"] = make_totals(closed, first)
    ids = touched.documents["doc_id"]
    totals = made - replaced_totals(snapshot.digests_of(components), touched.state.append_column("doc_id", ids))
    counts = {"candidates": closed.candidates, "touched": len(touched.keys), **count_changes(changes)}
    n_components = int(closed.components.max(initial=-1)) + 1
    shingled = batch.shingled(tables["sketches"]["node"].to_numpy())
    return Change(tables, gone, n_components, totals, counts, shingled)


def _touch(snapshot: Snapshot, batch: BatchNodes, gone: NDArray[np.int64]) -> Touched:
    nodes = distinct(np.concatenate([batch.nodes, batch.near]))
    met = distinct(np.concatenate([snapshot.find_documents(nodes).rows, gone]))
    components = distinct(snapshot.state_of(met)["component_key"].to_numpy())
    keys = snapshot.documents_in(components)
    return Touched(snapshot.documents_of(keys), snapshot.state_of(keys))


def _scope_of(snapshot: Snapshot, added: pa.Table, batch: BatchNodes, stays: Touched) -> Scope:
    """Return the touched documents that stay, then the new ones."""
    version, first = snapshot.commit.version + 1, snapshot.commit.next_key

    def read(nodes: NDArray[np.int64]) -> list[Row]:
        stored, places = np.unique(nodes, return_inverse=True)
        is_new = stored >= first
        rows = snapshot.shingles_of(stored[~is_new])  # the numbers of new ones come after all others
        rows += [batch.rows[place] for place in np.searchsorted(batch.new, stored[is_new]).tolist()]
        return [rows[place] for place in places.tolist()]

    return Scope(
        documents=pa.concat_tables([as_of_run(snapshot, stays.documents), added.select(RUN_DOCUMENTS.names)]),
        nodes=np.concatenate([stays.documents["node"].to_numpy(), batch.nodes]),
        versions=np.concatenate([stays.documents["version"].to_numpy(), np.full(len(added), version)]),
        was_kept=np.concatenate([np.asarray(stays.state["kept"]), np.zeros(len(added), np.bool_)]),
        read=read,
    )


def as_of_run(snapshot: Snapshot, rows: pa.Table) -> pa.Table:
    """Return stored DOCUMENTS as DOCUMENTS of a run, in the same order; `group` is the document's own id."""
    sketches = snapshot.sketches_of(rows["node"].to_numpy())
    lists = lists_of(sketches.offsets, pa.array(sketches.values.view(np.int64)))
    whole = rows.append_column("group", rows["doc_id"]).append_column("sketch", lists)
    for column in RUN_DOCUMENTS.columns:
        if column.name not in whole.schema.names:
            whole = whole.append_column(column.name, pa.nulls(len(whole), TYPES[column.type]))
    return whole.select(RUN_DOCUMENTS.names).cast(RUN_DOCUMENTS.arrow)


def _settle(snapshot: Snapshot, scope: Scope, closed: Closed, stays: Touched) -> Settled:
    """Return the new state of each document; in a frozen repository `duplicate_of` stays while its target lives."""
    keys = scope.documents["doc_key"].to_numpy()
    ids, keep = scope.documents["doc_id"].combine_chunks(), closed.keep
    at = pc.index_in(keep["duplicate_of"].combine_chunks(), value_set=ids)
    targets = np.where(np.asarray(pc.is_valid(at)), keys[np.asarray(pc.fill_null(at, 0))], -1) if len(keys) else keys
    n_stay = len(stays.keys)
    reasons, leads = (keep[name].combine_chunks() for name in ("reason", "leader"))
    settled = Settled(keys, ids, np.asarray(keep["kept"]), targets, reasons, leads, n_stay)
    return settled.with_lasting(stays.state) if snapshot.identity.mode == "frozen" and n_stay else settled


def _document_tables(
    snapshot: Snapshot, added: pa.Table, batch: BatchNodes, nodes: NDArray[np.int64]
) -> dict[str, pa.Table]:
    version = pa.array(np.full(len(added), snapshot.commit.version + 1))
    documents = added.append_column("node", pa.array(nodes)).append_column("version", version)
    is_held = np.isin(batch.new, nodes)
    return {
        "documents": documents.select(DOCUMENTS.names).cast(DOCUMENTS.arrow),
        "sketches": batch.sketches.filter(pa.array(is_held)),
    }


def _result_tables(closed: Closed, settled: Settled, first: int) -> dict[str, pa.Table]:
    columns = [
        pa.array(settled.keys),
        pa.array(closed.components + first),
        closed.documents["group"],
        pa.array(settled.kept),
        settled.duplicate_of,
        pa.array(settled.targets, mask=settled.targets < 0),
        settled.reasons,
        settled.leads,
    ]
    tables = {"state": pa.Table.from_arrays(columns, names=STATE.names).cast(STATE.arrow)}
    for name, (rows, components) in closed.results.items():
        keyed = rows.add_column(0, "component_key", pa.array(components + first))
        tables[name] = keyed.select(RESULTS[name].names)
    return tables
