"""Components of too many pairs with forced documents and a limit of what is lost, against the definitions."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.mining.keep_verdicts import KEPT
from nddup.settings.load import build_config
from tests.embedded.led_families import Drawn, draw, require_as_defined
from tests.finished_runs import run_over
from tests.results.damages import change, rewrite

TABLES = ("documents", "pairs", "clusters", "keep")


def write(folder: Path, drawn: Drawn) -> dict[str, Any]:
    """Write the texts and the list of forced documents; return the settings."""
    folder.mkdir()
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in drawn.texts.items()]
    (folder / "texts.jsonl").write_text("".join(lines))
    rows = [f"{name},{'kept' if place == KEPT else 'removed'}\n" for name, place in drawn.forced.items()]
    (folder / "force.csv").write_text("".join(rows))
    keep = {"force": str(folder / "force.csv")} if drawn.forced else {}
    return {**drawn.settings, "keep": drawn.settings["keep"] | keep}


def require_right(seed: int, families: int, folder: Path) -> set[str]:
    """Assert that the embedded engine makes what is defined, and that `check` accepts it."""
    drawn = draw(seed, families)
    config = build_config(write(folder, drawn), origin="test")
    run_locally([str(folder / "texts.jsonl")], str(folder / "run"), config)
    tables = {name: pq.read_table(folder / "run" / name).to_pylist() for name in TABLES}

    shown = require_as_defined(drawn, tables)

    report = check_run(DuckRun(str(folder / "run")))
    assert report.is_sound, report.text()
    return shown


@pytest.mark.parametrize("seed", range(4))
def test_what_becomes_of_families_is_as_defined(seed: int, tmp_path: Path) -> None:
    """Leaders, pairs, clusters and the keep-list are those of the definitions, and `check` accepts them."""
    require_right(seed, 20, tmp_path / "in")


def test_of_too_many_near_duplicates_a_sample_is_recounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of `keep` are compared with `pairs` nevertheless, all of them."""
    for name in ("NEAR", "NEAR_LISTED"):
        monkeypatch.setattr(f"nddup.checking.evidence.{name}", 1)
    assert "led" in require_right(2, 4, tmp_path / "in")
    folder = tmp_path / "in" / "run"
    rewrite(folder, "keep", change("leader", lambda _: True, kept=False))
    rewrite(folder, "keep", change("resemblance", 0.99, kept=False))

    findings = check_run(DuckRun(str(folder)), steps=["pairs", "keep"]).findings

    assert any(one.amount.startswith("sample of 1 of") for one in findings)
    assert {one.promise for one in findings if one.broken} >= {
        "keep: leader as the pairs say", "keep: resemblance is that of both documents",
    }  # fmt: skip


@pytest.mark.spark
@pytest.mark.nightly  # by day `run/test_families.py` has one such run
@pytest.mark.parametrize("partitions", [None, "3"], ids=["one task", "three tasks"])
def test_spark_gives_the_same(spark: SparkSession, partitions: str | None, tmp_path: Path) -> None:
    """Both ways of Spark give the tables of the embedded engine, row for row, where leaders, losses and force meet."""
    drawn = draw(3, 12)
    settings = write(tmp_path / "in", drawn)
    assert drawn.forced
    assert drawn.most_lost is not None
    texts = tmp_path / "in" / "texts.jsonl"
    run_locally([str(texts)], str(tmp_path / "local"), build_config(settings, origin="test"))
    given = {} if partitions is None else {"spark": {"spark.sql.shuffle.partitions": partitions}}
    made = run_over(spark, [texts], tmp_path / "spark", settings | given)

    assert made["stages"]["pairs"]["limited"] > 0
    for name in (*TABLES, "members", "false_components"):
        told = [sorted(map(repr, pq.read_table(tmp_path / at / name).to_pylist())) for at in ("local", "spark")]
        assert told[0] == told[1], name
