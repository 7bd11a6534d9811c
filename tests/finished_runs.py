"""Helpers to write documents as JSON lines, to run over files, and to read a run's tables as sorted text."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from nddup.settings.load import build_config
from nddup.stages.run_engine import RunEngine
from nddup.stages.stage import M, Stage
from nddup.storage.local_folder import LocalFolder
from nddup.tables import RESULTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write the rows as JSON, one per line; returns the path."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_texts(path: Path, texts: Mapping[str, str]) -> Path:
    """Write texts, given by id, as JSON rows of `id` and `text`; returns the path."""
    return write_rows(path, ({"id": name, "text": text} for name, text in texts.items()))


def run_over(
    spark: "SparkSession", inputs: Sequence[Path], output: Path, settings: Mapping[str, Any], *, resume: bool = False
) -> dict[str, Any]:
    """Run the whole job on Spark into `output`; returns its metrics."""
    from nddup.spark.run import run_job  # noqa: PLC0415 - for Spark alone

    config = build_config(dict(settings), origin="test")
    return run_job(spark, [str(path) for path in inputs], str(output), config, resume=resume)


@contextmanager
def stopped_before(name: str) -> Iterator[None]:
    """Interrupt each run, on either engine, where a stage begins: `pairs`, `clusters` or `keep`."""
    begin = RunEngine.stage

    def stage(engine: RunEngine, at: str, counts: type[M]) -> AbstractContextManager[Stage[M]]:
        if at == name:
            raise KeyboardInterrupt
        return begin(engine, at, counts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunEngine, "stage", stage)
        yield


def run_until(
    spark: "SparkSession", inputs: Sequence[Path], output: Path, settings: Mapping[str, Any], stage: str
) -> None:
    """Run until just before a stage; tests resume copies of the folder."""
    with stopped_before(stage), pytest.raises(KeyboardInterrupt):
        run_over(spark, inputs, output, settings)


def rows_of(output: Path, name: str, columns: Sequence[str] | None = None) -> list[str]:
    """Return the rows of a table in a local folder, formatted as Spark's `Row` and sorted."""
    rows = pq.read_table(output / name, columns=columns).to_pylist()
    return sorted(f"Row({', '.join(f'{key}={value!r}' for key, value in row.items())})" for row in rows)


def sorted_tables(output: Path) -> dict[str, list[str]]:
    """Return the sorted rows of each table of a finished local run, as text; of `families` too, where there are."""
    LocalFolder(str(output)).open()
    names = [*RESULTS, *(["families"] if (output / "families").is_dir() else [])]
    return {name: rows_of(output, name) for name in names}
