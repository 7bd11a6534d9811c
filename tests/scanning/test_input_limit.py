"""`input.limit` reads the first records of the collection, the same on every pass and engine, and is reported."""

import bz2
import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError
from nddup.ground.metrics import RunMetrics
from nddup.report.summary import notes
from nddup.settings.load import build_config
from nddup.spark.run import run_job
from tests.samples_by_night import first

FILES = 4
LINES = 25


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files of 25 lines: a plain, a gzip, a bzip2 and a plain one; one line of each is broken."""
    folder = tmp_path_factory.mktemp("in")
    for number, ending in enumerate(("jsonl", "jsonl.gz", "jsonl.bz2", "jsonl")):
        lines = [
            json.dumps({"id": f"{number}-{line}", "text": f"some words of file {number} and line {line // 2}"})
            for line in range(LINES)
        ]
        lines[3] = "{broken"
        data = "".join(f"{line}\n" for line in lines).encode()
        packed = {"jsonl.gz": gzip.compress(data), "jsonl.bz2": bz2.compress(data)}.get(ending, data)
        (folder / f"{number}.{ending}").write_bytes(packed)
    return folder


@pytest.fixture(scope="module")
def whole(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run of all records."""
    folder = tmp_path_factory.mktemp("limit") / "whole"
    run_locally([str(collection)], str(folder), build_config({}, origin="test"))
    return folder


def rows(folder: Path, table: str) -> list[tuple[str, int]]:
    """Return the place of each row of a table, in order."""
    found = pq.read_table(folder / table).to_pylist()
    return sorted((row["source"], row["record"]) for row in found)


@pytest.mark.parametrize("limit", first(1, [26, 100, 4, 5_000, 1, 25, 60, 99]))
def test_the_first_records_are_read(collection: Path, whole: Path, tmp_path: Path, limit: int) -> None:
    """Documents and rejects together are the first ones of the whole run; `check` passes, and the kept are written."""
    part = tmp_path / "part"
    settings = {"input": {"limit": limit}, "output": {"kept": "jsonl"}}
    metrics = RunMetrics.model_validate(
        run_locally([str(collection)], str(part), build_config(settings, origin="test"))
    )

    every = sorted(rows(whole, "documents") + rows(whole, "rejects"))
    assert sorted(rows(part, "documents") + rows(part, "rejects")) == every[:limit]
    assert metrics.records == min(limit, FILES * LINES)
    assert any("input.limit" in note for note in notes(metrics)) == (limit <= FILES * LINES)
    assert check_run(DuckRun(str(part))).is_sound
    assert len((part / "kept" / "part-00000.jsonl").read_text().splitlines()) == metrics.stages.keep.kept


@pytest.mark.spark
def test_spark_reads_the_same(spark: SparkSession, collection: Path, tmp_path: Path) -> None:
    """Both engines stop at the same record."""
    settings = {"input": {"limit": 60}, "clusters": {"mode": "none"}, "output": {"texts": 0, "report": False}}
    config = build_config(settings, origin="test")
    run_locally([str(collection)], str(tmp_path / "local"), config)
    run_job(spark, [str(collection)], str(tmp_path / "spark"), config)

    for table in ("documents", "rejects"):
        assert rows(tmp_path / "local", table) == rows(tmp_path / "spark", table)


def test_it_is_at_least_one() -> None:
    """A limit of 0 is refused."""
    with pytest.raises(ConfigError, match=r"input\.limit"):
        build_config({"input": {"limit": 0}}, origin="test")
