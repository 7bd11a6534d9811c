"""Exchanges: bytes per sketch sent in the pairs stage on Spark, with few and many tasks; Spark is not needed."""

import argparse

import numpy as np
import pyarrow.compute as pc

from bench.pairing import make_sketches
from bench.recording import record, show
from nddup.ground.arrays import Ragged
from nddup.matching.elements import divide
from nddup.matching.overlap_join import NO_LIMIT, LongLists
from nddup.matching.threshold import Threshold
from nddup.settings.load import build_config
from nddup.settings.plan import threshold_of
from nddup.spark.pairing.prefix_exchange import Pairing
from tests.spark.simulated_tasks import find_pairs

SIZE = 200
THRESHOLDS = {
    "0.8": Threshold("resemblance", 8, 10, is_count=False, size=SIZE),
    "0.7 of all shingles": threshold_of(build_config({"sketch": {"size": SIZE}}, origin="bench")),
}
TASKS = (16, 200, 2_000)


def run(options: argparse.Namespace) -> None:
    """Run the stage's tasks one after another in this process, and count the bytes of their blocks."""
    count = options.sketches or (5_000 if options.small else 100_000)
    ids = make_sketches(count, size=SIZE).view(np.uint64)
    sketches = Ragged(np.arange(count + 1, dtype=np.int64) * SIZE, ids.ravel())

    for name, threshold in THRESHOLDS.items():
        _count(name, threshold, sketches, options)


def _count(name: str, threshold: Threshold, sketches: Ragged, options: argparse.Namespace) -> None:
    sent: dict[int, dict[str, int]] = {}
    pairs, count = set(), len(sketches.offsets) - 1
    for tasks in TASKS:
        long_lists, division = LongLists(10_000, NO_LIMIT), divide(count * SIZE, tasks)
        compared, moved = find_pairs(sketches, Pairing(threshold, division, long_lists, links=True, most_ids=SIZE))
        pairs.add(sum(pc.sum(pc.equal(batch.column("what"), "pair")).as_py() or 0 for batch in compared))
        sent[tasks] = {name: round(size / count) for name, size in moved.items()} | {
            "all": round(sum(moved.values()) / count)
        }
    if len(pairs) > 1:
        raise AssertionError(f"expected the same pairs from any number of tasks, got {sorted(pairs)}")
    show(
        f"exchanges: bytes for each of {count:,} distinct sketches of {SIZE} ids at {name}; {pairs.pop():,} pairs",
        ["tasks", *sent[TASKS[0]]],
        [[f"{tasks:,}", *moved.values()] for tasks, moved in sent.items()],
    )
    record("exchanges", options, threshold=name, sketches=count,
           bytes={str(tasks): moved["all"] for tasks, moved in sent.items()},
           ratio=round(sent[TASKS[-1]]["all"] / sent[TASKS[0]]["all"], 3))  # fmt: skip
