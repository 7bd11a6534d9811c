"""Merge several segments into one: drop what is not live, and rebuild the postings in one order of features.

A new segment takes in the last one while it is over half its size, so segments are few, and a document is rewritten
about as often as its segment doubles.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.columns import ragged_of
from nddup.local.pairing.confirm import Row
from nddup.repository.lookup.keyed import is_among
from nddup.repository.lookup.meetings import Matching, build_postings, spread_rows
from nddup.repository.make_change import Change
from nddup.repository.segments.commits import Segment
from nddup.repository.segments.layout import COMMON, POSTINGS, RESULTS, SEGMENT
from nddup.repository.segments.segment_files import read_table
from nddup.repository.snapshot import Snapshot

BY_COMPONENT = ("state", "digests", *RESULTS)


def size_of(rows: Mapping[str, int]) -> int:
    """Return the size that decides merges: documents or rows of `state`, whichever are more, at least 1."""
    return max(rows.get("documents", 0), rows.get("state", 0), 1)


def choose_merged(segments: Sequence[Segment], tables: Mapping[str, pa.Table]) -> int:
    """Return how many segments a new one takes in: the last one, as long as the merged size is over half of its."""
    size, count = size_of({name: len(table) for name, table in tables.items()}), 0
    while count < len(segments) and 2 * size > size_of(segments[-1 - count].rows):
        size += size_of(segments[-1 - count].rows)
        count += 1
    return count


def merge(snapshot: Snapshot, segments: Sequence[Segment], change: Change) -> dict[str, pa.Table]:
    """Return the tables of one segment that replaces some and adds a change to them; without postings.

    Args:
        snapshot: the version before.
        segments: the last segments of the snapshot, in order, that are merged; may be empty.
        change: the new rows, and the documents removed.

    Cost: reads the segments and holds them in memory.
    """
    if not segments:
        return dict(change.tables)
    whole = {
        name: pa.concat_tables(
            [
                *(read_table(snapshot.repo, segment, name) for segment in segments),
                *([change.tables[name]] if name in change.tables else []),
            ]
        )
        for name in SEGMENT
        if name not in ("postings", "common", "changes", "shingles")
    }
    documents, state = whole["documents"], whole["state"]
    replaced = change_gone(whole)
    after = _Afterwards(snapshot, change)
    stays = {
        "documents": after.live(documents["doc_key"]),
        "texts": after.live(whole["texts"]["doc_key"]),
        "sketches": after.live_nodes(whole["sketches"]["node"]),
        "edges": after.live_nodes(whole["edges"]["node_a"]) & after.live_nodes(whole["edges"]["node_b"]),
        "gone": ~np.isin(whole["gone"]["doc_key"].to_numpy(), documents["doc_key"].to_numpy()),
        "replaced": ~np.isin(whole["replaced"]["component_key"].to_numpy(), state["component_key"].to_numpy()),
    }
    for name in BY_COMPONENT:
        stays[name] = ~np.isin(whole[name]["component_key"].to_numpy(), replaced)
    merged = {name: table.filter(pa.array(stays[name])) for name, table in whole.items()}
    return merged | {"changes": change.tables["changes"]} if "changes" in change.tables else merged


def merge_shingles(snapshot: Snapshot, segments: Sequence[Segment], change: Change) -> Iterator[tuple[int, Row]]:
    """Yield the rows of SHINGLES of live nodes: those of some last segments of the snapshot, then those of a change.

    Raises:
        OutputError: if a row that is read is not that of its node.

    Cost: reads the rows one after another; no segment is held in memory.
    """
    after, first = _Afterwards(snapshot, change), len(snapshot.commit.segments) - len(segments)
    for number in range(first, len(snapshot.commit.segments)):
        stored = snapshot.shingles[number]
        for node, row in stored.only(after.live_nodes(pa.chunked_array([pa.array(stored.nodes)]))):
            snapshot.require_own(number, node, row)
            yield node, row
    yield from change.shingled


class _Afterwards(NamedTuple):
    """The documents and sketches that are live after a change."""

    snapshot: Snapshot
    change: Change

    def live(self, keys: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return whether each document is live, (n,)."""
        numbers = keys.to_numpy()
        return ~self.snapshot.are_gone(numbers) & ~is_among(numbers, self.change.gone)

    def live_nodes(self, nodes: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return whether each distinct sketch has a live document, (n,)."""
        numbers = nodes.to_numpy()
        new = self.change.tables.get("documents")
        found = np.zeros(len(numbers), np.bool_) if new is None else np.isin(numbers, new["node"].to_numpy())
        which, keys = self.snapshot.find_documents(numbers)
        found[which[~is_among(keys, self.change.gone)]] = True
        return found


def change_gone(tables: Mapping[str, pa.Table]) -> NDArray[np.int64]:
    """Return the components whose rows no longer count, from the joined tables."""
    return np.asarray(tables["replaced"]["component_key"].to_numpy())


def with_postings(tables: Mapping[str, pa.Table], matching: Matching) -> dict[str, pa.Table]:
    """Return the tables sorted by their keys, with the postings and common features of the sketches."""
    keys = {"documents": "doc_key", "texts": "doc_key", "sketches": "node", "edges": "node_a", "state": "component_key"}
    keys |= dict.fromkeys(("digests", *RESULTS), "component_key")
    sorted_tables = {name: table.sort_by(keys[name]) if name in keys else table for name, table in tables.items()}
    sketches = sorted_tables["sketches"]
    ids = ragged_of(sketches["sketch"])
    rows = spread_rows(sketches["node"].to_numpy(), ids, sketches["n_features"].to_numpy(), matching)
    made = build_postings(rows, matching)
    posted = [pa.array(column.astype(np.int64)) for column in (made.features, made.holders, made.places)]
    common = [pa.array(made.common.astype(np.int64)), pa.array(made.common_holders)]
    return {
        **sorted_tables,
        "postings": pa.Table.from_arrays(posted, names=POSTINGS.names).cast(POSTINGS.arrow),
        "common": pa.Table.from_arrays(common, names=COMMON.names).cast(COMMON.arrow),
    }
