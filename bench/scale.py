"""Scale: seconds, disk and memory per record of the whole job, on two sizes of the same kind of collection."""

import argparse
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.processes import Usage, nddup, run_measured
from bench.recording import BUILD, drop, fresh, record, show

WORDS = (20, 33)
"""Words of a record, from low to below high: about 190 bytes of text, 215 with the rest of the line."""
LETTERS = 6
VOCABULARY = 50_000
NEAR = 0.2
"""Share of the records that are in a family: a text, and the same text with one or two words added."""
FAMILY = 3
MEMORY = "16GB"
"""`local.memory` for a run of the embedded engine."""

BLOCK = 100_000
FILE = 500_000
"""Records of a file where they are compressed: a file is read by one process."""


def run(options: argparse.Namespace) -> None:
    """Run the job on a smaller and a larger collection and compare the cost per record."""
    default = "20000,80000" if options.small else "250000,2000000"
    counts = [int(count) for count in (options.records or default).split(",")]
    rows, values = [], list[dict[str, Any]]()
    for count in counts:
        usage, sizes = _measure(count, options)
        measured = [sizes["input"], usage.disk["all"], usage.disk["spark"], usage.memory, usage.unmapped]
        measured += [usage.worker_rss, usage.workers_rss]
        times = [usage.seconds, usage.seconds / count * 1e6, usage.cpu_seconds]
        rows.append([f"{count:,}", *times, *(size / 1e6 for size in measured), sizes["pairs"]])
        values.append({"records": count, **asdict(usage), **sizes})
    headings = [
        "records",
        "seconds",
        "us a record",
        "CPU s",
        "input MB",
        "disk MB",
        "of it Spark's",
        "peak MB",
        "without files",
        "worker MB",
    ]
    show("scale: the whole job, its start included; most disk and memory at any time",
         [*headings, "workers MB", "pairs"], rows)  # fmt: skip
    ratio = (values[-1]["seconds"] / counts[-1]) / (values[0]["seconds"] / counts[0])
    more = counts[-1] - counts[0]
    slope = (values[-1]["seconds"] - values[0]["seconds"]) / more * 1e6 if more else None  # of one count
    if slope is not None:
        print(f"  a record of the last costs {ratio:.2f} times one of the first; {slope:.1f} us a record more")
    record("scale", options, runs=values, ratio=round(ratio, 3), microseconds_a_record=slope and round(slope, 2))


def _measure(count: int, options: argparse.Namespace) -> tuple[Usage, dict[str, int]]:
    folder, local = fresh("scale"), (BUILD / "local").absolute()
    shutil.rmtree(local, ignore_errors=True)
    local.mkdir(parents=True)
    texts, output = folder / "texts", folder / "run"
    texts.mkdir()
    low, high = (int(words) for words in options.words.split(","))
    near, step = 0, FILE if options.compressed else count
    for first in range(0, count, step):
        name, some = f"{first // step:04d}.jsonl{'.zst' * options.compressed}", min(step, count - first)
        near += write_records(texts / name, some, 1 + first // step, (low, high), options.near, first)
    size = sum(file.stat().st_size for file in texts.iterdir())
    settings = [f"--master=local[{options.cores}]", f"--set=spark.local.dir={local}"]
    if options.engine == "local":
        settings = ["--engine=local", f"--set=local.processes={options.cores}", f"--set=local.memory={MEMORY}"]
    usage = run_measured(
        [nddup(), "run", str(texts), "--output", str(output), *settings],
        folders={"spark": local, "output": output},
        every=0.5,
    )
    tables = {name: pq.read_table(output / name, columns=[]).num_rows for name in ("documents", "pairs", "clusters")}
    drop(folder, local)
    return usage, {"input": size, "in_families": near, **tables}


def write_records(  # noqa: PLR0913, PLR0917 - what is written, and where
    path: Path, count: int, seed: int = 1, words: tuple[int, int] = WORDS, near: float = NEAR, start: int = 0
) -> int:
    """Write `count` JSON lines `{"id", "text"}`, compressed as the name says; return how many of them are in a family.

    `words`: words of a record, from low to below high. `near`: the share of the records in families. `start`: the first
    id.
    """
    random = np.random.default_rng(seed)
    vocabulary = np.full((VOCABULARY, LETTERS + 1), ord(" "), np.uint8)
    vocabulary[:, :LETTERS] = random.integers(ord("a"), ord("z") + 1, (VOCABULARY, LETTERS))
    in_families = 0
    with pa.output_stream(str(path)) as file:
        for first in range(0, count, BLOCK):
            rows = min(BLOCK, count - first)
            chosen = random.integers(0, VOCABULARY, (rows, words[1] + FAMILY))
            lengths = random.integers(*words, rows)
            families = int(rows * near) // FAMILY
            heads = random.choice(rows // FAMILY, families, replace=False) * FAMILY
            for member in range(1, FAMILY):
                chosen[heads + member] = chosen[heads]
                lengths[heads + member] = lengths[heads] + member
            in_families += families * FAMILY
            data, bytes_of = vocabulary[chosen].reshape(rows, -1), (lengths * (LETTERS + 1)).tolist()
            lines = (
                b'{"id": "%d", "text": "%s"}\n' % (start + first + row, data[row, : bytes_of[row] - 1].tobytes())
                for row in range(rows)
            )
            file.write(b"".join(lines))
    return in_families
