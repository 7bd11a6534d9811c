"""Runs with `--names-from`: names that last over nights, the same on Spark, a resumed run, and the report."""

import contextlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import nddup.repository
from nddup.checking.check_run import check_run
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.settings.load import build_config
from tests.finished_runs import run_over, write_texts
from tests.results.damages import change, drop, rewrite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORDS = " ".join(f"w{number}" for number in range(40))
OTHERS = " ".join(f"v{number}" for number in range(40))
NIGHTS: list[dict[str, str]] = [
    {"b": WORDS, "c": f"{WORDS} x", "k": OTHERS, "z": "something else, of a few words"},
    {"a": f"{WORDS} x y", "b": WORDS, "c": f"{WORDS} x", "k": OTHERS, "l": f"{OTHERS} and more"},
    {"a": f"{WORDS} x y", "c": f"{WORDS} x", "l": f"{OTHERS} and more", "z": "something else, of a few words"},
]


def settings(night: int) -> dict[str, Any]:
    """Return the settings of the run of a night."""
    names = {"names_from": f"run{night - 1}"} if night else {}
    return {"output": {"report": night == 2, **names}, "local": {"processes": 1}}


def names_of(run: str) -> set[tuple[Any, ...]]:
    """Return the rows of the table `names`."""
    return {tuple(row.values()) for row in pq.read_table(f"{run}/names").to_pylist()}


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of three nights, each run with the names of the night before."""
    folder = tmp_path_factory.mktemp("nights")
    with contextlib.chdir(folder):
        for night, texts in enumerate(NIGHTS):
            write_texts(Path(f"night{night}.jsonl"), texts)
            run_locally([f"night{night}.jsonl"], f"run{night}", build_config(settings(night), origin="test"))
    return folder


@pytest.fixture(autouse=True)
def _nights(nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the nights into the current folder."""
    shutil.copytree(nights, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def test_names_stay_and_are_not_given_again() -> None:
    """A family keeps its name though its oldest document is gone; one that comes back has a new name."""
    assert not Path("run0/names").exists()
    assert names_of("run1") == {("b", "a", 3, 2), ("k", "l", 2, 1), ("z", None, 0, 1)}
    assert names_of("run2") == {("b", "a", 2, 3), ("k", "l", 1, 2), ("z~2", "z", 1, 0), ("z", None, 0, 0)}
    summary = Path("run2/report/data/summary.js").read_text(encoding="utf-8")
    told = json.loads(summary[summary.index('"news":') + 7 :].partition(',"components"')[0])
    assert told == {"since": "run1", "documents": 4, "before": 5, "born": 0, "alone": 1, "grown": 0, "shrunk": 2,
                    "gone": 0, "largest": []}  # fmt: skip


DAMAGES = {
    "b: a family of 3 documents, counted 2": change("documents", 3, name="b"),
    "z: a family of 1 documents, counted 0": change("documents", 1, name="z"),
    "l: kept, and its family has no name": drop(name="k"),
    "b: the name of two families": change("name", "b", name="k"),
    "z: its family has two names": change("doc_id", "z", name="z"),
    "k: the name of a document that is not kept": change("doc_id", "c", name="k"),
}


def test_check_proves_that_each_family_has_one_name() -> None:
    """Names that are lost, given twice, or of no family are found, with wrong numbers of documents."""
    assert check_run(DuckRun("run2"), steps=["names"]).is_sound
    for message, damage in DAMAGES.items():
        shutil.copytree("run2", "damaged")
        rewrite(Path("damaged"), "names", damage)

        (finding,) = check_run(DuckRun("damaged"), steps=["names"]).findings

        assert finding.broken, message
        assert message in finding.examples
        shutil.rmtree("damaged")


def test_diff_calls_families_by_these_names(capsys: pytest.CaptureFixture[str]) -> None:
    """Stored names are those of the diff, from any night to any other."""
    assert main(["diff", "run0", "run2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told["largest"]["families"]] == ["b"]
    assert not any(row["name"].startswith("output.") for row in told["settings"])


def test_another_earlier_run_is_taken_on_resume(capsys: pytest.CaptureFixture[str]) -> None:
    """A finished run that is resumed with another earlier run is named anew, and nothing else is made again."""
    assert main(["run", "night2.jsonl", "--output", "run2", "--names-from", "run0", "--resume"]) == 0
    assert names_of("run2") == {("b", "a", 2, 2), ("k", None, 0, 1), ("l", "l", 1, 0), ("z", "z", 1, 1)}
    assert main(["run", "night2.jsonl", "--output", "run2", "--names-from", "run2", "--resume"]) == 2
    assert "is the run that is to be made" in capsys.readouterr().err
    assert main(["run", "night2.jsonl", "--output", "new", "--names-from", "night2.jsonl"]) == 2
    assert not Path("new").exists()


def test_names_of_a_version_of_a_repository(spark: "SparkSession", capsys: pytest.CaptureFixture[str]) -> None:
    """REPO@N is a version of a repository, on either engine; one that is not there is refused before anything is."""
    from nddup.spark.run import run_job  # noqa: PLC0415 - for Spark alone

    repo = nddup.repository.create("repo")
    repo.add(NIGHTS[0])
    repo.add({"more": "another text, of a few words"})
    here = Path.cwd()

    assert main(["run", "night1.jsonl", "--output", "here", "--names-from", "repo@2", "--set", "engine=local"]) == 0
    config = build_config({"output": {"report": False, "names_from": str(here / "repo@2")}}, origin="test")
    run_job(
        spark,
        [str(here / "night1.jsonl")],
        str(here / "there"),
        config,
        earlier=nddup.repository.open("repo", 2).open_run(),
    )

    assert names_of("here") == names_of("run1") == names_of("there")
    assert main(["run", "night1.jsonl", "--output", "new", "--names-from", "repo@9"]) == 2
    assert "9" in capsys.readouterr().err
    assert not Path("new").exists()


@pytest.mark.nightly  # by day Spark takes the names of a version of a repository
def test_spark_gives_the_same_names(spark: "SparkSession") -> None:
    """A run on Spark, with the names of one of this machine."""
    here = Path.cwd()
    names = {"output": {"report": False, "names_from": str(here / "run0")}}
    run_over(spark, [here / "night1.jsonl"], here / "spark", names)

    assert names_of("spark") == names_of("run1")
