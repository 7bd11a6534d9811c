"""A repository is always one of its versions: after a killed writer, with concurrent writers, and during compaction."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import nddup.repository
from nddup.errors import OutputError
from nddup.repository import live_tables, write_versions
from nddup.repository.bucket_place import find_place
from nddup.repository.close_components import tables_totals
from nddup.repository.commits import LostRaceError, UnansweredCommitError, read_commit, versions_in
from nddup.repository.opened_repository import Repository
from nddup.repository.places import DiskPlace
from nddup.repository.print_commits import list_versions
from nddup.repository.segment_files import read_all
from tests.places import ROOT

TEXTS = {f"d{i}": f"text of document {i // 2} with some words that are its own " * (2 + i % 2) for i in range(6)}
WRITER = ROOT / "tests" / "repository" / "dying_writer.py"
BY_DAY = ["add", "compact"]
VERBS = [*BY_DAY, "claim", "replace", "remove", "merge"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a repository of two segments, three versions and seven documents."""
    path = tmp_path_factory.mktemp("kills") / "repo"
    repo = nddup.repository.create(str(path), pairs={"threshold": 0.5}, local={"processes": 1})
    repo.add(TEXTS)
    repo.add({"x": "a text alone"})
    return path


def require_whole(repo: Path, version: int | None = None) -> Repository:
    """Assert that the newest version, or another, is readable and matches the digests of its commit."""
    opened = nddup.repository.open(str(repo), version)
    assert tables_totals(opened.tables()) == dict(opened.snapshot.commit.digests)
    return opened


@pytest.mark.parametrize(
    ("step", "verbs"),
    [("36", BY_DAY), pytest.param("1", VERBS, marks=pytest.mark.nightly)],
    ids=["sample", "every write"],
)
def test_a_writer_is_killed_at_a_write(filled: Path, tmp_path: Path, step: str, verbs: list[str]) -> None:
    """A writer killed before its commit is named changes nothing, after it everything; others then add and compact.

    One process forks all writers, each over a copy of the repository.
    """
    command = [sys.executable, str(WRITER), str(filled), str(tmp_path), step, *verbs]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr

    for verb in verbs:
        require_versions(filled, tmp_path / verb, is_compact=verb == "compact")


def require_versions(filled: Path, killed: Path, *, is_compact: bool) -> None:
    """Assert that the copies in a folder, named by the write at which a writer was killed, are one of two versions.

    A reader of the earlier version can go on, unless `compact` was told to keep no days.
    """
    numbers = sorted(int(path.name) for path in killed.iterdir())
    last = numbers[-1]
    before, after = read_commit(find_place(filled)), read_commit(find_place(killed / str(last)))
    assert last > 20, killed

    seen = []
    for number in numbers:
        path = killed / str(number)
        opened = require_whole(path)
        commit = opened.snapshot.commit
        seen.append(commit.version)
        if not is_compact and number % 4 == 0:
            require_whole(path, before.version)
        assert dict(commit.digests) == dict(after.digests if commit.version == after.version else before.digests)
        if number % 12 == 0 or number > last - 3:
            for claim in (path / "commits").glob(".*.claim"):
                os.utime(claim, (time.time() - 3_600,) * 2)
            opened.add({"y": "one more text"})
            opened.compact(days=0)
            require_whole(path)
            assert len(list((path / "segments").iterdir())) == 1
            assert not list((path / "commits").glob(".*"))
    assert set(seen) == {before.version, after.version}, killed
    assert seen == sorted(seen), killed


def test_of_two_writers_one_is_told(tmp_path: Path, filled: Path) -> None:
    """The second of two writers is refused in one line, leaves nothing behind, and may run again."""
    path = shutil.copytree(filled, tmp_path / "repo")
    first, second = (nddup.repository.open(str(path)) for _ in range(2))
    first.refresh = second.refresh = lambda: None  # type: ignore[method-assign,assignment,return-value]
    first.add({"a": "the text of the first writer"})
    before = sorted(path.rglob("*"))

    with pytest.raises(LostRaceError) as told:
        second.add({"b": "the text of the second writer"})

    assert str(told.value) == f"{path}: version 4 was committed meanwhile; nothing was changed, run it again"
    assert sorted(path.rglob("*")) == before
    nddup.repository.open(str(path)).add({"b": "the text of the second writer"})
    assert {"a", "b"} <= set(require_whole(path).tables()["documents"]["doc_id"].to_pylist())


def refuse_links(draft: Path, final: Path) -> None:
    """Raise the error of exFAT and many network drives."""
    raise OSError(errno.EOPNOTSUPP, "Operation not supported", str(draft), None, str(final))


@pytest.mark.parametrize("has_links", [True, False])
def test_several_writers_and_readers(  # noqa: C901 - threads of two kinds
    tmp_path: Path, filled: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    """Every reported commit is present; a reader never goes back a version, and each version is whole."""
    if not has_links:
        monkeypatch.setattr(os, "link", refuse_links)
    path = shutil.copytree(filled, tmp_path / "repo")
    told, wrong, done = list[str](), list[str](), threading.Event()

    def write(name: str) -> None:
        repo = nddup.repository.open(str(path))
        for number in range(2):
            while True:
                try:
                    repo.add({f"{name}{number}": f"text {name} {number} of a writer " * 3})
                except LostRaceError:
                    continue
                told.append(f"{name}{number}")
                break

    def read() -> None:
        last = 0
        while not done.is_set():
            repo = nddup.repository.open(str(path))
            if repo.version < last:
                wrong.append(f"from {last} to {repo.version}")
            last = repo.version
            if tables_totals(repo.tables()) != dict(repo.snapshot.commit.digests):
                wrong.append(f"version {last} is torn")
            time.sleep(0.02)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()

    assert wrong == []
    assert set(told) <= set(require_whole(path).tables()["documents"]["doc_id"].to_pylist())
    assert len(told) == 4
    assert versions_in(find_place(path)) == list(range(1, 3 + 4 + 1))


def test_a_claim_of_a_killed_writer_counts_for_a_while(
    tmp_path: Path, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without links, the claim of a killed writer first refuses others, is then ignored, and is at last removed."""
    path = shutil.copytree(filled, tmp_path / "repo")
    monkeypatch.setattr(os, "link", refuse_links)
    claim = path / "commits" / ".4-0123456789ab.claim"
    claim.touch()
    repo = nddup.repository.open(str(path))

    with pytest.raises(LostRaceError, match="version 4 was committed meanwhile; nothing was changed, run it again"):
        repo.add({"y": "one more text"})
    os.utime(claim, (time.time() - 3_600,) * 2)
    repo.add({"y": "one more text"})

    assert versions_in(find_place(path)) == [1, 2, 3, 4]
    assert sorted(file.name for file in (path / "commits").glob(".*")) == [claim.name]
    repo.compact(days=0)
    assert not list((path / "commits").glob(".*"))
    require_whole(path)


def test_a_reader_holds_its_version_during_a_compaction(tmp_path: Path, filled: Path) -> None:
    """Compaction keeps files of versions that were recently the newest; with `days=0` it removes them."""
    path = shutil.copytree(filled, tmp_path / "repo")
    reader = nddup.repository.open(str(path))
    due = tables_totals(reader.tables())
    nddup.repository.open(str(path)).remove(["d0"])
    done = nddup.repository.open(str(path)).compact()

    assert (done.removed, tables_totals(reader.tables())) == (0, due)
    assert "d0" not in require_whole(path).tables()["documents"]["doc_id"].to_pylist()
    nddup.repository.open(str(path)).compact(days=0)
    with pytest.raises(OutputError, match=r"is missing: it was removed, or compacted away"):
        nddup.repository.open(str(path), 3).tables()
    newest = require_whole(path).snapshot
    texts = read_all(newest.repo, newest.commit.segments, "texts")
    assert texts["doc_key"].to_pylist() == newest.live_keys.tolist()


def _damage(path: Path, how: str) -> None:
    commits = sorted((path / "commits").glob("*.json"), key=lambda file: int(file.stem))
    newest = json.loads(commits[-1].read_text())
    if how == "truncated commit":
        commits[-1].write_bytes(commits[-1].read_bytes()[:100])
    elif how == "missing segment":
        shutil.rmtree(path / "segments" / newest["segments"][0]["name"])
    elif how == "short file":
        file = path / "segments" / newest["segments"][0]["name"] / "documents.parquet"
        file.write_bytes(file.read_bytes()[:-5])
    else:
        key, value = how.split("=")
        newest["repository"][key] = int(value) if value.isdigit() else value
        newest.pop("digest")
        commits[-1].write_text(json.dumps(newest))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("truncated commit", r"commits/3.json is damaged"),
        ("missing segment", r"documents.parquet is missing"),
        ("short file", r"documents.parquet has another size than was written"),
        ("layout=9", r"its layout is 9, expected 4 or 5"),
        ("byte_order=big", r"its byte order is big, expected little"),
        ("sketch_format=0/old", r"its sketches are of format 0/old"),
        ("recipe=other", r"its recipe is \[other\]"),
        ("proof=abc", r"eight fixed texts give other sketches"),
    ],
)
def test_what_cannot_be_trusted_is_refused(tmp_path: Path, filled: Path, how: str, said: str) -> None:
    """Damaged files and unknown formats are refused in one line, and nothing is written."""
    path = shutil.copytree(filled, tmp_path / "repo")
    _damage(path, how)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}

    with pytest.raises(OutputError, match=said) as refused:
        nddup.repository.open(str(path)).add({"z": "another text"})
    if how.startswith(("layout", "byte_order", "sketch_format")):
        with pytest.raises(OutputError, match=said):
            list_versions(str(path))

    assert "\n" not in str(refused.value)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_a_full_disk_changes_nothing(tmp_path: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at an early or later flush is reported in one line, and the folder is as it was."""
    path = shutil.copytree(filled, tmp_path / "repo")
    repo, real, calls = nddup.repository.open(str(path)), os.fsync, [0]
    before = sorted(path.rglob("*"))
    for last in (1, 3, 8):

        def fsync(number: int, last: int = last) -> None:
            calls[0] += 1
            if calls[0] == last:
                raise OSError(28, "No space left on device")
            real(number)

        calls[0] = 0
        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\); nothing was changed"):
            repo.add({"z": "another text"})
        assert sorted(path.rglob("*")) == before


@pytest.mark.parametrize("last", range(1, 6))
def test_create_goes_on_where_an_earlier_one_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """A `create` that ends at any flush leaves what the next one takes over; a folder with anything else is refused."""
    path, calls, real = tmp_path / "repo", [0], os.fsync

    def fsync(number: int) -> None:
        calls[0] += 1
        if calls[0] >= last:
            raise OSError(28, "No space left on device")
        real(number)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        patched.setattr(DiskPlace, "remove_draft", lambda *_: None)  # as if it was killed
        with suppress(OutputError):
            nddup.repository.create(str(path))
    if (path / "commits" / "1.json").exists():
        with pytest.raises(OutputError, match="exists already, and is not empty"):
            nddup.repository.create(str(path))
        return

    for foreign in ("note.txt", "commits/note.txt", "segments/note.txt"):
        (path / foreign).touch()
        with pytest.raises(OutputError, match="exists already, and is not empty"):
            nddup.repository.create(str(path))
        (path / foreign).unlink()
    nddup.repository.create(str(path)).add(TEXTS)
    require_whole(path)


@pytest.mark.parametrize(
    "error", [LostRaceError("lost"), OutputError("full"), KeyboardInterrupt(), UnansweredCommitError()]
)
def test_the_files_of_a_batch_go_with_its_version(
    tmp_path: Path, filled: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """What `--output` wrote is removed if its version is surely not made, so the command can be run again."""
    path, output, batch = shutil.copytree(filled, tmp_path / "repo"), tmp_path / "new", tmp_path / "batch.jsonl"
    batch.write_text('{"id": "y", "text": "one more text"}\n')
    repo = nddup.repository.open(str(path))

    def fail(*_: object) -> None:
        assert (output / "batch.jsonl").read_bytes() == batch.read_bytes()
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(write_versions, "write_commit", fail)
        with pytest.raises(type(error)):
            repo.add(str(batch), output=str(output))

    assert output.exists() == isinstance(error, UnansweredCommitError)
    assert require_whole(path).version == 3
    if not output.exists():
        repo.add(str(batch), output=str(output))
        assert (output / "batch.jsonl").read_bytes() == batch.read_bytes()


@pytest.mark.parametrize(
    ("place", "error"), [("write_table", OSError(28, "No space")), ("report", KeyboardInterrupt())]
)
def test_tables_that_cannot_be_written_leave_nothing(
    tmp_path: Path, filled: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: BaseException
) -> None:
    """`index tables` has no --resume: after a failure it leaves no folder, names no such option, and may run again."""
    repo, output = nddup.repository.open(str(filled)), tmp_path / "out"

    def fail(*_: object, **__: object) -> None:
        assert output.exists()
        raise error

    with monkeypatch.context() as patched:
        if place == "report":
            patched.setattr(live_tables, "report_run", fail)
        else:
            patched.setattr("nddup.storage.local_folder.pq.ParquetWriter", fail)
        with pytest.raises((OutputError, KeyboardInterrupt)) as told:
            repo.write_tables(str(output))
    assert "--resume" not in str(told.value)
    assert not output.exists()

    repo.write_tables(str(output))
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    with pytest.raises(OutputError, match=r"--output .*: exists already; give another folder$"):
        repo.write_tables(str(output))
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before
