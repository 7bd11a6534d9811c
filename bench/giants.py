"""Giants: families of many thousands through the whole job, and a component of a million documents."""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bench.processes import Usage, nddup, run_measured
from bench.recording import drop, fresh, record, show

SLOTS, SHARE = 100, 0.97
FAMILIES = (20_000, 100_000)
CHAIN = 1_000_000
STEP, WIDTH = 5, 20
"""Words between the starts of neighbouring windows, and words of a window: three windows in a row share ten words."""


def run(options: argparse.Namespace) -> None:
    """Run families of both sizes, then the chain, and show the times of the tasks that mined it."""
    scale = 10 if options.small else 1
    _families(options, [size // scale for size in FAMILIES])
    _chain(options, CHAIN // scale)


def _families(options: argparse.Namespace, sizes: list[int]) -> None:
    rows, values = [], []
    for size in sizes:
        folder = fresh("giants")
        _write(folder / "family.jsonl", _family(size))
        usage, metrics = _job(options, folder, "family.jsonl", 50, SLOTS)
        coverage = sorted(set(pq.read_table(folder / "run" / "clusters", columns=["coverage"])["coverage"].to_pylist()))
        kept = metrics["stages"]["keep"]["kept"]
        rows.append([f"{size:,}", usage.seconds, usage.cpu_seconds, usage.worker_rss / 1e6, kept,
                     metrics["rows"]["clusters"], " ".join(coverage)])  # fmt: skip
        values.append({"documents": size, "seconds": usage.seconds, "worker_rss": usage.worker_rss})
        drop(folder)
    show(f"giants: one family, {SLOTS} slots kept with {SHARE}, count 50, the whole job",
         ["documents", "seconds", "CPU s", "worker MB", "kept", "clusters", "coverage"], rows)  # fmt: skip
    print(f"  the larger takes {values[-1]['seconds'] / values[0]['seconds']:.1f} times the smaller")
    record("giants", options, families=values)


def _chain(options: argparse.Namespace, size: int) -> None:
    folder = fresh("giants")
    (folder / "events").mkdir()
    _write(folder / "chain.jsonl", _windows(size))
    events = {"enabled": "true", "dir": f"file://{(folder / 'events').absolute()}", "rolling.enabled": "false",
              "compress": "false"}  # fmt: skip
    settings = [f"--set=spark.eventLog.{key}={value}" for key, value in events.items()]
    usage, metrics = _job(options, folder, "chain.jsonl", 10, WIDTH, *settings)
    seconds = np.array(_task_seconds(next((folder / "events").iterdir()), "listed"))
    drop(folder)
    headings = ["documents", "seconds", "worker MB", "clusters", "shares", "tasks", "median task s", "longest task s"]
    clusters, shares = metrics["rows"]["clusters"], metrics["stages"]["clusters"]["shares"]
    row = [f"{size:,}", usage.seconds, usage.worker_rss / 1e6, clusters, shares, len(seconds)]
    title = "giants: one component, a chain of documents of which three in a row are alike, the whole job"
    show(title, headings, [[*row, float(np.median(seconds)), float(seconds.max())]])
    chain = {"documents": size, "seconds": usage.seconds, "worker_rss": usage.worker_rss, "shares": shares}
    record("giants", options, chain={**chain, "tasks": seconds.round(3).tolist()})


def _job(
    options: argparse.Namespace, folder: Path, name: str, count: int, size: int, *more: str
) -> tuple[Usage, dict[str, Any]]:
    settings = {"shingle.length": 1, "sketch.size": size, "pairs.measure": "overlap", "pairs.threshold": count}
    given = [f"--set={key}={value}" for key, value in settings.items()]
    command = [nddup(), "run", str(folder / name), "--output", str(folder / "run"), *given, *more]
    usage = run_measured([*command, f"--master=local[{options.cores}]"])
    return usage, json.loads((folder / "run" / "metrics.json").read_text(encoding="utf-8"))


def _write(path: Path, texts: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate(texts))


def _family(size: int) -> Iterator[str]:
    """Yield texts that keep each slot with probability SHARE and have a word of their own in place of the others."""
    random = np.random.default_rng(1)
    for number in range(size):
        is_kept = random.random(SLOTS) < SHARE
        yield " ".join(f"slot{slot}" if kept else f"own{number}x{slot}" for slot, kept in enumerate(is_kept))


def _windows(size: int) -> Iterator[str]:
    """Yield windows over an endless text, in random order."""
    for place in np.random.default_rng(1).permutation(size).tolist():
        yield " ".join(f"w{word}" for word in range(STEP * place, STEP * place + WIDTH))


def _task_seconds(log: Path, table: str) -> list[float]:
    """Return the seconds of each task of the last stage in whose job description the table's name occurs."""
    described: dict[int, str] = {}
    tasks: dict[int, list[float]] = defaultdict(list)
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                text = event.get("Properties", {}).get("spark.job.description", "")
                described.update(dict.fromkeys(event["Stage IDs"], text))
            elif event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
                tasks[event["Stage ID"]].append(event["Task Metrics"]["Executor Run Time"] / 1000)
    last = max((stage for stage in tasks if table in described.get(stage, "")), default=None)
    return tasks[last] if last is not None else []
