"""Batches of a collection that grows, and that Spark gives the tables of the embedded engine for them."""

from pathlib import Path

import pyarrow.parquet as pq
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


def assert_nights_equal(spark: SparkSession, folder: Path, *, is_followed: bool) -> None:
    """
    Assert that a night on Spark, onto a run of the embedded engine, has the embedded engine's tables.

    Args:
        is_followed: whether Spark goes on from its own night too.
    """
    write_batches(folder / "in")
    quiet = {"output": {"report": False, "onto": True, "texts": 0}, "input": {"max_rejects": None}}
    config = build_config({**quiet, **SETTINGS}, origin="test")
    inputs, old, gone = folder / "in", str(folder / "old"), folder / "gone.txt"
    gone.write_text("d0\nd3\n", encoding="utf-8")
    run_locally([str(inputs / "a")], old, config, batch="a")
    run_locally([str(inputs / "b")], str(folder / "due"), config, batch="b", onto=old, without=str(gone))
    run_job(spark, [str(inputs / "b")], str(folder / "new"), config, batch="b", onto=old, without=str(gone))
    assert sorted_tables(folder / "new") == sorted_tables(folder / "due")

    for name, by in (("given", "doc_key"), ("shingles", "node")):
        made, kept = (pq.read_table(folder / run / "_stages" / name).sort_by(by) for run in ("new", "due"))
        assert len(kept)
        assert made.to_pylist() == kept.to_pylist(), name

    # Either engine goes on from what the other one made; that Spark goes on from its own is left to `make nightly`.
    night = [str(inputs / "c")]
    for old in ("new", "due"):
        run_locally(night, str(folder / f"{old} next"), config, batch="c", onto=str(folder / old))
    due = sorted_tables(folder / "due next")
    assert sorted_tables(folder / "new next") == due
    if is_followed:
        run_job(spark, night, str(folder / "on Spark"), config, batch="c", onto=str(folder / "new"))
        assert sorted_tables(folder / "on Spark") == due
