"""A name with a colon, such as one with a time of day, is a file's name and no address."""

from pathlib import Path

import pytest

from nddup.cli import main
from nddup.storage.local_storage import is_local
from tests.finished_runs import write_texts


def test_an_output_may_be_named_by_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run reads `in-10:00.jsonl` and writes `run-10:30`, on this machine and without Spark; `show` opens it."""
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "in-10:00.jsonl", dict.fromkeys("ab", "one two three four five six"))

    assert main(["run", "in-10:00.jsonl", "--output", "run-10:30"]) == 0
    assert main(["show", "run-10:30"]) == 0

    assert "engine: local" in capsys.readouterr().err
    assert (tmp_path / "run-10:30" / "_COMPLETE").is_file()
    assert is_local("a:b/c")
    assert not is_local("hdfs:/a")
