"""Access to a Spark session beyond DataFrames: the only module that distinguishes classic Spark from Spark Connect.

    access_of    a session -> SessionAccess: settings, parallel tasks, jobs, progress, shuffled bytes, checkpoints
    is_connect   a session -> whether a Spark Connect server is behind it

Classic: the driver's JVM runs beside this process, and its context answers. Connect (`sc://…`, `spark.api.mode`): a
server is behind the session, and everything goes through DataFrames, settings and tags. Files are handled elsewhere: by
`nddup.spark.session_files`, through the JVM or without one.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol, TypeAlias
from weakref import finalize

import pyspark
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError

JavaObject: TypeAlias = Any
"""An object of the driver's JVM, whose class Python does not know."""

OLDEST = (4, 1)
"""First version of Spark with `DataFrame.repartitionById`, by which blocks move."""

PLACE = "callSite.long"
SAID = ("spark.job.description", "callSite.short", PLACE)
"""Local properties that describe a job and its stages. If the last two are not set, Spark reads the stack for each RDD
to fill them."""

PARALLELISM = ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism")
"""Settings that give the parallelism, in order of precedence."""

PLANS_KEPT = "spark.connect.session.planCache.maxSize"
"""Number of plans that a server keeps of each session, with the tables they read."""

RANGE = 1 << 16
"""Length of the range whose partitions are counted: more numbers than any cluster has cores."""


class SessionAccess(Protocol):
    """Access to a session beyond DataFrames.

    | | classic | Connect |
    |---|---|---|
    | settings | those of the context | those of the session, into which Spark copies them |
    | parallel tasks | `defaultParallelism` | the partitions of a range, counted by a small job |
    | purpose of a job | its description in Spark's UI, and the name of its stages | a tag of the operation |
    | progress | the status tracker | what the server reports of the operation |
    | shuffled bytes | counted by the context | not available: 0 |
    | checkpoints | freed on request | freed by the server, once neither client nor a plan it keeps refers to them |
    """

    def settings(self) -> dict[str, str]:
        """Return every setting that Spark was started with, and those of the session."""

    def parallelism(self) -> int:
        """Return how many tasks run at a time, as Spark counts them."""

    def shuffled_bytes(self) -> int:
        """Return the bytes written to shuffles since the session began; 0 if they are not counted."""

    def describe(self, text: str) -> None:
        """Set the description of the operations that follow."""

    def describing(self) -> AbstractContextManager[None]:
        """Return a context that restores the present description at its end, also after a failure."""

    def marking(self, mark: str) -> AbstractContextManager[None]:
        """Return a context whose checkpoints `free` can find by a mark, also those that a failed job left."""

    def checkpoint(self, rows: DataFrame) -> DataFrame:
        """Return rows of this session, which the first that reads them stores on the executors' disks."""

    def free(self, is_freed: Callable[[str], bool]) -> None:
        """Free the checkpoints with these marks; on Connect, those that the client does not refer to."""

    def tasks(self) -> tuple[int, int]:
        """Return how many tasks of the running Spark stages are done, and their number."""

    def executors(self) -> int:
        """Return how many executors the session has; a server's own are not known, and count as one."""

    def workers(self, master: str) -> list[tuple[int, int, int, int]] | None:
        """Return the cores and MB of each living worker of a standalone master, and its free cores and MB; or None."""

    def sibling_session(self) -> SparkSession:
        """Return another session of the same application, with views and settings of its own."""


_MESSAGES = "org.apache.spark.deploy.DeployMessages$"


def is_connect(spark: SparkSession) -> bool:
    """Whether the session belongs to a Spark Connect server; this process has no access to its JVM then."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def access_of(spark: SparkSession) -> SessionAccess:
    """Return the `SessionAccess` of this session.

    Raises:
        ConfigError: where Spark is older than `OLDEST`.
    """
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < OLDEST:
        raise ConfigError(f"Spark {pyspark.__version__}: nddup needs Spark {OLDEST[0]}.{OLDEST[1]} or newer")
    return _Connect(spark) if is_connect(spark) else _Classic(spark)


class _Classic:
    """A session whose context is in the JVM beside this process."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def settings(self) -> dict[str, str]:
        """Read the private configuration: `getConf` copies each setting with a call to Java."""
        return dict(self._spark.sparkContext._conf.getAll())  # noqa: SLF001

    def parallelism(self) -> int:
        return int(self._spark.sparkContext.defaultParallelism)

    def shuffled_bytes(self) -> int:
        """Sum the bytes of every present and past executor; cost: one call to the JVM for each."""
        store = self._spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - the only count without the web UI
        executors = store.executorList(False)  # noqa: FBT003 - the lost ones as well
        return sum(int(executors.apply(i).totalShuffleWrite()) for i in range(executors.size()))

    def describe(self, text: str) -> None:
        for key in SAID:
            self._spark.sparkContext.setLocalProperty(key, text)

    @contextmanager
    def marking(self, mark: str) -> Iterator[None]:
        """Set the mark where Spark notes the place in the code that made an RDD."""
        context = self._spark.sparkContext
        before = context.getLocalProperty(PLACE)
        context.setLocalProperty(PLACE, mark)
        try:
            yield
        finally:
            context.setLocalProperty(PLACE, before)  # type: ignore[arg-type] # None: unset

    def checkpoint(self, rows: DataFrame) -> DataFrame:
        return rows.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)

    def free(self, is_freed: Callable[[str], bool]) -> None:
        left = self._spark.sparkContext._jsc.sc().getPersistentRDDs().valuesIterator()  # noqa: SLF001 - no public door
        while left.hasNext():
            kept = left.next()
            if is_freed(str(kept.creationSite().longForm())):
                kept.unpersist(False)  # noqa: FBT003 - not waiting for the executors

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

    def executors(self) -> int:
        """Count those that registered; the driver has an entry too."""
        return int(self._spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001

    def workers(self, master: str) -> list[tuple[int, int, int, int]] | None:
        """Ask the master as its own web page does; None where this Spark has no such question."""
        context: Any = self._spark.sparkContext._jsc.sc()  # noqa: SLF001 - Spark has no public door to its master
        load = context.getClass().getClassLoader().loadClass
        try:
            address = _only(load("org.apache.spark.rpc.RpcAddress$")).fromSparkURL(master)
            asked = _only(load(f"{_MESSAGES}RequestMasterState$"))
            kind = _only(load("scala.reflect.ClassTag$")).apply(load(f"{_MESSAGES}MasterStateResponse"))
            # A field: the methods of SparkEnv name classes that Spark's own jars lack, so Python cannot look one up.
            field = load("org.apache.spark.SparkEnv").getDeclaredField("rpcEnv")
            field.setAccessible(True)
            workers = field.get(context.env()).setupEndpointRef(address, "Master").askSync(asked, kind).workers()
            return [
                (int(one.cores()), int(one.memory()), int(one.coresFree()), int(one.memoryFree()))
                for one in workers
                if str(one.state().toString()) == "ALIVE"
            ]
        except Exception:  # noqa: BLE001 - of Java or of py4j; nothing depends on the answer
            return None

    def sibling_session(self) -> SparkSession:
        return self._spark.newSession()


def _only(kind: JavaObject) -> JavaObject:
    """Return the one object of a class that Scala calls an object."""
    return kind.getField("MODULE$").get(None)


class _Connect:
    """A session of a Spark Connect server."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._said: str | None = None
        self._tasks = (0, 0)
        self._is_heard = False

    def settings(self) -> dict[str, str]:
        return dict(self._spark.conf.getAll)

    def parallelism(self) -> int:
        """Return the parallelism as set; else count, in one small action, how many partitions Spark gives a range."""
        for key in PARALLELISM:
            given = self._spark.conf.get(key, None)
            if given and given.isdecimal():
                return int(given)
        parts = self._spark.range(RANGE).select(F.spark_partition_id().alias("part")).distinct()
        return max(1, int(parts.count()))

    def shuffled_bytes(self) -> int:
        return 0

    @contextmanager
    def marking(self, mark: str) -> Iterator[None]:
        del mark
        yield

    def checkpoint(self, rows: DataFrame) -> DataFrame:
        """Say whose it is: PySpark takes what the server answers for a table of the active session."""
        made: Any = rows.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)
        name, made._plan._relation_id = made._plan._relation_id, None  # noqa: SLF001 - else it is freed at once
        return self._spark._create_remote_dataframe(name)  # type: ignore[no-any-return]  # noqa: SLF001

    def free(self, is_freed: Callable[[str], bool]) -> None:
        """Let the server forget the last plans of the session, which hold their tables: ask it for as many others."""
        del is_freed
        for number in range(int(self._spark.conf.get(PLANS_KEPT, "16"))):
            self._spark.range(number).schema  # noqa: B018 - the question is what counts

    def describe(self, text: str) -> None:
        """Tag the operations that follow; a tag cannot hold a comma.

        Another session of the same user may see the tag and interrupt the operations by it.
        """
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

    def _hear(self, stages: JavaObject, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: FBT001
        """Take the server's progress report on an operation; one comes several times a second."""
        del inflight_tasks, operation_id
        counts = [(int(stage.num_completed_tasks), int(stage.num_tasks)) for stage in stages or ()]
        self._tasks = (0, 0) if done else (sum(count[0] for count in counts), sum(count[1] for count in counts))

    def executors(self) -> int:
        return 1

    def workers(self, master: str) -> None:
        del master

    def sibling_session(self) -> SparkSession:
        """Return a new session in Spark 4.3, a copy of this one before; this one where the server allows neither."""
        for make in ("newSession", "cloneSession"):
            with suppress(AttributeError, NotImplementedError, PySparkException):
                session: Any = getattr(self._spark, make)()
                finalize(session, _end, session.client)
                return session  # type: ignore[no-any-return]
        return self._spark  # type: ignore[no-any-return]


def _end(client: JavaObject) -> None:
    """Close the channel of a session from `sibling_session`, when the session is collected or the process ends.

    The client's own `__del__` runs after the channel's threads have ended, and waits for them for ever.
    """
    with suppress(Exception):
        client.release_session()
    with suppress(Exception):
        client.close()
