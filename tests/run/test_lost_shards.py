"""Runs that lose much of a collection fail and say what was lost, on both engines; foreign files are no loss."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.cli import main
from nddup.errors import NddupError
from tests.finished_runs import write_texts
from tests.run.accounts import run_that_adds_up, table

TEXTS = {f"p{n}": " ".join(f"w{n}x{k}" for k in range(30)) for n in range(20)}


def fill(folder: Path) -> Path:
    """Write a shard of 20 documents."""
    folder.mkdir()
    write_texts(folder / "a.jsonl", TEXTS)
    return folder


def test_most_records_rejected_is_a_failure_that_deletes_nothing(tmp_path: Path) -> None:
    """By default a run fails if more than half of the records are rejects, and goes on with another limit."""
    rows = ['{"id": "1", "text": "one two"}', "{bad", '{"id": "2"}', '{"id": "3", "text": null}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows))

    with pytest.raises(NddupError) as refused:
        run_that_adds_up(tmp_path, tmp_path / "a.jsonl")

    told = "3 of 4 records are rejects (1 malformed, 2 no content); input.max_rejects=0.5 allows 2"
    assert str(refused.value) == told
    assert {len(table(tmp_path, name)) for name in ("documents", "rejects")} == {1, 3}
    assert not (tmp_path / "out" / "_COMPLETE").exists()


def test_a_limit_that_was_raised_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--resume` with a larger limit finishes the run; with the same limit it fails again."""
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "one two"}\n{bad\n{bad\n')
    run = ["run", str(tmp_path / "a.jsonl"), "--output", str(tmp_path / "out"), "--set", "output.report=false"]

    assert main(run) == 1
    assert main([*run, "--resume"]) == 1
    assert main([*run, "--resume", "--set", "input.max_rejects=0.9"]) == 0
    assert "rejected                         2" in capsys.readouterr().out


def test_a_shard_without_a_document_counts_by_its_bytes(tmp_path: Path, session_or_none: SparkSession | None) -> None:
    """One reject may stand for most of the text: the message names the files that gave no document."""
    shard = fill(tmp_path / "in") / "b.jsonl.gz"
    shard.write_bytes(gzip.compress(b"x")[:10] + b"\xff" * 20_000)

    with pytest.raises(NddupError) as refused:
        run_that_adds_up(tmp_path, tmp_path / "in", spark=session_or_none)

    told = "20 kB of 24 kB gave no document, more than input.max_rejects=0.5 allows; no document came from 1 file:"
    assert str(refused.value) == f"{told} b.jsonl.gz (damaged)"


def test_texts_that_no_format_fits_count_by_their_bytes(tmp_path: Path, session_or_none: SparkSession | None) -> None:
    """Whatever their names, they could have been read: their records do not count, as they are of one kind."""
    folder = fill(tmp_path / "in")
    (folder / "notes.dat").write_text("a b c\n" * 10_000)
    (folder / "image.dat").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(90_000))

    with pytest.raises(NddupError, match=r"^60 kB of 64 kB gave no document, .* 1 file: notes\.dat \(no records\)$"):
        run_that_adds_up(tmp_path, folder, spark=session_or_none)


def test_a_small_shard_is_named_and_foreign_files_do_not_count(
    tmp_path: Path, session_or_none: SparkSession | None
) -> None:
    """Images beside documents are skipped, empty parts are rejects, no loss; a lost shard is named in the metrics."""
    folder = fill(tmp_path / "in")
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b"x")[:10] + b"\xff" * 100)
    for n in range(40):
        (folder / f"{n}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(9_000))
        (folder / f"part-{n}.jsonl").touch()

    metrics = run_that_adds_up(tmp_path, folder, spark=session_or_none)

    assert (metrics["rows"]["documents"], metrics["rows"]["rejects"]) == (20, 41)
    unread = {file["path"]: file["why"] for file in metrics["stages"]["sketch"]["unread_files"]}
    assert len(unread) == 41
    assert unread["b.jsonl.gz"].startswith("none of it can be decompressed")


def test_copies_and_short_documents_are_no_loss(tmp_path: Path) -> None:
    """Records of the same id and content, however many, do not fail a run: their text is in it."""
    folder = fill(tmp_path / "in")
    for name in "bcd":
        (folder / f"{name}.jsonl").write_bytes((folder / "a.jsonl").read_bytes())

    metrics = run_that_adds_up(tmp_path, folder)

    assert (metrics["rows"]["documents"], metrics["rows"]["rejects"]) == (20, 60)
    assert metrics["stages"]["sketch"]["unread_files"] == []


def test_what_was_not_read_of_a_is_not_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`against` calls no item clean if a file or record of A could not be read, and --exit-code tells it."""
    folder = fill(tmp_path / "in")
    other = {"i": " ".join(f"other{k}" for k in range(30))}
    items = write_texts(tmp_path / "items.jsonl", other)
    against = ["against", str(folder), str(items), "--exit-code"]
    for name in ("empty.jsonl", "null.jsonl"):
        (folder / name).write_text('{"id": "null", "text": null}\n{"id": "x", "text": "x"}\n' if name[0] == "n" else "")
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(90))

    assert main(against) == 0
    assert "items.jsonl: 1 item, 0 found, 1 clean\n" in capsys.readouterr().out
    (folder / "b.jsonl").write_text(json.dumps({"id": "b", "text": "b"}) + "\n{damaged\n")
    assert main(against) == 1
    said = capsys.readouterr().out
    assert "items.jsonl: 1 item, 0 found, 0 clean; not testable: 1 unread\n" in said
    assert "not all of it was read, so no item is clean" in said


def test_what_holds_no_document_is_no_loss(tmp_path: Path) -> None:
    """Parts of a Parquet table without rows, a table of a header alone, and revisits are told, and do not count."""
    folder = tmp_path / "in"
    folder.mkdir()
    rows = pa.table({"id": ["a"], "text": ["one two three"]})
    pq.write_table(rows, folder / "part-0.parquet")
    for part in (1, 2, 3):
        pq.write_table(rows.slice(0, 0), folder / f"part-{part}.parquet")
    (folder / "empty.csv").write_text("id,text\n")
    head = "WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Record-ID: <urn:{}>\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    (folder / "again.warc").write_bytes("".join(map(head.format, range(9))).encode())

    metrics = run_that_adds_up(tmp_path, folder, spark=None)

    assert metrics["stages"]["sketch"]["rejected"] == {"no records": 4, "revisit": 9}


def test_an_encoding_that_is_a_guess_is_counted_by_file(tmp_path: Path, session_or_none: SparkSession | None) -> None:
    """Texts of a few undeclared letters, texts that hold markup, and pages after other text are counted by file."""
    folder = fill(tmp_path / "in")
    for name in ("one.txt", "two.txt"):
        (folder / name).write_bytes(f"see {name} ".encode() + "Вход".encode("koi8-r"))
    pages = {"x": "<html><body><p>one two</p></body></html>", "y": "plain", "z": "<p>three <b>four</b></p>"}
    pages["late"] = f"see {pages['x'].replace('<body>', '<head></head><body>')}"
    write_texts(folder / "pages.jsonl", pages)

    sketch = run_that_adds_up(tmp_path, folder, spark=session_or_none)["stages"]["sketch"]

    assert sketch["guessed_records"] == 2
    assert sketch["guessed_files"] == [{"path": "one.txt", "records": 1}, {"path": "two.txt", "records": 1}]
    assert sketch["stripped_records"] == 3
    assert sketch["stripped_files"] == [{"path": "pages.jsonl", "records": 3}]
    assert sketch["inside_files"] == [{"path": "pages.jsonl", "records": 1}]
