"""The baseline of 2009: repeated bisection into a number of clusters, by the cosine of TF-IDF vectors (MLlib).

The paper used one file of 6,941 documents; here they are the first three files of 24, beside maximal sets of the same
documents. The numbers of clusters are the paper's, as shares of the documents. The pairs of a clustering are all pairs
of documents that share a cluster.
"""

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.debdocs import texts_of
from bench.papers.cells import Cells, Values
from bench.papers.collections import FILES as PARTS
from bench.papers.collections import first, in_order
from bench.papers.runs import sweep, values_of
from bench.papers.y2009 import PROFILE, SUPPORTS_150, Grid, make_truth

FILES = 3
SHARES = {"100 of 6,941": 100 / 6941, "1,000": 1000 / 6941, "2,000": 2000 / 6941, "3,000": 3000 / 6941,
          "5,000": 5000 / 6941, "6,000": 6000 / 6941}  # fmt: skip
LIMIT = 600


def measure(options: argparse.Namespace, cells: Cells, folder: Path, pages: Sequence[Path]) -> None:
    """Cluster the same documents both ways."""
    inputs, truth = first(pages, FILES), folder / "truth.baseline.csv"
    cells.get("baseline list", {}, partial(make_truth, folder, inputs, truth))
    grid: Grid = {"shingle.length": [10], "sketch.size": [150], "pairs.threshold": SUPPORTS_150}
    cells.get("baseline sets", {}, partial(_sets, folder, inputs, grid, truth))
    for name, share in SHARES.items():
        made = cells.get("bisection", {"clusters": name}, partial(_bisect, options, folder, truth, share))
        if made["seconds"] is None:
            break  # more clusters take longer


def _sets(folder: Path, inputs: list[str], grid: Grid, truth: Path) -> Values:
    return {"rows": [values_of(point) for point in sweep(folder / "sweep", inputs, PROFILE, grid, truth)]}


def _texts(options: argparse.Namespace, path: Path) -> int:
    """Write the ids and texts of the pages of the first files to Parquet; return how many there are."""
    pages = in_order(options)
    pages = pages.iloc[: sum(len(part) for part in np.array_split(np.arange(len(pages)), PARTS)[:FILES])]
    ids = [str(doc_id) for doc_id in pages["doc_id"].tolist()]
    pq.write_table(pa.table({"doc_id": ids, "text": texts_of(pages)}), path)
    return len(ids)


def _bisect(options: argparse.Namespace, folder: Path, truth: Path, share: float) -> Values:
    """Bisect in a process of its own and compare the pairs with the list; seconds are None if the limit was passed."""
    texts, assigned = folder / "baseline.parquet", folder / "assigned.json"
    clusters = max(2, round(share * _texts(options, texts)))
    command = [sys.executable, "-m", "bench.papers.bisecting", str(texts), str(clusters), str(assigned)]
    try:
        subprocess.run(command, check=True, timeout=LIMIT, capture_output=True)
    except subprocess.TimeoutExpired:
        return {"clusters": clusters, "seconds": None}

    made = json.loads(assigned.read_text(encoding="utf-8"))
    cluster_of: dict[str, int] = made["clusters"]
    sizes = np.bincount(list(cluster_of.values()))
    found = int((sizes * (sizes - 1) // 2).sum())
    with truth.open(encoding="utf-8") as file:
        rows = csv.reader(line for line in file if not line.startswith("#"))
        next(rows)
        listed = [row[:2] for row in rows]
    common = sum(cluster_of.get(a, -1) == cluster_of.get(b, -2) for a, b in listed)
    precision, recall = common / max(found, 1), common / max(len(listed), 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    ratios = {"precision": round(precision, 3), "recall": round(recall, 3), "f1": round(f1, 3)}
    return {"clusters": clusters, "seconds": made["seconds"], "pairs": found, **ratios}
