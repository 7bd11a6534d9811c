"""The number of tasks of the pairs stage: as set, else by the memory of a task; too few are refused."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from nddup.errors import ConfigError
from nddup.matching.task_sizes import BASE_BYTES
from nddup.matching.threshold import Threshold
from nddup.run.on_spark.pairing import choose_partitions
from nddup.run.on_spark.state import Job

NEEDED = 1_000
"""Tasks that `IDS` ids need if each task has 1 GB to spare and prefixes are almost empty."""

IDS = (NEEDED << 30) // 48


def choose(given: str | None, *, cores: int = 4, memory: int = BASE_BYTES + (1 << 30), ids: int = IDS) -> int:
    """Choose the partitions of a job with these cores, this memory per task and so many ids."""
    job: Any = SimpleNamespace(
        threshold=Threshold("resemblance", 1, 1, is_count=False, size=200),
        task_memory=memory,
        config=SimpleNamespace(spark={} if given is None else {"spark.sql.shuffle.partitions": given}),
        spark=SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores)),
    )
    tasks, noted = choose_partitions(cast("Job", job), ids=ids, sketches=ids // 200)
    assert bool(noted) == (tasks == NEEDED)
    return tasks


def test_the_memory_or_the_cores_decide() -> None:
    """There are as many tasks as the ids need, and at least one per core; twice the spare memory halves the need."""
    assert choose(None) == NEEDED
    assert choose(None, memory=BASE_BYTES + (2 << 30)) == NEEDED // 2
    assert choose(None, cores=5_000) == 5_000
    assert choose(None, ids=0) == 4


def test_what_is_set_is_taken_or_refused() -> None:
    """A number that fits the memory is used; too few tasks, or too many needed, are refused with what to change."""
    assert choose("1000") == 1_000
    assert choose("7", ids=100) == 7
    with pytest.raises(ConfigError, match=r"=999: 22,369,621,333 ids .* need 1,000 tasks of 1,824 MB; set at least"):
        choose("999")
    with pytest.raises(ConfigError, match=r"more than the 65,536 there can be; raise spark\.executor\.pyspark\.memory"):
        choose(None, ids=200 * IDS)
