"""What `bench stages` measures: python -m bench.stages_run DOCUMENTS TABLES LOCAL SAID CORES PROFILE SETTING …."""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.processes import descendants
from nddup.settings.load import load_config
from nddup.spark.pairing import collapse
from nddup.spark.run import SparkJob
from nddup.spark.schemas import schema_of
from nddup.spark.session import start_session
from nddup.spark.session_access import access_of
from nddup.spark.session_tables import CheckpointStore
from nddup.spark.steps.documents import Sketched
from nddup.spark.steps.pairing import find_pairs
from nddup.spark.steps.state import SparkProgress
from nddup.stages.run_engine import Made, Saved
from nddup.tables import DOCUMENTS, RESULTS

PATIENT = {"spark.network.timeout": "86400s", "spark.executor.heartbeatInterval": "3600s"}
"""Timeouts that let a run of hours continue after it was stopped for a while."""

LEAST_SHARE = 0.01
"""Least share of all shuffled bytes of an exchange that is listed."""

TICKS = os.sysconf("SC_CLK_TCK")
R = TypeVar("R")


class Measures:
    """The cost of each stage, for this process and all its descendants."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.stages: list[dict[str, Any]] = []

    def take(self, name: str, step: Callable[[], R]) -> R:
        """Run a stage, record its cost, and return its result."""
        started, cpu, shuffled = time.monotonic(), _cpu_seconds(), access_of(self._spark).shuffled_bytes()
        result = step()
        used = {
            "name": name,
            "seconds": round(time.monotonic() - started, 1),
            "cpu_seconds": round(_cpu_seconds() - cpu, 1),
            "shuffled": access_of(self._spark).shuffled_bytes() - shuffled,
        }
        self.stages.append(used)
        print(json.dumps(used), flush=True)
        return result


def _take_documents(documents: DataFrame) -> Sketched:
    counts = collapse.SKETCH_COUNTS | {"rows": "count(*)"}
    counted = documents.agg(*(F.expr(count).alias(name) for name, count in counts.items())).collect()[0]
    found = {name: int(count or 0) for name, count in counted.asDict().items()}
    saved = Saved(documents, found.pop("rows"), found, {})
    return Sketched(Made(saved={"documents": saved}, counts={}))


def main(documents: str, tables: str, local: str, said: str, *limits: str) -> None:
    """Run the stages that follow sketching, by the functions of a run; write their cost to the file `said`."""
    cores, profile, *given = limits
    config = load_config(profile, ["sketch.size=64", "pairs.threshold=0.8", "pairs.confirm=none", *given])
    heap = {"spark.driver.memory": config.spark["spark.executor.memory"]}  # here the driver is the executor
    settings = {**heap, **config.spark, "spark.local.dir": local, **PATIENT}
    spark = start_session(master=f"local[{cores}]", settings=settings)
    measures = Measures(spark)
    with CheckpointStore(spark, tables).opened(kept=list(RESULTS)) as store:
        job = SparkJob(spark, config, store, SparkProgress(spark, is_quiet=True))
        taken = measures.take(
            "nodes", lambda: _take_documents(spark.read.schema(schema_of(DOCUMENTS)).parquet(documents))
        )
        paired = measures.take("pairs", lambda: find_pairs(job, taken))
        clustered = measures.take("clusters", paired.cluster)
        kept = measures.take("keep", clustered.keep)
    pairs, clusters = paired.made, clustered.made
    rows = {**pairs.rows, **clusters.rows, "keep": kept.rows["keep"], "kept": kept.counts["kept"],
            "components": clusters.counts["components"], "candidates": pairs.counts["candidates"]}  # fmt: skip
    values = {"stages": measures.stages, "exchanges": _list_exchanges(spark), "rows": rows}
    Path(said).write_text(json.dumps(values), encoding="utf-8")
    spark.stop()


def _cpu_seconds() -> float:
    """Return the user and system seconds of this process, its descendants, and children they have waited for."""
    ticks = 0
    for process in descendants(os.getpid()):
        with suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def _list_exchanges(spark: SparkSession) -> list[dict[str, Any]]:
    """Return the bytes shuffled by each Spark stage above LEAST_SHARE; a row of a block table is a block."""
    context = spark.sparkContext
    gateway: Any = context._gateway  # noqa: SLF001 - the only counts without the web UI
    none = gateway.jvm.java.util.ArrayList()
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    listed = context._jsc.sc().statusStore().stageList(none, False, False, quantiles, none)  # noqa: FBT003, SLF001
    stages = [listed.apply(at) for at in range(listed.size())]
    total = sum(int(stage.shuffleWriteBytes()) for stage in stages)
    return [
        {
            "job": stage.description().getOrElse(None) or stage.name(),
            "tasks": int(stage.numTasks()),
            "MB": round(int(stage.shuffleWriteBytes()) / 1e6, 1),
            "mean row": round(int(stage.shuffleWriteBytes()) / max(int(stage.shuffleWriteRecords()), 1)),
            "CPU s": round(int(stage.executorCpuTime()) / 1e9, 1),
            "MB spilled": round(int(stage.diskBytesSpilled()) / 1e6, 1),
        }
        for stage in sorted(stages, key=lambda stage: int(stage.stageId()))
        if int(stage.shuffleWriteBytes()) > LEAST_SHARE * total
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
