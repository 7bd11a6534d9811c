"""Finished runs made by hand: the folder of a run as an engine leaves it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nddup.sketching.tokens import FULL_FORMAT
from nddup.tables import RESULTS
from tests.report.made_reports import metrics_of

Rows = Sequence[Mapping[str, Any]]


def write_run(folder: Path, **tables: Rows) -> Path:
    """Write a finished run with these rows; a table without rows has no file, columns without values are null."""
    for name, table in RESULTS.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "_SUCCESS").touch()
        if rows := tables.get(name):
            pq.write_table(pa.Table.from_pylist(list(rows), table.arrow), folder / name / "part-0.parquet")
    count = {name: len(rows) for name, rows in tables.items()}
    metrics = metrics_of(*(count.get(name, 0) for name in ("documents", "pairs", "clusters", "keep"))).dump()
    metrics["versions"]["sketch_format"] = FULL_FORMAT
    (folder / "metrics.json").write_text(json.dumps(metrics))
    (folder / "_RUN.json").write_text("{}")
    (folder / "_COMPLETE").write_text("{}")
    return folder


def write_family(folder: Path) -> Path:
    """Write a run of three near-duplicates `a`, `b`, `c"'`, of which `a` is kept, and a document alone.

    The resemblance of the pair (a, c) is unknown.
    """
    odd = "c\"'"
    documents = [
        {"doc_key": key, "doc_id": name, "url": None if name == "b" else f"http://x.org/{name}", "source": "p.xml",
         "record": key + 1, "n_tokens": 20 * key, "n_features": 9, "content_fingerprint": bytes([key]) * 16,
         "group": name, "sketch": [1, 2]}
        for key, name in enumerate(["a", "b", odd, "alone"])
    ]  # fmt: skip
    pairs = [
        {"doc_a": "a", "doc_b": "b", "overlap": 8, "resemblance": 0.29, "star": False},
        {"doc_a": "a", "doc_b": odd, "overlap": 7, "resemblance": None, "star": False},
        {"doc_a": "b", "doc_b": odd, "overlap": 9, "resemblance": 1.0, "star": False},
    ]
    members = [{"cluster_id": "f" * 16, "doc_id": name, "representative": name == "a"} for name in ("a", "b", odd)]
    keep = [
        {"doc_id": "a", "kept": True},
        {"doc_id": "b", "kept": False, "duplicate_of": "a", "reason": "near"},
        {"doc_id": odd, "kept": False, "duplicate_of": "a", "reason": "near"},
        {"doc_id": "alone", "kept": True},
    ]
    cluster = {"cluster_id": "f" * 16, "support": 7, "size": 3, "members": ["a", "b", odd], "component": "a",
               "coverage": "all"}  # fmt: skip
    rejects = [{"source": "p.xml", "record": 9, "doc_id": None, "reason": "truncated", "detail": "", "excerpt": "<"}]
    return write_run(
        folder, documents=documents, pairs=pairs, clusters=[cluster], members=members, keep=keep, rejects=rejects
    )
