"""Run the tasks over a whole graph on generated edges, one per line `KIND EDGES NODES [MEGABYTES]` of standard input.

A task runs as Spark runs it, in a fork of a process that has everything loaded; MEGABYTES limits its address space. Its
line of the answer holds the growth of the fork's resident memory to its peak, in bytes, and the number of rows it made.
"""

import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.matching.threshold import Threshold
from nddup.mining import family_pairs
from nddup.mining.cluster_modes import Budget, MiningRule, Problems
from nddup.spark import daemon
from nddup.spark.clustering import graph

ROWS = 10_000
"""Rows per batch, as `nddup.spark.session` sets it."""

IDS = 16
"""Of a sketch of a component given by leaders."""

Pairs = Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]


def name(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the names of nodes, in another order than their places."""
    return (places * 7_919 + 13) % 1_000_003_000_003


def draw(edges: int, nodes: int) -> Pairs:
    """Yield batches of edges between nodes at close places; if 2 e ends suffice, each node has an edge."""
    random = np.random.default_rng(1)
    for low in range(0, edges, ROWS):
        first = 2 * np.arange(low, min(low + ROWS, edges)) % (nodes - 1)
        second = first + random.integers(1, 9, len(first)) if 2 * edges > nodes else first + 1
        yield name(first), name(np.minimum(second, nodes - 1))


def family_rows(edges: int, nodes: int) -> Iterator[pa.RecordBatch]:
    """Yield what `find_families` sends to its task: edges, some of them links."""
    for first, second in draw(edges, nodes):
        is_link, pairs = pa.array(first % 4 == 1), pa.repeat(1, len(first))
        yield pa.RecordBatch.from_pydict({"node_a": first, "node_b": second, "is_link": is_link, "pairs": pairs})


def numbered_rows(edges: int, nodes: int) -> Iterator[pa.RecordBatch]:
    """Yield what `solve` and `decide_rest` send to their tasks: edges from random earlier nodes to later ones."""
    random = np.random.default_rng(1)
    for low in range(0, edges, ROWS):
        second = 1 + np.arange(low, min(low + ROWS, edges)) * (nodes - 2) // edges
        yield pa.RecordBatch.from_pydict({"first": random.integers(0, second), "second": second})


def solve_task(edges: int, nodes: int) -> Iterator[pa.RecordBatch]:
    """Run the task of `solve`."""
    assignment = graph.Assignment("auto", 8, max_sets=1_000, max_members=100_000)
    solving = graph.Solving(nodes, assignment, least=None)
    return graph.solve_task(numbered_rows(edges, nodes), solving=solving)


def led_sets(edges: int, nodes: int) -> Iterator[pa.RecordBatch]:
    """Return the sets of one component given by leaders, of sketches of `IDS` ids, all near those of a few leaders."""
    random, each = np.random.default_rng(1), max(edges // nodes, 1)
    ids = np.tile(np.arange(IDS, dtype=np.uint64), (nodes, 1))
    ids[:, -1] = random.integers(IDS, 1 << 63, nodes)
    followers = np.arange(each, nodes)
    pairs = np.stack([np.tile(np.arange(each), len(followers)), np.repeat(followers, each)], axis=1).astype(np.int32)
    one = Problems(
        np.zeros(1, np.int64), np.array([0, nodes]), np.array([0, len(pairs)]), np.ones(1, np.bool_),
        Ragged(np.arange(nodes + 1) * IDS, ids.ravel()), np.arange(nodes), np.full(nodes, IDS // 2, np.int32),
        np.arange(nodes, dtype=np.int32), np.arange(nodes) < each, pairs,
    )  # fmt: skip
    threshold = Threshold("resemblance", 1, 2, is_count=False, size=IDS, by_text=True)
    return one.mine(np.zeros(1, np.int64), MiningRule(threshold, "all", Budget(1_000, 100_000, 100_000)))


TASKS: dict[str, Callable[[int, int], Iterator[pa.RecordBatch]]] = {
    "led": led_sets,
    "families": lambda edges, nodes: family_pairs.list_families(family_rows(edges, nodes), max_edges=1 << 40),
    "rest": lambda edges, nodes: graph.rest_task(numbered_rows(edges, nodes), nodes=nodes),
    "solve": solve_task,
}


def resident(key: str) -> int:
    """Return the resident bytes of this process: `VmRSS` now, `VmHWM` at the peak."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(key)).split()[1])


def measure(kind: str, edges: int, nodes: int, megabytes: int | None = None) -> None:
    """Run one task in this process."""
    if megabytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    sum(batch.num_rows for batch in TASKS[kind](ROWS, ROWS))  # the first call loads code and buffers
    task = TASKS[kind](edges, nodes)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # reset the peak
    before = resident("VmRSS")
    rows = sum(batch.num_rows for batch in task)
    sys.stdout.write(f"{resident('VmHWM') - before} {rows}\n")
    sys.stdout.flush()


def main() -> None:
    """Load everything, then fork for each line."""
    daemon.load_kernels()
    for line in sys.stdin:
        kind, *numbers = line.split()
        if not (child := os.fork()):
            measure(kind, *map(int, numbers))
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{line.strip()} failed")


if __name__ == "__main__":
    main()
