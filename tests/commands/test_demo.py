"""`nddup demo`: one command after the installation shows a result."""

import gzip
import json
from pathlib import Path

import pytest

import nddup
from nddup.cli import main


def test_the_demo_shows_a_result_and_what_to_type_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pages of the package are written and read; the summary and the next commands follow. Nothing is replaced."""
    folder = tmp_path / "demo"

    assert main(["demo", "--output", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"nddup show {folder}/run" in said
    lines = gzip.decompress((folder / "pages" / "boost.jsonl.gz").read_bytes()).splitlines()
    found = nddup.open(str(folder / "run"))
    assert len(found.documents) == len(lines) == len({json.loads(line)["id"] for line in lines})
    assert 20 < found.sql("SELECT count(*) AS n FROM keep WHERE NOT kept").to_pylist()[0]["n"] < 110

    (folder / "pages" / "note.txt").write_text("a page that somebody added by hand", encoding="utf-8")
    assert main(["demo", "--output", str(folder)]) == 0  # ours: made anew, and only our pages are read
    assert len(nddup.open(str(folder / "run")).documents) == len(lines)
    assert (folder / "pages" / "note.txt").exists()
    capsys.readouterr()

    foreign = tmp_path / "foreign"
    (foreign / "run").mkdir(parents=True)
    (foreign / "run" / "data.txt").write_text("not ours", encoding="utf-8")
    assert main(["demo", "--output", str(foreign)]) == 2
    assert "give another folder" in capsys.readouterr().err
    assert sorted(path.name for path in foreign.rglob("*")) == ["data.txt", "run"]


def test_a_default_folder_of_another_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --output, a folder of that name that is not ours is left alone: the next free name is taken."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nddup-demo").mkdir()
    (tmp_path / "nddup-demo" / "mine.txt").write_text("not ours", encoding="utf-8")

    assert main(["demo"]) == 0

    assert "nddup show nddup-demo-2/run" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "nddup-demo").iterdir()] == ["mine.txt"]
