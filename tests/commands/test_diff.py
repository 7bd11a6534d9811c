"""`nddup diff` as a command: what is printed first, exit statuses, versions of a repository, and what is refused."""

import contextlib
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import nddup.repository
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from nddup.storage.run_folder import versions
from nddup.tables.features import DIFF_TABLES
from tests.finished_runs import write_rows, write_texts

WORDS = " ".join(f"w{number}" for number in range(40))
EARLIER = {"a": WORDS, "b": f"{WORDS} more", "c": "quite another text of a few words"}
LATER = {"a": WORDS, "b": "a text of its own, with nothing of before", "c": EARLIER["c"], "d": f"{WORDS} than that"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with two runs and their inputs."""
    folder = tmp_path_factory.mktemp("made")
    config = build_config({"output": {"report": False}}, origin="test")
    with contextlib.chdir(folder):
        for name, texts in (("before", EARLIER), ("after", LATER)):
            run_locally([str(write_texts(Path(f"{name}.jsonl"), texts))], name, config)
    return folder


@pytest.fixture(autouse=True)
def _runs(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the two runs into the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def test_counts_and_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    """Counts, then the largest; 3 with --exit-code if anything differs; the tables are those of Python."""
    assert main(["diff", "before", "after", "--exit-code", "--output", "diff"]) == 3
    said = capsys.readouterr().out.splitlines()
    assert said[:4] == [
        "documents: 1 added, 0 gone, 1 with another text",
        "verdicts: 1 changed: 0 now kept, 0 now removed, 1 for another document",
        "  1: a near-duplicate came, went or changed",
        "pairs: 1 won, 1 lost",
    ]
    assert said[-1] == "tables and index.html in diff"

    found = nddup.open("before").diff(nddup.open("after"))
    assert found
    assert "pairs: 1 won, 1 lost" in repr(found)
    for name in DIFF_TABLES:
        assert getattr(found, name).to_table().to_pylist() == pq.read_table(f"diff/{name}").to_pylist()
    assert {row["doc_id"] for row in pq.read_table("diff/documents").to_pylist()} >= {"b", "d"}

    assert main(["diff", "before", "before", "--exit-code"]) == 0
    assert capsys.readouterr().out == "no difference\n"
    assert main(["diff", "before", "after", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["differs"], told["causes"]) == (True, {"neighbours": 1})


@pytest.mark.parametrize(("name", "status", "last"), [("numpy", 3, "no table differs"), ("spark", 0, "no difference")])
def test_versions_alone(
    name: str, status: int, last: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another version of what may decide results is a difference; another Spark is none."""
    monkeypatch.setattr("nddup.stages.stage.versions", lambda: {**versions(), name: "0.0"})
    run_locally(["after.jsonl"], "other", build_config({"output": {"report": False}}, origin="test"))

    assert main(["diff", "after", "other", "--exit-code"]) == status

    assert capsys.readouterr().out.splitlines() == [f"versions: {name} {versions()[name]} -> 0.0", last]


def test_a_column_of_the_ledger_decides_nothing() -> None:
    """Another value of a column that is only counted is no cause: b stands for d, which came, not for its value."""
    keep = {"policy": ["-score:number"], "ledger": ["label"]}
    config = build_config({"output": {"report": False}, "keep": keep}, origin="test")
    rows = [{"id": "a", "text": WORDS, "score": 3, "label": "x"}, {"id": "b", "text": f"{WORDS} more", "score": 2}]
    later = [rows[0], {**rows[1], "label": "y"}, {"id": "d", "text": f"{WORDS} more", "score": 9, "label": "x"}]
    for name, some in (("one", rows), ("two", later)):
        run_locally([str(write_rows(Path(f"{name}.jsonl"), some))], name, config)

    changes = nddup.open("one").diff(nddup.open("two")).changes.to_table().to_pylist()

    assert {row["doc_id"]: row["cause"] for row in changes} == {"a": "neighbours", "b": "neighbours", "d": None}


def test_two_versions_of_a_repository(capsys: pytest.CaptureFixture[str]) -> None:
    """The versions are compared as runs over their live documents."""
    repo = nddup.repository.create("repo")
    repo.add(EARLIER)
    repo.add(LATER, replace=True)

    assert main(["diff", "repo", "--versions", "2..3", "--exit-code", "--output", "diff"]) == 3

    assert "pairs: 1 won, 1 lost" in capsys.readouterr().out
    changes = {row["doc_id"]: row["change"] for row in pq.read_table("diff/changes").to_pylist()}
    assert (changes["b"], changes["d"]) == ("text", "added")
    assert main(["diff", "repo", "--versions", "2..3", "--output", "repo/diff"]) == 2
    assert sorted(path.name for path in Path("repo").iterdir()) == ["commits", "segments"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["before"], "expected two runs"),
        (["before", "after", "--versions", "1..2"], "expected two runs"),
        (["repo", "--versions", "2..1"], "the lower one comes first"),
        (["before", "before.jsonl"], "before.jsonl"),
        (["before", "after", "--output", "after"], "exists already"),
        (["before", "after", "--output", "after/diff"], "after/diff"),
    ],
)
def test_what_is_refused(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line and exit status 2; nothing is written."""
    assert main(["diff", *arguments]) == 2

    assert told in capsys.readouterr().err
    assert not Path("after/diff").exists()
