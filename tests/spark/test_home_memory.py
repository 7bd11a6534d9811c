"""The tasks of the pairs stage stay within the memory that they were planned for, whatever their number."""

import os
import subprocess
import sys

import pytest

from nddup.matching.task_sizes import block_bytes
from nddup.spark.daemon import ARENA
from tests.places import ROOT
from tests.samples_by_night import by_day_if_changed, first
from tests.spark.home_memory import pairing_of

CASES = ("1024:1000000:200", "1024:100000000:200", "1024:10000000:64", "1536:1000000000:200")
"""Memory of a worker in MB, documents, ids of each: 80, 7,970, 256 and 24,257 tasks."""


@by_day_if_changed("nddup/matching", "nddup/spark/pairing", "nddup/spark/daemon.py", "tests/spark/home_memory.py")
@pytest.mark.parametrize("cases", first(1, [CASES[2:], CASES[:2]]), ids=["256 and 24,257", "80 and 7,970"])
def test_tasks_fit_the_memory_they_were_planned_for(cases: tuple[str, ...]) -> None:
    """A map task, a home and an owner of the planned size do their work under a limit on the address space.

    A home once gathered for each of its tasks, and needed more the more tasks it was divided into.
    """
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.home_memory", *cases], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, **alone, "MIMALLOC_ARENA_RESERVE": ARENA}, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    planned = [line.partition("tasks")[0].rpartition(": ")[2] for line in told]
    assert planned == [
        f"{tasks:,} " for case, tasks in zip(CASES, (80, 7_970, 256, 24_257), strict=True) if case in cases
    ]
    sent = [float(line.partition("requests ")[2].partition(" kB")[0]) for line in told]
    assert sent == pytest.approx([planned_block(case) / 1024 for case in cases], rel=0.2, abs=0.1)


def planned_block(case: str) -> float:
    """Return the bytes of a block of requests that a plan expects."""
    megabytes, documents, ids = map(int, case.split(":"))
    pairing = pairing_of(megabytes << 20, documents, ids)
    return block_bytes(documents * ids, pairing.partitions, megabytes << 20)
