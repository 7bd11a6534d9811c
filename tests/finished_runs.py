"""Runs as tests make them: documents as lines of JSON, a run over files, its tables as sorted text."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from nddup.run.job import run_job
from nddup.settings.load import build_config
from nddup.storage.spark_folder import SparkFolder
from nddup.tables import RESULTS


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write one row a line as JSON."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_texts(path: Path, texts: Mapping[str, str]) -> Path:
    """Write texts by id as rows of `id` and `text`."""
    return write_rows(path, ({"id": name, "text": text} for name, text in texts.items()))


def run_over(
    spark: SparkSession, inputs: Sequence[Path], output: Path, settings: Mapping[str, Any], *, resume: bool = False
) -> dict[str, Any]:
    """Run the whole job into `output`; returns its metrics."""
    config = build_config(dict(settings), origin="test")
    return run_job(spark, [str(path) for path in inputs], str(output), config, resume=resume)


def sorted_tables(spark: SparkSession, output: Path) -> dict[str, list[str]]:
    """The rows of each table of a finished run as text, sorted."""
    folder = SparkFolder(spark, str(output))
    folder.open()
    return {name: sorted(map(repr, folder.table(name).collect())) for name in RESULTS}
