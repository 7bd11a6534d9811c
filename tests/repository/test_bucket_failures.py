"""Lost answers, killed writers and damaged files in a bucket: no version is torn, and none is lost."""

import os
import shutil
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import nddup.repository
from nddup.errors import OutputError
from nddup.repository import commits
from nddup.repository.bucket_place import BucketPlace, find_place
from nddup.repository.close_components import tables_totals
from nddup.repository.commits import LostRaceError, UnansweredCommitError
from tests.repository.filled import fill, fill_again


def lose_answers(
    monkeypatch: pytest.MonkeyPatch, bucket: str, send: Callable[[Callable[[bytes], Any], bytes], Any]
) -> None:
    """Let the client get no answer to a commit; SEND is what happens to the commit on its way."""
    files = BucketPlace(bucket)._files  # noqa: SLF001 - all who open the bucket share this client
    real = files.pipe_file

    def pipe_file(path: str, value: bytes, **given: Any) -> None:  # noqa: ANN401
        if path.endswith(".json"):
            send(lambda data: real(path, data, **given), value)
            raise ConnectionError("the line was cut")
        real(path, value, **given)

    monkeypatch.setattr(files, "pipe_file", pipe_file)


def test_a_commit_whose_answer_was_lost_counts(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit without an answer counts where the stored object equals the one sent."""
    fill_again(bucket)
    with monkeypatch.context() as patch:
        lose_answers(patch, bucket, lambda put, value: put(value))
        written = nddup.repository.open(bucket).add({"y": "one more text"})

    assert written.commit is not None
    assert "y" in nddup.repository.open(bucket).tables()["documents"]["doc_id"].to_pylist()


def test_a_lost_answer_hides_no_other_writer(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost answer is a lost race where another commit is stored."""
    fill_again(bucket)
    with monkeypatch.context() as patch:
        lose_answers(patch, bucket, lambda put, value: put(value.replace(b'"add"', b'"ADD"')))
        with pytest.raises(LostRaceError):
            nddup.repository.open(bucket).add({"y": "one more text"})


def test_a_commit_of_which_nothing_is_known_keeps_its_segment(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit of unknown fate keeps its segment, since it may still arrive, until there is another version."""
    fill_again(bucket)
    before = set(find_place(bucket).segments())
    with monkeypatch.context() as patch:
        lose_answers(patch, bucket, lambda *_: None)
        with pytest.raises(UnansweredCommitError, match=r"no answer to the commit of version 6 \(the line was cut\)"):
            nddup.repository.open(bucket).add({"y": "one more text"})

    assert len(set(find_place(bucket).segments()) - before) == 1
    repo = nddup.repository.open(bucket)
    assert repo.version == 5
    repo.compact(days=0)
    assert len(set(find_place(bucket).segments()) - before) == 1
    repo.add({"z": "the next version"})
    repo.compact(days=0)
    assert len(find_place(bucket).segments()) == 1


class Killed(BaseException):
    """Raised by a client's requests from a chosen one on, so that neither handlers nor clean-up get further."""


def kill_at(monkeypatch: pytest.MonkeyPatch, files: Any, last: int) -> None:  # noqa: ANN401 - a client
    """Let the client die at its LAST request that changes anything."""
    sent = count(1)

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def send(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            if next(sent) >= last:
                raise Killed
            return real(*given, **named)

        return send

    for name in ("put_file", "pipe_file", "rm_file", "rm"):
        monkeypatch.setattr(files, name, dying(getattr(files, name)))


def test_a_writer_is_killed_at_every_request(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer killed before its commit changes nothing, after it everything; `compact` removes the remains."""
    before, files = fill_again(bucket).version, BucketPlace(bucket)._files  # noqa: SLF001
    seen, is_killed = list[int](), True
    while is_killed:
        with monkeypatch.context() as patch:
            kill_at(patch, files, len(seen) + 1)
            try:
                nddup.repository.open(bucket).add({"y": "one more text"})
                is_killed = False
            except Killed:
                pass
        opened = nddup.repository.open(bucket)
        assert tables_totals(opened.tables()) == dict(opened.snapshot.commit.digests)
        seen.append(opened.version - before)

    assert seen == sorted(seen)
    assert set(seen) == {0, 1}
    assert seen.index(1) == len(opened.snapshot.commit.segments[-1].files) + 4  # the claim, two drafts and the commit
    monkeypatch.setattr(commits, "is_running", lambda *_: False)  # each of them was a process of its own
    opened.compact(days=0)
    assert len(find_place(bucket).segments()) == 1
    assert not [name for name in find_place(bucket).commits() if name.startswith(".")]


def test_another_file_than_was_written_is_refused(bucket: str, tmp_path: Path) -> None:
    """A truncated file and a missing one are refused in one line."""
    place, [segment] = BucketPlace(bucket), fill(bucket).snapshot.commit.segments
    path = f"{bucket}/segments/{segment.name}/documents.parquet"
    data = place._files.cat_file(path)  # noqa: SLF001
    for left, said in ((data[:-5], "is not the file that was written"), (None, "documents.parquet is missing")):
        if left is None:
            place._files.rm_file(path)  # noqa: SLF001
        else:
            place._files.pipe_file(path, left)  # noqa: SLF001
        shutil.rmtree(tmp_path / "cache")
        with pytest.raises(OutputError, match=said) as refused:
            nddup.repository.open(bucket).tables()
        assert "\n" not in str(refused.value)
        assert not nddup.repository.open(bucket, 1).tables()["documents"]


def test_copies_that_nobody_used_for_long_go(bucket: str, tmp_path: Path) -> None:
    """Writing a segment removes local copies that were unused for long, and keeps those in use."""
    repo = fill(bucket)
    [copies] = (tmp_path / "cache" / "repositories").iterdir()
    used = {segment.name for segment in repo.snapshot.commit.segments}
    old = copies / "segments" / "v000001-old"
    old.mkdir()
    os.utime(old, (time.time() - 40 * 86_400,) * 2)
    repo.add({"y": "one more text"})

    names = {folder.name for folder in (copies / "segments").iterdir()}
    assert old.name not in names
    assert used & names
