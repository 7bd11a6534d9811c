"""One version of a repository, opened for reading: its live documents, and the stored rows of chosen ones.

A snapshot never changes: whatever a writer commits meanwhile is another version. All look-ups go through the mapped
files of its segments, so their cost follows what is asked for, not what is stored.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded.confirm import Row
from nddup.errors import OutputError
from nddup.ground.arrays import Ragged
from nddup.ground.columns import WORDS, one_chunk
from nddup.matching.lookups import KeyHits, Matching, Near, Rows, distinct, find_near, find_rows, hash_strings, is_among
from nddup.repository.commits import Commit
from nddup.repository.identity import Identity
from nddup.repository.mapped import MappedSegment, map_segment, take_sketches
from nddup.repository.places import Place
from nddup.repository.segment_files import (
    DIGESTS,
    DOCUMENTS,
    STATE,
    StoredShingles,
    fingerprint_of,
    not_as_written,
    open_shingles,
)
from nddup.repository.sound_values import hold_common


@dataclass(frozen=True)
class Snapshot:
    """A version: the place of its repository, its commit, and the repository's identity."""

    repo: Place
    commit: Commit
    identity: Identity

    @cached_property
    def mapped(self) -> Sequence[MappedSegment]:
        """The segments, oldest first.

        Raises:
            OutputError: if one holds a number that no version has given, or two hold the same one.
        """
        segments = [map_segment(self.repo, segment, self.identity.matching) for segment in self.commit.segments]
        for one, segment in zip(self.commit.segments, segments, strict=True):
            given = [(segment.doc_keys, self.commit.next_key), (segment.nodes, self.commit.next_key)]
            given.append((segment.components, self.commit.next_component))
            if any(len(numbers) and numbers[-1] >= following for numbers, following in given):
                raise OutputError(f"{self.repo}: segments/{one.name} holds numbers that no version has given")
        for parts in ([one.doc_keys for one in segments], [one.nodes for one in segments]):
            if hold_common(parts):
                raise OutputError(f"{self.repo}: two segments hold the same number; the repository is damaged")
        return segments

    @cached_property
    def shingles(self) -> Sequence[StoredShingles]:
        """The shingle ids that each segment holds, opened when the first are needed."""
        return [open_shingles(self.repo, segment) for segment in self.commit.segments]

    @property
    def live_keys(self) -> NDArray[np.int64]:
        """The numbers of all live documents, ascending. Cost: linear in all stored documents, and a sort."""
        keys = np.sort(np.concatenate([np.empty(0, np.int64), *(segment.doc_keys for segment in self.mapped)]))
        return keys[~self.are_gone(keys)]

    def are_gone(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each document was removed, (n,)."""
        return _any(len(keys), (is_among(keys, segment.gone) for segment in self.mapped))

    def are_replaced(self, components: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the rows of each component no longer count, (n,)."""
        return _any(len(components), (is_among(components, segment.replaced) for segment in self.mapped))

    def find_ids(self, ids: pa.Array) -> NDArray[np.int64]:
        """Return the number of the live document with each id, (n,); -1 where there is none."""
        hashes, numbers = hash_strings(ids), np.full(len(ids), -1, np.int64)
        for segment in self.mapped:
            which, rows = segment.by_id.find(hashes)
            stored = one_chunk(segment.documents["doc_id"].take(pa.array(rows)))
            is_same = np.asarray(pc.equal(stored, ids.take(pa.array(which))))
            keys = segment.doc_keys[rows]
            is_live = is_same & ~self.are_gone(keys)
            numbers[which[is_live]] = keys[is_live]
        return numbers

    def find_documents(self, nodes: NDArray[np.int64]) -> KeyHits:
        """Return the live documents of some distinct sketches: the place of the sketch in `nodes`, and the number."""
        parts = []
        for segment in self.mapped:
            which, rows = segment.by_node.find(nodes)
            parts.append((which, segment.doc_keys[rows]))
        which, keys = _joined(parts)
        return KeyHits(which, keys).only(~self.are_gone(keys))

    def are_live(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether a live document has each distinct sketch, (n,)."""
        values = np.zeros(len(nodes), np.bool_)
        values[self.find_documents(nodes).which] = True
        return values

    def find_nodes(self, fingerprints: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the live node of each sketch, found by its fingerprint, (n,); -1 where no live document has it."""
        words = np.frombuffer(b"".join(fingerprints), np.uint64).reshape(-1, WORDS)
        values = np.full(len(words), -1, np.int64)
        for segment in self.mapped:
            which, rows = segment.prints.find(np.ascontiguousarray(words[:, 0]))
            nodes = segment.nodes[rows]
            is_here = (segment.print_ends[rows] == words[which, 1]) & self.are_live(nodes)
            values[which[is_here]] = nodes[is_here]
        return values

    def find_near(self, given: Rows, matching: Matching) -> list[Near]:
        """Return the near-duplicates of given sketches among the live ones, segment by segment."""
        by_segment = [find_near(segment.postings, given, matching) for segment in self.mapped]
        nodes = distinct(np.concatenate([np.empty(0, np.int64), *(near.stored for near in by_segment)]))
        live = nodes[self.are_live(nodes)]
        return [near.only(np.flatnonzero(is_among(near.stored, live))) for near in by_segment]

    def sketches_of(self, nodes: NDArray[np.int64]) -> Ragged:
        """Return the sketches of some nodes, in their order."""
        return take_sketches(self.mapped, nodes)

    def n_features_of(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of distinct shingles of some nodes, in their order."""
        values = np.zeros(len(nodes), np.int64)
        for segment in self.mapped:
            which, rows = find_rows(segment.nodes, nodes)
            values[which] = segment.n_features[rows]
        return values

    def shingles_of(self, nodes: NDArray[np.int64]) -> list[Row]:
        """Return where the shingle ids of some distinct nodes lie, in their order: in whole sketches, or in SHINGLES.

        Raises:
            OutputError: if a row is missing, or is not that of its node.

        Cost: look-ups, and reads the rows beside for their fingerprints; no other row.
        """
        places: list[Row | None] = [None] * len(nodes)
        for number, segment in enumerate(self.mapped):
            which, rows = find_rows(segment.nodes, nodes)
            low, high = segment.sketches.offsets[rows], segment.sketches.offsets[rows + 1]
            is_whole = (high - low == segment.n_features[rows]) & self.identity.is_front
            for i in np.flatnonzero(is_whole).tolist():
                places[which[i]] = Row(segment.sketches.values, int(low[i]), int(high[i]))
            if is_whole.all():
                continue
            beside, stored = nodes[which[~is_whole]], self.shingles[number]
            at = find_rows(stored.nodes, beside)
            for i, place in zip(at.which.tolist(), at.rows.tolist(), strict=True):
                row = stored.row(place)
                self.require_own(number, int(beside[i]), row)
                places[which[~is_whole][i]] = row
        lost = sum(row is None for row in places)
        if lost:
            raise OutputError(f"{self.repo}: version {self.commit.version} lacks the shingles of {lost:,} texts; it is"
                              " damaged")  # fmt: skip
        return [row for row in places if row is not None]

    def require_own(self, number: int, node: int, row: Row) -> None:
        """Compare the shingle ids of a node, stored in a segment, with its fingerprint.

        Raises:
            OutputError: if they differ.
        """
        segment = self.mapped[number]
        at = int(np.searchsorted(segment.nodes, node))
        if int.from_bytes(fingerprint_of(row)[8:], sys.byteorder) != int(segment.print_ends[at]):
            raise not_as_written(self.repo, self.commit.segments[number], "shingles")

    def documents_of(self, keys: NDArray[np.int64], columns: Sequence[str] = DOCUMENTS.names) -> pa.Table:
        """Return the stored rows of some documents, ascending by number; `columns` must include `doc_key`."""
        parts = (
            (segment.documents.select(list(columns)), find_rows(segment.doc_keys, keys).rows) for segment in self.mapped
        )
        return _taken(parts, DOCUMENTS.arrow.empty_table().select(list(columns))).sort_by("doc_key")

    def state_of(self, keys: NDArray[np.int64]) -> pa.Table:
        """Return STATE of some live documents (ascending), in their order.

        Raises:
            OutputError: if a document has no row, or more than one.
        """
        parts = []
        for segment in self.mapped:
            rows = segment.by_document.find(keys).rows
            parts.append((segment.state, rows[~self.are_replaced(segment.components[rows])]))
        state = _taken(iter(parts), STATE.arrow.empty_table()).sort_by("doc_key")
        if not np.array_equal(state["doc_key"].to_numpy(), keys):
            raise OutputError(
                f"{self.repo}: version {self.commit.version} has documents without a state; it is damaged"
            )
        return state

    def documents_in(self, components: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the documents in some components that are not replaced, ascending."""
        parts = [np.empty(0, np.int64)]
        for segment in self.mapped:
            rows = find_rows(segment.components, components).rows
            parts.append(segment.state["doc_key"].take(pa.array(rows)).to_numpy())
        return np.sort(np.concatenate(parts))

    def digests_of(self, components: NDArray[np.int64]) -> pa.Table:
        """Return DIGESTS of some components."""
        parts = ((segment.digests, find_rows(_first(segment.digests), components).rows) for segment in self.mapped)
        return _taken(parts, DIGESTS.arrow.empty_table())


def _first(table: pa.Table) -> NDArray[np.int64]:
    return np.asarray(table.column(0).to_numpy())


def _any(n: int, parts: Iterator[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    flags = np.zeros(n, np.bool_)
    for part in parts:
        flags |= part
    return flags


def _joined(parts: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> tuple[NDArray[np.int64], ...]:
    nothing = np.empty(0, np.int64)
    return tuple(np.concatenate([nothing, *(part[column] for part in parts)]) for column in (0, 1))


def _taken(parts: Iterator[tuple[pa.Table, NDArray[np.int64]]], empty: pa.Table) -> pa.Table:
    return pa.concat_tables([empty, *(table.take(pa.array(rows)) for table, rows in parts if len(rows))])
