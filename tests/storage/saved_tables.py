"""Folders of runs with one or two tables."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from nddup.spark.schemas import schema_of
from nddup.spark.session_tables import SparkFolder
from nddup.tables import KEEP

INPUTS: dict[str, Any] = {"paths": ["a.xml"], "files": {"a.xml": [10, 1]}}


def started(spark: SparkSession, path: Path, inputs: dict[str, Any] | None = None) -> SparkFolder:
    """Return a folder that a run has started; its claim is released, as if its process had ended."""
    folder = SparkFolder(spark, str(path))
    folder.start(settings={}, inputs=inputs or INPUTS, overwrite=False)
    folder.__exit__()
    return folder


def names(path: Path) -> set[str]:
    """Return the names in a folder, without hidden files."""
    return {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}


def save(folder: SparkFolder, name: str, table: DataFrame, reads: list[str], **settings: int) -> DataFrame:
    """Write and seal a table with the columns of KEEP."""
    assert folder.find(name, schema_of(KEEP), settings=settings, reads=reads) is None
    kept = folder.write(name, table, schema_of(KEEP))
    folder.seal(name, settings=settings, reads=reads, counted={"rows": {name: 1}})
    return kept


def fingerprints(folder: SparkFolder, **settings: int) -> list[str]:
    """Return the fingerprints of a table with these settings, and of a table made from it."""
    empty = folder._spark.createDataFrame([], schema_of(KEEP))  # noqa: SLF001
    save(folder, "keep", empty, ["input"], **settings)
    save(folder, "again", empty, ["keep"])
    notes = (Path(folder.path) / "_stages" / f"{name}.json" for name in ("keep", "again"))
    return [json.loads(note.read_text())["fingerprint"] for note in notes]
