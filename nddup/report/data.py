"""The data of a report as plain values, in chunks that the page loads one by one.

    summary       everything but the clusters
    clusters-N    columns of `CLUSTERS_EACH` clusters: what is sorted, filtered and listed
    members-N     documents and near-duplicate pairs of `MEMBERS_EACH` clusters
    names-N       ids and addresses of the documents of some clusters, about `NAMES_CHARACTERS`: what is searched
    texts-N       texts of about `TEXTS_CHARACTERS`

Cost: linear in the rows shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from nddup.metrics import RunMetrics, StageMetrics
from nddup.report.shown import LENGTHS, Content
from nddup.report.summary import headline, notes

CLUSTERS_EACH = 10_000
MEMBERS_EACH = 500
TEXTS_CHARACTERS = 250_000
NAMES_CHARACTERS = 2_000_000
LABEL = 160
"""Characters of the address or id that stands for a cluster in the list."""

STATES = ("kept", "exact", "equal", "near")
"""What became of a document: kept, or removed as a duplicate, and why."""

SIZES = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1_000, 10_000, 100_000)
"""Lower ends of the histogram of cluster sizes."""

OPEN = 1 << 62
"""No upper end."""

Chunk = tuple[str, Any]


def chunks(shown: Content) -> Iterator[Chunk]:
    """All chunks of a report: (name, value that JSON can hold)."""
    places, texts = _texts(shown.texts)
    cells = _bounds(shown.cells, len(shown.clusters))
    listed = _bounds(shown.listed, len(shown.clusters))
    names = _names(shown, listed)
    yield "summary", _summary(shown, len(texts), len(names))

    columns = _columns(shown, listed, cells, places)
    for number, start in enumerate(range(0, len(shown.clusters), CLUSTERS_EACH)):
        yield f"clusters-{number}", {name: column[start : start + CLUSTERS_EACH] for name, column in columns.items()}
    yield from _members(shown, listed, cells, places)
    for number, named in enumerate(names):
        yield f"names-{number}", named
    for number, rows in enumerate(texts):
        yield f"texts-{number}", rows


def _summary(shown: Content, text_chunks: int, name_chunks: int) -> dict[str, Any]:
    """The chunk `summary`."""
    metrics = shown.metrics
    settings, sketch = metrics.settings, metrics.stages.sketch
    return {
        "run": shown.path,
        "headline": [list(line) for line in headline(metrics)],
        "notes": notes(metrics),
        "funnel": _funnel(metrics),
        "histograms": {
            "sizes": _bucketed(shown.sizes),
            "resemblance": _percents(shown.resemblances),
            "lengths": {
                "labels": [_span(low, high) for low, high in pairwise(_ends(LENGTHS))],
                "counts": [count for _, count in shown.lengths],
            },
        },
        "rejects": {
            "reasons": sorted(sketch.rejected.items(), key=lambda item: (-item[1], item[0])),
            "first": [[row[name] for name in ("source", "record", "doc_id", "reason", "detail", "excerpt")]
                      for row in shown.rejects],
        },
        "skipped": [[file.path, file.why] for file in sketch.skipped_files],
        "settings": [
            [f"{section}.{key}" if section != "spark" else key, value]
            for section, values in settings.items()
            for key, value in values.items()
        ],
        "versions": sorted(metrics.versions.items()),
        "stages": [_stage(name, stage) for name, stage in metrics.stages.by_name().items()],
        "evaluation": shown.evaluation,
        "components": shown.components,
        "shingle": _shingle(settings["shingle"]),
        "rule": {name: settings["pairs"][name] for name in ("measure", "threshold")},
        "mode": settings["clusters"]["mode"],
        "texts": {"documents": len(shown.texts), "chunks": text_chunks},
        "clusters": {
            "shown": len(shown.clusters),
            "all": metrics.rows["clusters"],
            "each": CLUSTERS_EACH,
            "members_each": MEMBERS_EACH,
            "name_chunks": name_chunks,
            "listed_each": shown.listed_each,
            "matrix_each": shown.matrix_each,
        },
    }  # fmt: skip


def _funnel(metrics: RunMetrics) -> list[tuple[str, int, str]]:
    """From records to kept documents."""
    rows, kept = metrics.rows, metrics.stages.keep.kept
    distinct = rows["documents"] - metrics.equal_sketches
    return [
        ("records read", metrics.records, ""),
        ("documents", rows["documents"], f"{rows['rejects']:,} records rejected"),
        ("distinct sketches", distinct, f"{metrics.equal_sketches:,} share the sketch of another"),
        ("kept", kept, f"{rows['documents'] - kept:,} are near-duplicates of a kept one"),
    ]


def _shingle(shingle: Mapping[str, Any]) -> dict[str, int]:
    """The shingles by which the page compares two texts: those of the run, or 3 words if the run's are characters."""
    if shingle["unit"] != "word":
        return {"length": 3, "offset": 1}
    return {"length": shingle["length"], "offset": shingle["offset"]}


def _stage(name: str, stage: StageMetrics) -> dict[str, Any]:
    """A row of the table of stages."""
    return {"name": name, "seconds": stage.seconds, "shuffle": stage.shuffle_bytes,
            "rows_in": sorted(stage.rows_in.items()), "rows_out": sorted(stage.rows_out.items())}  # fmt: skip


def _bucketed(sizes: list[tuple[int, int]]) -> dict[str, list[Any]]:
    """Clusters by `SIZES`, up to the largest that occurs."""
    largest = max((size for size, _ in sizes), default=0)
    edges = [low for low in SIZES if low <= largest]
    counts = [0] * len(edges)
    for size, count in sizes:
        counts[int(np.searchsorted(edges, size, side="right")) - 1] += count
    return {"labels": [_span(low, high) for low, high in pairwise(_ends(edges))], "counts": counts}


def _percents(resemblances: list[tuple[int | None, int]]) -> dict[str, Any]:
    """Pairs by whole percent of resemblance, from the lowest that occurs."""
    known = {percent: count for percent, count in resemblances if percent is not None}
    percents = range(min(known, default=0), 101) if known else range(0)
    unknown = sum(count for percent, count in resemblances if percent is None)
    return {"labels": list(percents), "counts": [known.get(percent, 0) for percent in percents], "unknown": unknown}


def _ends(lows: Sequence[int]) -> list[int]:
    return [*lows, OPEN]


def _span(low: int, high: int) -> str:
    if high == OPEN:
        return f"≥ {low:,}"
    return f"{low:,}" if high == low + 1 else f"{low:,}–{high - 1:,}"


def _bounds(table: pa.Table, clusters: int) -> list[int]:
    """Where the rows of each cluster start and end, the table being sorted by `rank`."""
    return np.searchsorted(table["rank"].to_numpy(), np.arange(clusters + 1)).tolist()  # type: ignore[no-any-return]


def _texts(texts: pa.Table) -> tuple[dict[str, tuple[int, int]], list[list[list[str]]]]:
    """doc_id -> (chunk, row in it), and the chunks."""
    places: dict[str, tuple[int, int]] = {}
    found: list[list[list[str]]] = []
    held = TEXTS_CHARACTERS
    for doc, text in zip(texts["doc_id"].to_pylist(), texts["text"].to_pylist(), strict=True):
        if held >= TEXTS_CHARACTERS:
            found.append([])
            held = 0
        places[doc] = (len(found) - 1, len(found[-1]))
        found[-1].append([doc, text])
        held += len(text)
    return places, found


def _columns(
    shown: Content, listed: list[int], cells: list[int], places: Mapping[str, tuple[int, int]]
) -> dict[str, list[Any]]:
    """The columns of the list of clusters.

    `least` is the lowest resemblance in the cluster in 1/1000 if all its pairs are known, else -1. `kept` counts the
    listed documents that are kept, and `texts` those with a stored text.
    """
    clusters = shown.clusters
    resemblance = shown.cells["resemblance"].to_numpy(zero_copy_only=False)
    docs, urls = shown.listed["doc_id"].to_pylist(), shown.listed["url"].to_pylist()

    # Running totals: the count of a cluster is the difference at its two ends.
    stays = np.concatenate([[0], np.cumsum(shown.listed["kept"].to_numpy(zero_copy_only=False).astype(np.int64))])
    stored = np.concatenate([[0], np.cumsum([doc in places for doc in docs], dtype=np.int64)])

    least = []
    for size, (low, high) in zip(clusters["size"].to_pylist(), pairwise(cells), strict=True):
        worst = resemblance[low:high].min() if high - low == size * (size - 1) // 2 else np.nan
        least.append(-1 if np.isnan(worst) else int(worst * 1_000 + 1e-6))

    return {
        "id": clusters["cluster_id"].to_pylist(),
        "size": clusters["size"].to_pylist(),
        "support": clusters["support"].to_pylist(),
        "coverage": clusters["coverage"].to_pylist(),
        "least": least,
        "label": [(urls[low] or docs[low])[:LABEL] if low < high else "" for low, high in pairwise(listed)],
        "kept": [int(stays[high] - stays[low]) for low, high in pairwise(listed)],
        "texts": [int(stored[high] - stored[low]) for low, high in pairwise(listed)],
    }


def _names(shown: Content, listed: list[int]) -> list[tuple[int, list[str]]]:
    """For each chunk its first cluster, and of each of its clusters the ids and addresses of the documents as lines."""
    lines = [
        f"{doc_id}\n{url}" if url else doc_id
        for doc_id, url in zip(shown.listed["doc_id"].to_pylist(), shown.listed["url"].to_pylist(), strict=True)
    ]
    found: list[tuple[int, list[str]]] = []
    held = NAMES_CHARACTERS
    for rank, (low, high) in enumerate(pairwise(listed)):
        if held >= NAMES_CHARACTERS:
            found.append((rank, []))
            held = 0
        found[-1][1].append("\n".join(lines[low:high]))
        held += len(found[-1][1][-1])
    return found


def _members(
    shown: Content, listed: list[int], cells: list[int], places: Mapping[str, tuple[int, int]]
) -> Iterator[Chunk]:
    """For each cluster its component, documents and pairs (first, second, overlap, resemblance in 1/1000 or -1)."""
    components = shown.clusters["component"].to_pylist()
    for number, start in enumerate(range(0, len(shown.clusters), MEMBERS_EACH)):
        end = min(start + MEMBERS_EACH, len(shown.clusters))
        docs = [
            _document(row, places) for row in shown.listed.slice(listed[start], listed[end] - listed[start]).to_pylist()
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


def _document(row: Mapping[str, Any], places: Mapping[str, tuple[int, int]]) -> list[Any]:
    """Id, url, source, record, tokens, features, state, kept document, chunk and row of its text (-1: none stored)."""
    state = 0 if row["kept"] else STATES.index(row["reason"])
    chunk, place = places.get(row["doc_id"], (-1, -1))
    return [
        row["doc_id"], row["url"], row["source"], row["record"], row["n_tokens"], row["n_features"],
        state, row["duplicate_of"], chunk, place,
    ]  # fmt: skip


def _flat_pairs(cells: pa.Table) -> list[int]:
    """Four numbers a pair."""
    resemblance = np.nan_to_num(cells["resemblance"].to_numpy(zero_copy_only=False), nan=-0.001)
    columns = [cells[name].to_numpy() for name in ("first", "second", "overlap")]
    scaled = np.floor(resemblance * 1_000 + 1e-6)
    return np.stack([*columns, scaled], axis=1).astype(np.int64).ravel().tolist()
