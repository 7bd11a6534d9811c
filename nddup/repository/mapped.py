"""A segment as memory-mapped arrays and tables: only the pages that are touched are read.

The mapped files lie in `mapped-6/` beside the Parquet files and are made from them: where they are missing they are
made again, in memory if the folder cannot be written. They are never the only copy. `digests.json` holds the size and
the CRC-32 of each; they are compared whenever the folder is opened, and where one differs the folder is made again. So
it is where an array leads outside of another (`sound_values`): the digests are their writer's own.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.errors import OutputError
from nddup.ground.array_files import crc_of, map_array, write_array
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import fingerprints_of, one_chunk, ragged_of
from nddup.matching.lookups import Keyed, Matching, Postings, Rows, hash_strings, key_rows, spread_rows
from nddup.repository.commits import Segment
from nddup.repository.places import SEGMENTS, Place, opened_folder
from nddup.repository.segment_files import SEGMENT, read_table, require_file
from nddup.repository.sound_values import find_fault, find_fault_in_table

FOLDER, DIGESTS = "mapped-6", "digests.json"

TABLES = ("documents", "state", "digests")
"""Tables whose rows are looked up: stored uncompressed, ordered by their first column, `state` by component."""

READ = (*TABLES, "sketches", "postings", "common", "gone", "replaced")
"""Tables that the mapped files are made from."""


@dataclass(frozen=True)
class MappedSegment:
    """A mapped segment of n documents, k distinct sketches and r rows of `state`.

    Attributes:
        nodes: (k,), ascending.
        n_features: (k,), of each node.
        sketches: k rows, in the order of the nodes.
        postings: the posting lists by which given sketches find these.
        prints: the rows of the sketches by the first word of their fingerprint.
        print_ends: (k,), the second word of the fingerprint of each sketch.
        documents: DOCUMENTS, ascending by number.
        doc_keys: (n,), these numbers.
        by_id: the rows of the documents by the hash of their id.
        by_node: the rows of the documents by their distinct sketch.
        state: STATE, ascending by component.
        components: (r,), these components.
        by_document: the rows of `state` by the number of the document.
        digests: DIGESTS, ascending by component.
        gone: numbers of the documents that the segment removes, ascending.
        replaced: the components whose rows the segment invalidates, ascending.
    """

    nodes: NDArray[np.int64]
    n_features: NDArray[np.int32]
    sketches: Ragged
    postings: Postings
    prints: Keyed
    print_ends: NDArray[np.uint64]
    documents: pa.Table
    doc_keys: NDArray[np.int64]
    by_id: Keyed
    by_node: Keyed
    state: pa.Table
    components: NDArray[np.int64]
    by_document: Keyed
    digests: pa.Table
    gone: NDArray[np.int64]
    replaced: NDArray[np.int64]


class Parts(NamedTuple):
    """The content of the mapped folder, by name."""

    arrays: Mapping[str, NDArray[Any]]
    tables: Mapping[str, pa.Table]


def map_segment(repo: Place, segment: Segment, matching: Matching) -> MappedSegment:
    """Map a segment; make the mapped files first where they are missing.

    Raises:
        OutputError: if a Parquet file they are made from is missing, is not the one that was written, or holds other
            values than nddup writes.
    """
    folder = repo.folder / SEGMENTS / segment.name / FOLDER
    for name in READ:
        if segment.rows.get(name):
            require_file(repo, segment, name)
    parts = _try_map(folder, matching)
    if parts is None:
        made = make_parts(repo, segment, matching)
        _set_aside(folder)
        parts = (_try_map(folder, matching) if _store(folder, made) else None) or made
    return as_segment(parts, matching)


def _try_map(folder: Path, matching: Matching) -> Parts | None:
    """Map a folder; None if it is not there, not what was written, or leads outside of its arrays."""
    if not _is_whole(folder):
        return None
    try:
        parts = _map_parts(folder)
        return None if _find_fault(parts, matching) else parts
    except (OSError, ValueError, TypeError, LookupError, MemoryError, pa.ArrowException):  # or removed as it is read
        return None


def _find_fault(parts: Parts, matching: Matching) -> str | None:
    for name in TABLES:
        if name not in parts.tables:
            return f"{name} is missing"
        if fault := find_fault_in_table(parts.tables[name], SEGMENT[name].arrow):
            return f"{name}: {fault}"
        if parts.tables[name].column_names != SEGMENT[name].names:
            return f"{name}: other columns than the table has"
    return find_fault(parts.arrays, parts.tables, is_levelled=bool(matching.levels))


def _is_whole(folder: Path) -> bool:
    """Return whether a mapped folder holds the files that were written, bit for bit, and neither links nor others.

    Cost: reads all of them.
    """
    try:
        there = {entry.name: entry for entry in os.scandir(folder)}
        if folder.is_symlink() or not all(entry.is_file(follow_symlinks=False) for entry in there.values()):
            return False
        del there[DIGESTS]
        noted = json.loads((folder / DIGESTS).read_bytes())
        return there.keys() == noted.keys() and all(
            entry.stat().st_size == noted[name][0] and crc_of(Path(entry.path)) == noted[name][1]
            for name, entry in there.items()
        )
    except (OSError, ValueError, AttributeError, TypeError, IndexError, KeyError, RecursionError):
        return False


def _set_aside(folder: Path) -> None:
    """Remove a damaged mapped folder, if there is one; readers that have mapped its files keep them."""
    aside = f".{FOLDER}-{token_hex(6)}"
    with suppress(OSError), opened_folder(folder.parent.parent) as all_, opened_folder(folder.parent.name, all_) as at:
        os.rename(folder.name, aside, src_dir_fd=at, dst_dir_fd=at)  # whole, so that no reader finds half of it
        shutil.rmtree(aside, ignore_errors=True, dir_fd=at)


def make_parts(repo: Place, segment: Segment, matching: Matching) -> Parts:
    """Make the arrays and tables of a segment from its Parquet files.

    Raises:
        OutputError: if one cannot be read, is not the one that was written, or holds other values than nddup writes.
    """
    read = {name: read_table(repo, segment, name) for name in READ}
    sketches, postings, common = read["sketches"], read["postings"], read["common"]
    documents, state = read["documents"], read["state"]
    rows = ragged_of(sketches["sketch"])
    nodes, n_features = sketches["node"].to_numpy(), sketches["n_features"].to_numpy()
    prints = fingerprints_of(sketches["sketch_fingerprint"])
    arrays: dict[str, NDArray[Any]] = {
        "nodes": nodes,
        "n_features": n_features,
        "sketch_offsets": rows.offsets,
        "sketch_ids": rows.values,
        "features": postings["feature"].to_numpy().astype(np.uint32),
        "holders": postings["row"].to_numpy(),
        "places": postings["place"].to_numpy(),
        "common": common["feature"].to_numpy().astype(np.uint32),
        "common_holders": common["holders"].to_numpy(),
        "print_ends": np.ascontiguousarray(prints[:, 1]),
        "gone": np.sort(read["gone"]["doc_key"].to_numpy()),
        "replaced": np.sort(read["replaced"]["component_key"].to_numpy()),
        **_keyed("prints", np.ascontiguousarray(prints[:, 0])),
        **_keyed("by_id", hash_strings(one_chunk(documents["doc_id"]))),
        **_keyed("by_node", documents["node"].to_numpy()),
        **_keyed("by_document", state["doc_key"].to_numpy()),
    }
    if matching.levels:
        spread = spread_rows(nodes, rows, n_features, matching)
        arrays |= {"row_names": spread.names, "row_offsets": spread.sketches.offsets, "row_ids": spread.sketches.values}
    parts = Parts(arrays, {name: read[name].combine_chunks() for name in TABLES})
    if fault := _find_fault(parts, matching):
        raise OutputError(f"{repo}: {SEGMENTS}/{segment.name} holds what nddup does not write: {fault}")
    return parts


def _keyed(name: str, keys: NDArray[Any]) -> dict[str, NDArray[Any]]:
    made = key_rows(keys)
    return {f"{name}-keys": made.keys, f"{name}-rows": made.rows}


def _store(folder: Path, parts: Parts) -> bool:
    """Write the parts to a draft folder, then rename it; return whether the folder exists now."""
    draft = folder.with_name(f".{FOLDER}-{token_hex(6)}")
    try:
        draft.mkdir()
        for name, array in parts.arrays.items():
            write_array(draft / f"{name}.array", array)
        for name, table in parts.tables.items():
            with pa.OSFile(str(draft / f"{name}.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        digests = {file.name: [file.stat().st_size, crc_of(file)] for file in draft.iterdir()}
        (draft / DIGESTS).write_text(json.dumps(digests), encoding="utf-8")
        try:
            os.rename(draft, folder)  # noqa: PTH104 - beside another process that does the same
        except OSError:
            return folder.exists()
    except OSError:
        return False
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _map_parts(folder: Path) -> Parts:
    arrays: dict[str, NDArray[Any]] = {}
    tables: dict[str, pa.Table] = {}
    for entry in os.scandir(folder):
        name, _, kind = entry.name.rpartition(".")
        if kind == "json":
            continue
        if kind == "array":
            arrays[name] = map_array(Path(entry.path))
        else:
            tables[name] = pa.ipc.open_file(pa.memory_map(entry.path)).read_all()
    return Parts(arrays, tables)


def as_segment(parts: Parts, matching: Matching) -> MappedSegment:
    """Return a segment of arrays and tables without a fault. Nothing is copied."""
    arrays, tables = parts
    sketches = Ragged(arrays["sketch_offsets"], arrays["sketch_ids"])
    sizes, names, spread = np.diff(sketches.offsets).astype(np.int32), arrays["nodes"], sketches
    totals = matching.threshold.totals(sizes, arrays["n_features"])
    if matching.levels:
        names, spread = arrays["row_names"], Ragged(arrays["row_offsets"], arrays["row_ids"])
        totals = np.diff(spread.offsets).astype(np.int32)
    posted = (arrays[name] for name in ("features", "holders", "places", "common", "common_holders"))
    keyed = {
        name: Keyed(arrays[f"{name}-keys"], arrays[f"{name}-rows"])
        for name in ("prints", "by_id", "by_node", "by_document")
    }
    return MappedSegment(
        nodes=arrays["nodes"],
        n_features=arrays["n_features"],
        sketches=sketches,
        postings=Postings(Rows(names, spread, totals), *posted),
        print_ends=arrays["print_ends"],
        doc_keys=tables["documents"]["doc_key"].to_numpy(),
        components=tables["state"]["component_key"].to_numpy(),
        gone=arrays["gone"],
        replaced=arrays["replaced"],
        **keyed,
        **{name: tables[name] for name in TABLES},
    )


def take_sketches(segments: Sequence[MappedSegment], nodes: NDArray[np.int64]) -> Ragged:
    """Return the sketches of some nodes, in their order; a node in no segment gets an empty one.

    Cost: a binary search per node and segment, and the sketches returned; no other sketch is read.
    """
    parts, homes, places, before = [], np.full(len(nodes), -1), np.zeros(len(nodes), np.int64), 0
    for segment in segments:
        at = np.searchsorted(segment.nodes, nodes)
        at[at == len(segment.nodes)] = 0
        is_here = (segment.nodes[at] == nodes) if len(segment.nodes) else np.zeros(len(nodes), np.bool_)
        here = np.flatnonzero(is_here)
        parts.append(take_rows(segment.sketches, at[here]))
        homes[here] = before + np.arange(len(here))
        places[here] = 1
        before += len(here)
    sizes = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.offsets) for part in parts), np.zeros(1, np.int64)])
    values = np.concatenate([np.empty(0, np.uint64), *(part.values for part in parts)])
    gathered = Ragged(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), values)
    return take_rows(gathered, np.where(homes < 0, before, homes).astype(np.int64))
