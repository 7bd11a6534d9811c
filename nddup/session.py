"""The Spark session of a job, and the few settings the stages count on."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from nddup.errors import ConfigError

RUNTIME = {
    # Arrow batches by bytes, not rows: a record may be 20 MB, a sketch is under 2 KB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}
"""Set on any session a job runs in, also one made by spark-submit."""

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "16",
}
"""Set where nothing else is said, on a session made here for one machine."""


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
    if not submitted:
        where = master or "local[*]"
        builder = builder.master(where)
        for key, value in (LOCAL if where.startswith("local") else {}).items():
            builder = builder.config(key, value)
        quiet = Path(__file__).with_name("log4j2.properties")
        builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet.as_uri()}")
    elif master:
        builder = builder.master(master)
    for key, value in {**RUNTIME, **settings}.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise ConfigError(f"Spark did not start: {_first_line(error)}; it needs Java 17 or newer") from error
    for key, value in {
        **RUNTIME,
        **{k: v for k, v in settings.items() if k.startswith("spark.sql.")},
    }.items():
        spark.conf.set(key, value)
    return spark


def shuffled_bytes(spark: SparkSession) -> int:
    """Bytes written to shuffles by all Spark stages of the session that are still remembered (the last 1,000)."""
    context = spark.sparkContext
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - the only count of shuffle bytes without the web UI
    gateway = context._gateway  # noqa: SLF001
    nothing = gateway.new_array(gateway.jvm.double, 0)
    stages = store.stageList(None, False, False, nothing, gateway.jvm.java.util.ArrayList())  # noqa: FBT003
    return sum(int(stages.apply(i).shuffleWriteBytes()) for i in range(stages.size()))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
