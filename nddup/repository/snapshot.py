"""One version of a repository, opened for reading: what lives in it, and what is stored of some of it.

A snapshot never changes: what a writer commits meanwhile is another version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.arrays import Ragged
from nddup.errors import OutputError
from nddup.local.columns import one_chunk
from nddup.repository.identity import Identity
from nddup.repository.lookup.meetings import Matching, Near, Rows, find_near
from nddup.repository.places.place import Place
from nddup.repository.segments.commits import Commit
from nddup.repository.segments.mapped import MappedSegment, map_segment, take_sketches
from nddup.repository.segments.segment_files import among, read_all


class Catalogue(NamedTuple):
    """The n live documents, ascending by number: narrow columns, which are read whole."""

    keys: NDArray[np.int64]
    ids: pa.Array
    nodes: NDArray[np.int64]
    versions: NDArray[np.int64]
    components: NDArray[np.int64]
    kept: NDArray[np.bool_]

    def rows_of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of these numbers, all of which live."""
        return np.asarray(np.searchsorted(self.keys, keys))

    def find_ids(self, ids: pa.Array) -> NDArray[np.int64]:
        """The row of each id, (m,); -1 where it does not live."""
        found = pc.fill_null(pc.index_in(ids, value_set=self.ids), -1)
        return np.asarray(found).astype(np.int64)


class NodeIndex(NamedTuple):
    """The rows of the catalogue in the order of their nodes, and these nodes, both (n,)."""

    nodes: NDArray[np.int64]
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Snapshot:
    """A version: where it lies, its commit, and what the repository is."""

    repo: Place
    commit: Commit
    identity: Identity

    @cached_property
    def catalogue(self) -> Catalogue:
        """The live documents. Cost: narrow columns of all documents, and a sort of their numbers."""
        columns = ["doc_key", "doc_id", "node", "version"]
        documents = read_all(self.repo, self.commit.segments, "documents", columns)
        keys = documents["doc_key"].to_numpy()
        gone = read_all(self.repo, self.commit.segments, "gone", ["doc_key"])["doc_key"].to_numpy()
        live = np.flatnonzero(~np.isin(keys, gone))
        live = live[np.argsort(keys[live])]

        state = read_all(self.repo, self.commit.segments, "state", ["doc_key", "component_key", "kept"])
        replaced = read_all(self.repo, self.commit.segments, "replaced")["component_key"].to_numpy()
        components = state["component_key"].to_numpy()
        valid = np.flatnonzero(~np.isin(components, replaced))
        valid = valid[np.argsort(state["doc_key"].to_numpy()[valid])]
        if not np.array_equal(keys[live], state["doc_key"].to_numpy()[valid]):
            raise OutputError(
                f"{self.repo}: version {self.commit.version} has documents without a state; it is damaged"
            )
        chosen = documents.take(pa.array(live))
        return Catalogue(
            keys[live],
            one_chunk(chosen["doc_id"]),
            chosen["node"].to_numpy(),
            chosen["version"].to_numpy(),
            components[valid],
            np.asarray(state["kept"])[valid],
        )

    @cached_property
    def sources(self) -> pa.Array:
        """The file of each live document, in the order of the catalogue."""
        table = read_all(self.repo, self.commit.segments, "documents", ["doc_key", "source"])
        keys = table["doc_key"].to_numpy()
        order = np.argsort(keys)
        rows = order[np.searchsorted(keys[order], self.catalogue.keys)]
        return one_chunk(table["source"]).dictionary_encode().take(pa.array(rows))

    @cached_property
    def by_node(self) -> NodeIndex:
        """The live documents of each distinct sketch."""
        rows = np.argsort(self.catalogue.nodes, kind="stable")
        return NodeIndex(self.catalogue.nodes[rows], rows)

    @cached_property
    def live_nodes(self) -> NDArray[np.int64]:
        """The distinct sketches of live documents, ascending; empty ones among them."""
        return distinct(self.catalogue.nodes)

    @cached_property
    def mapped(self) -> Sequence[MappedSegment]:
        """The sketches and postings of each segment."""
        return [map_segment(self.repo, segment, self.identity.matching) for segment in self.commit.segments]

    def find_nodes(self, fingerprints: list[bytes]) -> NDArray[np.int64]:
        """The live node of each sketch, by its fingerprint, (m,); -1 where no live document has it."""
        wanted = pa.array(fingerprints, pa.binary())
        found = np.full(len(fingerprints), -1, np.int64)
        for segment in self.commit.segments:
            table = read_all(self.repo, [segment], "sketches", ["node", "sketch_fingerprint"])
            at = np.asarray(pc.fill_null(pc.index_in(one_chunk(table["sketch_fingerprint"]), value_set=wanted), -1))
            nodes = table["node"].to_numpy()
            here = np.flatnonzero((at >= 0) & np.isin(nodes, self.live_nodes))
            found[at[here]] = nodes[here]
        return found

    def find_near(self, given: Rows, matching: Matching) -> list[Near]:
        """The near-duplicates of given sketches among the live ones, segment by segment."""
        found = []
        for segment in self.mapped:
            near = find_near(segment.postings, given, matching)
            found.append(near.only(np.flatnonzero(is_among(near.stored, self.live_nodes))))
        return found

    def sketches_of(self, nodes: NDArray[np.int64]) -> Ragged:
        """The sketches of some nodes, in their order."""
        return take_sketches(self.mapped, nodes)

    def documents_of(self, keys: NDArray[np.int64]) -> pa.Table:
        """The stored rows of some documents, ascending by number."""
        return read_all(self.repo, self.commit.segments, "documents", where=among("doc_key", keys)).sort_by("doc_key")

    def state_of(self, keys: NDArray[np.int64], components: NDArray[np.int64]) -> pa.Table:
        """What became of some documents, ascending by number; `components` are theirs."""
        where = among("component_key", distinct(components))
        state = read_all(self.repo, self.commit.segments, "state", where=where)
        return state.filter(pa.array(np.isin(state["doc_key"].to_numpy(), keys))).sort_by("doc_key")

    def edges_of(self, nodes: NDArray[np.int64]) -> pa.Table:
        """The near-duplicate pairs of which both ends are among some nodes (ascending)."""
        where = among("node_a", nodes) & among("node_b", nodes)
        return read_all(self.repo, self.commit.segments, "edges", where=where)


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each value once, ascending: by a sort. `np.unique` hashes, and takes ten times as long for a million."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def is_among(values: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each value is one of some ascending ones, (n,). Cost: a look-up each."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.searchsorted(ascending, values)
    at[at == len(ascending)] = 0
    return np.asarray(ascending[at] == values)
