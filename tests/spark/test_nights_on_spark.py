"""A run onto a finished run has the same tables on Spark as of the embedded engine (`tests/embedded/test_onto.py`)."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from nddup.spark.run import run_job
from nddup.spark.session_tables import SparkFolder
from nddup.spark.steps import one_task
from tests.finished_runs import sorted_tables
from tests.nights import assert_nights_equal, write_batches
from tests.run.crawls import Made, words, write_crawl


@pytest.mark.nightly  # by day a night beside the run before goes the same way
@pytest.mark.parametrize("is_followed", [False, True], ids=["one night", "two nights"])
def test_a_night_has_the_tables_of_one_run(spark: SparkSession, tmp_path: Path, *, is_followed: bool) -> None:
    assert_nights_equal(spark, tmp_path, is_followed=is_followed)


def test_a_night_beside_the_run_before_links_its_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of GIVEN are written again here, as all are where the folders are not on this machine.

    One task decides: the crawl below goes the whole way, but takes a page out, so that its files are written again.
    `test_killed_nights_on_spark` ends a night before each link.
    """
    monkeypatch.setattr(SparkFolder, "links", lambda _, name, __: name != "given")
    monkeypatch.setattr(one_task, "fits_one", lambda *_, **__: True)
    write_batches(tmp_path / "in")
    short = {"shingle": {"length": 2}, "sketch": {"size": 16}, "clusters": {"mode": "none"}}
    given = {"output": {"report": False, "onto": True}, "input": {"max_rejects": None}, **short}
    config = build_config(given, origin="test")
    old, due, new = (str(tmp_path / name) for name in ("old", "due", "new"))
    run_locally([str(tmp_path / "in" / "a")], old, config, batch="a")
    night = [str(tmp_path / "in" / "b")]
    run_locally(night, due, config, batch="b", onto=old)
    run_job(spark, night, new, config, batch="b", onto=old)

    assert sorted_tables(Path(new)) == sorted_tables(Path(due))
    for name, by in (("given", "doc_key"), ("shingles", "node")):
        made, kept = (pq.read_table(f"{run}/_stages/{name}").sort_by(by).to_pylist() for run in (new, due))
        assert made == kept != [], name
    for table, is_linked in (("documents", True), ("_stages/shingles", True), ("_stages/given", False)):
        before = next(Path(old, table).glob("*.parquet"))
        assert any(before.samefile(file) for file in Path(new, table).glob("*.parquet")) == is_linked, table


@pytest.mark.nightly  # by day a night beside the run before, and this crawl on the embedded engine
def test_a_night_of_a_crawl_has_the_tables_of_one_run(spark: SparkSession, tmp_path: Path) -> None:
    """A revisit of a revisit stays a reject; what another repeats, a long page, comes a night later; a page leaves."""
    page, long, of_copy = words(1), words(9, length=300), "WARC-Refers-To: <urn:x:copy>\r\n"
    first = [
        Made("page", "http://a.example/", page, "2020-01-01T00:00:00Z"),
        Made("copy", "http://a.example/", page, "2021-01-01T00:00:00Z", kind="revisit"),
        Made("early", "http://b.example/", long, "2021-01-01T00:00:00Z", kind="revisit"),
        Made("lost", "http://c.example/", "nothing", "2021-01-01T00:00:00Z", kind="revisit", more=of_copy),
        Made("gone", "http://f.example/", f"{page} and this", "2020-01-01T00:00:00Z"),
    ]
    second = [
        Made("late", "http://b.example/", long, "2020-01-01T00:00:00Z"),
        Made("near", "http://d.example/", f"{long} and more", "2020-01-01T00:00:00Z"),
        Made("lost too", "http://e.example/", "nothing", "2022-01-01T00:00:00Z", kind="revisit", more=of_copy),
    ]
    config = build_config({"output": {"report": False, "onto": True}, "input": {"max_rejects": None}}, origin="test")
    write_crawl(tmp_path / "in" / "a", first)
    old, night, due = (str(tmp_path / name) for name in ("old", "night", "due"))
    run_locally([str(tmp_path / "in" / "a")], old, config, batch="a")
    write_crawl(tmp_path / "in" / "b", second)
    inputs, without = [str(tmp_path / "in" / "b")], tmp_path / "gone.txt"
    documents = pq.read_table(f"{old}/documents", columns=["doc_id", "url"]).to_pylist()
    without.write_text("".join(f"{row['doc_id']}\n" for row in documents if "f.example" in row["url"]))
    run_locally(inputs, due, config, batch="b", onto=old, without=str(without))

    run_job(spark, inputs, night, config, batch="b", onto=old, without=str(without))

    assert sorted_tables(Path(night)) == sorted_tables(Path(due))
    assert any("taken out" in row for row in sorted_tables(Path(night))["rejects"])
