"""Stages: CPU and bytes per sketch on Spark, from sketches in Parquet to pairs, clusters and the keep-list."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.pairing import make_sketches
from bench.processes import Usage, run_measured
from bench.recording import BUILD, drop, fresh, record, show

SIZE = 64
"""Ids of a sketch."""

EQUAL = 0.15
"""Share of the documents whose sketch equals that of an earlier one."""

BLOCK = 250_000
"""Documents generated at a time, in a file of their own. No two files have near sketches, so results grow in
proportion.
"""

FOUND = ("candidates", "pairs", "components", "clusters", "kept")

PROFILE = Path(__file__).parents[1].absolute() / "conf" / "large.yaml"
"""Settings for Spark, which limits the address space of a Python worker."""


def run(options: argparse.Namespace) -> None:
    """Run the stages over a smaller and a larger collection, and compare the cost per document."""
    default = "20000,80000" if options.small else "1000000,10000000"
    counts = [int(count) for count in (options.records or default).split(",")]
    values = []
    for count in counts:
        values.append(_measure(count, options))
        _show_stages(count, values[-1])
    show(
        "stages: sketches to clusters and the keep-list",
        ["sketches", "seconds", "CPU us a sketch", "shuffled a sketch", "Spark's disk MB", "tables MB", "memory MB",
         "worker MB", *FOUND],
        [[f"{count:,}", value["seconds"], value["cpu_seconds"] / count * 1e6, value["shuffled"] / count,
          value["disk"]["spark"] / 1e6, value["disk"]["tables"] / 1e6, value["memory"] / 1e6,
          value["worker_peak"] / 1e6, *(value["rows"][name] for name in FOUND)]
         for count, value in zip(counts, values, strict=True)],
    )  # fmt: skip
    ratios = {
        name: round((values[-1][name] / counts[-1]) / (values[0][name] / counts[0]), 3)
        for name in ("cpu_seconds", "shuffled")
    }
    print("  a sketch of the last costs {cpu_seconds} times the CPU of one of the first, {shuffled} times the bytes"
          .format_map(ratios))  # fmt: skip
    record("stages", options, sketches=counts, runs=values, ratios=ratios)


def _show_stages(count: int, value: dict[str, Any]) -> None:
    show(
        f"stages: {count:,} sketches of {SIZE} ids",
        ["stage", "seconds", "CPU s", "CPU us a sketch", "shuffled a sketch"],
        [[stage["name"], stage["seconds"], stage["cpu_seconds"], stage["cpu_seconds"] / count * 1e6,
          stage["shuffled"] / count] for stage in value["stages"]],
    )  # fmt: skip
    print(json.dumps(value), flush=True)
    show(
        "  exchanges of at least 1 % of the bytes",
        ["job", "tasks", "MB", "bytes a row", "CPU s", "MB spilled"],
        [list(one.values()) for one in value["exchanges"]],
    )


def _measure(count: int, options: argparse.Namespace) -> dict[str, Any]:
    """Generate a collection, measure the stages over it, and delete it."""
    folder = fresh("stages").absolute()
    documents, tables, local, said = folder / "documents", folder / "tables", folder / "local", folder / "said.json"
    for made in (documents, tables, local):
        made.mkdir()
    for number, first in enumerate(range(0, count, BLOCK)):
        table = pa.table(_make_documents(first, min(BLOCK, count - first)))
        pq.write_table(table, documents / f"part-{number:05}.parquet", compression="zstd", use_dictionary=False)

    given = [*options.set, *([f"spark.sql.shuffle.partitions={options.tasks}"] if options.tasks else [])]
    command = [sys.executable, "-m", "bench.stages_run", documents, tables, local, said, options.cores, PROFILE, *given]
    usage = run_measured(
        [str(part) for part in command], folders={"spark": local, "tables": tables}, every=1.0 if count > BLOCK else 0.2
    )
    value: dict[str, Any] = _values(usage) | json.loads(said.read_text(encoding="utf-8"))
    value["shuffled"] = sum(stage["shuffled"] for stage in value["stages"])
    value["cpu_seconds"] = round(sum(stage["cpu_seconds"] for stage in value["stages"]), 1)
    drop(folder, BUILD / "stages")
    return value


def _values(usage: Usage) -> dict[str, Any]:
    return {
        "seconds": round(usage.seconds, 1),
        "cpu_seconds": round(usage.cpu_seconds, 1),
        "memory": usage.memory,
        "worker_peak": usage.worker_rss,
        "disk": usage.disk,
    }


def _make_documents(first: int, count: int) -> dict[str, pa.Array]:
    """Return DOCUMENTS: families and templates as in `pairing`, then documents that repeat an earlier sketch."""
    random = np.random.default_rng(first + 1)
    distinct = count - int(count * EQUAL)
    rows = np.append(np.arange(distinct), random.integers(0, distinct, count - distinct))
    sketches = make_sketches(distinct, size=SIZE, seed=first + 1)[rows]
    keys = np.arange(first, first + count)
    ids = np.array([f"d{key:010}" for key in keys])
    return {
        "doc_key": pa.array(keys),
        "doc_id": pa.array(ids),
        "source": pa.repeat("generated", count),
        "record": pa.array(keys + 1),
        "n_tokens": pa.array(random.integers(SIZE, 10 * SIZE, count).astype(np.int32)),
        "n_features": pa.array(np.full(count, SIZE, np.int32)),
        "content_fingerprint": pa.array([random.bytes(16) for _ in range(count)], pa.binary()),
        "group": pa.array(ids[rows]),
        "sketch": pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32) * SIZE, pa.array(sketches.ravel())),
    }
