"""How a run ends: with counts that add up, or with one line and nothing that looks finished."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.cli import main
from tests.counted_rows import once, once_each
from tests.finished_runs import write_rows
from tests.run.accounts import LINES, run_that_adds_up, table


def failure(capsys: pytest.CaptureFixture[str], status: int, *arguments: object) -> str:
    """Run a command that fails and return its last line, after checking that it prints no result and no trace."""
    assert main(["run", *(str(argument) for argument in arguments)]) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert "\tat " not in printed.err
    return printed.err.splitlines()[-1].removeprefix("nddup: ")


def test_garbage_alone_is_refused_with_what_would_help(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """If no input file can be understood, the error names the settings that say how to read it."""
    (tmp_path / "garbage.bin").write_bytes(bytes(range(1, 256)) * 100)

    said = failure(capsys, 2, tmp_path / "garbage.bin", "--output", tmp_path / "out")

    assert "garbage.bin: " in said
    assert "set input.record, input.id and input.content" in said
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_file_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An empty input folder is refused."""
    (tmp_path / "in").mkdir()

    said = failure(capsys, 2, tmp_path / "in", "--output", tmp_path / "out")

    assert said == f"INPUT {tmp_path}/in: no files to read (0 skipped)"


def test_too_many_rejects_fail_the_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Past `input.max_rejects` the run ends with status 1, and its folder is not a result."""
    write_rows(tmp_path / "a.jsonl", [*LINES, {"id": "d"}])
    output = tmp_path / "out"

    said = failure(capsys, 1, tmp_path / "a.jsonl", "--output", output, "--set", "input.max_rejects=0.2")

    assert said == "1 of 4 records are rejects (1 no content); input.max_rejects=0.2 allows 0"
    assert not (output / "_COMPLETE").exists()
    assert not (output / "metrics.json").exists()


@pytest.mark.parametrize(
    ("session_or_none", "rows", "kept"),
    [
        ("local", [LINES[0], LINES[2]], 2),
        ("local", [LINES[0]], 1),
        ("local", [{"id": "x", "text": ""}, {"id": "y", "text": " ... "}], 2),
        ("local", [{"id": "x", "text": None}], 0),
        pytest.param("spark", [{"id": "x", "text": ""}, LINES[0], LINES[2]], 3, marks=pytest.mark.spark),
        pytest.param("spark", [{"id": "x", "text": None}], 0, marks=pytest.mark.spark),
    ],
    indirect=["session_or_none"],
)
def test_collections_with_nothing_to_find_give_empty_tables(
    session_or_none: SparkSession | None, tmp_path: Path, rows: list[dict[str, Any]], kept: int
) -> None:
    """Without near-duplicates every document is kept, and the empty tables can be read."""
    write_rows(tmp_path / "a.jsonl", rows)

    metrics = run_that_adds_up(tmp_path, tmp_path / "a.jsonl", spark=session_or_none, input={"max_rejects": 1})

    assert metrics["rows"]["pairs"] == metrics["rows"]["clusters"] == 0
    assert {name: n for name, n in metrics["rows"].items() if n} == {
        name: n for name, n in {"documents": kept, "rejects": len(rows) - kept, "keep": kept}.items() if n
    }
    assert sum(row["kept"] for row in table(tmp_path, "keep")) == kept
    assert pq.read_schema(next((tmp_path / "out" / "pairs").glob("*.parquet"))).names[:2] == ["doc_a", "doc_b"]
    assert (tmp_path / "out" / "duplicates.txt").read_text() == ""


@pytest.mark.parametrize(
    ("engine", "broken"),
    [("local", "nddup.embedded.steps.build_graph"), ("spark", "nddup.spark.run.decide_here")],
)
@pytest.mark.usefixtures("spark")
def test_a_failed_run_leaves_nothing_that_looks_finished(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    engine: str,
    broken: str,
) -> None:
    """If a stage fails while a finished run is being replaced, neither the old run nor the new one is a result."""
    path = write_rows(tmp_path / "a.jsonl", LINES)
    run_that_adds_up(tmp_path, path)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(broken, fail)
    said = failure(capsys, 1, path, "--output", tmp_path / "out", "--overwrite", "--engine", engine)

    assert said == "the disk is full (NDDUP_DEBUG=1 shows the trace)"
    assert not (tmp_path / "out" / "_COMPLETE").exists()
    assert not (tmp_path / "out" / "metrics.json").exists()
    assert not (tmp_path / "out" / "keep").exists()
    assert main(["show", str(tmp_path / "out")]) == 2
    assert "did not finish" in capsys.readouterr().err


def test_kept_documents_are_written_as_the_lines_they_came_in(tmp_path: Path) -> None:
    """Kept documents read from JSON lines are written unchanged, and those of other formats with fixed fields."""
    path = write_rows(tmp_path / "a.jsonl", LINES)
    (tmp_path / "b.xml").write_text("<docs><doc><id>7</id><text>one &amp; two</text></doc></docs>")

    run_that_adds_up(tmp_path, path, tmp_path / "b.xml", pairs={"threshold": 0.7}, output={"kept": "jsonl"})

    written = [line for part in (tmp_path / "out" / "kept").glob("part-*") for line in part.read_text().splitlines()]
    originals = path.read_text(encoding="utf-8").splitlines()
    assert sorted(line for line in written if '"lang"' in line or '"tags"' in line) == sorted(originals[1:])
    assert [json.loads(line) for line in written if "doc_id" in line] == [
        {"doc_id": "7", "source": "b.xml", "record": 1, "content": "one & two"}
    ]
    assert len(written) == 3


def test_kept_documents_are_written_as_parquet(tmp_path: Path) -> None:
    """The Parquet output holds exactly the kept documents, with their content."""
    path = write_rows(tmp_path / "a.jsonl", LINES)

    run_that_adds_up(tmp_path, path, pairs={"threshold": 0.7}, output={"kept": "parquet"})

    written = once_each((row["doc_id"], row["content"]) for row in table(tmp_path, "kept"))
    kept = once(row["doc_id"] for row in table(tmp_path, "keep") if row["kept"])
    assert written == {row["id"]: row["text"] for row in LINES if row["id"] in kept}
    assert kept == {"b", "c"}
