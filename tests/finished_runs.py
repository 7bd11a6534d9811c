"""Runs as tests make them: documents as lines of JSON, a run over files, its tables as sorted text."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

from nddup.run.job import run_job
from nddup.run.on_spark import pipeline
from nddup.settings.load import build_config
from nddup.storage.local_folder import LocalFolder
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


def run_until(
    spark: SparkSession, inputs: Sequence[Path], output: Path, settings: Mapping[str, Any], stage: str
) -> None:
    """Begin a run that ends before a stage, `find_pairs` or `mine_clusters`; a copy of it is resumed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, stage, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_over(spark, inputs, output, settings)


def rows_of(output: Path, name: str, columns: Sequence[str] | None = None) -> list[str]:
    """The rows of a table in a folder of this machine as Spark shows them, sorted."""
    table = pq.read_table(output / name, columns=columns)
    return sorted(repr(Row(**row)) for row in table.to_pylist())


def sorted_tables(output: Path) -> dict[str, list[str]]:
    """The rows of each table of a finished run on this machine as text, sorted."""
    LocalFolder(str(output)).open()
    return {name: rows_of(output, name) for name in RESULTS}
