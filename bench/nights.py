"""Nights: a batch of new documents onto finished runs of growing size, beside a fresh run over both."""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

from bench.processes import Usage, folder_bytes, nddup, run_measured
from bench.recording import drop, fresh, record, show
from bench.scale import write_records


class Size(NamedTuple):
    """How many documents the finished runs have, and how many a night adds."""

    old: tuple[int, ...]
    new: int


SIZES = {"local": Size((100_000, 300_000, 1_000_000), 10_000), "spark": Size((1_000_000,), 100_000)}
SMALL = Size((2_000, 4_000), 200)
WORDS = (70, 131)
"""Words of a document, from low to below high."""
NEAR = 0.3
"""Share of the documents in families of three."""
FIRST, SECOND = "2026-01-01", "2026-01-02"
SEEDS = {FIRST: 1, SECOND: 2}
KEPT = ("given", "candidates", "shingles")
"""The tables of a run that only a later one reads."""


def run(options: argparse.Namespace) -> None:
    """Measure the first run, the night and the fresh run at every size; print the table."""
    size = SMALL if options.small else SIZES[options.engine]
    sizes = [int(count) for count in options.records.split(",")] if options.records else size.old
    rows = [_measure(old, size.new, options) for old in sizes]
    headings = ["documents before", "first: CPU s", "night: CPU s", "fresh: CPU s", "night / fresh", "night: s",
                "fresh: s", "night: MB read", "fresh: MB read", "night: MB shuffled", "fresh: MB shuffled", "night: MB",
                "fresh: MB", "bytes a document kept for it"]  # fmt: skip
    show(f"nights: {size.new:,} documents onto a finished run, without reports", headings, rows)
    record("nights", options, rows=rows)


def _measure(old: int, new: int, options: argparse.Namespace) -> list[object]:
    folder = fresh("nights")
    for name, count in zip(SEEDS, (old, new), strict=True):
        (folder / "crawl" / name).mkdir(parents=True)
        write_records(folder / "crawl" / name / f"{name}.jsonl", count, SEEDS[name], WORDS, NEAR)
    first, before = folder / "first", folder / "crawl" / FIRST
    made = _run(first, options, before, f"--as={FIRST}", "--set=output.onto=true")
    night = _run(folder / "night", options, folder / "crawl" / SECOND, f"--as={SECOND}", f"--onto={first}")
    whole = _run(folder / "fresh", options, folder / "crawl")
    shuffled = [_shuffled(folder / name) for name in ("night", "fresh")]
    kept = sum(folder_bytes(first / "_stages" / name) for name in KEPT)
    drop(folder)
    both = night, whole
    return [f"{old:,}", made.cpu_seconds, night.cpu_seconds, whole.cpu_seconds,
            round(night.cpu_seconds / whole.cpu_seconds, 3), *(used.seconds for used in both),
            *(used.read / 1e6 for used in both), *(size / 1e6 for size in shuffled),
            *(used.memory / 1e6 for used in both), round(kept / old, 1)]  # fmt: skip


def _run(output: Path, options: argparse.Namespace, *arguments: object) -> Usage:
    engine = ["--engine=local"] if options.engine == "local" else ["--engine=spark", f"--master=local[{options.cores}]"]
    settings = [f"--set={setting}" for setting in ("output.report=false", *options.set)]
    return run_measured([nddup(), "run", *map(str, arguments), *engine, *settings, f"--output={output}"])


def _shuffled(run: Path) -> int:
    stages = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["stages"]
    return sum(stage.get("shuffle_bytes") or 0 for stage in stages.values())
