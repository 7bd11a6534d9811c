"""The Spark session of a job, and the few settings the stages count on."""

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from nddup.errors import ConfigError

RUNTIME = {
    # Arrow batches by bytes, not rows: a record may be 20 MB, a sketch is under 2 KB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}
"""Set on any session a job runs in, also one made by spark-submit."""

START = {
    "spark.python.daemon.module": "nddup.run.daemon",  # workers are forked with their kernels loaded
}
"""Set on a session that does not run yet."""

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
        A session with `RUNTIME` and `settings` applied.

    Raises:
        ConfigError: if Java is missing, or Spark refuses the settings.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("nddup")
    submitted = "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    is_new = not submitted and SparkSession.getActiveSession() is None
    options = {**START, **RUNTIME, **settings}
    said: list[str] = []
    if is_new:
        where = master or "local[*]"
        quiet = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
        options = {**(LOCAL if where.startswith("local") else {}), "spark.master": where, **options}
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
    for key, value in {
        **RUNTIME,
        **{k: v for k, v in settings.items() if k.startswith("spark.sql.")},
    }.items():
        spark.conf.set(key, value)
    return spark


def splitting(spark: SparkSession) -> dict[str, str]:
    """The settings that decide where Spark splits files, as they are now."""
    *sizes, least = SPLITTING
    cores = str(spark.sparkContext.defaultParallelism)
    return {key: str(spark.conf.get(key)) for key in sizes} | {least: spark.conf.get(least, None) or cores}


@contextmanager
def set_to(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for a while; then as they were."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
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
                    sys.stderr.write(line)
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
    sys.stderr.write("".join(f"{line}\n" for line in said))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
