"""Records that Spark skips, and files that it cannot read: each is found again and becomes one reject."""

from pathlib import Path

from pyspark.sql import SparkSession

from tests.finished_runs import write_rows
from tests.run.accounts import rejects, run_that_adds_up, table


def test_a_file_damaged_from_its_start_is_one_reject(spark: SparkSession, tmp_path: Path, shared: Path) -> None:
    """A real collection file cut in its only block gives no document and one reject, and the run finishes."""
    metrics = run_that_adds_up(
        tmp_path, shared / "ruweb" / "fixtures" / "romip_truncated.xml.bz2", spark=spark, input={"max_rejects": 1.0}
    )

    assert metrics["rows"]["documents"] == 0
    assert rejects(tmp_path) == [("romip_truncated.xml.bz2", 1, "damaged")]


def test_a_record_too_long_for_spark_is_one_reject(spark: SparkSession, tmp_path: Path) -> None:
    """A record that Spark skips silently, in JSON lines or XML, is found in its place by the bytes that are missing.

    A file that misses no bytes is not read again.
    """
    pages = tmp_path / "pages"
    pages.mkdir()
    rows = [{"id": str(n), "text": f"page {n} " + ("x " * 60_000 if n == 5 else "of many")} for n in range(50)]
    write_rows(pages / "a.jsonl", rows)
    records = "".join(f"<doc><id>x{row['id']}</id><text>{row['text']}</text></doc>" for row in rows)
    (pages / "a.xml").write_text(f"<docs>{records}</docs>")
    write_rows(pages / "b.jsonl", [{"id": f"b{n}", "text": "y"} for n in range(3)])

    metrics = run_that_adds_up(tmp_path, pages, spark=spark, input={"max_record": 50_000}, output={"kept": "parquet"})

    assert metrics["rows"]["documents"] == 2 * 49 + 3
    assert metrics["stages"]["sketch"]["files_read_again"] == 2
    assert len(table(tmp_path, "kept")) == metrics["stages"]["keep"]["kept"]
    assert rejects(tmp_path) == [("a.jsonl", 6, "too large"), ("a.xml", 6, "too large")]
    for source in ("a.jsonl", "a.xml"):
        places = [row for row in table(tmp_path, "documents") if row["source"] == source]
        assert {int(row["doc_id"].strip("x")): row["record"] for row in places} == {
            n: n + 1 for n in range(50) if n != 5
        }


def test_many_files_cannot_hide_a_record_that_is_too_long(spark: SparkSession, tmp_path: Path) -> None:
    """A missing record is found, though the separators counted after the roots of all files have as many bytes."""
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(30):
        text = "x " * 75 if number == 15 else "a b c"
        (pages / f"{number:03}.xml").write_text(f"<docs><doc><id>{number}</id><text>{text}</text></doc></docs>")

    metrics = run_that_adds_up(tmp_path, pages, spark=spark, input={"max_record": 120})

    assert metrics["rows"]["documents"] == 29
    assert rejects(tmp_path) == [("015.xml", 1, "too large")]
