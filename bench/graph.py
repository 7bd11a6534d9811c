"""Graph: CPU per edge and memory of the kernels of the task through which an ordered graph streams. No Spark."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.recording import record, show
from nddup.mining.pair_graph import StreamedChoice, StreamedComponents

BATCH = 10_000
"""Edges in a batch, as Spark passes them."""

NEAR = 1_000
"""Most nodes between the two ends of an edge, where ends are near."""

LABELLED = 1 << 20
"""Nodes whose labels are read at a time."""

NODES_AN_EDGE = 2


def run(options: argparse.Namespace) -> None:
    """Stream edges with near and with random earlier ends, each in a process of its own."""
    edges = int(options.records) if options.records else (100_000 if options.small else 100_000_000)
    values = []
    for ends in ("near", "random"):
        program = [sys.executable, "-m", "bench.graph", ends, str(edges), str(NODES_AN_EDGE * edges)]
        values.append(json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout))
    show(
        f"graph: {edges:,} edges over {NODES_AN_EDGE * edges:,} nodes, by their later ends; CPU seconds",
        ["earlier ends", "edges in", "ns an edge", "labels out", "all", "peak MB", "MB before", "components"],
        [[value["ends"], value["feed"], value["feed"] / edges * 1e9, value["label"], value["feed"] + value["label"],
          value["peak"] / 1e6, value["before"] / 1e6, value["components"]] for value in values],
    )  # fmt: skip
    record("graph", options, edges=edges, runs=values)


def main(ends: str, edges: int, nodes: int) -> None:
    """Stream the edges through both kernels; print the cost as JSON."""
    for kernel in (StreamedComponents(10), StreamedChoice(10)):  # compiled, or read from the cache
        kernel.feed(np.array([0]), np.array([1]))
    StreamedComponents(10).finish().label(0, 10)
    before = _bytes("VmRSS")

    random = np.random.default_rng(1)
    components, choice = StreamedComponents(nodes), StreamedChoice(nodes)
    feed = 0.0
    for low in range(0, edges, BATCH):
        second = 1 + np.arange(low, min(low + BATCH, edges)) * (nodes - 2) // edges
        near = second - random.integers(1, NEAR, len(second))
        first = np.maximum(near, 0) if ends == "near" else random.integers(0, second)
        started = time.process_time()
        components.feed(first, second)
        choice.feed(first, second)
        feed += time.process_time() - started

    started, count, kept = time.process_time(), 0, 0
    components.finish()
    for low in range(0, nodes, LABELLED):
        high = min(low + LABELLED, nodes)
        count += int((components.label(low, high)[0] == np.arange(low, high)).sum())
        kept += int(choice.kept(low, high).sum())
    label = time.process_time() - started
    print(json.dumps({"ends": ends, "feed": round(feed, 2), "label": round(label, 2), "components": count,
                      "kept": kept, "before": before, "peak": _bytes("VmHWM")}))  # fmt: skip


def _bytes(name: str) -> int:
    """Return a size that Linux reports for this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
