"""Explosion: debdocs-dev at decreasing overlap: number of sets, their coverage, and seconds of each step."""

import argparse
import json
from collections import Counter

import pyarrow.parquet as pq

from bench.debdocs import load_pages, write_romip
from bench.processes import nddup, run_measured
from bench.recording import drop, fresh, record, show

SHARES = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)


def run(options: argparse.Namespace) -> None:
    """Run the whole job at each share of 200 features, with default settings otherwise."""
    folder = fresh("explosion")
    write_romip(folder / "pages.xml", load_pages(options))
    rows, values = [], []
    for share in SHARES:
        output = folder / f"run-{share}"
        settings = ["--set=pairs.measure=overlap", f"--set=pairs.threshold={share}", f"--master=local[{options.cores}]"]
        usage = run_measured([nddup(), "run", str(folder / "pages.xml"), "--output", str(output), *settings])
        metrics = json.loads((output / "metrics.json").read_text(encoding="utf-8"))
        coverage = Counter(pq.read_table(output / "clusters", columns=["coverage"])["coverage"].to_pylist())
        seconds = {name: stage["seconds"] for name, stage in metrics["stages"].items()}
        rows.append([share, metrics["rows"]["pairs"], metrics["rows"]["clusters"],
                     *(coverage[kind] for kind in ("all", "pairs", "documents")),
                     metrics["stages"]["clusters"]["largest_component"], *seconds.values(), usage.seconds])  # fmt: skip
        values.append({"share": share, "pairs": metrics["rows"]["pairs"], "coverage": dict(coverage), **seconds})
    drop(folder)
    headings = ["share", "pairs", "clusters", "of all", "of covers", "of leaders", "largest", *seconds, "whole job s"]
    show("explosion: debdocs-dev, overlap share of 200 features, default budgets", headings, rows)
    record("explosion", options, shares=values)
