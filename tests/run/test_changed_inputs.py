"""Inputs that change while a run reads them: the run says so, since its tables may mix two states."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.ground.metrics import RunMetrics
from nddup.report import summary
from nddup.settings.load import build_config
from nddup.stages import inputs_found, run
from tests.finished_runs import run_over, write_texts


def change(folder: Path) -> None:
    """Make one file longer, give one another time, and remove one."""
    write_texts(folder / "a.jsonl", {"a": "one two three four five six", "more": "seven"})
    os.utime(folder / "b.jsonl", (1, 1))
    (folder / "c.jsonl").unlink()


def test_files_that_change_during_a_run_are_counted_and_named(
    session_or_none: SparkSession | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with another size or time at the end, or none, is in the metrics and in a note; others are not."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abcd":
        write_texts(folder / f"{name}.jsonl", {name: "one two three four five six"})
    noted = inputs_found.note_changes

    def note_later(*given: Any) -> Any:  # noqa: ANN401 - as the function it calls
        change(folder)
        return noted(*given)

    monkeypatch.setattr(run, "note_changes", note_later)
    settings = {"output": {"texts": 0, "report": False}}
    if session_or_none is None:
        metrics = run_locally([str(folder)], str(tmp_path / "run"), build_config(settings, origin="test"))
    else:
        metrics = run_over(session_or_none, [folder], tmp_path / "run", settings)

    sketch = metrics["stages"]["sketch"]
    assert (sketch["changed_files"], sketch["changed_names"]) == (3, ["a.jsonl", "b.jsonl", "c.jsonl"])
    said = summary.notes(RunMetrics.read(metrics))
    assert any(note.startswith("3 files changed while the run read them (a.jsonl, b.jsonl, c.jsonl)") for note in said)


def test_unchanged_files_are_not_mentioned(tmp_path: Path) -> None:
    """Where nothing changed, the count is 0 and no note says anything of it."""
    file = write_texts(tmp_path / "a.jsonl", {"a": "one two three four five six"})

    metrics = run_locally([str(file)], str(tmp_path / "run"), build_config({}, origin="test"))

    assert metrics["stages"]["sketch"]["changed_files"] == 0
    assert not any("changed while" in note for note in summary.notes(RunMetrics.read(metrics)))
