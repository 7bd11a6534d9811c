"""`nddup run --onto`: what is refused, what is said, and what happens to the files of both runs."""

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from tests.finished_runs import sorted_tables, stopped_before, write_texts
from tests.samples_by_night import first

INTERRUPTED = 130

QUIET = ["--set", "output.report=false", "--engine", "local"]


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """Two batches, and a run over the first."""
    for name, ids in (("b1", "ab"), ("b2", "cd")):
        (tmp_path / name).mkdir()
        write_texts(tmp_path / name / "a.jsonl", {one: f"{'some words of one text ' * 3}{one}" for one in ids})
    asked = [str(tmp_path / "b1"), "--as", "b1", "-o", str(tmp_path / "one"), "--set", "output.onto=true", *QUIET]
    assert main(["run", *asked]) == 0
    return tmp_path


def onto(folder: Path, *more: str, output: str = "two") -> int:
    asked = ["--onto", str(folder / "one"), "-o", str(folder / output), *QUIET]
    return main(["run", str(folder / "b2"), "--as", "b2", *asked, *more])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "pairs.threshold=0.9"], "pairs.threshold is 0.7 there"),
        (["--set", "keep.same=[lang]", "--set", "sketch.size=7"], "sketch.size is 200 there"),
        (["--set", "output.onto=false"], "output.onto is true there"),
        (["--set", "tokens.ignore=[numbers]"], "tokens.ignore is [] there"),
        (["--without", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_settings_of_the_first_run_hold(
    night: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    assert onto(night, *more) == 2
    assert message in capsys.readouterr().err
    assert not (night / "two").exists()


def test_a_run_that_kept_nothing_is_refused(night: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(night / "b1"), "-o", str(night / "one"), "--overwrite", *QUIET]) == 0
    assert onto(night) == 2
    assert "needs output.onto=true" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("output", ["one", "link", "link/inside"])
def test_a_run_does_not_replace_the_one_it_goes_on_from(
    night: Path, capsys: pytest.CaptureFixture[str], engine: str, output: str
) -> None:
    """The run before was lost, and the later one not made."""
    (night / "link").symlink_to("one")
    given = str(night / ("one" if output != "link/inside" else "one/inside"))
    if output == "link/inside":
        shutil.copytree(night / "one", night / "apart")
        shutil.move(night / "apart", night / "one" / "inside")
    before = sorted_tables(night / "one")
    asked = ["--onto", given, "-o", str(night / output.partition("/")[0]), "--overwrite", *QUIET, "--engine", engine]
    assert main(["run", str(night / "b2"), "--as", "b2", *asked]) == 2
    assert "is the run that is to be made; give another --output" in capsys.readouterr().err
    assert sorted_tables(night / "one") == before


def test_nothing_is_taken_out_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--without", "gone.txt", "-o", str(tmp_path / "out")]) == 2
    assert "--onto" in capsys.readouterr().err
    assert main(["run", "-o", str(tmp_path / "out")]) == 2
    assert "INPUT" in capsys.readouterr().err


def test_documents_leave_without_new_ones(night: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (night / "gone.txt").write_text("a\nz\n", encoding="utf-8")
    asked = ["--onto", str(night / "one"), "--without", str(night / "gone.txt"), "-o", str(night / "two"), *QUIET]
    assert main(["run", *asked]) == 0
    assert pq.read_table(night / "two" / "documents")["doc_id"].to_pylist() == ["b"]
    assert [row["reason"] for row in pq.read_table(night / "two" / "rejects").to_pylist()] == ["taken out"]
    told = capsys.readouterr()
    assert "unknown in --without: z" in told.err
    assert re.search(r"^  records read +2   by the run before, no new ones$", told.out, re.MULTILINE)
    assert re.search(r"^  note: first taken out: b1/a.jsonl#1$", told.out, re.MULTILINE)
    assert main(["check", str(night / "two")]) == 0
    assert main(["run", *asked, "--overwrite", "--all-known"]) == 2


def test_what_was_read_is_told_of_one_base(night: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The records are those of all batches, the files those of the last: it is said how many of the records are new."""
    assert onto(night) == 0
    told = capsys.readouterr().out
    assert re.search(r"^  records read +4   2 of them new: 1 file, \d+ bytes$", told, re.MULTILINE), told


def test_the_run_before_may_go(night: Path) -> None:
    first = next((night / "one" / "documents").iterdir())
    assert onto(night) == 0
    assert first.stat().st_ino in {file.stat().st_ino for file in (night / "two" / "documents").iterdir()}
    shutil.rmtree(night / "one")
    assert main(["check", str(night / "two")]) == 0
    (night / "in").mkdir()
    for name in ("b1", "b2"):
        (night / name).rename(night / "in" / name)
    assert main(["run", str(night / "in"), "-o", str(night / "fresh"), *QUIET]) == 0
    assert sorted_tables(night / "two") == sorted_tables(night / "fresh")


def test_each_night_says_whose_names_it_keeps(night: Path) -> None:
    assert onto(night, "--names-from", str(night / "one")) == 0
    shutil.rmtree(night / "one")
    (night / "gone.txt").write_text("a\n", encoding="utf-8")
    asked = ["--onto", str(night / "two"), "--without", str(night / "gone.txt"), "-o", str(night / "three"), *QUIET]
    assert main(["run", *asked]) == 0


@pytest.mark.parametrize("stage", first(1, ["clusters", "pairs", "keep"]))
def test_a_killed_night_goes_on(night: Path, stage: str) -> None:
    before = {file: file.read_bytes() for file in (night / "one").rglob("*") if file.is_file()}
    with stopped_before(stage):
        assert onto(night) == INTERRUPTED
    assert {file: file.read_bytes() for file in (night / "one").rglob("*") if file.is_file()} == before
    assert onto(night, "--resume") == 0
    assert onto(night, output="whole") == 0
    assert sorted_tables(night / "two") == sorted_tables(night / "whole")
