"""The Spark session of a job, and the few settings that the stages rely on.

It is a session of this process, or one of Spark Connect, whose server is elsewhere (`sc://…`) or started here
(`spark.api.mode=connect`). A master or server that cannot be reached is found first: Spark would wait long for either.

The request of the session is compared with the offer of its cluster where Spark would wait in silence:
`require_fitting` refuses a request that no worker of a standalone master can ever meet, `tell_if_waiting` prints
request and offer after some seconds without an executor.
"""

import os
import re
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nddup.engines.choose import CORES, PYTHON_MEMORY, read_size
from nddup.errors import ConfigError, first_line, reason_of
from nddup.ground.progress import say
from nddup.ground.shown import IN_PLANS, counted, drop_login, follow, hide_setting
from nddup.ground.start_up import ROOT, SAFE_PATH, safe_path_for_others
from nddup.spark.java import (
    DEFAULTS,
    SHORT_LIVED,
    Java,
    archiving,
    capture_jvm_stderr,
    drop_unused_defaults,
    find_java,
    give_way,
    join_options,
    users_options,
    why_not_started,
    write_no_checksums,
)
from nddup.spark.session_access import access_of, is_connect
from nddup.storage.local_storage import is_submitted

PATIENCE = 15.0
"""Seconds without an executor after which the wait is explained."""

LOOK_SECONDS = 1.0
EXECUTOR_MEMORY, DYNAMIC = "spark.executor.memory", "spark.dynamicAllocation.enabled"
HEAPS = ("spark.driver.memory", EXECUTOR_MEMORY)
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


WAIT_SECONDS = 5.0
"""Connection timeout for each address of a master."""

SERVER = "sc://"

PORT = 15002
"""Port of a Spark Connect server whose address has none."""

_ADDRESS = re.compile(r"\[?([^\[\]]+)\]?:(\d+)")

CLIENT = ("grpc", "grpc_status", "google.rpc", "zstandard")

NEEDED = "pip install 'nddup[connect]'"

STARTED_HERE = {"spark.connect.grpc.binding.address": "127.0.0.1"}
"""Settings of a server started for this process: only this machine can reach it."""

RUNTIME = {
    # Limit Arrow batches by bytes rather than rows: a record may be 20 MB, a sketch is under 2 KB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # 32-bit offsets of binary cells, as `nddup.spark.blocks` writes them; it also reads 64-bit ones.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # Spark lists more than 32 paths in up to 10,000 tasks: for that many files, ten times the work of the listing.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "512",
}
"""Set on every session that a job runs in, also one made by spark-submit; values set by the user are kept."""

START = {
    "spark.redaction.string.regex": IN_PLANS,
    # Python's own workers do not import what lies in the folder where Spark was started (`nddup.ground.start_up`).
    f"spark.executorEnv.{SAFE_PATH}": "1",
}
"""Set when a session is started."""

WORKERS_PATH = "spark.executorEnv.PYTHONPATH"
"""Further folders that Spark's Python workers import from."""

PINNED = {
    # Columns are called `group`, `left`, `first`: conditions on them do not parse if SQL's keywords are reserved.
    "spark.sql.ansi.enforceReservedKeywords": "false",
    # What is grouped by stays a column of the answer.
    "spark.sql.retainGroupColumns": "true",
    # Which files are hidden is known here too (`nddup.scanning.file_heads.is_hidden`); a run lists those skipped.
    "spark.sql.files.ignoredPathSegmentRegex": "^[._]",
    # The embedded engine reads and resumes what is written here.
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Several open files in a task: their pieces would be sorted by the file alone.
    "spark.sql.maxConcurrentOutputFileWriters": "0",
}
"""Set like `RUNTIME`; any other value is an error, because the stages depend on it."""

DAEMON = "spark.python.daemon.module"

OUR_DAEMON = "nddup.spark.daemon"
"""The parent process of an executor's Python workers: it loads the kernels once, before it forks the workers."""

LOCAL = {
    "spark.sql.files.maxPartitionBytes": str(32 << 20),  # a file of a few hundred MB keeps all cores busy to its end
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "16",
    # Hadoop's own. Unset, the order of the jars decides between it and Hive's, which only delegates to it.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    # Spark records which line of Python made each expression: a fifth of the driver's time, and not used here.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Defaults of a session started here for one machine."""

SPLITTING = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes", "spark.sql.files.minPartitionNum")
"""The settings that decide where Spark splits files; the last defaults to the number of cores."""

PARTITIONS = "spark.sql.shuffle.partitions"

SHUFFLED_TASK = 8 << 20
"""Bytes of the inputs for each task of a shuffle."""

SMALL = {
    # Planning and compiling queries is nearly all the cost of a small input; the tables are the same.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # each broadcast would be a job of its own
}
"""Defaults for small inputs, on a cluster too; they take precedence over `LOCAL`."""

REMOTE, MODE = "spark.remote", "spark.api.mode"


def workers_of(spark: SparkSession, master: str) -> list[Worker] | None:
    """Return the living workers of a standalone master; None of any other cluster, or where it gives no answer."""
    answer = access_of(spark).workers(master) if master.startswith("spark://") else None
    return None if answer is None else [Worker(Size(*one[:2]), Size(*one[2:])) for one in answer]


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
        ConfigError: naming the request and the largest worker.
    """
    if workers and not any(asked.fits(worker.whole) for worker in workers):
        largest = max(workers, key=lambda worker: (worker.whole.memory, worker.whole.cores)).whole
        raise ConfigError(
            f"{drop_login(master)}: no worker has room for an executor of {asked}; the largest of"
            f" {counted(len(workers), 'worker')} has {largest}: lower {EXECUTOR_MEMORY} or {CORES}"
        )


def explain_wait(asked: Size, workers: Sequence[Worker] | None, seconds: float) -> str:
    """Return the line on a wait: the request and, where the master reports it, the free resources.

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
    settings = access_of(spark).settings()
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
    context = access_of(spark)

    def look() -> bool | None:
        if context.executors():
            return False
        return True if not is_dynamic or context.tasks()[1] else None

    return look


def require_reachable(master: str, *, wait: float = WAIT_SECONDS) -> None:
    """Refuse `spark://HOST:PORT[,HOST:PORT…]` or `sc://HOST[:PORT]/…` if nothing answers at any of the addresses.

    Any other master passes: Spark itself reports what is wrong with it.

    Raises:
        ConfigError: naming each address, and why it cannot be reached.

    Cost: a connection attempt an address, until one answers; each takes at most `wait` seconds.
    """
    if not master.startswith(("spark://", SERVER)):
        return
    refused = []
    for address in address_of(master).partition("://")[2].split(","):
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            return  # Spark will refuse it
        try:
            socket.create_connection((parts[1], int(parts[2])), timeout=wait).close()
        except (OSError, OverflowError) as error:
            refused.append(f"{address} ({_reason(error)})")
        else:
            return
    what = "server" if master.startswith(SERVER) else "master"
    raise ConfigError(f"Spark did not start: no {what} can be reached at {', '.join(refused)}")


def address_of(master: str) -> str:
    """Return the address of a master or a server, without a server's parameters: they may include a token.

    Example:
        >>> address_of("sc://host/;token=abc"), address_of("sc://host:443"), address_of("local[2]")
        ('sc://host:15002', 'sc://host:443', 'local[2]')
    """
    if not master.startswith(SERVER):
        return drop_login(master)
    host = drop_login(master).removeprefix(SERVER).partition("/")[0].partition(";")[0]
    return f"{SERVER}{host}" if re.search(r":\d+$", host) else f"{SERVER}{host}:{PORT}"


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return (getattr(error, "strerror", None) or str(error)).lower()


def server_of(master: str | None, settings: Mapping[str, str]) -> str | None:
    """Return the server to connect to, `sc://HOST:PORT`; None if none was named."""
    for text in (master, settings.get(REMOTE), os.environ.get("SPARK_REMOTE")):
        if text:
            return text if text.startswith(SERVER) else None
    return None


def is_started_here(settings: Mapping[str, str]) -> bool:
    """Return whether a server of Spark Connect is to be started with the session."""
    return (settings.get(MODE) or os.environ.get("SPARK_API_MODE", "")).lower() == "connect"


def require_client() -> None:
    """Refuse if packages that a client of Spark Connect needs are missing.

    Raises:
        ConfigError: naming the first missing one, and how to install them.
    """
    try:
        for name in CLIENT:
            import_module(name)
    except ImportError as error:
        raise ConfigError(f"Spark Connect needs {NEEDED} ({error})") from error


def lead_to(server: str, settings: Mapping[str, str]) -> SparkSession:
    """Open a session on a running server.

    Args:
        server: `sc://HOST:PORT/;PARAMETER=VALUE…`.
        settings: of the session. Settings of the server itself cannot be given here.

    Raises:
        ConfigError: if packages are missing, nothing answers there, or the server refuses the session or a setting.
    """
    require_client()
    require_reachable(server)
    try:
        spark = SparkSession.builder.remote(server).getOrCreate()
    except Exception as error:
        raise ConfigError(f"Spark did not start: {address_of(server)}: {reason_of(error)}") from error
    for key, value in settings.items():
        if key in (REMOTE, MODE):
            continue
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            raise ConfigError(f"{key}={hide_setting(key, value)}: {first_line(error)}") from error
    return spark


def start_session(*, master: str | None, settings: Mapping[str, str], is_small: bool = False) -> SparkSession:
    """Return the running session, or start one.

    Args:
        master: where to run, or `sc://…`, a server of Spark Connect; None keeps what spark-submit set, else `local[*]`.
        settings: Spark's own keys; they take precedence over this module's.
        is_small: whether all inputs are small (`java_options.is_small`): the session then starts and plans faster.

    Returns:
        A session with `settings_for(settings)` applied.

    Raises:
        ConfigError: with the deepest cause, if Java is missing or too old, Spark refuses the settings or does not reach
            the master, or a setting differs from `PINNED`.
    """
    server = server_of(master, settings)
    if server is not None:
        spark = lead_to(server, settings_for(settings))
        follow(access_of(spark).settings().items())
        return spark

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("nddup")
    if is_started_here(settings):
        require_client()
    options = {**START, **settings_for(settings)}
    java = find_java()
    is_new = not is_submitted() and SparkSession.getActiveSession() is None
    if is_new:
        options = _options_of_new(master or "local[*]", options, java, is_small=is_small)
        require_reachable(options["spark.master"])
    elif is_submitted() and master:
        builder = builder.master(master)
    for key, value in options.items():
        builder = builder.config(key, value)

    java_lines: list[str] = []
    try:
        with safe_path_for_others(), capture_jvm_stderr() as java_lines, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Failed to set")  # Connect sets its server's start settings again
            spark = builder.getOrCreate()
    except Exception as error:
        raise ConfigError(why_not_started(error, java_lines, java)) from error
    _set_all(spark, settings_for(settings), is_new=is_new)
    if not is_connect(spark):
        watch_executors(spark)
        _ask_less(spark, is_small=is_new and is_small and options["spark.master"].startswith("local"))
    follow(access_of(spark).settings().items())  # secrets that spark-submit or its files set
    return spark


def _set_all(spark: SparkSession, settings: Mapping[str, str], *, is_new: bool) -> None:
    """Set what concerns SQL; a new session, also of spark-submit, has what cannot be changed later from its start."""
    for key, value in settings.items():
        if key.startswith("spark.sql."):
            try:
                spark.conf.set(key, value)
            except PySparkException as error:
                is_there = is_new or spark.conf.get(key, None) == value
                if not is_there or spark.conf.isModifiable(key):
                    raise ConfigError(f"{key}={hide_setting(key, value)}: {first_line(error)}") from error


def _ask_less(spark: SparkSession, *, is_small: bool) -> None:
    """Spare a classic session repeated calls to Java; a small one also needless settings and checksum files."""
    from nddup.spark.java import remember_names  # noqa: PLC0415 - a client of Spark Connect has no py4j

    remember_names(spark)
    if is_small:
        drop_unused_defaults(spark)
        write_no_checksums(spark)


def _options_of_new(where: str, given: dict[str, str], java: Java | None, *, is_small: bool) -> dict[str, str]:
    """Return the settings of a session started here, with the options of its JVM; those given take precedence."""
    users = users_options(given)
    for_java = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"]
    options = {"spark.master": where, "spark.ui.showConsoleProgress": "false"}  # the run shows its own
    if where.startswith("local"):
        for_java += archiving(java, given, users)
        options |= LOCAL | (STARTED_HERE if is_started_here(given) else {})
        finds = workers_find_us(given.get(WORKERS_PATH, ""))
        if not finds and WORKERS_PATH not in given:  # a program that found this package by a path of its own
            options[WORKERS_PATH] = ROOT
            finds = workers_find_us(ROOT)
        if DAEMON not in given and finds:
            options[DAEMON] = OUR_DAEMON
    if is_small:
        for_java += give_way(SHORT_LIVED, users)
        options |= SMALL
    return {**options, **given, DEFAULTS: f"{join_options(for_java)} {given.get(DEFAULTS, '')}".strip()}


def few_tasks(spark: SparkSession, given: Mapping[str, str], size: int) -> dict[str, str]:
    """Return a setting by which inputs of so many bytes are shuffled to few tasks; nothing if the user gave a number.

    Spark's own default is 200 tasks for each shuffle, however small, and a cluster's is one for all its jobs. Where it
    is `auto`, Databricks chooses.
    """
    tasks, present = max(2, -(-size // SHUFFLED_TASK)), str(spark.conf.get(PARTITIONS, "200"))
    is_more = present.isdecimal() and tasks < int(present)
    return {PARTITIONS: str(tasks)} if is_more and given_partitions(given) is None else {}


def given_partitions(given: Mapping[str, str]) -> int | None:
    """Return the number of shuffle partitions in the settings of the run; None if there is none, or `auto`.

    That of the session may be a cluster's default, which nobody chose for this run: it decides nothing.

    Raises:
        ConfigError: if it is no number.
    """
    text = str(given.get(PARTITIONS, "auto")).strip().lower()
    if text == "auto":
        return None
    if not text.isdecimal() or not int(text):
        raise ConfigError(f"{PARTITIONS}: expected a number of tasks, at least 1, or auto, got {given[PARTITIONS]}")
    return int(text)


def settings_for(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session for nddup: `given`, completed from `RUNTIME` and `PINNED`.

    Raises:
        ConfigError: if `given` differs from `PINNED`.
    """
    for key, value in PINNED.items():
        if str(given.get(key, value)).strip().lower() != value:
            raise ConfigError(f"{key}: nddup works with {value} only, got {given[key]}")
    # A JVM takes 1536m for its heap, but not 1536MB, as people and Spark itself write sizes.
    heaps = {key: re.sub(r"(?<=[0-9])\s*([kmgtKMGT])[bB]\s*$", r"\1", given[key]) for key in HEAPS if key in given}
    return {**RUNTIME, **PINNED, **given, **heaps}


def workers_find_us(path: str = "") -> bool:
    """Return whether a Python worker of a local session can load this package. Cost: one start of that Python.

    If the daemon cannot be loaded, every Python task of the application fails, not only ours, and Spark starts no
    other daemon. Workers see PYTHONPATH and installed packages. They do not see the folder Spark was started in
    (`nddup.ground.start_up`), what a program added to its own `sys.path`, nor `--py-files`, which reach a worker only
    after it is forked. For other machines this cannot be checked from here: their spark-defaults.conf may set
    `spark.python.daemon.module`.

    Args:
        path: folders that a worker imports from before those of PYTHONPATH, as in `WORKERS_PATH`.
    """
    asked = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({OUR_DAEMON!r}) is None)"
    folders = os.pathsep.join(folder for folder in (path, os.environ.get("PYTHONPATH", "")) if folder)
    try:
        python = [os.environ["PYSPARK_PYTHON"], "-c", asked]
        environment = {**os.environ, SAFE_PATH: "1", "PYTHONPATH": folders}
        answer = subprocess.run(python, capture_output=True, check=False, env=environment)  # noqa: S603 - what Spark itself starts
    except OSError:
        return False
    return answer.returncode == 0


def splitting(spark: SparkSession) -> dict[str, str]:
    """Return the current settings that decide where Spark splits files."""
    *sizes, least = SPLITTING
    cores = spark.conf.get(least, None) or str(access_of(spark).parallelism())
    return {key: str(spark.conf.get(key)) for key in sizes} | {least: cores}


@contextmanager
def set_to(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session within a `with` block; restore them at its end, even after an error.

    Raises:
        ConfigError: if Spark refuses one: a wrong value, or a setting that a running session cannot change.
    """
    before: dict[str, str | None] = {}
    try:
        for key, value in settings.items():
            was = spark.conf.get(key, None)
            try:
                spark.conf.set(key, value)
            except PySparkException as error:
                raise ConfigError(f"{key}={value}: {first_line(error)}") from error
            before[key] = was
        yield
    finally:
        for key, was in before.items():
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)
