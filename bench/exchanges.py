"""Exchanges: bytes per sketch sent in the pairs stage on Spark, with few and many tasks; Spark is not needed."""

import argparse

import numpy as np

from bench.pairing import make_sketches
from bench.recording import record, show
from nddup.ground.arrays import Ragged
from nddup.matching.elements import divide
from nddup.matching.overlap_join import NO_LIMIT, LongLists
from nddup.matching.threshold import Threshold
from nddup.spark.pairing.prefix_exchange import Pairing
from tests.spark.simulated_tasks import find_pairs

SIZE = 200
THRESHOLD = Threshold("resemblance", 8, 10, is_count=False, size=SIZE)
TASKS = (16, 200, 2_000)


def run(options: argparse.Namespace) -> None:
    """Run the stage's tasks one after another in this process, and count the bytes of their blocks."""
    count = options.sketches or (5_000 if options.small else 100_000)
    ids = make_sketches(count, size=SIZE).view(np.uint64)
    sketches = Ragged(np.arange(count + 1, dtype=np.int64) * SIZE, ids.ravel())

    sent: dict[int, dict[str, int]] = {}
    pairs = set()
    for tasks in TASKS:
        pairing = Pairing(
            THRESHOLD, divide(count * SIZE, tasks), LongLists(10_000, NO_LIMIT), links=True, most_ids=SIZE
        )
        compared, moved = find_pairs(sketches, pairing)
        pairs.add(sum(batch.num_rows for batch in compared if batch.column("what")[0].as_py() == "pair"))
        sent[tasks] = {name: round(size / count) for name, size in moved.items()} | {
            "all": round(sum(moved.values()) / count)
        }
    if len(pairs) > 1:
        raise AssertionError(f"expected the same pairs from any number of tasks, got {sorted(pairs)}")
    show(
        f"exchanges: bytes for each of {count:,} distinct sketches of {SIZE} ids at 0.8; {pairs.pop():,} pairs",
        ["tasks", *sent[TASKS[0]]],
        [[f"{tasks:,}", *moved.values()] for tasks, moved in sent.items()],
    )
    record("exchanges", options, sketches=count, bytes={str(tasks): moved["all"] for tasks, moved in sent.items()},
           ratio=round(sent[TASKS[-1]]["all"] / sent[TASKS[0]]["all"], 3))  # fmt: skip
