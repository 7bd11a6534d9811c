"""The data of a report as plain values, in chunks that the page loads one by one.

    summary       everything except clusters and documents (`data_summary`)
    clusters-N    columns of `CLUSTERS_EACH` clusters, for sorting, filtering and listing
    members-N     documents and near-duplicate pairs of `MEMBERS_EACH` clusters
    families-N    overlapping clusters of `FAMILIES_EACH` components, with their graphs (`data_families`)
    documents-N   columns of `DOCUMENTS_EACH` documents, for searching, filtering and listing (`data_documents`)
    nearest-N     the nearest documents of each of these
    texts-N       texts of about `TEXTS_CHARACTERS`

Cost: linear in the rows shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.report.content import Content
from nddup.report.data_documents import DOCUMENTS_EACH, StoredTexts, document_chunks, state_of
from nddup.report.data_families import FAMILIES_EACH, family_chunks
from nddup.report.data_summary import summarise
from nddup.report.families import Family, find_families, find_nearest_sets
from nddup.report.titles import find_titles

CLUSTERS_EACH = 10_000
MEMBERS_EACH = 500
TEXTS_CHARACTERS = 250_000
LABEL = 160
"""Most characters of the address or id that stands for a cluster in the list."""

ALL, LISTED_ONLY, UNKNOWN = 0, 1, 2
"""Pairs over which `least` is the lowest: all pairs of the cluster, only those that the run lists, or unknown."""

Chunk = tuple[str, Any]


def chunks(shown: Content) -> Iterator[Chunk]:
    """Yield all chunks of a report: (name, JSON value)."""
    stored, texts = _texts(shown.texts)
    families = find_families(shown.clusters)
    cells = _bounds(shown.cells, len(shown.clusters))
    listed = _bounds(shown.listed, len(shown.clusters))
    columns = _columns(shown, listed, cells, stored) | _family_columns(shown, families)
    counts = {
        "clusters": {"each": CLUSTERS_EACH, "members_each": MEMBERS_EACH},
        "documents": {"each": DOCUMENTS_EACH},
        "families": {"each": FAMILIES_EACH, "shown": len(families)},
        "texts": {"chunks": len(texts)},
    }
    yield "summary", summarise(shown, counts, longest=columns["longest"])

    for number, start in enumerate(range(0, len(shown.clusters), CLUSTERS_EACH)):
        yield f"clusters-{number}", {name: column[start : start + CLUSTERS_EACH] for name, column in columns.items()}
    yield from _members(shown, listed, cells, stored)
    yield from family_chunks(shown, families)
    yield from document_chunks(shown, stored)
    for number, rows in enumerate(texts):
        yield f"texts-{number}", rows


def _bounds(table: pa.Table, clusters: int) -> list[int]:
    """Return the n + 1 bounds of the rows of n clusters in a table sorted by `rank`."""
    return np.searchsorted(table["rank"].to_numpy(), np.arange(clusters + 1)).tolist()  # type: ignore[no-any-return]


def _texts(texts: pa.Table) -> tuple[StoredTexts, list[list[list[str]]]]:
    """Return chunk, row and title of each text by document, and the chunks of texts."""
    stored: StoredTexts = {}
    found: list[list[list[str]]] = []
    held = TEXTS_CHARACTERS
    titles = find_titles(texts["text"].to_pylist())
    for doc, text, title in zip(texts["doc_id"].to_pylist(), texts["text"].to_pylist(), titles, strict=True):
        if held >= TEXTS_CHARACTERS:
            found.append([])
            held = 0
        stored[doc] = (len(found) - 1, len(found[-1]), title)
        found[-1].append([doc, text])
        held += len(text)
    return stored, found


def _columns(shown: Content, listed: list[int], cells: list[int], stored: StoredTexts) -> dict[str, list[Any]]:
    """Return the columns of the list of clusters.

    `least` is the lowest resemblance in the cluster in 1/1000, -1 if none is known, and `least_of` says over which
    pairs. `kept` counts the listed documents that are kept, `texts` those with a stored text. `longest` is the length
    of the longest listed document in tokens, `title` the title of the first listed document with a text.
    """
    clusters = shown.clusters
    docs, urls = shown.listed["doc_id"].to_pylist(), shown.listed["url"].to_pylist()
    tokens, spans = shown.listed["n_tokens"].to_numpy(zero_copy_only=False), list(pairwise(listed))

    # Running totals: the count of a cluster is the difference between its two bounds.
    stays = np.concatenate([[0], np.cumsum(shown.listed["kept"].to_numpy(zero_copy_only=False).astype(np.int64))])
    has_text = np.concatenate([[0], np.cumsum([doc in stored for doc in docs], dtype=np.int64)])
    weakest = _weakest(shown, cells)
    return {
        "id": clusters["cluster_id"].to_pylist(),
        "size": clusters["size"].to_pylist(),
        "support": clusters["support"].to_pylist(),
        "coverage": clusters["coverage"].to_pylist(),
        "least": [value for value, _ in weakest],
        "least_of": [which for _, which in weakest],
        "label": [(urls[low] or docs[low])[:LABEL] if low < high else "" for low, high in spans],
        "title": [next((stored[doc][2] for doc in docs[low:high] if doc in stored), "") for low, high in spans],
        "longest": [int(tokens[low:high].max()) if low < high else 0 for low, high in spans],
        "kept": [int(stays[high] - stays[low]) for low, high in spans],
        "texts": [int(has_text[high] - has_text[low]) for low, high in spans],
    }


def _weakest(shown: Content, cells: list[int]) -> list[tuple[int, int]]:
    """Return for each cluster the lowest resemblance in 1/1000, or -1, and over which pairs it is the lowest."""
    listed, known, lowest = _lowest(shown.cells["resemblance"].to_numpy(zero_copy_only=False), np.array(cells))
    larger = {row["rank"]: row for row in shown.weakest.to_pylist()}
    found = []
    for rank, size in enumerate(shown.clusters["size"].to_pylist()):
        if rank in larger:
            pairs, estimated, least = (larger[rank][name] for name in ("pairs", "estimated", "least"))
        elif size <= shown.matrix_each and known[rank]:
            pairs, estimated, least = listed[rank], known[rank], lowest[rank]
        else:
            pairs, estimated, least = 0, 0, None
        of = UNKNOWN if least is None else ALL if pairs == estimated == size * (size - 1) // 2 else LISTED_ONLY
        found.append((-1 if least is None else int(least * 1_000 + 1e-6), of))
    return found


def _lowest(resemblance: NDArray[np.float64], cells: NDArray[np.int64]) -> tuple[list[int], list[int], list[float]]:
    """Return for each cluster the number of rows, of rows with a resemblance, and the lowest; 0 without rows."""
    listed = np.diff(cells)
    known = np.diff(np.concatenate([[0], np.cumsum(~np.isnan(resemblance))])[cells])
    lowest = np.zeros(len(listed))
    if listed.any():
        lowest[listed > 0] = np.fmin.reduceat(resemblance[: cells[-1]], cells[:-1][listed > 0])
    return listed.tolist(), known.tolist(), lowest.tolist()


def _family_columns(shown: Content, families: Sequence[Family]) -> dict[str, list[int]]:
    """Return each cluster's family, and the earlier cluster of the family that shares most documents, with the number.

    Without such a family or cluster -1, and `shared` is 0.
    """
    size = len(shown.clusters)
    family, near, shared = [-1] * size, [-1] * size, [0] * size
    for place, one in enumerate(families):
        for rank in one.ranks:
            family[rank] = place
    for rank, (other, count) in find_nearest_sets(families, shown.clusters["members"].to_pylist()).items():
        near[rank], shared[rank] = other, count
    return {"family": family, "near": near, "shared": shared}


def _members(shown: Content, listed: list[int], cells: list[int], stored: StoredTexts) -> Iterator[Chunk]:
    """Yield each cluster's component, documents and pairs (first, second, overlap, resemblance in 1/1000 or -1)."""
    components = shown.clusters["component"].to_pylist()
    for number, start in enumerate(range(0, len(shown.clusters), MEMBERS_EACH)):
        end = min(start + MEMBERS_EACH, len(shown.clusters))
        docs = [
            _document(row, stored) for row in shown.listed.slice(listed[start], listed[end] - listed[start]).to_pylist()
        ]
        pairs = _flat_pairs(shown.cells.slice(cells[start], cells[end] - cells[start]))
        rows = [
            [
                components[rank],
                docs[listed[rank] - listed[start] : listed[rank + 1] - listed[start]],
                pairs[4 * (cells[rank] - cells[start]) : 4 * (cells[rank + 1] - cells[start])],
            ]
            for rank in range(start, end)
        ]
        yield f"members-{number}", rows


def _document(row: Mapping[str, Any], stored: StoredTexts) -> list[Any]:
    """Return a document as a row: its facts, its state, then chunk and row of its text, -1 if it is not stored."""
    chunk, place, _ = stored.get(row["doc_id"], (-1, -1, ""))
    return [
        row["doc_id"], row["url"], row["source"], row["record"], row["n_tokens"], row["n_features"],
        state_of(row["kept"], row["reason"]), row["duplicate_of"], chunk, place,
    ]  # fmt: skip


def _flat_pairs(cells: pa.Table) -> list[int]:
    """Return four numbers for each pair: first, second, overlap, resemblance in 1/1000 or -1."""
    resemblance = np.nan_to_num(cells["resemblance"].to_numpy(zero_copy_only=False), nan=-0.001)
    columns = [cells[name].to_numpy() for name in ("first", "second", "overlap")]
    scaled = np.floor(resemblance * 1_000 + 1e-6)
    return np.stack([*columns, scaled], axis=1).astype(np.int64).ravel().tolist()
