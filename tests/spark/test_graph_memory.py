"""The memory that a task over a whole graph takes, and the limit on its size that follows."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nddup.embedded.mine_components import OF_LED
from nddup.engines.choose import UNSET_BYTES, WORKER_SHARE, machine_memory, read_size, task_memory
from nddup.mining.family_pairs import FAMILIES_COST
from nddup.mining.pair_graph import (
    BATCHES_BYTES,
    CHOICE_BITS,
    GRAPH_BITS,
    MOST_NODES,
    WORKER_BYTES,
    Cost,
    Edges,
    most_nodes,
)
from nddup.spark.daemon import ARENA
from tests.places import ROOT
from tests.spark.graph_tasks import IDS

GB = 1 << 30
Measure = Callable[..., tuple[int, int]]


@pytest.fixture(scope="module")
def measure() -> Iterator[Measure]:
    """A function that returns the bytes a task took and the rows it made; each task runs in a fork of one process."""
    command = [sys.executable, "-m", "tests.spark.graph_tasks"]
    # There Arrow is loaded before `load_kernels` can set this.
    env = {**os.environ, "MIMALLOC_ARENA_RESERVE": ARENA}
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        asked, told = process.stdin, process.stdout
        assert asked is not None
        assert told is not None

        def ask(*arguments: object) -> tuple[int, int]:
            print(*arguments, file=asked, flush=True)
            taken, rows = told.readline().split()
            return int(taken), int(rows)

        yield ask
        asked.close()


def test_workers_are_forked_with_most_of_their_addresses() -> None:
    """Loading the kernels does not make Arrow reserve a gigabyte of addresses before the fork."""
    status = "from pathlib import Path; print(Path('/proc/self/status').read_text())"
    code = f"from nddup.spark import daemon; daemon.load_kernels(); {status}"
    lines = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kilobytes = next(int(line.split()[1]) for line in lines.splitlines() if line.startswith("VmSize"))

    assert kilobytes << 10 < WORKER_BYTES


@pytest.mark.parametrize("nodes_per_edge", [0.25, 2])
def test_a_task_takes_no_more_than_its_cost(measure: Measure, nodes_per_edge: float) -> None:
    """400,000 edges stay within the cost, whether they form families or each has two nodes of its own."""
    edges, cost = 400_000, FAMILIES_COST
    nodes = int(edges * nodes_per_edge)

    taken, rows = measure("families", edges, nodes)

    assert rows > nodes / 4
    assert taken <= cost.edge * edges + cost.node * nodes


@pytest.mark.parametrize(("nodes", "each"), [(200_000, 1), pytest.param(60_000, 10, marks=pytest.mark.nightly)])
def test_a_component_given_by_leaders_takes_no_more_than_its_cost(measure: Measure, nodes: int, each: int) -> None:
    """Short sketches with one pair each, or with ten: what is planned is enough, and at most six times too much."""
    edges = each * nodes
    taken, _ = measure("led", edges, nodes)
    planned = np.dot(OF_LED, (IDS * nodes, nodes, edges))
    assert planned / 6 <= taken <= planned


@pytest.mark.parametrize("kind", ["solve", "rest"])
def test_edges_that_stream_take_no_memory(measure: Measure, kind: str) -> None:
    """A task takes 34 bits per node (the choice alone, 1) and a batch of edges and of rows, however many edges pass."""
    nodes, batch = 4_000_000, 32 << 20
    bits = GRAPH_BITS if kind == "solve" else CHOICE_BITS

    few, many = (measure(kind, edges, nodes)[0] for edges in (400_000, 4_000_000))

    assert max(few, many) <= nodes * bits // 8 + batch
    assert many - few < 16 << 20


def test_a_worker_of_the_cluster_settings_takes_ten_million_edges(measure: Measure) -> None:
    """The largest graph that the limits allow fits the address space that `conf/cluster.yaml` gives a worker."""
    settings = yaml.safe_load((ROOT / "conf" / "cluster.yaml").read_text(encoding="utf-8"))["spark"]
    memory = task_memory({key: str(value) for key, value in settings.items()})
    streamed = most_nodes(memory, GRAPH_BITS)

    _, solved = measure("solve", 10**7, streamed, memory >> 20)

    assert memory == GB
    assert solved == streamed > 3 * 10**7


costs = st.builds(Cost, edge=st.integers(1, 60), node=st.integers(0, 60))


@given(costs, st.integers(0, 5_000), st.integers(0, 60))
def test_the_limit_is_the_largest_graph_that_fits(cost: Cost, free: int, nodes: int) -> None:
    """One more edge would not fit, whether nodes are few or each edge has two of its own."""

    def taken(edges: int) -> int:
        return cost.edge * edges + cost.node * min(2 * edges, nodes)

    most = cost.most_edges(WORKER_BYTES + free, nodes)

    assert taken(most) <= free < taken(most + 1)


def test_less_than_a_worker_takes_nothing() -> None:
    """With less memory than a worker needs, the limits are 0, not negative."""
    assert FAMILIES_COST.most_edges(GB // 2, nodes=10) == 0
    assert most_nodes(GB // 2, GRAPH_BITS) == 0


@given(st.integers(0, 1 << 40), st.sampled_from([GRAPH_BITS, CHOICE_BITS]))
def test_the_nodes_of_a_stream_follow_from_the_memory(free: int, bits: int) -> None:
    """One more node would not fit, or would have no number."""
    most = most_nodes(WORKER_BYTES + BATCHES_BYTES + free, bits)

    assert most * bits <= 8 * free
    assert most == MOST_NODES or (most + 1) * bits > 8 * free


@pytest.mark.parametrize(
    ("settings", "memory"),
    [
        ({"spark.master": "yarn", "spark.executor.pyspark.memory": "2g", "spark.executor.cores": "2"}, GB),
        ({"spark.master": "yarn", "spark.executor.pyspark.memory": "3g"}, 3 * GB),
        ({"spark.master": "local[8]", "spark.executor.pyspark.memory": "1536"}, 3 * GB // 2),
        ({"spark.master": "spark://host:7077"}, UNSET_BYTES),
        ({"spark.master": "local[*]"}, 16 * GB // WORKER_SHARE),
    ],
)
def test_the_memory_of_a_task_follows_from_the_settings(settings: dict[str, str], memory: int) -> None:
    """A task gets Spark's setting over the executor's cores; else a default, or in local mode a share of the RAM."""
    assert task_memory(settings, machine=16 * GB) == memory


def test_sizes_are_read_as_spark_reads_them() -> None:
    """A size may have any unit, in upper or lower case; without a unit it is in MiB."""
    assert [read_size(text) for text in ("2g", "2048m", "2048", "2097152K", "2GB", "2147483648b")] == [2 * GB] * 6
    with pytest.raises(ValueError, match="expected bytes such as 64MB or 64m"):
        read_size("much")
    assert 0 < task_memory({"spark.master": "local[2]"}) <= machine_memory()


@given(st.lists(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=5), max_size=5))
def test_edges_come_back_as_they_were_added(batches: list[list[tuple[int, int]]]) -> None:
    """Edges added in any number of batches give their ends as places among the names."""
    edges = Edges()
    for batch in batches:
        edges.add(*np.array(batch, np.int64).reshape(-1, 2).T)
    whole = [row for batch in batches for row in batch]

    names = edges.names()
    ends = edges.take_ends(names)

    assert names.tolist() == sorted({end for a, b in whole for end in (a, b)})
    assert [tuple(names[pair].tolist()) for pair in ends] == whole
    assert len(edges) == len(whole)
