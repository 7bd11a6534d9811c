"""How a run ends: with closed accounts, or with one line and nothing that looks finished."""

import bz2
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from nddup.cli import main
from nddup.metrics import RunMetrics
from nddup.results.show import summarise
from tests.finished_runs import run_over, write_rows

WORDS = [f"word{number}" for number in range(40)]
LINES: list[dict[str, Any]] = [
    {"id": "a", "text": " ".join(WORDS), "lang": "en", "n": 1.50},
    {"id": "b", "text": " ".join([*WORDS, "more"]), "lang": "дe"},
    {"id": "c", "text": " ".join(reversed(WORDS)), "tags": ["x", None]},
]


def run_that_adds_up(spark: SparkSession, folder: Path, *inputs: Path, **settings: dict[str, Any]) -> dict[str, Any]:
    """The metrics of a run into `folder/out`, whose accounts close."""
    metrics = run_over(spark, inputs, folder / "out", settings)
    rows = metrics["rows"]
    assert metrics["records"] == rows["documents"] + rows["rejects"]
    assert rows["keep"] == rows["documents"]
    assert (folder / "out" / "_COMPLETE").exists()
    assert summarise(RunMetrics.read(metrics), "out").count("\n") >= 10
    return metrics


def table(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """A table of that run."""
    return spark.read.parquet(f"{folder}/out/{name}")


def rejects(spark: SparkSession, folder: Path) -> list[tuple[str, int, str]]:
    """Source, record and reason of the rejects of that run."""
    found = table(spark, folder, "rejects").select("source", "record", "reason").collect()
    return sorted((row["source"], row["record"], row["reason"]) for row in found)


def failure(capsys: pytest.CaptureFixture[str], status: int, *arguments: object) -> str:
    """The last line of a command that fails; no trace, and nothing printed as a result."""
    assert main(["run", *(str(argument) for argument in arguments)]) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert "\tat " not in printed.err
    return printed.err.splitlines()[-1].removeprefix("nddup: ")


def test_long_records_and_many_short_ones_are_all_read(spark: SparkSession, tmp_path: Path) -> None:
    """Two records of 20 MB, two thirds alike, beside 20,000 of a few words."""
    noise = [os.urandom(6).hex() for _ in range(1_500_000)]
    rows = [{"id": str(n), "text": f"page {n} of many"} for n in range(20_000)]
    long = [{"id": "x", "text": " ".join(noise)}, {"id": "y", "text": " ".join([*noise[1000:], "end"])}]
    write_rows(tmp_path / "a.jsonl", [*rows, *long])

    metrics = run_that_adds_up(spark, tmp_path, tmp_path / "a.jsonl")

    assert metrics["rows"]["documents"] == 20_002
    assert metrics["rows"]["rejects"] == 0
    pairs = table(spark, tmp_path, "pairs").where("doc_a = 'x' or doc_b = 'x'").collect()
    assert [(row["doc_a"], row["doc_b"]) for row in pairs] == [("x", "y")]


def test_files_without_a_record_are_one_reject_each(spark: SparkSession, tmp_path: Path) -> None:
    """An empty file, blanks, garbage, and XML cut before its first record, beside a good file."""
    write_rows(tmp_path / "good.jsonl", LINES)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "blank.xml").write_text(" \n\n")
    (tmp_path / "garbage.xml").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "text.txt").write_text("just some words")

    metrics = run_that_adds_up(spark, tmp_path, tmp_path)

    assert metrics["rows"]["documents"] == 3
    assert rejects(spark, tmp_path) == [
        ("blank.xml", 1, "no records"),
        ("empty.jsonl", 1, "no records"),
        ("garbage.xml", 1, "no records"),
        ("text.txt", 1, "no records"),
    ]


@pytest.mark.usefixtures("spark")
def test_garbage_alone_is_refused_with_what_would_help(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Where no file at all can be understood, the line names the settings that tell how to read it."""
    (tmp_path / "garbage.bin").write_bytes(bytes(range(256)) * 100)

    said = failure(capsys, 2, tmp_path / "garbage.bin", "--output", tmp_path / "out")

    assert "garbage.bin: " in said
    assert "set input.record, input.id and input.content" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("spark")
def test_a_folder_without_a_file_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An empty folder is a wrong INPUT."""
    (tmp_path / "in").mkdir()

    said = failure(capsys, 2, tmp_path / "in", "--output", tmp_path / "out")

    assert said == f"INPUT {tmp_path}/in: no files to read (0 skipped)"


def test_records_beyond_a_limit_are_rejects(spark: SparkSession, tmp_path: Path) -> None:
    """A record above `input.max_record` is `too large`, one below `input.min_tokens` is `short`; the rest is read."""
    rows = [
        *LINES,
        {"id": "long", "text": "x " * 2000},
        {"id": "short", "text": "two words"},
        {"id": "none", "text": ""},
    ]
    write_rows(tmp_path / "a.jsonl", rows)

    run_that_adds_up(spark, tmp_path, tmp_path / "a.jsonl", input={"max_record": "2KB", "min_tokens": 3})

    assert rejects(spark, tmp_path) == [
        ("a.jsonl", 4, "too large"),
        ("a.jsonl", 5, "short"),
        ("a.jsonl", 6, "short"),
    ]
    assert sorted(row["doc_id"] for row in table(spark, tmp_path, "documents").collect()) == ["a", "b", "c"]


@pytest.mark.usefixtures("spark")
def test_too_many_rejects_fail_the_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Past `input.max_rejects` the run ends with status 1, and what is there is no result."""
    write_rows(tmp_path / "a.jsonl", [*LINES, {"id": "d"}])
    output = tmp_path / "out"

    said = failure(capsys, 1, tmp_path / "a.jsonl", "--output", output, "--set", "input.max_rejects=0.2")

    assert said == "1 of 4 records are rejects, more than input.max_rejects 0.2: {'no content': 1}"
    assert not (output / "_COMPLETE").exists()
    assert not (output / "metrics.json").exists()


@pytest.mark.parametrize("kind", ["bz2", "gz"])
def test_of_a_damaged_file_all_that_decodes_is_kept(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """A file cut off: its records up to there, and one reject for the rest that names the last good one."""
    noise = [{"id": str(n), "text": os.urandom(20_000).hex()} for n in range(40)]
    whole = "".join(json.dumps(row) + "\n" for row in noise).encode()
    packed = bz2.compress(whole, 1) if kind == "bz2" else gzip.compress(whole)
    (tmp_path / f"cut.jsonl.{kind}").write_bytes(packed[: len(packed) // 2])
    write_rows(tmp_path / "good.jsonl", LINES)

    metrics = run_that_adds_up(spark, tmp_path, tmp_path)

    good = metrics["rows"]["documents"] - len(LINES)
    assert 10 < good <= 20
    assert rejects(spark, tmp_path) == [(f"cut.jsonl.{kind}", good + 1, "damaged")]
    detail = table(spark, tmp_path, "rejects").collect()[0]["detail"]
    assert detail.endswith(f"; the last good record is {good} ({good - 1})")


def test_a_file_damaged_from_its_start_is_one_reject(spark: SparkSession, tmp_path: Path, shared: Path) -> None:
    """A real collection file cut in its only block: no document, one reject, and the run is finished."""
    metrics = run_that_adds_up(spark, tmp_path, shared / "ruweb" / "fixtures" / "romip_truncated.xml.bz2")

    assert metrics["rows"]["documents"] == 0
    assert rejects(spark, tmp_path) == [("romip_truncated.xml.bz2", 1, "damaged")]


@pytest.mark.parametrize("form", ["xml", "jsonl"])
def test_a_record_too_long_for_spark_is_one_reject(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """Spark passes it over without a word; it is found by the bytes that are missing, in its place."""
    rows = [{"id": str(n), "text": f"page {n} " + ("x " * 60_000 if n == 5 else "of many")} for n in range(50)]
    if form == "jsonl":
        write_rows(tmp_path / "a.jsonl", rows)
    else:
        records = "".join(f"<doc><id>{row['id']}</id><text>{row['text']}</text></doc>" for row in rows)
        (tmp_path / "a.xml").write_text(f"<docs>{records}</docs>")
    write_rows(tmp_path / "b.jsonl", [{"id": f"b{n}", "text": "y"} for n in range(3)])

    metrics = run_that_adds_up(spark, tmp_path, tmp_path, input={"max_record": 50_000}, output={"kept": "parquet"})

    assert metrics["rows"]["documents"] == 52
    assert metrics["stages"]["sketch"]["files_read_again"] == 1
    assert table(spark, tmp_path, "kept").count() == metrics["stages"]["keep"]["kept"]
    assert rejects(spark, tmp_path) == [(f"a.{form}", 6, "too large")]
    places = table(spark, tmp_path, "documents").where("source != 'b.jsonl'").select("doc_id", "record").collect()
    assert {int(row["doc_id"]): row["record"] for row in places} == {n: n + 1 for n in range(50) if n != 5}


def test_many_files_cannot_hide_a_record_that_is_too_long(spark: SparkSession, tmp_path: Path) -> None:
    """Each file counts the separator after its root's end; together as many bytes as the record that is missing."""
    for number in range(120):
        text = "x " * 500 if number == 60 else "a b c"
        (tmp_path / f"{number:03}.xml").write_text(f"<docs><doc><id>{number}</id><text>{text}</text></doc></docs>")

    metrics = run_that_adds_up(spark, tmp_path, tmp_path, input={"max_record": 500})

    assert metrics["rows"]["documents"] == 119
    assert rejects(spark, tmp_path) == [("060.xml", 1, "too large")]


def test_bytes_that_are_no_text_are_counted_and_kept(spark: SparkSession, tmp_path: Path) -> None:
    """A line with a broken byte is a document, also among the kept ones, and the run says how many there are."""
    (tmp_path / "a.jsonl").write_bytes(b'{"id": "1", "text": "one \xff two"}\n{"id": "2", "text": "three"}\n')

    metrics = run_that_adds_up(spark, tmp_path, tmp_path / "a.jsonl", output={"kept": "jsonl"})

    assert metrics["stages"]["sketch"]["undecodable_records"] == 1
    assert metrics["stages"]["sketch"]["undecodable_places"] == 1
    written = [line for part in (tmp_path / "out" / "kept").glob("part-*") for line in part.read_text().splitlines()]
    assert sorted(written) == ['{"id": "1", "text": "one \ufffd two"}', '{"id": "2", "text": "three"}']


def test_a_bomb_stops_at_its_limit(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed file that expands too far: its records up to there, and one reject."""
    monkeypatch.setattr("nddup.scanning.found.LEAST_EXPANSION", 1 << 20)
    line = json.dumps({"text": "x " * 500}) + "\n"
    (tmp_path / "bomb.jsonl.gz").write_bytes(gzip.compress(line.encode() * 20_000))

    metrics = run_that_adds_up(spark, tmp_path, tmp_path / "bomb.jsonl.gz", input={"max_expansion": 2})

    assert 500 < metrics["rows"]["documents"] < 2_100
    found = rejects(spark, tmp_path)
    assert [reason for _, _, reason in found] == ["too large"]


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([LINES[0], LINES[2]], 2),
        ([LINES[0]], 1),
        ([{"id": "x", "text": ""}, {"id": "y", "text": " ... "}], 2),
        ([{"id": "x", "text": None}], 0),
    ],
    ids=["no duplicates", "one document", "only empty documents", "only rejects"],
)
def test_collections_with_nothing_to_find_give_empty_tables(
    spark: SparkSession, tmp_path: Path, rows: list[dict[str, Any]], kept: int
) -> None:
    """Without a pair everything is kept, and all tables can be read."""
    write_rows(tmp_path / "a.jsonl", rows)

    metrics = run_that_adds_up(spark, tmp_path, tmp_path / "a.jsonl")

    assert metrics["rows"]["pairs"] == metrics["rows"]["clusters"] == 0
    assert {name: n for name, n in metrics["rows"].items() if n} == {
        name: n for name, n in {"documents": kept, "rejects": len(rows) - kept, "keep": kept}.items() if n
    }
    assert table(spark, tmp_path, "keep").where("kept").count() == kept
    assert table(spark, tmp_path, "pairs").columns[:2] == ["doc_a", "doc_b"]
    assert (tmp_path / "out" / "duplicates.txt").read_text() == ""


@pytest.mark.parametrize(
    ("engine", "broken"),
    [("local", "nddup.local.engine.build_graph"), ("spark", "nddup.run.on_spark.clustering.graph.build_graph")],
)
def test_a_failed_run_leaves_nothing_that_looks_finished(  # noqa: PLR0913, PLR0917 - fixtures
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    engine: str,
    broken: str,
) -> None:
    """A stage that breaks while a finished run is replaced: neither the old run nor the new one is a result."""
    path = write_rows(tmp_path / "a.jsonl", LINES)
    run_that_adds_up(spark, tmp_path, path)

    def fail(*_: object, **__: object) -> DataFrame:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(broken, fail)
    said = failure(capsys, 1, path, "--output", tmp_path / "out", "--overwrite", "--engine", engine)

    assert said == "the disk is full (NDDUP_DEBUG=1 shows the trace)"
    assert not (tmp_path / "out" / "_COMPLETE").exists()
    assert not (tmp_path / "out" / "metrics.json").exists()
    assert not (tmp_path / "out" / "keep").exists()
    assert main(["show", str(tmp_path / "out")]) == 2
    assert "did not finish" in capsys.readouterr().err


def test_kept_documents_are_written_as_the_lines_they_came_in(spark: SparkSession, tmp_path: Path) -> None:
    """JSON lines stay as they were, all their fields with them; of other formats the fields are stated."""
    path = write_rows(tmp_path / "a.jsonl", LINES)
    (tmp_path / "b.xml").write_text("<docs><doc><id>7</id><text>one &amp; two</text></doc></docs>")

    run_that_adds_up(spark, tmp_path, path, tmp_path / "b.xml", pairs={"threshold": 0.7}, output={"kept": "jsonl"})

    written = [line for part in (tmp_path / "out" / "kept").glob("part-*") for line in part.read_text().splitlines()]
    originals = path.read_text(encoding="utf-8").splitlines()
    assert sorted(line for line in written if '"lang"' in line or '"tags"' in line) == sorted(originals[1:])
    assert [json.loads(line) for line in written if "doc_id" in line] == [
        {"doc_id": "7", "source": "b.xml", "record": 1, "content": "one & two"}
    ]
    assert len(written) == 3


def test_kept_documents_are_written_as_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """Exactly the kept documents, with their content."""
    path = write_rows(tmp_path / "a.jsonl", LINES)

    run_that_adds_up(spark, tmp_path, path, pairs={"threshold": 0.7}, output={"kept": "parquet"})

    written = {row["doc_id"]: row["content"] for row in table(spark, tmp_path, "kept").collect()}
    kept = {row["doc_id"] for row in table(spark, tmp_path, "keep").where("kept").collect()}
    assert written == {row["id"]: row["text"] for row in LINES if row["id"] in kept}
    assert kept == {"b", "c"}
