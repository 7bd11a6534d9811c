"""The Spark session of a job, and the few settings the stages count on."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from nddup.errors import ConfigError
from nddup.redaction import IN_PLANS, clean, follow

RUNTIME = {
    # Arrow batches by bytes, not rows: a record may be 20 MB, a sketch is under 2 KB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # Cells with ends of 32 bits: what the blocks of `nddup.spark.blocks` are made with. It reads the wider as well.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
"""Set on every session a job runs in, also one made by spark-submit; a value that the user has set is kept."""

START = {"spark.redaction.string.regex": IN_PLANS}
"""Set on a session that does not run yet."""

PINNED = {
    # Columns are called `group`, `left`, `first`: with the words of SQL reserved, conditions on them are no SQL.
    "spark.sql.ansi.enforceReservedKeywords": "false",
}
"""Set likewise, and refused at any other value: the stages count on them."""

DAEMON = "spark.python.daemon.module"
OUR_DAEMON = "nddup.run.daemon"
"""The parent of the Python workers of an executor, which loads the kernels once, before it forks them."""

LOCAL = {
    "spark.sql.files.maxPartitionBytes": str(32 << 20),  # a file of some hundred MB keeps all cores busy to its end
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "16",
}
"""Set where nothing else is said, on a session made here for one machine."""

SPLITTING = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes", "spark.sql.files.minPartitionNum")
"""What decides where Spark splits files; the last is the number of cores, where it is not set."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
USUAL = ("WARNING: Using incubator modules",)
"""What the Java machine says at every start, whatever it is told: it is not passed on."""


def start_session(*, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    """The running session, or a new one.

    Args:
        master: where to run; None keeps what spark-submit set, else `local[*]`.
        settings: Spark's own keys; they win over this module's.

    Returns:
        A session with `settings_for(settings)` applied.

    Raises:
        ConfigError: if Java is missing, Spark refuses the settings, or one of them is other than `PINNED`.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("nddup")
    submitted = "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    is_new = not submitted and SparkSession.getActiveSession() is None
    options = {**START, **settings_for(settings)}
    said: list[str] = []
    if is_new:
        where = master or "local[*]"
        quiet = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
        is_local = where.startswith("local")
        ours = {DAEMON: OUR_DAEMON} if is_local and DAEMON not in options and workers_find_us() else {}
        options = {**(LOCAL if is_local else {}), **ours, "spark.master": where, **options}
        options[JAVA_OPTIONS] = f"{quiet} {options.get(JAVA_OPTIONS, '')}".strip()
    elif submitted and master:
        builder = builder.master(master)
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        if is_new and SparkContext._gateway is None:  # noqa: SLF001 - else a Java machine runs already
            _start_quietly(SparkConf().setAppName("nddup").setAll(list(options.items())), said)
        spark = builder.getOrCreate()
    except Exception as error:
        reason = _first_line(error)
        raise ConfigError(f"Spark did not start: {said[0] if said else reason}; it needs Java 17 or newer") from error
    for key, value in settings_for(settings).items():
        if key.startswith("spark.sql."):
            spark.conf.set(key, value)
    follow(spark.sparkContext.getConf().getAll())  # secrets that spark-submit or its files set
    return spark


def settings_for(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session for nddup: `given`, and what it does not name of `RUNTIME` and `PINNED`.

    Raises:
        ConfigError: where `given` is other than `PINNED`.
    """
    for key, value in PINNED.items():
        if str(given.get(key, value)).strip().lower() != value:
            raise ConfigError(f"{key}: nddup works with {value} only, got {given[key]}")
    return {**RUNTIME, **PINNED, **given}


def workers_find_us() -> bool:
    """Whether a Python worker of a local session can load this package: asked of such a Python. Cost: its start.

    A daemon that cannot be loaded fails every Python task of the application, other people's too, and Spark starts no
    other in its place. Workers see PYTHONPATH, the folder Spark was started in, and what is installed; not what a
    program added to its own `sys.path`, nor `--py-files`, which reach a worker when it is forked already. Of another
    machine nobody here can tell: there `spark.python.daemon.module` is for its spark-defaults.conf to say.
    """
    asked = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({OUR_DAEMON!r}) is None)"
    try:
        python = [os.environ["PYSPARK_PYTHON"], "-c", asked]
        answer = subprocess.run(python, capture_output=True, check=False)  # noqa: S603 - what Spark itself starts
    except OSError:
        return False
    return answer.returncode == 0


def splitting(spark: SparkSession) -> dict[str, str]:
    """The settings that decide where Spark splits files, as they are now."""
    *sizes, least = SPLITTING
    cores = str(spark.sparkContext.defaultParallelism)
    return {key: str(spark.conf.get(key)) for key in sizes} | {least: spark.conf.get(least, None) or cores}


@contextmanager
def set_to(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for a while; then, whatever happened, as they were.

    Raises:
        ConfigError: if Spark refuses one: a wrong value, or what a running session cannot change.
    """
    before: dict[str, str | None] = {}
    try:
        for key, value in settings.items():
            was = spark.conf.get(key, None)
            try:
                spark.conf.set(key, value)
            except PySparkException as error:
                raise ConfigError(f"{key}={value}: {_first_line(error)}") from error
            before[key] = was
        yield
    finally:
        for key, was in before.items():
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)


def shuffled_bytes(spark: SparkSession) -> int:
    """Bytes written to shuffles since the session began, by every executor it has or had; cost: one call for each."""
    store = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - the only count without the web UI
    executors = store.executorList(False)  # noqa: FBT003 - the lost ones as well
    return sum(int(executors.apply(i).totalShuffleWrite()) for i in range(executors.size()))


def _start_quietly(conf: SparkConf, said: list[str]) -> None:
    """Start the Java machine with its standard error passed through here, without the `USUAL` lines.

    What it says until it has started is left in `said`: if it does not start, the reason.
    """
    receiver, sender = os.pipe()
    started = threading.Event()

    def pass_on() -> None:
        with os.fdopen(receiver, errors="replace") as lines:
            for line in lines:
                if line.startswith(USUAL):
                    continue
                if not started.is_set():
                    said.append(line.strip())
                else:
                    sys.stderr.write(clean(line))
                    sys.stderr.flush()

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    try:
        gateway = launch_gateway(conf, {"stderr": sender})  # type: ignore[no-untyped-call]
        SparkContext(conf=conf, gateway=gateway)
    except Exception:
        os.close(sender)
        thread.join(timeout=5)
        raise
    os.close(sender)
    started.set()
    sys.stderr.write("".join(f"{clean(line)}\n" for line in said))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
