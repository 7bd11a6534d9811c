"""Pairs that texts confirm (`pairs.confirm`) on Spark follow the definitions and equal the embedded engine's."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from nddup.spark.run import run_job
from nddup.tables import RESULTS
from tests.embedded.confirmed_texts import Case, draw_together, require_as_defined

TABLES = ("documents", "pairs", "clusters", "keep")


def write(case: Case, folder: Path) -> str:
    """Write the texts as JSON lines; returns the path."""
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in case.texts.items()]
    path = folder / "texts.jsonl"
    path.write_text("".join(lines))
    return str(path)


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / name).to_pylist()
    return sorted(rows, key=str)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("confirm", ["edit", "resemblance"])
def test_tables_are_those_of_the_definitions_on_both_engines(confirm: str, spark: SparkSession, tmp_path: Path) -> None:
    """With texts reread from files, groups, pairs, clusters and keep-list are as defined, and so on both engines."""
    case = draw_together(range(10))._replace(confirm=confirm)
    config = build_config({**case.settings, "output": {"report": False}}, origin="test")
    path = write(case, tmp_path)

    made = run_job(spark, [path], str(tmp_path / "spark"), config)
    here = run_locally([path], str(tmp_path / "local"), config)

    require_as_defined(case, {name: read(tmp_path / "spark", name) for name in TABLES})
    for name in RESULTS:
        assert read(tmp_path / "spark", name) == read(tmp_path / "local", name), name
    edits = made["stages"]["pairs"]["edits"]
    assert edits == here["stages"]["pairs"]["edits"]
    assert 0 < edits["confirmed"] < edits["compared"]


@pytest.mark.spark
@pytest.mark.nightly  # by day `spark/test_large_graph.py` has leaders, and the test of `check` a run with them
def test_components_given_by_leaders_are_those_of_the_embedded_engine(spark: SparkSession, tmp_path: Path) -> None:
    """Edits of all pairs, and of comparisons with kept documents in the task of a family, give the embedded tables.

    `embedded/test_engines.py` compares runs where resemblance decides, and `embedded/test_confirmed_pairs.py` the
    embedded engine with the definitions.
    """
    case = draw_together(range(30, 36))._replace(confirm="edit")
    pairs = {**case.settings["pairs"], "max_edges": 2, "max_postings": 3}
    config = build_config({**case.settings, "pairs": pairs, "output": {"report": False}}, origin="test")
    path = write(case, tmp_path)

    made = run_job(spark, [path], str(tmp_path / "spark"), config)
    here = run_locally([path], str(tmp_path / "local"), config)

    assert made["stages"]["clusters"]["components"] > made["stages"]["clusters"]["led_components"] > 0
    edits = made["stages"]["pairs"]["edits"]
    assert edits == here["stages"]["pairs"]["edits"]
    assert 0 < edits["confirmed"] < edits["compared"]
    for name in RESULTS:
        assert read(tmp_path / "spark", name) == read(tmp_path / "local", name), name
