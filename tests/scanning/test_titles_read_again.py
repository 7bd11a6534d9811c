"""Records with a title beside their text are found again where a later pass reads them, on either engine."""

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from tests.finished_runs import run_over, sorted_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"output": {"report": True}}


def rows() -> list[dict[str, Any]]:
    """Return pairs of texts of more shingles than a sketch holds, two words apart, with a title, none or an empty one.

    So each pair is decided by the texts, read again.
    """
    drawn = np.random.default_rng(5).integers(0, 9_999, (6, 300)).astype(str).tolist()
    made = list[dict[str, Any]]()
    for number, words in enumerate(drawn):
        title = ["a title", None, ""][number % 3]
        made += [
            {"id": f"{number}{end}", "title": title, "text": " ".join([*words[:-2], end, *words[-2:]])} for end in "ab"
        ]
    return made


def write(form: str, folder: Path) -> Path:
    """Write the rows in a format; returns the file."""
    folder.mkdir()
    path, made = folder / f"rows.{form}", rows()
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist(made), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            sink = csv.DictWriter(file, list(made[0]))
            sink.writeheader()
            sink.writerows(made)
    return path


@pytest.mark.parametrize("form", ["jsonl", "parquet", "csv"])
def test_texts_are_shown_and_proved(form: str, tmp_path: Path) -> None:
    """The report has the whole text of each document, title first, and `check` compares the texts of all pairs."""
    from nddup.cli import main  # noqa: PLC0415 - loads all commands

    run_locally([str(write(form, tmp_path / "in"))], str(tmp_path / "out"), build_config(SETTINGS, origin="test"))

    stored = {row["doc_id"]: row["text"] for row in pq.read_table(tmp_path / "out" / "texts").to_pylist()}
    assert {name: text.split() for name, text in stored.items()} == {
        row["id"]: f"{row['title'] or ''} {row['text']}".split() for row in rows()
    }
    assert pq.read_table(tmp_path / "out" / "pairs").num_rows == len(rows()) // 2
    assert main(["check", str(tmp_path / "out")]) == 0


@pytest.mark.spark
def test_spark_decides_by_them(spark: "SparkSession", tmp_path: Path) -> None:
    """It reads by the fingerprint of a content, not by its place."""
    source = write("jsonl", tmp_path / "in")
    settings = {"output": {"report": False}}
    run_locally([str(source)], str(tmp_path / "embedded"), build_config(settings, origin="test"))
    run_over(spark, [source], tmp_path / "spark", settings)

    assert sorted_tables(tmp_path / "spark") == sorted_tables(tmp_path / "embedded")
