"""A run onto a finished run has the same tables on Spark as of the embedded engine (`tests/embedded/test_onto.py`)."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from nddup.spark.run import run_job
from tests.finished_runs import sorted_tables, write_rows

SETTINGS = {"keep": {"same": ["lang"], "ledger": ["lang"]}, "shingle": {"length": 2}, "sketch": {"size": 16}}


def write_batches(folder: Path) -> None:
    """Write texts that repeat ids, texts and each other across batches, texts without id, and no records."""
    words = [f"word{n}" for n in range(40)]
    for night, shift in (("a", 0), ("b", 1), ("c", 2)):
        rows: list[dict[str, str | None]] = [
            {"id": f"d{n}", "text": " ".join([*words[:-2], f"x{n // 2}", f"y{n}"]), "lang": "ab"[n % 2]}
            for n in range(shift * 3, shift * 3 + 5)
        ]
        rows += [{"text": "short", "lang": None}, {"text": f"{' '.join(words[::2])} {night}", "lang": "b"}]
        rows += [{"id": f"s{night}", "text": f"{' '.join(words[-12:])} {night}", "lang": "a"}]  # whole in its sketch
        rows += [{"id": "d9", "text": f"another text of one id, {night}", "lang": "a"}]
        (folder / night).mkdir(parents=True)
        (folder / night / "none.jsonl").write_text("{\n", encoding="utf-8")
        write_rows(folder / night / "rows.jsonl", rows)


@pytest.mark.parametrize(
    "is_followed", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["one night", "two nights"]
)
def test_a_night_has_the_tables_of_one_run(spark: SparkSession, tmp_path: Path, *, is_followed: bool) -> None:
    write_batches(tmp_path / "in")
    quiet = {"output": {"report": False, "onto": True, "texts": 0}, "input": {"max_rejects": None}}
    config = build_config({**quiet, **SETTINGS}, origin="test")
    inputs, old, gone = tmp_path / "in", str(tmp_path / "old"), tmp_path / "gone.txt"
    gone.write_text("d0\nd3\n", encoding="utf-8")
    run_locally([str(inputs / "a")], old, config, batch="a")
    run_locally([str(inputs / "b")], str(tmp_path / "due"), config, batch="b", onto=old, without=str(gone))
    run_job(spark, [str(inputs / "b")], str(tmp_path / "new"), config, batch="b", onto=old, without=str(gone))
    assert sorted_tables(tmp_path / "new") == sorted_tables(tmp_path / "due")

    for name, by in (("given", "doc_key"), ("shingles", "node")):
        made, kept = (pq.read_table(tmp_path / run / "_stages" / name).sort_by(by) for run in ("new", "due"))
        assert len(kept)
        assert made.to_pylist() == kept.to_pylist(), name

    # Either engine goes on from what the other one made; that Spark goes on from its own is left to `make nightly`.
    night = [str(inputs / "c")]
    for old in ("new", "due"):
        run_locally(night, str(tmp_path / f"{old} next"), config, batch="c", onto=str(tmp_path / old))
    due = sorted_tables(tmp_path / "due next")
    assert sorted_tables(tmp_path / "new next") == due
    if is_followed:
        run_job(spark, night, str(tmp_path / "on Spark"), config, batch="c", onto=str(tmp_path / "new"))
        assert sorted_tables(tmp_path / "on Spark") == due
