"""Reports of invented runs, written without Spark by the writer that runs use."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.ground.metrics import RunMetrics
from nddup.report.content import (
    CELLS,
    CLUSTERS,
    DOCUMENTS,
    EDGES,
    LISTED,
    MEMBERSHIPS,
    NEAREST,
    STANDS,
    TEXTS,
    AboutDocuments,
    Content,
    Family,
    find_families,
    list_cells,
    list_documents,
)
from nddup.report.data import chunks
from nddup.report.gather import write_report
from nddup.settings.schema import Config

Document = tuple[str, str | None, str]
"""Id, address and text."""


def metrics_of(documents: int, pairs: int, clusters: int, kept: int) -> RunMetrics:
    """Return metrics as a run leaves them, with one reject and a note."""
    stage = {"seconds": 1.5, "shuffle_bytes": 1234, "rows_in": {"documents": documents}, "rows_out": {"pairs": pairs}}
    rows = {"documents": documents, "rejects": 1, "pairs": pairs, "clusters": clusters, "members": 0, "keep": documents}
    sketch = {"bytes": 5_000_000, "files": 3, "rejected": {"truncated": 1}, "undecodable_records": 2,
              "skipped_files": [{"path": "x.md", "why": "named as a readme"}],
              "framed_hosts": [{"host": "<b>menu</b>.example", "pages": 12, "share": 0.25}],
              "undecodable_places": 7}  # fmt: skip
    found = {"components": clusters, "largest_component": 4, "covered_components": 0, "covered_clusters": 0,
             "led_components": 0, "led_clusters": 0, "invented_pairs": 0, "most_invented": 0,
             "bounded_components": 0}  # fmt: skip
    metrics = {
        "records": documents + 1,
        "rows": {"false_components": 0, **rows},
        "empty_sketches": 0,
        "below_count": 0,
        "equal_sketches": 0,
        "stages": {
            "sketch": {**stage, **sketch},
            "pairs": stage,
            "clusters": {**stage, **found},
            "keep": {**stage, "kept": kept, "removed": documents - kept},
        },
        "settings": Config().model_dump(exclude={"engine", "local"}),
        "versions": {"nddup": "0.1.0", "spark": "4.3.0"},
    }
    return RunMetrics.read(metrics)


def make_shown(
    clusters: Sequence[Sequence[Document]],
    *,
    is_family: bool = False,
    **more: Any,  # noqa: ANN401 - fields of Content
) -> Content:
    """Return the content of a report of a run with these clusters: each first document is kept, all pairs are at 0.9.

    Larger clusters must come first. Every document that has a text has it stored. If there are clusters, one further
    document is in none. `is_family`: all clusters are of one component.
    """
    ids = [sorted((document[0] for document in cluster), key=str.encode) for cluster in clusters]
    table = pa.table(
        {
            "cluster_id": [f"{number:016x}" for number in range(len(clusters))],
            "support": [100] * len(clusters),
            "size": [len(cluster) for cluster in clusters],
            "component": [ids[0][0] if is_family else names[0] for names in ids],
            "coverage": ["all"] * len(clusters),
            "representative": [cluster[0][0] for cluster in clusters],
            "members": ids,
        },
        schema=CLUSTERS,
    )
    names = list_documents(table)
    urls = {document[0]: document[1] for cluster in clusters for document in cluster}
    texts = {document[0]: document[2] for cluster in clusters for document in cluster if document[2]}
    docs, ranks, places = names["doc_id"].to_pylist(), names["rank"].to_pylist(), names["place"].to_pylist()
    rows = pa.table(
        {
            "doc_id": names["doc_id"],
            "url": [urls[doc] for doc in docs],
            "source": ["pages.xml"] * len(docs),
            "record": list(range(1, len(docs) + 1)),
            "n_tokens": [120] * len(docs),
            "n_features": [116] * len(docs),
            "kept": [place == 0 for place in places],
            "duplicate_of": [
                None if place == 0 else clusters[rank][0][0] for rank, place in zip(ranks, places, strict=True)
            ],
            "reason": [None if place == 0 else "near" for place in places],
        }
    )
    documents = documents_of(rows.to_pylist())
    document = pc.index_in(names["doc_id"], value_set=documents["doc_id"])
    listed = pa.table([names["rank"], names["place"], document], schema=LISTED)
    cells = list_cells(listed, 24)
    cells = pa.table(
        {
            **{name: cells[name] for name in ("rank", "first", "second")},
            "overlap": np.full(len(cells), 180, np.int32),
            "resemblance": np.full(len(cells), 0.9),
        },
        schema=CELLS,
    )
    about = about_documents(documents, listed, cells)
    families = find_families(table, listed)
    sizes = np.unique([len(cluster) for cluster in clusters], return_counts=True)
    fields: dict[str, Any] = {
        "path": "out/made",
        "metrics": metrics_of(len(documents), len(cells), len(clusters), sum(documents["kept"].to_pylist())),
        "clusters": table,
        "documents": documents,
        "listed": listed,
        "families": families,
        "cells": cells,
        "texts": pa.table({"doc_id": list(texts), "text": list(texts.values())}, schema=TEXTS),
        "sizes": list(zip(sizes[0].tolist(), sizes[1].tolist(), strict=True)),
        "resemblances": [(90, len(cells))],
        "lengths": [(100, len(docs))],
        "rejects": [],
        "about": lambda: about,
        "edges": edges_of(listed, families),
    }
    return Content(**{**fields, **more})


NOTHING_UNREAD = {"parent": None, "unread_bytes": 0, "unread_parts": 0}
NESTED = {"parent": "b", "unread_bytes": 1_200, "unread_parts": 1, "leader": True}


def documents_of(described: Sequence[dict[str, Any]]) -> pa.Table:
    """Return the documents of clusters and one without duplicates; each removed one loses a fortieth of it."""
    rows = {row["doc_id"]: row for row in described}  # a document may be listed in several clusters
    removed = Counter(row["duplicate_of"] for row in rows.values())
    alone = {"doc_id": "alone", "url": "https://elsewhere.example/one/install-guide.html", "source": "other.xml",
             "record": 9, "n_tokens": 50, "n_features": 46, "kept": True, **NESTED}  # fmt: skip
    near = Counter(row["doc_id"] for row in described)  # of pairs this is enough
    made = [
        {**NOTHING_UNREAD, **row, "stands": removed[doc], "longest": 120, "pairs": near[doc]}
        for doc, row in sorted((rows | {"alone": alone} if rows else rows).items(), key=lambda item: item[0].encode())
    ]
    return pa.Table.from_pylist([{name: row.get(name) for name in DOCUMENTS.names} for row in made], DOCUMENTS)


def about_documents(documents: pa.Table, listed: pa.Table, cells: pa.Table) -> AboutDocuments:
    """Return what is known of these documents: all pairs of a cluster are near."""
    rows, at = documents.to_pylist(), {(row["rank"], row["place"]): row["document"] for row in listed.to_pylist()}
    near: dict[int, list[int]] = {document: [] for document in range(len(rows))}
    for rank, first, second in zip(*(cells[name].to_pylist() for name in ("rank", "first", "second")), strict=True):
        for one, other in ((at[rank, first], at[rank, second]), (at[rank, second], at[rank, first])):
            near[one].append(other)
    ranks: dict[int, list[int]] = {document: [] for document in near}
    for (rank, _), document in at.items():
        ranks[document].append(rank)
    removed_by: dict[str | None, list[str]] = {}
    for row in rows:
        removed_by.setdefault(row["duplicate_of"], []).append(row["doc_id"])
    return AboutDocuments(
        pa.Table.from_pylist(
            [{"document": number, "other": rows[other]["doc_id"], "overlap": 180, "resemblance": 0.9}
             for number, others in near.items() for other in others], NEAREST),
        pa.Table.from_pylist(
            [{"document": number, "rank": rank, "clusters": len(of_one)}
             for number, of_one in ranks.items() for rank in of_one], MEMBERSHIPS),
        pa.Table.from_pylist(
            [{"document": number, "other": other, "reason": "near", "resemblance": 0.9, "lost": 0.025}
             for number, row in enumerate(rows) for other in removed_by.get(row["doc_id"], ())], STANDS),
        sum(name is not None for name in removed_by),
    )  # fmt: skip


def edges_of(listed: pa.Table, families: Sequence[Family]) -> pa.Table:
    """Return an edge between every two documents of a cluster."""
    members: dict[int, set[int]] = {}
    for row in listed.to_pylist():
        members.setdefault(row["rank"], set()).add(row["document"])
    rows = []
    for part, family in enumerate(families):
        rows += [
            {"part": part, "first": i, "second": j, "resemblance": 0.9}
            for (i, a), (j, b) in combinations(enumerate(family.drawn), 2)
            if any({a, b} <= members[rank] for rank in family.ranks)
        ]
    return pa.Table.from_pylist(rows, EDGES)


def many_clusters(number: int) -> list[list[Document]]:
    """Return clusters of 2 to 4 documents, larger first, without texts; document `doc-C-M` is at `example.org/C/M`."""
    random = np.random.default_rng(1)
    sizes = np.sort(random.integers(2, 5, number))[::-1].tolist()
    return [
        [
            (f"doc-{c}-{m}", f"https://example.org/{c}/{m}?path=of/a/page/as/long/as/they/are.html", "")
            for m in range(size)
        ]
        for c, size in enumerate(sizes)
    ]


def write_to(folder: Path, shown: Content) -> str:
    """Write a report into a folder; return the address of its page."""

    def put(name: str, text: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    write_report(put, chunks(shown))
    return (folder / "index.html").as_uri()
