"""The texts that a repository keeps: bounded, removed with their documents, and shown when the inputs are gone."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import nddup.repository
from nddup.embedded.run import run_locally
from nddup.repository import live_tables
from nddup.repository.identity import CHARACTERS
from nddup.repository.segment_files import read_all
from nddup.settings.load import build_config
from tests.counted_rows import once_each

WORDS = " ".join(f"w{number}" for number in range(300))


def texts_of(repo: Path) -> dict[int, str]:
    """Return the stored texts by document key."""
    opened = nddup.repository.open(str(repo)).snapshot
    rows = read_all(opened.repo, opened.commit.segments, "texts")
    return dict(zip(rows["doc_key"].to_pylist(), rows["text"].to_pylist(), strict=True))


def test_a_report_shows_texts_of_inputs_that_are_gone(tmp_path: Path) -> None:
    """A report shows the first thousand characters of texts whose inputs are gone, without markup, from two batches."""
    repo = nddup.repository.create(str(tmp_path / "repo"), pairs={"threshold": 0.5}, local={"processes": 1})
    for name, text in (("a", f"<html><body><p>{WORDS}</p></body></html>"), ("b", f"{WORDS} more"), ("c", "alone")):
        batch = tmp_path / f"{name}.jsonl"
        batch.write_text(json.dumps({"id": name, "text": text}) + "\n")
        repo.add([str(batch)])
        batch.unlink()

    repo.write_tables(str(tmp_path / "out"))

    shown = once_each((row["doc_id"], row["text"]) for row in pq.read_table(tmp_path / "out" / "texts").to_pylist())
    assert {name: text.strip() for name, text in shown.items()} == dict.fromkeys("ab", WORDS[:CHARACTERS].strip())
    report = b"".join(file.read_bytes() for file in (tmp_path / "out" / "report").rglob("*") if file.is_file())
    assert b"w10 w11 w12" in report


def test_a_replaced_document_takes_its_text_with_it(tmp_path: Path) -> None:
    """Merging the segments removes the text of a replaced document."""
    path = tmp_path / "repo"
    repo = nddup.repository.create(str(path), texts=6, local={"processes": 1})
    repo.add({"a": "first text", "b": "second text"})
    repo.add({"a": "third text"}, replace=True)
    repo.compact(days=0)

    assert texts_of(path) == {1: "second", 2: "third "}


def test_a_batch_stores_no_more_than_so_many_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch stores a bounded number of characters, split over its documents; with `texts=0` it stores none."""
    monkeypatch.setattr(live_tables, "MOST_CHARACTERS", 30)
    for characters, due in ((None, 10), (0, 0)):
        path = tmp_path / str(characters)
        repo = nddup.repository.create(str(path), texts=characters, local={"processes": 1})
        repo.add({name: f"{name} {WORDS}" for name in "abc"})
        assert [len(text) for text in texts_of(path).values()] == ([due] * 3 if due else [])


def test_the_numbers_of_the_tables_are_those_of_a_run(tmp_path: Path) -> None:
    """Files, components and the largest of them are counted as a run counts them; bytes are not known."""
    texts = {name: f"{name} {WORDS} {name}" for name in "abc"} | {"copy": f"a {WORDS} a", "alone": "quite alone"}
    batch = tmp_path / "batch.jsonl"
    batch.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()))
    due = run_locally([str(batch)], str(tmp_path / "run"), build_config({}, origin="test"))
    repo = nddup.repository.create(str(tmp_path / "repo"), local={"processes": 1})
    repo.add([str(batch)])

    made = repo.write_tables(str(tmp_path / "out"))

    for stage, names in {"clusters": ("components", "largest_component"), "sketch": ("files",)}.items():
        assert [made["stages"][stage][name] for name in names] == [due["stages"][stage][name] for name in names]
    assert made["stages"]["clusters"]["largest_component"] == 3
