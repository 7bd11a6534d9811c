"""Fits: FP-Growth of MLlib, as far as `auto` takes it, beside the pivot miner alone over many small components."""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.processes import ProgramFailedError, run_measured
from bench.recording import BUILD, drop, fresh, record, show
from nddup.ground.arrays import Ragged
from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import Budget
from nddup.spark.blocks import Columns, block_schema, exchange, pack
from nddup.spark.clustering import mine_components
from nddup.spark.clustering.graph import FIT_SETS, Assignment
from nddup.spark.clustering.problems import EDGE_LAYOUT, NODE_LAYOUT, PIVOT, PROBLEM_LAYOUT, SKETCH_LAYOUT
from nddup.spark.session import start_session
from nddup.spark.steps.clustering import _list_frequent, _union
from nddup.spark.steps.state import persisted

SIZE, LOST, SIZES = 64, 4, 5
"""Ids of a sketch; how many of them are its own; a component has 2 to SIZES + 1 sketches, all near each other."""

COUNTS = (10_000, 100_000, 1_000_000)
TOGETHER = 2_000
"""Components made at a time."""

HEAP = "512m"
MINERS = ("auto", "pivot")
NEAR = Threshold("resemblance", 7, 10, is_count=False, size=SIZE)
BUDGET = Budget(1_000, 100_000, 10_000_000, 0)


def run(options: argparse.Namespace) -> None:
    """Mine each number of components by both miners; print CPU seconds, and stop if their sets differ."""
    asked = [int(count) for count in (options.records or "").split(",") if count]
    rows: list[list[object]] = []
    for count in asked or ((1_000,) if options.small else COUNTS):
        found = set()
        for miner in MINERS:
            said = fresh("fits") / "said.json"
            command = [sys.executable, "-m", "bench.fits", str(count), miner, str(options.cores), str(said)]
            try:
                usage = run_measured(command, limit=options.limit)
            except ProgramFailedError as error:
                rows.append([count, miner, str(error).strip().splitlines()[-1], *["–"] * 4])
            else:
                told = json.loads(said.read_text(encoding="utf-8"))
                found.add((told["sets"], told["digest"]))
                cpu = usage.cpu_seconds
                rows.append([count, miner, cpu, cpu / count * 1e6, usage.memory / 1e6, told["sets"], told["fits"]])
            print(rows[-1], flush=True)
        if len(found) > 1:
            raise SystemExit(f"fits: {count:,} components: the miners found different sets")
    headings = ["components", "miner", "CPU s", "CPU us a component", "peak MB of all", "sets", "fits"]
    show("fits: a driver of 512 MB", headings, rows)
    record("fits", options, rows=rows)
    drop(BUILD / "fits")


def main(count: int, miner: str, cores: str, said: str) -> None:
    """Mine so many components by a miner in a session of its own; tell the number of sets and fits, and a digest."""
    spark = start_session(master=f"local[{cores}]", settings={"spark.driver.memory": HEAP})
    partitions = max(2, count // 25_000)
    chunks = spark.range(0, -(-count // TOGETHER), numPartitions=partitions)
    task = partial(_make, count=count, miner=miner, partitions=partitions)
    blocks = exchange(chunks.mapInArrow(task, block_schema(PROBLEM_LAYOUT)), partitions=partitions)
    with persisted(blocks) as gathered:
        sets = mine_components.mine_by_pivot(gathered, threshold=NEAR, budget=BUDGET)
        fits = 0
        if miner == "auto":
            transactions = mine_components.list_transactions(gathered, threshold=NEAR, min_support=0)
            with persisted(transactions) as held:
                frequent = _list_frequent(held)
                fits = len(frequent)
                listed = mine_components.keep_clusters(
                    _union(frequent), gathered, threshold=NEAR, min_support=0, partitions=partitions
                )
                found = _digest(sets.unionByName(listed))
        else:
            found = _digest(sets)
    Path(said).write_text(json.dumps({**found, "fits": fits}), encoding="utf-8")


def _digest(sets: DataFrame) -> dict[str, int]:
    """Return the number of sets and a digest that their order does not change."""
    digest = F.expr("bit_xor(xxhash64(ordinal, positions, support, coverage))")
    row = sets.agg(F.count("*"), F.count_distinct("ordinal", "positions"), digest).collect()[0]
    if row[0] != row[1]:
        raise SystemExit(f"fits: {row[0] - row[1]:,} sets come twice")
    return {"sets": row[0], "digest": row[2]}


def _make(batches: Iterator[pa.RecordBatch], *, count: int, miner: str, partitions: int) -> Iterator[pa.RecordBatch]:
    """Yield blocks of PROBLEM_LAYOUT: components around a common base, every two sketches a pair."""
    assignment = Assignment(miner, SIZES + 1, BUDGET.max_sets, BUDGET.max_members)
    by_size = assignment.listed_sets(np.arange(2, SIZES + 2, dtype=np.int32))
    for batch in batches:
        for chunk in batch.column(0).to_pylist():
            ordinals = np.arange(chunk * TOGETHER, min(count, (chunk + 1) * TOGETHER))
            yield from _make_chunk(ordinals, by_size, assignment, partitions)


def _make_chunk(
    ordinals: NDArray[np.int64], by_size: NDArray[np.int64], assignment: Assignment, partitions: int
) -> Iterator[pa.RecordBatch]:
    """Yield the nodes, sketches and edges of some components, each for the partition of its component."""
    random = np.random.default_rng(int(ordinals[0]))
    sizes = 2 + ordinals % SIZES
    of_node = np.repeat(np.arange(len(ordinals)), sizes)
    position = np.arange(len(of_node)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    node = ordinals[of_node] * (SIZES + 1) + position

    ids = random.integers(0, 1 << 64, (len(ordinals), SIZE), np.uint64)[of_node]
    changed = random.integers(0, SIZE, (len(of_node), LOST))
    np.put_along_axis(ids, changed, random.integers(0, 1 << 64, changed.shape, np.uint64), axis=1)
    ids.sort(axis=1)

    before = ordinals // SIZES * by_size.sum() + np.append(0, np.cumsum(by_size))[ordinals % SIZES]
    fits = (before + by_size[ordinals % SIZES]) // FIT_SETS
    fits = np.where((by_size[ordinals % SIZES] > 0) & assignment.chosen(fits), fits, PIVOT)
    nothing = np.zeros(len(of_node), np.int32)
    nodes: Columns = {"node": node, "ordinal": ordinals[of_node], "position": position, "fit": fits[of_node],
                      "rank": position, "leads": nothing, "by_leaders": nothing}  # fmt: skip
    sketches: Columns = {"sketch_node": node, "size": nothing + SIZE}
    a, b = np.triu_indices(SIZES + 1, 1)
    is_edge = b < sizes[:, None]
    of_edge = np.nonzero(is_edge)[0]
    first = ordinals[of_edge] * (SIZES + 1)
    edges: Columns = {"node_a": first + np.broadcast_to(a, is_edge.shape)[is_edge],
                      "node_b": first + np.broadcast_to(b, is_edge.shape)[is_edge]}  # fmt: skip

    rows = Ragged(np.arange(len(node) + 1) * SIZE, ids.ravel())
    for layout, columns, owners in (
        (NODE_LAYOUT, nodes, of_node), (SKETCH_LAYOUT, sketches, of_node), (EDGE_LAYOUT, edges, of_edge),
    ):  # fmt: skip
        targets = (ordinals[owners] % partitions).astype(np.int32)
        ragged = {"ids": rows} if "ids" in layout else None
        packed = pack(layout, targets, columns, ragged, partitions=partitions)
        cells = [
            packed.column(name) if name in layout else pa.nulls(packed.num_rows, pa.binary()) for name in PROBLEM_LAYOUT
        ]
        yield pa.RecordBatch.from_arrays([packed.column("target"), *cells], names=["target", *PROBLEM_LAYOUT])


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
