"""What a finished run stores for a later one that goes on from it.

    Old.nothing, Old.open   a folder      -> Old: its documents and rejects, and the tables of `ONTO`
    Old.without             lists of ids  -> the same, without some documents

A stored node is the least `doc_key` of its documents, which no later batch changes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.errors import ConfigError, OutputError
from nddup.ground.columns import one_chunk
from nddup.storage.local_folder import LocalFolder
from nddup.tables import DOCUMENTS, ONTO, REJECTS, TAKEN_OUT, table_called

SURE = {
    "candidates": ("node_a", "node_b"),
    "shingles": ("node", "shingles"),
}
"""Columns that are never null."""

NODES_IN = (("candidates", "node_a"), ("candidates", "node_b"), ("shingles", "node"))
"""Columns that name stored nodes."""


class Renamed(NamedTuple):
    """Stored nodes, ascending, and the name that each has now; -1 where no document is left."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]

    def of(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the names that stored nodes have now."""
        return self.after[np.searchsorted(self.before, nodes)]

    def rows_of(self, table: pa.Table, anew: NDArray[np.int64]) -> pa.Table:
        """Return the rows of a stored table whose nodes are left.

        Of CANDIDATES those of nodes whose pairs are found again go too.
        """
        columns = [name for name in ("node", "node_a", "node_b") if name in table.column_names]
        is_left = np.ones(len(table), np.bool_)
        for name in columns:
            now = self.of(table[name].to_numpy())
            is_left &= now >= 0
            if "shingles" not in table.column_names:
                is_left &= ~np.isin(now, anew)
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(now))
        return table.filter(pa.array(is_left))


@dataclass(frozen=True)
class Old:
    """The tables of the finished run that a run goes on from; all are empty for a first one."""

    documents: pa.Table
    rejects: pa.Table
    table: Callable[[str], pa.Table]
    """Reads another table of the run."""
    stored: Mapping[str, pa.Table]
    """The tables of `ONTO`, by name."""
    noted: Mapping[str, Any] = field(default_factory=dict)
    """What is noted with its documents and its candidates."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """As in its `metrics.json`."""
    anew: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """The stored nodes whose pairs are found again: those of a component with too many pairs, of which some go."""
    taken: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    """The ids of the documents that are taken out, now or by a run before."""

    @classmethod
    def nothing(cls) -> "Old":
        """Return what a first run goes on from."""
        stored = {name: table.arrow.empty_table() for name, table in ONTO.items()}
        return cls(DOCUMENTS.arrow.empty_table(), REJECTS.arrow.empty_table(), _empty, stored)

    @classmethod
    def open(cls, path: str) -> "Old":
        """Read the tables of a finished run.

        Raises:
            OutputError: if it is no finished run, or a table is damaged.
            ConfigError: if it kept nothing for a later run.
        """
        folder = LocalFolder(path)
        metrics = folder.open()
        notes = {name: folder.counted(name) for name in ("documents", *ONTO)}
        if notes["given"] and not notes["candidates"]:
            raise ConfigError(f"--onto {path}: this run was made on Spark, and goes on there: --engine spark")
        if not all(notes.values()):
            raise ConfigError(f"--onto {path}: this run kept nothing for a later one; run it with output.onto=true")
        noted = {**notes["documents"]["noted"], **notes["candidates"]["noted"]}
        if noted.get("heavy"):
            raise ConfigError(
                f"--onto {path}: pairs.max_postings took effect there, and what it left out is not kept; run all again"
            )
        stored = {name: folder.read(name) for name in ONTO}
        documents = folder.read("documents")
        if fault := find_fault(documents, stored):
            raise OutputError(f"{path}: holds what nddup does not write: {fault}")
        return cls(documents, folder.read("rejects"), folder.read, stored, noted, metrics)

    @property
    def is_forced(self) -> bool:
        """Whether documents were forced in the run."""
        return bool(self.metrics) and self.metrics["settings"]["keep"].get("force") is not None

    @property
    def n_records(self) -> int:
        """The records of the run, which its documents are numbered among."""
        is_document = pc.is_in(self.stored["given"]["doc_key"], one_chunk(self.documents["doc_key"]))
        return len(self.documents) + int(pc.sum(pc.invert(is_document)).as_py() or 0)

    def without(self, readings: Sequence[Sequence[str]]) -> "Old":
        """Return what is stored without the documents that a list names; a node that others share has another name.

        Args:
            readings: the ids of the list, in each way in which it can be read; that of which most are known counts.
        """
        ids, rejects = one_chunk(self.documents["doc_id"]), self.rejects
        counted = [(pc.sum(pc.is_in(ids, pa.array(one, pa.string()))).as_py() or 0, one) for one in readings]
        named = max(counted, key=lambda one: one[0], default=(0, []))[1]
        before = rejects.filter(pc.equal(rejects["reason"], TAKEN_OUT))["doc_id"]
        gone = pc.unique(pa.concat_arrays([pa.array(named, pa.string()), *before.chunks]))
        return replace(self._rename(gone), taken=gone)

    def _rename(self, gone: pa.Array) -> "Old":
        is_gone = np.asarray(pc.is_in(one_chunk(self.documents["doc_id"]), gone))
        if not is_gone.any():
            return self
        keys = self.documents["doc_key"].to_numpy()
        codes = one_chunk(self.documents["group"]).dictionary_encode().indices.to_numpy()
        before, after = np.empty(codes.max() + 1, np.int64), np.full(codes.max() + 1, -1, np.int64)
        before[codes[::-1]] = keys[::-1]
        after[codes[~is_gone][::-1]] = keys[~is_gone][::-1]
        order = np.argsort(before)
        renamed = Renamed(before[order], after[order])

        large = self.stored["candidates"].filter(pc.is_valid(self.stored["candidates"]["pairs"]))
        ends = np.stack([large[name].to_numpy() for name in ("node_a", "node_b")], axis=1)
        roots = np.unique(ends[(renamed.of(ends) < 0).any(axis=1), 0])
        anew = np.unique(ends[np.isin(ends[:, 0], roots)])
        anew = renamed.of(anew)
        stored = {name: renamed.rows_of(table, anew) for name, table in self.stored.items() if name != "given"}
        return replace(self, stored={**self.stored, **stored}, anew=anew[anew >= 0])


def find_fault(documents: pa.Table, stored: Mapping[str, pa.Table]) -> str | None:
    """Return what in the tables of a run would lead outside of an array; None where nothing does.

    The folder may be anyone's, and its digests are its writer's own.

    Cost: one pass over the numbers.
    """
    return next(_faults_of(documents, stored), None)


def _faults_of(documents: pa.Table, stored: Mapping[str, pa.Table]) -> Iterator[str]:
    nulls = [f"{name}.{column}" for name, of in SURE.items() for column in of if stored[name][column].null_count]
    nulls += [f"documents.{column}" for column in ("doc_key", "n_features") if documents[column].null_count]
    yield from (f"{name} is null" for name in nulls)
    keys = documents["doc_key"].to_numpy()
    if not _ascends(keys):
        yield "documents.doc_key does not ascend"
    for name, column in NODES_IN:
        nodes = stored[name][column].drop_null().to_numpy()
        at = np.minimum(np.searchsorted(keys, nodes), max(len(keys) - 1, 0))
        if len(nodes) and (not len(keys) or not np.array_equal(keys[at], nodes)):
            yield f"{name}.{column} names no document"


def _ascends(values: NDArray[np.int64]) -> bool:
    return bool(np.all(np.diff(values) > 0))


def _empty(name: str) -> pa.Table:
    return table_called(name).arrow.empty_table()
