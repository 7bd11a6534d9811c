"""What a finished run stores for a later one that goes on from it.

    Old.nothing, Old.open   a folder      -> Old: its documents and rejects, and the tables of `ONTO`
    Old.without             lists of ids  -> the same, without some documents
    StoredShingles.take     which rows    -> these alone; the others are decoded, but never held

A stored node is the `doc_key` of any of its documents: another may name their group in a later run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.errors import OutputError
from nddup.ground.columns import one_chunk
from nddup.stages.onto import WITHOUT_REVISITS, open_noted
from nddup.storage.local_folder import LocalFolder
from nddup.tables import DOCUMENTS, ONTO, REJECTS, SHINGLES, TAKEN_OUT, table_called

HELD = tuple(name for name in ONTO if name != "shingles")
"""The tables of `ONTO` that are read whole."""

NO_NODE = -1
"""In place of a node of which no document is left."""

NODES_IN = (("candidates", "node_a"), ("candidates", "node_b"), ("shingles", "node"))
"""Columns that name stored nodes; they are never null."""


class StoredShingles(NamedTuple):
    """SHINGLES of a run, k rows, of which the nodes are held."""

    nodes: NDArray[np.int64]
    """(k,), in the order in which they are stored; `NO_NODE` where no document is left."""

    scan: Callable[[], Iterator[pa.RecordBatch]]
    """Reads the rows, some at a time."""

    def take(self, is_wanted: NDArray[np.bool_]) -> pa.Table:
        """Return the rows, of k, that are wanted, under the names of `nodes`. All are decoded, if any is wanted."""
        chosen, at = [SHINGLES.arrow.empty_table()], 0
        for batch in self.scan() if is_wanted.any() else ():
            rows, at = slice(at, at + len(batch)), at + len(batch)
            left = batch.filter(pa.array(is_wanted[rows]))
            nodes = pa.array(self.nodes[rows][is_wanted[rows]])
            chosen.append(pa.table({"node": nodes, "shingles": left["shingles"]}).cast(SHINGLES.arrow))
        return pa.concat_tables(chosen)


@dataclass(frozen=True)
class Old:
    """The tables of the finished run that a run goes on from; all are empty for a first one."""

    documents: pa.Table
    rejects: pa.Table
    table: Callable[[str], pa.Table]
    """Reads another table of the run."""
    stored: Mapping[str, pa.Table]
    """The tables of `ONTO`, by name, but for SHINGLES."""
    shingles: StoredShingles
    noted: Mapping[str, Any] = field(default_factory=dict)
    """What is noted with its documents."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """As in its `metrics.json`."""
    is_in_order: bool = True
    """Whether its documents are stored in their order."""
    taken: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    """The ids of the documents that are taken out, now or by a run before."""

    @classmethod
    def nothing(cls) -> "Old":
        """Return what a first run goes on from."""
        stored = {name: ONTO[name].arrow.empty_table() for name in HELD}
        shingles = StoredShingles(np.empty(0, np.int64), lambda: iter(()))
        documents, rejects = DOCUMENTS.arrow.empty_table(), REJECTS.arrow.empty_table()
        return cls(documents, rejects, lambda name: table_called(name).arrow.empty_table(), stored, shingles)

    @classmethod
    def open(cls, path: str, values: int | None = None) -> "Old":
        """Read the tables of a finished run.

        Args:
            values: those in each list of `policy`; None: any number.

        Raises:
            OutputError: if it is no finished run, or a table is damaged.
            ConfigError: if it kept nothing for a later run.
        """
        folder = LocalFolder(path)
        noted = open_noted(folder, ONTO)
        stored, nodes = {name: folder.read_sound(name, values) for name in HELD}, folder.read("shingles", ["node"])
        stored["given"] = stored["given"].sort_by("doc_key")  # as Spark wrote it, it has no order
        documents = folder.read_sound("documents", values)
        is_in_order = _ascends(documents["doc_key"].to_numpy())
        if not is_in_order:  # Spark wrote them
            documents = documents.sort_by("doc_key")
        is_copy = pc.equal(documents["record_type"], "revisit")
        copies = documents["doc_key"].filter(is_copy)
        if not pc.all(pc.is_in(copies, one_chunk(stored["given"]["doc_key"])), min_count=0).as_py():
            raise OutputError(f"--onto {path}: {WITHOUT_REVISITS}")
        if fault := find_fault(documents, {**stored, "shingles": nodes}):
            raise OutputError(f"{path}: holds what nddup does not write: {fault}")
        shingles = StoredShingles(nodes["node"].to_numpy(), folder.scan_shingles)
        read, notes = (documents, folder.read_sound("rejects")), (noted.documents, noted.metrics)
        return cls(*read, folder.read_sound, stored, shingles, *notes, is_in_order=is_in_order)

    @property
    def is_forced(self) -> bool:
        """Whether documents were forced in the run."""
        return bool(self.metrics) and self.metrics["settings"]["keep"].get("force") is not None

    @property
    def is_crowded(self) -> bool:
        """Whether sketches were heavy in the run: which families they join depends on all documents."""
        return bool(self.metrics) and self.metrics["stages"]["pairs"]["crowd"] > 0

    @cached_property
    def n_records(self) -> int:
        """The records of the run, which its documents are numbered among."""
        is_document = _are_among(self.documents["doc_key"].to_numpy(), self.stored["given"]["doc_key"].to_numpy())
        return len(self.documents) + int(np.count_nonzero(~is_document))

    def without(self, readings: Sequence[Sequence[str]]) -> "Old":
        """Return what is stored without the documents that a list names; a node that others share has another name.

        Args:
            readings: the ids of the list, in each way in which it can be read; the one with most known ids counts.
        """
        ids, rejects = one_chunk(self.documents["doc_id"]), self.rejects
        counted = [(pc.sum(pc.is_in(ids, pa.array(one, pa.string()))).as_py() or 0, one) for one in readings]
        named = max(counted, key=lambda one: one[0], default=(0, []))[1]
        before = rejects.filter(pc.equal(rejects["reason"], TAKEN_OUT))["doc_id"]
        gone = pc.unique(pa.concat_arrays([pa.array(named, pa.string()), *before.chunks]))
        return replace(self.renamed(~np.asarray(pc.is_in(ids, gone))), taken=gone)

    @property
    def has_revisits(self) -> bool:
        """Whether a record was a revisit: a later one may be what it repeats."""
        return bool(pc.any(pc.equal(self.stored["given"]["reason"], "revisit")).as_py())

    def renamed(self, is_left: NDArray[np.bool_]) -> "Old":
        """Return the same with shingles under the names that their nodes have among the documents that are left."""
        if is_left.all():
            return self
        keys = self.documents["doc_key"].to_numpy()
        codes = one_chunk(self.documents["group"]).dictionary_encode().indices.to_numpy()
        after = np.full(codes.max() + 1, NO_NODE, np.int64)
        left = np.flatnonzero(is_left)[::-1]
        after[codes[left]] = keys[left]  # of several documents the last one written, the first, stays
        named = self.shingles.nodes.copy()
        is_there = named != NO_NODE
        named[is_there] = after[codes[np.searchsorted(keys, named[is_there])]]
        return replace(self, shingles=self.shingles._replace(nodes=named))


def find_fault(documents: pa.Table, stored: Mapping[str, pa.Table]) -> str | None:
    """Return what in the tables of a run would lead outside of an array; None where nothing does.

    The folder may be anyone's, and its digests are its writer's own.

    Cost: one pass over the numbers.
    """
    return next(_faults_of(documents, stored), None)


def _faults_of(documents: pa.Table, stored: Mapping[str, pa.Table]) -> Iterator[str]:
    keys, given = documents["doc_key"].to_numpy(), stored["given"]["doc_key"].to_numpy()
    if not _ascends(keys):
        yield "documents.doc_key does not ascend"
    given = np.sort(given)
    others = given[~_are_among(keys, given)]
    last = max((int(numbers[-1]) for numbers in (keys, others) if len(numbers)), default=-1)
    if last + 1 != len(keys) + len(others) or not _ascends(given):
        yield "documents and given do not number the records, each once"
    for name, column in NODES_IN:
        nodes = stored[name][column]
        if nodes.null_count:
            yield f"{name}.{column} holds a null"
            nodes = nodes.drop_null()
        if not _are_among(keys, nodes.to_numpy()).all():
            yield f"{name}.{column} names no document"


def _are_among(keys: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each value is among keys that ascend. A set of a million keys would cost half a second."""
    at = np.searchsorted(keys, values)
    is_there = at < len(keys)
    is_there[is_there] = keys[at[is_there]] == values[is_there]
    return is_there


def _ascends(values: NDArray[np.int64]) -> bool:
    return bool(np.all(np.diff(values) > 0))
