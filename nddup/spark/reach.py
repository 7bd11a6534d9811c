"""What a Spark session can do, and how it is asked: the one place where classic Spark and Spark Connect differ.

Classic: the JVM of the driver is beside this process, and its context answers. Connect (`sc://…`, `spark.api.mode`):
there is a server behind the session, and everything goes through DataFrames, settings and tags.

| | classic | Connect |
|---|---|---|
| settings | those of the context | those of the session, into which Spark copies them |
| tasks at a time | `defaultParallelism` | the partitions of a range, counted by a small job |
| what a job is for | its description in Spark's UI, and the name of its stages | a tag of the operation |
| how far it is | the status tracker | what the server reports of the operation |
| bytes of shuffles | counted by the context | not told: 0 |

Files are another matter: `nddup.storage.files` over the JVM, `nddup.storage.client_files` without one.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol
from weakref import finalize

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SAID = ("spark.job.description", "callSite.short", "callSite.long")
"""Where Spark is told what a job and its stages are for; else it reads the stack for each RDD, to say the last two."""

PARALLELISM = ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism")
RANGE = 1 << 16
"""Numbers of the range whose partitions are counted: more than any cluster has cores to give one each."""


class Reach(Protocol):
    """What is asked of a session beside DataFrames."""

    def settings(self) -> dict[str, str]:
        """Every setting that Spark was started with, and those of the session."""

    def parallelism(self) -> int:
        """How many tasks run at a time, as Spark counts them."""

    def shuffled_bytes(self) -> int:
        """Bytes written to shuffles since the session began; 0 where it is not told."""

    def describe(self, text: str) -> None:
        """Say what the operations that follow are for."""

    def describing(self) -> AbstractContextManager[None]:
        """A context after which, also after a failure, operations are said to be for what they were for before it."""

    def tasks(self) -> tuple[int, int]:
        """The tasks that are done, and all, of the Spark stages that run."""

    def beside(self) -> SparkSession:
        """Another session of the same application, with views and settings of its own."""


def is_connect(spark: SparkSession) -> bool:
    """Whether a session leads to a server of Spark Connect: there is no JVM then that this process may touch."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def reach(spark: SparkSession) -> Reach:
    """How this session is asked."""
    return _Connect(spark) if is_connect(spark) else _Classic(spark)


class _Classic:
    """A session whose context is in the JVM beside this process."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def settings(self) -> dict[str, str]:
        """Not by `getConf`, which copies each setting by a call to Java."""
        return dict(self._spark.sparkContext._conf.getAll())  # noqa: SLF001

    def parallelism(self) -> int:
        return int(self._spark.sparkContext.defaultParallelism)

    def shuffled_bytes(self) -> int:
        """By every executor it has or had; cost: one call for each."""
        store = self._spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - the only count without the web UI
        executors = store.executorList(False)  # noqa: FBT003 - the lost ones as well
        return sum(int(executors.apply(i).totalShuffleWrite()) for i in range(executors.size()))

    def describe(self, text: str) -> None:
        for key in SAID:
            self._spark.sparkContext.setLocalProperty(key, text)

    @contextmanager
    def describing(self) -> Iterator[None]:
        context = self._spark.sparkContext
        before = {key: context.getLocalProperty(key) for key in SAID}
        try:
            yield
        finally:
            for key, text in before.items():
                context.setLocalProperty(key, text)  # type: ignore[arg-type] # None: unset

    def tasks(self) -> tuple[int, int]:
        tracker = self._spark.sparkContext.statusTracker()
        running = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        infos = [info for info in running if info is not None]
        return sum(info.numCompletedTasks for info in infos), sum(info.numTasks for info in infos)

    def beside(self) -> SparkSession:
        return self._spark.newSession()


class _Connect:
    """A session that leads to a server."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._said: str | None = None
        self._tasks = (0, 0)
        self._is_heard = False

    def settings(self) -> dict[str, str]:
        return dict(self._spark.conf.getAll)

    def parallelism(self) -> int:
        """As it is set; else one small action, which counts how many partitions Spark gives a range."""
        for key in PARALLELISM:
            given = self._spark.conf.get(key, None)
            if given and given.isdecimal():
                return int(given)
        parts = self._spark.range(RANGE).select(F.spark_partition_id().alias("part")).distinct()
        return max(1, int(parts.count()))

    def shuffled_bytes(self) -> int:
        return 0

    def describe(self, text: str) -> None:
        """A tag cannot hold a comma. Another session of the same user may see it, and stop the operation by it."""
        self._say(text.replace(",", ";"))

    @contextmanager
    def describing(self) -> Iterator[None]:
        before = self._said
        try:
            yield
        finally:
            self._say(before)

    def _say(self, text: str | None) -> None:
        if self._said:
            self._spark.removeTag(self._said)
        if text:
            self._spark.addTag(text)
        self._said = text

    def tasks(self) -> tuple[int, int]:
        if not self._is_heard:
            self._spark.registerProgressHandler(self._hear)
            self._is_heard = True
        return self._tasks

    def _hear(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ANN401, FBT001
        """As the server reports of an operation, several times a second."""
        del inflight_tasks, operation_id
        counts = [(int(stage.num_completed_tasks), int(stage.num_tasks)) for stage in stages or ()]
        self._tasks = (0, 0) if done else (sum(count[0] for count in counts), sum(count[1] for count in counts))

    def beside(self) -> SparkSession:
        """Spark 4.3 makes one on the server, 4.1 and 4.2 a copy of this one; in 4.0 it is this one."""
        for make in ("newSession", "cloneSession"):
            with suppress(AttributeError, NotImplementedError, PySparkException):
                session: Any = getattr(self._spark, make)()
                finalize(session, _end, session.client)
                return session  # type: ignore[no-any-return]
        return self._spark  # type: ignore[no-any-return]


def _end(client: Any) -> None:  # noqa: ANN401 - of Spark Connect
    """Close the channel of a session beside another, at the latest when the process ends.

    Its own `__del__` comes when the threads of the channel are gone, and waits for them for ever.
    """
    with suppress(Exception):
        client.release_session()
    with suppress(Exception):
        client.close()
