"""Contents without a token: equal ones are exact duplicates, on both engines and in a repository; others are kept."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nddup.repository
from nddup.checking.check_run import check_run
from nddup.engines.duck import DuckRun
from tests.counted_rows import once_each
from tests.results.damages import of, rewrite
from tests.run.accounts import run_that_adds_up, table

SETTINGS: dict[str, Any] = {"local.processes": 1}
TEXTS = {"d1": "👍", "d2": "👍", "d3": "*** !!!", "d4": "👍 👍", "d5": "", "d6": "", "d7": "one two three", "d8": "👍"}
DUE = {"d1": None, "d2": "d1", "d3": None, "d4": None, "d5": None, "d6": "d5", "d7": None, "d8": "d1"}


@pytest.mark.parametrize(
    ("session_or_none", "mode"),
    [
        ("local", "all"),
        pytest.param("local", "partition", marks=pytest.mark.nightly),
        pytest.param("spark", "partition", marks=pytest.mark.spark),
    ],
    indirect=["session_or_none"],
)
def test_equal_contents_without_a_token_are_exact(
    tmp_path: Path, session_or_none: SparkSession | None, mode: str
) -> None:
    """One of them is kept; they have a group, no pair and no cluster; `check` holds, and finds one that stays."""
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"id": k, "text": v}) + "\n" for k, v in TEXTS.items()))

    run_that_adds_up(tmp_path, tmp_path / "a.jsonl", spark=session_or_none, clusters={"mode": mode})

    keep = once_each((row["doc_id"], row) for row in table(tmp_path, "keep"))
    assert {name: row["duplicate_of"] for name, row in keep.items()} == DUE
    assert {row["reason"] for row in keep.values()} == {None, "exact"}
    assert once_each((row["doc_id"], row["group"]) for row in table(tmp_path, "documents")) == {
        k: v or k for k, v in DUE.items()
    }
    assert table(tmp_path, "pairs") == table(tmp_path, "clusters") == []
    report = check_run(DuckRun(str(tmp_path / "out")))
    assert report.is_sound, report.text()

    undecided = {"kept": True, "duplicate_of": None, "reason": None, "resemblance": None, "lost": None}
    rewrite(tmp_path / "out", "keep", lambda rows: of(rows, doc_id="d2").update(undecided))
    broken = [one.promise for one in check_run(DuckRun(str(tmp_path / "out")), steps=["keep"]).findings if one.broken]
    assert broken == ["keep: of equal contents without a feature one is kept"]


def test_equal_contents_of_two_batches_are_exact(tmp_path: Path) -> None:
    """In a repository a later batch finds them too, and removing the kept one promotes the next."""
    repo = nddup.repository.create(str(tmp_path / "repo"), **SETTINGS)
    names = sorted(TEXTS)
    for some in (names[:3], names[3:]):
        repo.add({name: TEXTS[name] for name in some})
    assert once_each((row["doc_id"], row["duplicate_of"]) for row in repo.tables()["keep"].to_pylist()) == DUE

    repo.remove(["d1"])
    kept = once_each((row["doc_id"], row["duplicate_of"]) for row in repo.tables()["keep"].to_pylist())
    assert kept == {name: {"d2": None, "d8": "d2"}.get(name, due) for name, due in DUE.items() if name != "d1"}
    assert all(proof.holds for proof in repo.check())
