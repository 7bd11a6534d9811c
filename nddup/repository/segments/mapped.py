"""The sketches and postings of a segment as arrays that the system maps into memory: only what is touched is read.

They lie in `mapped-1/` beside the Parquet files and follow from these: where they are missing they are made again, in
memory if the folder cannot be written. They are never the only copy.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, take_rows
from nddup.local.columns import ragged_of
from nddup.repository.lookup.meetings import Matching, Postings, Rows, spread_rows
from nddup.repository.places.place import SEGMENTS, Place
from nddup.repository.segments.commits import Segment
from nddup.repository.segments.segment_files import read_table

FOLDER = "mapped-1"

NAMES = (
    "nodes", "n_features", "sketch_offsets", "sketch_ids", "row_names", "row_offsets", "row_ids",
    "features", "holders", "places", "common", "common_holders",
)  # fmt: skip


@dataclass(frozen=True)
class MappedSegment:
    """The distinct sketches of a segment, k of them, and their postings.

    Attributes:
        nodes: (k,), ascending.
        n_features: (k,).
        sketches: k rows.
        postings: by which given sketches meet them.
    """

    nodes: NDArray[np.int64]
    n_features: NDArray[np.int32]
    sketches: Ragged
    postings: Postings


def map_segment(repo: Place, segment: Segment, matching: Matching) -> MappedSegment:
    """The arrays of a segment, mapped; made first where they are missing."""
    folder = repo.folder / SEGMENTS / segment.name / FOLDER
    if not folder.exists():
        arrays = _make_arrays(repo, segment, matching)
        if not _store(folder, arrays):
            return _as_segment(arrays, matching)
    return _as_segment({name: _map(folder / f"{name}.npy") for name in NAMES if (folder / f"{name}.npy").exists()},
                       matching)  # fmt: skip


def _map(path: Path) -> NDArray[np.generic]:
    """An array of a file; an empty one cannot be mapped."""
    return np.asarray(np.load(path, mmap_mode="r")) if path.stat().st_size > _EMPTY else np.load(path)


_EMPTY = 128
"""Bytes of the head of a file of an array."""


def _make_arrays(repo: Place, segment: Segment, matching: Matching) -> dict[str, NDArray[np.generic]]:
    """The arrays of a segment from its tables."""
    sketches = read_table(repo, segment, "sketches", ["node", "n_features", "sketch"])
    postings = read_table(repo, segment, "postings")
    common = read_table(repo, segment, "common")
    rows = ragged_of(sketches["sketch"])
    nodes, n_features = sketches["node"].to_numpy(), sketches["n_features"].to_numpy()
    arrays: dict[str, NDArray[np.generic]] = {
        "nodes": nodes,
        "n_features": n_features,
        "sketch_offsets": rows.offsets,
        "sketch_ids": rows.values,
        "features": postings["feature"].to_numpy().astype(np.uint32),
        "holders": postings["row"].to_numpy(),
        "places": postings["place"].to_numpy(),
        "common": common["feature"].to_numpy().astype(np.uint32),
        "common_holders": common["holders"].to_numpy(),
    }
    if matching.levels:
        spread = spread_rows(nodes, rows, n_features, matching)
        arrays |= {"row_names": spread.names, "row_offsets": spread.sketches.offsets, "row_ids": spread.sketches.values}
    return arrays


def _store(folder: Path, arrays: dict[str, NDArray[np.generic]]) -> bool:
    """Write the arrays under another name, then give the folder its own; whether they lie there now."""
    draft = folder.with_name(f".{FOLDER}-{token_hex(6)}")
    try:
        draft.mkdir()
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", array)
        try:
            os.rename(draft, folder)  # noqa: PTH104 - beside another process that does the same
        except OSError:
            return folder.exists()
    except OSError:
        return False
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _as_segment(arrays: dict[str, NDArray[np.generic]], matching: Matching) -> MappedSegment:
    for array in arrays.values():
        array.flags.writeable = False  # kernels are compiled anew for arrays that can be written
    found: dict[str, NDArray[np.generic]] = arrays
    sketches = Ragged(found["sketch_offsets"], found["sketch_ids"])  # type: ignore[arg-type]
    rows = Rows(found["nodes"], sketches)  # type: ignore[arg-type]
    if matching.levels:
        rows = Rows(found["row_names"], Ragged(found["row_offsets"], found["row_ids"]))  # type: ignore[arg-type]
    postings = Postings(rows, *(found[name] for name in NAMES[7:]))  # type: ignore[arg-type]
    return MappedSegment(found["nodes"], found["n_features"], sketches, postings)  # type: ignore[arg-type]


def take_sketches(segments: Sequence[MappedSegment], nodes: NDArray[np.int64]) -> Ragged:
    """The sketches of some nodes, in their order; a node of no segment has an empty one.

    Cost: the sketches that come out; of the others nothing is read.
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
