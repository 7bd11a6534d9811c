"""Runs of either engine whose counts are checked to add up, and their tables and rejects."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.ground.metrics import RunMetrics
from nddup.results.show import summarise
from nddup.settings.load import build_config
from nddup.spark.run import run_job

WORDS = [f"word{number}" for number in range(40)]
LINES: list[dict[str, Any]] = [
    {"id": "a", "text": " ".join(WORDS), "lang": "en", "n": 1.50},
    {"id": "b", "text": " ".join([*WORDS, "more"]), "lang": "дe"},
    {"id": "c", "text": " ".join(reversed(WORDS)), "tags": ["x", None]},
]


def run_that_adds_up(
    folder: Path, *inputs: Path, spark: SparkSession | None = None, **settings: dict[str, Any]
) -> dict[str, Any]:
    """Run into `folder/out` and check that the counts add up; returns the metrics.

    The embedded engine runs unless `spark` is given. No texts and no report are written: no count needs them.
    """
    settings["output"] = {"texts": 0, "report": False} | settings.get("output", {})
    config, paths, output = build_config(settings, origin="test"), [str(path) for path in inputs], str(folder / "out")
    metrics = run_locally(paths, output, config) if spark is None else run_job(spark, paths, output, config)
    rows = metrics["rows"]
    assert metrics["records"] == rows["documents"] + rows["rejects"]
    assert rows["keep"] == rows["documents"]
    assert (folder / "out" / "_COMPLETE").exists()
    assert summarise(RunMetrics.read(metrics), "out").count("\n") >= 10
    return metrics


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of that run."""
    rows: list[dict[str, Any]] = pq.read_table(folder / "out" / name).to_pylist()
    return rows


def rejects(folder: Path) -> list[tuple[str, int, str]]:
    """Return the sorted source, record and reason of each reject of that run."""
    return sorted((row["source"], row["record"], row["reason"]) for row in table(folder, "rejects"))
