"""What a session asks of its cluster, and what the cluster offers: said where Spark would wait in silence.

    require_fitting   refuses a request that no worker of a standalone master can ever meet
    tell_if_waiting   after some seconds without an executor: what was asked, and what is offered

Spark's own warning is switched off with its other messages on a person's screen, and says neither.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from pyspark.sql import SparkSession

from nddup.errors import ConfigError
from nddup.redaction import drop_login
from nddup.run.task_memory import CORES, PYTHON_MEMORY, read_size
from nddup.spark.reach import reach
from nddup.spelling import counted
from nddup.stages.progress import say

PATIENCE = 15.0
"""Seconds without an executor after which the wait is explained."""

LOOK_SECONDS = 1.0
EXECUTOR_MEMORY, DYNAMIC = "spark.executor.memory", "spark.dynamicAllocation.enabled"
MB = 1 << 20


class Size(NamedTuple):
    """Cores and memory, in MB, of an executor or of a worker."""

    cores: int
    memory: int

    def __str__(self) -> str:
        """Return the size as in messages."""
        return f"{counted(self.cores, 'core')} and {self.memory:,} MB"

    def fits(self, offered: "Size") -> bool:
        """Return whether an executor of this size has room in what is offered."""
        return self.cores <= offered.cores and self.memory <= offered.memory


class Worker(NamedTuple):
    """A worker that lives: all that it has, and what no application uses."""

    whole: Size
    free: Size


def workers_of(spark: SparkSession, master: str) -> list[Worker] | None:
    """Return the living workers of a standalone master; None of any other cluster, or where it gives no answer."""
    told = reach(spark).workers(master) if master.startswith("spark://") else None
    return None if told is None else [Worker(Size(*one[:2]), Size(*one[2:])) for one in told]


def asked_of(settings: Mapping[str, str]) -> Size:
    """Return the size of an executor by the settings; a standalone master counts the heap alone.

    Example:
        >>> str(asked_of({"spark.executor.memory": "2g", "spark.executor.cores": "2"}))
        '2 cores and 2,432 MB'
    """
    memory = read_size(settings.get(EXECUTOR_MEMORY, "1g"))
    if not settings.get("spark.master", "").startswith("spark://"):
        memory += max(memory // 10, 384 * MB) + read_size(settings.get(PYTHON_MEMORY, "0"))
    return Size(int(settings.get(CORES, "1")), memory // MB)


def require_fitting(asked: Size, workers: Sequence[Worker], master: str) -> None:
    """Refuse a request that none of the living workers could meet even if it were idle.

    Without workers it passes: they may still come.

    Raises:
        ConfigError: naming what was asked and the largest worker.
    """
    if workers and not any(asked.fits(worker.whole) for worker in workers):
        largest = max(workers, key=lambda worker: (worker.whole.memory, worker.whole.cores)).whole
        raise ConfigError(
            f"{drop_login(master)}: no worker has room for an executor of {asked}; the largest of"
            f" {counted(len(workers), 'worker')} has {largest}: lower {EXECUTOR_MEMORY} or {CORES}"
        )


def explain_wait(asked: Size, workers: Sequence[Worker] | None, seconds: float) -> str:
    """Return the line on a wait: what was asked and, where the master tells, what is free.

    Example:
        >>> explain_wait(Size(1, 1024), [], 15.0)
        'no executor for 15 s: asked for executors of 1 core and 1,024 MB; the master has no worker'
    """
    text = f"no executor for {seconds:.0f} s: asked for executors of {asked}"
    if workers is None:
        return f"{text}; the cluster has not granted one: its queue may be full, or its machines too small"
    if not workers:
        return f"{text}; the master has no worker"
    free = ", ".join(str(worker.free) for worker in workers[:3])
    more = ", …" if len(workers) > 3 else ""  # noqa: PLR2004
    return f"{text}; free on {counted(len(workers), 'worker')}: {free}{more}"


def watch_executors(spark: SparkSession) -> None:
    """Check the request of a session on a cluster against its master, and tell in the log if no executor comes.

    Raises:
        ConfigError: as `require_fitting`; the session is stopped.
    """
    settings = reach(spark).settings()
    if settings.get("spark.master", "local").startswith("local"):
        return
    asked, master = asked_of(settings), settings.get("spark.master", "")
    try:
        require_fitting(asked, workers_of(spark, master) or (), master)
    except ConfigError:
        spark.stop()
        raise
    is_waiting = _waiting(spark, is_dynamic=settings.get(DYNAMIC, "false") == "true")
    explain = lambda seconds: say(explain_wait(asked, workers_of(spark, master), seconds))  # noqa: E731
    threading.Thread(target=tell_if_waiting, args=(is_waiting, explain), daemon=True).start()


def tell_if_waiting(
    is_waiting: Callable[[], bool | None], explain: Callable[[float], None], patience: float = PATIENCE
) -> None:
    """Call `explain` once, if the session waits for `patience` seconds; return then, or when it has an executor.

    Args:
        is_waiting: whether it waits; None if nothing is asked yet.
        explain: is given the seconds.
        patience: in seconds.
    """
    started = time.monotonic()
    with suppress(Exception):  # the session was stopped meanwhile
        while (waits := is_waiting()) is not False:
            if waits is None:
                started = time.monotonic()
            elif time.monotonic() - started >= patience:
                explain(time.monotonic() - started)
                return
            time.sleep(min(LOOK_SECONDS, patience / 10))


def _waiting(spark: SparkSession, *, is_dynamic: bool) -> Callable[[], bool | None]:
    """Return a function that tells whether the session waits for its first executor.

    With dynamic allocation it asks for none before there are tasks.
    """
    context = reach(spark)

    def look() -> bool | None:
        if context.executors():
            return False
        return True if not is_dynamic or context.tasks()[1] else None

    return look
