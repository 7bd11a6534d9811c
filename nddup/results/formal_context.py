"""The formal context of a run and its concepts, as files for the tools of formal concept analysis.

As in the paper, the objects are features and the attributes are documents: a cluster is an intent, a set of documents,
and the features that are common to all of them are its extent.

    context.cxt     the context in Burmeister's format: objects, attributes, then a line of X and . for each object
    context.csv     the same as a table with a heading: X where the document holds the feature
    concepts.csv    the clusters, a row for each document of an intent and each feature of an extent

A feature that only one document holds is left out: it is in the extent of no set of two documents.

Source:
    Ignatov, Kuznetsov 2009, Frequent itemset mining for clustering near duplicate web documents, ICCS 2009.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.engines.engine import FinishedRun
from nddup.errors import ConfigError, OutputError
from nddup.spelling import escaped

MOST_CELLS = 1_000_000_000
"""Most cells of a context: each is a byte of `context.cxt`."""

BLOCK_CELLS = 1 << 24
"""Cells that are spelled at a time."""

DOCUMENTS = "SELECT doc_id, sketch FROM documents ORDER BY doc_key"
MEMBERS = "SELECT cluster_id, doc_id FROM members ORDER BY cluster_id, doc_id"


class FormalContext(NamedTuple):
    """n features, m documents, and i pairs of a feature and a document that holds it, by feature, then by document."""

    features: NDArray[np.int64]
    """(n,), ascending; each is in at least two documents."""

    documents: list[str]
    """m ids, in the order of `doc_key`."""

    held: NDArray[np.int64]
    """(i,), the place of a feature."""

    holders: NDArray[np.int64]
    """(i,), the place of a document."""


def write_context(run: FinishedRun, folder: str) -> FormalContext:
    """Write the three files to a new folder of this machine; return the context.

    Args:
        run: the run.
        folder: of the files; it must not exist.

    Raises:
        OutputError: if the folder exists or cannot be written.
        ConfigError: if the context has more than `MOST_CELLS` cells.

    Cost: all sketches are in memory, 40 bytes a feature of a document; a byte of output a cell, twice.
    """
    if Path(folder).exists():
        raise OutputError(f"--context {folder}: exists already; give another folder")
    context = read_context(run)
    cells = len(context.features) * len(context.documents)
    if cells > MOST_CELLS:
        raise ConfigError(
            f"--context: {len(context.features):,} features of {len(context.documents):,} documents are {cells:,}"
            f" cells, more than {MOST_CELLS:,}; context.fimi (output.context=true) holds a context of any size"
        )
    try:
        Path(folder).mkdir(parents=True)
        _write_cxt(context, Path(folder, "context.cxt"))
        _write_csv(context, Path(folder, "context.csv"))
        _write_concepts(run, context, Path(folder, "concepts.csv"))
    except OSError as error:
        raise OutputError(f"--context {folder}: cannot be written ({error.strerror})") from error
    return context


def read_context(run: FinishedRun) -> FormalContext:
    """Return the context of a run: the features that at least two documents hold. Cost: a sort of all features."""
    rows = run.sql(DOCUMENTS).combine_chunks()
    sketches = rows["sketch"].combine_chunks()
    sketches = sketches if isinstance(sketches, pa.Array) else pa.concat_arrays(sketches.chunks)
    holders = np.repeat(
        np.arange(len(rows)), pc.fill_null(pc.list_value_length(sketches), 0).to_numpy(zero_copy_only=False)
    )
    ids = sketches.flatten().to_numpy(zero_copy_only=False).astype(np.int64)

    features, held, counts = np.unique(ids, return_inverse=True, return_counts=True)
    is_shared = counts > 1
    place = np.cumsum(is_shared) - 1
    kept = is_shared[held]
    held, holders = place[held[kept]], holders[kept]
    order = np.lexsort((holders, held))
    return FormalContext(features[is_shared], rows["doc_id"].to_pylist(), held[order], holders[order])


def _blocks(context: FormalContext) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Yield the features and cells of the context, some rows at a time."""
    step = max(1, BLOCK_CELLS // max(len(context.documents), 1))
    for low in range(0, len(context.features), step):
        some = context.features[low : low + step]
        first, last = np.searchsorted(context.held, [low, low + len(some)])
        cells = np.zeros((len(some), len(context.documents)), np.bool_)
        cells[context.held[first:last] - low, context.holders[first:last]] = True
        yield some, cells


def _write_cxt(context: FormalContext, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"B\n\n{len(context.features)}\n{len(context.documents)}\n\n")
        file.writelines(f"{feature}\n" for feature in context.features.tolist())
        file.writelines(f"{escaped(doc_id)}\n" for doc_id in context.documents)
        for _, cells in _blocks(context):
            ends = np.full((len(cells), 1), ord("\n"), np.uint8)
            file.write(np.hstack([np.where(cells, np.uint8(ord("X")), np.uint8(ord("."))), ends]).tobytes().decode())


def _write_csv(context: FormalContext, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["", *context.documents])
        for features, cells in _blocks(context):
            crosses = np.where(cells, "X", "").tolist()
            rows.writerows([feature, *row] for feature, row in zip(features.tolist(), crosses, strict=True))


def _write_concepts(run: FinishedRun, context: FormalContext, path: Path) -> None:
    """Write cluster_id, part (intent or extent) and id; the extent is counted anew from the sketches."""
    places = {doc_id: place for place, doc_id in enumerate(context.documents)}
    order = np.argsort(context.holders, kind="stable")
    bounds = np.searchsorted(context.holders[order], np.arange(len(context.documents) + 1))
    held = context.held[order]
    clusters: dict[str, list[str]] = {}
    members = run.sql(MEMBERS)
    for cluster_id, doc_id in zip(members["cluster_id"].to_pylist(), members["doc_id"].to_pylist(), strict=True):
        clusters.setdefault(cluster_id, []).append(doc_id)

    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["cluster_id", "part", "id"])
        for cluster_id, intent in clusters.items():
            first, *others = ((bounds[places[doc]], bounds[places[doc] + 1]) for doc in intent)
            extent = held[slice(*first)]
            for low, high in others:
                extent = np.intersect1d(extent, held[low:high], assume_unique=True)
            rows.writerows([cluster_id, "intent", doc] for doc in intent)
            rows.writerows([cluster_id, "extent", feature] for feature in context.features[extent].tolist())
