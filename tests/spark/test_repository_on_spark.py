"""A repository whose batches Spark reads: the same segments, byte for byte, as if this process reads them."""

import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nddup.repository
from nddup.errors import ConfigError
from tests.repository.histories import adder_on_spark, draw_history, play
from tests.repository.test_rebuild import make, require_equal


def write_batches(folder: Path) -> list[Path]:
    """Write two batches of several files: one compressed, some records unreadable, some ids repeated."""
    batches = []
    for number in range(2):
        lines = []
        for n in range(40):
            text = " ".join(f"w{n // 3}x{k}" for k in range(50)) + (" more" if n % 2 else "")
            lines.append(json.dumps({"id": f"{number}-{n}" if n else "same", "text": text}))
        batch = folder / f"batch-{number}"
        batch.mkdir()
        (batch / "a.jsonl").write_text("\n".join([*lines[:20], "{bad"]) + "\n")
        (batch / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[20:]).encode()))
        batches.append(batch)
    return batches


@pytest.mark.spark
def test_spark_makes_the_same_segments(tmp_path: Path, spark: SparkSession) -> None:
    """Adds and a replacement by Spark make the same segments, and a query through Spark finds the same matches."""
    assert spark.version
    batches = write_batches(tmp_path)
    found = []
    for engine in ("local", "spark"):
        repo = nddup.repository.create(
            str(tmp_path / engine), pairs={"threshold": 0.5}, input={"max_rejects": 0.2}, local={"processes": 1}
        )
        counts = [dict(repo.add([str(batch)], engine=engine, replace=True).counts) for batch in batches]
        matches, rejects = repo.query_files([str(batches[0])], engine=engine)
        files = [dict(segment.files) for segment in repo.snapshot.commit.segments]
        rows = matches.drop_columns("repository").to_pylist()
        found.append((counts, dict(repo.snapshot.commit.digests), files, rows, rejects))

    assert found[0] == found[1]
    assert found[0][0][0]["rejects"] == 1


@pytest.mark.spark
def test_a_random_history_on_spark_equals_a_fresh_run(tmp_path: Path, spark: SparkSession) -> None:
    """A history whose batches Spark reads equals a fresh run; `python -m bench histories --parts spark` tries more."""
    assert spark.version
    repo = make(tmp_path / "repo", "share, stars")

    live = play(repo, draw_history(8), adder_on_spark(tmp_path / "batches"))

    require_equal(repo, live)
    assert repo.version > 4


def test_given_texts_are_read_here(tmp_path: Path) -> None:
    """Given texts with the engine `spark` are refused before Spark starts."""
    repo = nddup.repository.create(str(tmp_path / "repo"))

    with pytest.raises(ConfigError, match="engine: spark reads files"):
        repo.add({"a": "text"}, engine="spark")
