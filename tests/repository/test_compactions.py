"""Compaction beside writers: whatever a writer reads, or has made and not committed yet, stays."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nddup.repository
from nddup.errors import OutputError
from nddup.repository import write_versions
from nddup.repository.bucket_place import find_place
from nddup.repository.close_components import tables_totals
from nddup.repository.commits import LostRaceError, claimed, versions_in
from nddup.repository.opened_repository import Repository
from tests.counted_rows import once
from tests.samples_by_night import first

YEAR = 365 * 86_400


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A repository of one segment."""
    repo = nddup.repository.create(f"{tmp_path}/repo", pairs={"threshold": 0.5}, local={"processes": 1})
    repo.add({"x": "a text alone"})
    return f"{tmp_path}/repo"


def whole(path: str) -> Repository:
    """Open the newest version, and assert that its tables are those of its commit, and every file is there."""
    opened = nddup.repository.open(path)
    assert tables_totals(opened.tables()) == dict(opened.snapshot.commit.digests)
    assert all(proof.holds for proof in opened.check())
    return opened


def call_before(monkeypatch: pytest.MonkeyPatch, name: str, do: Callable[[], object]) -> None:
    """Let a step of a writer do something else first, once."""
    real, waiting = getattr(write_versions, name), [do]

    def stepped(*given: Any) -> Any:  # noqa: ANN401
        if waiting:
            waiting.pop()()
        return real(*given)

    monkeypatch.setattr(write_versions, name, stepped)


@pytest.mark.parametrize("skew", first(2, [0, -YEAR, YEAR]))
@pytest.mark.parametrize("step", ["write_segment", "map_segment", "write_commit"])
def test_a_compaction_before_any_step_of_a_writer(
    step: str, skew: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction that keeps no days, with a clock a year ahead or behind, removes nothing that a writer commits."""

    def compact() -> None:
        with monkeypatch.context() as clock:
            now = time.time
            clock.setattr(time, "time", lambda: now() + skew)
            for folder in Path(path, "segments").iterdir():
                os.utime(folder, (now() - skew,) * 2)
            nddup.repository.open(path).compact(days=0)

    call_before(monkeypatch, step, compact)
    nddup.repository.open(path).add({"y": "one more text"})

    assert once(whole(path).tables()["documents"]["doc_id"].to_pylist()) == {"x", "y"}
    assert not list(Path(path, "commits").glob(".*"))


def test_a_merge_before_a_commit_is_a_lost_race(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer whose segments were merged meanwhile is told so, and the repository is that of the compaction."""
    repo = nddup.repository.open(path)
    repo.add({f"d{number}": f"text {number} of its own" for number in range(5)})
    repo.add({"z": "a second segment"})
    call_before(monkeypatch, "write_commit", lambda: nddup.repository.open(path).compact(days=0))

    with pytest.raises(LostRaceError):
        nddup.repository.open(path).add({"y": "one more text"})

    assert whole(path).tables()["documents"].num_rows == 7
    nddup.repository.open(path).add({"y": "one more text"})
    assert whole(path).tables()["documents"].num_rows == 8


def test_a_commit_looks_for_its_segments(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment that is gone before the commit, whoever removed it, is named, and no version is made of the rest."""
    [kept] = find_place(path).segments()
    call_before(monkeypatch, "require_stored", lambda: Path(path, "segments", kept, "documents.parquet").unlink())
    monkeypatch.setattr(write_versions, "choose_merged", lambda *_: 0)

    with pytest.raises(OutputError, match=r"documents.parquet is missing, .*; nothing was changed"):
        nddup.repository.open(path).add({"y": "one more text"})
    assert versions_in(find_place(path)) == [1, 2]


def test_what_a_living_command_may_read_stays(path: str) -> None:
    """Segments of the version that a command began with stay while it works, and go when it has ended or died."""
    before = set(find_place(path).segments())
    with claimed(find_place(path)):
        repo = nddup.repository.open(path)
        repo.remove(["x"])
        repo.compact(days=0)
        assert before <= set(find_place(path).segments())
    dead = Path(path, "commits", ".1-0123456789ab-1-1-0123456789ab.live")
    dead.touch()
    os.utime(dead, (time.time() - YEAR,) * 2)
    nddup.repository.open(path).compact(days=0)

    assert not before & set(find_place(path).segments())
    assert not dead.exists()
    whole(path)


def test_a_folder_of_someone_else_stays(path: str) -> None:
    """Compaction removes folders that have the name of a segment, and no others."""
    Path(path, "segments", "mine").mkdir()
    nddup.repository.open(path).compact(days=0)

    assert Path(path, "segments", "mine").is_dir()


def test_writers_and_compactors_together(path: str) -> None:
    """Two writers and a compactor that keeps no days: every addition that was reported is there, whole."""
    told, done = list[str](), threading.Event()

    def write(name: str) -> None:
        for number in range(2):
            while True:
                try:
                    nddup.repository.open(path).add({f"{name}{number}": f"text {name} {number} of a writer " * 3})
                except LostRaceError:
                    continue
                told.append(f"{name}{number}")
                break

    def compact() -> None:
        while not done.is_set():
            try:
                nddup.repository.open(path).compact(days=0)
            except LostRaceError:
                continue
            time.sleep(0.02)

    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    compactor = threading.Thread(target=compact)
    for thread in (compactor, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    compactor.join()

    assert sorted(told) == sorted(f"{name}{number}" for name in "ab" for number in range(2))
    assert set(told) <= set(whole(path).tables()["documents"]["doc_id"].to_pylist())
