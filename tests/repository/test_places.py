"""A repository in a bucket, or where a rename replaces files: the same tables, and only one of two writers commits."""

import shutil
import sys
from pathlib import Path

import pytest

import nddup.repository
from nddup.cli import main
from nddup.errors import ConfigError
from nddup.repository.bucket_place import BucketPlace, find_place
from nddup.repository.close_components import tables_totals
from nddup.repository.commits import LostRaceError, versions_in
from tests.repository.filled import WORDS, fill, fill_again


def require_same(path: str, tmp_path: Path) -> None:
    """Assert that a repository answers like one on this disk, also after its local copies were removed."""
    due = fill(str(tmp_path / "due"))
    fill(path)
    query = {"q": WORDS * 3}
    for _ in range(2):
        opened = nddup.repository.open(path)
        assert (
            tables_totals(opened.tables()) == dict(opened.snapshot.commit.digests) == dict(due.snapshot.commit.digests)
        )
        found, expected = (one.query(query).drop(["repository"]) for one in (opened, due))
        assert found == expected
        assert len(found) > 1
        shutil.rmtree(tmp_path / "cache")

    done = nddup.repository.open(path).compact(days=0)
    assert done.removed > 0
    opened = nddup.repository.open(path)
    assert all(proof.holds for proof in opened.check())
    assert list(find_place(path).segments()) == [segment.name for segment in opened.snapshot.commit.segments]
    assert not [name for name in find_place(path).commits() if name.startswith(".")]


def test_a_bucket_gives_the_tables_of_a_disk(bucket: str, tmp_path: Path) -> None:
    """A repository in a bucket is created, filled, queried, compacted and checked through the users' client."""
    require_same(bucket, tmp_path)


def test_hadoop_gives_the_tables_of_a_disk(hadoop: str, tmp_path: Path) -> None:
    """A repository behind the adapter for HDFS gives the tables of one on this disk."""
    require_same(hadoop, tmp_path)


def race(path: str) -> None:
    """Let two writers change the same version: the second is refused in one line and leaves nothing behind."""
    fill_again(path)
    first, second = (nddup.repository.open(path) for _ in range(2))
    first.refresh = second.refresh = lambda: None  # type: ignore[method-assign,assignment,return-value]
    first.add({"a": "the text of the first writer"})
    place = find_place(path)
    before = sorted(place.segments()), sorted(place.commits())

    with pytest.raises(LostRaceError) as told:
        second.add({"b": "the text of the second writer"})

    assert str(told.value) == f"{path}: version 6 was committed meanwhile; nothing was changed, run it again"
    assert (sorted(place.segments()), sorted(place.commits())) == before
    nddup.repository.open(path).add({"b": "the text of the second writer"})
    opened = nddup.repository.open(path)
    assert {"a", "b"} <= set(opened.tables()["documents"]["doc_id"].to_pylist())
    assert versions_in(place) == list(range(1, 8))


def test_of_two_writers_in_a_bucket_one_is_told(bucket: str) -> None:
    """S3 refuses to create a commit that exists, so the second writer is refused."""
    race(bucket)

    assert BucketPlace(bucket)._keeps_condition(".draft")  # noqa: SLF001


def test_a_store_that_passes_over_the_condition_is_noticed(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a store ignores the condition, writers claim the version, and a recent claim refuses the others."""
    files = BucketPlace(bucket)._files  # noqa: SLF001 - all who open the bucket share this client
    real = files.pipe_file
    monkeypatch.setattr(files, "pipe_file", lambda path, value, **_: real(path, value))
    race(bucket)
    place = BucketPlace(bucket)
    assert not place._keeps_condition(".draft")  # noqa: SLF001
    place.write_draft(".8-0123456789ab.claim", b"claimed")
    with pytest.raises(LostRaceError, match="version 8 was committed meanwhile"):
        nddup.repository.open(bucket).add({"c": "a text of a third writer"})


def test_hadoop_commits_by_claims(hadoop: str, tmp_path: Path) -> None:
    """Behind the adapter a rename replaces an existing file, so writers commit by claims."""
    for name in "ab":
        (tmp_path / name).write_text(name)
    place = BucketPlace(hadoop)
    place._files.mv(str(tmp_path / "a"), str(tmp_path / "b"))  # noqa: SLF001
    assert (tmp_path / "b").read_text() == "a"

    race(hadoop)
    place.write_draft(".8-0123456789ab.claim", b"claimed")
    with pytest.raises(LostRaceError, match="version 8 was committed meanwhile"):
        nddup.repository.open(hadoop).add({"c": "a text of a third writer"})


def test_the_commands_take_a_bucket(bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands accept a bucket: it cannot be created twice, and a version is written as a run on this machine."""
    for name, text in (("a.txt", WORDS * 3), ("b.txt", WORDS * 3 + "more")):
        (tmp_path / name).write_text(text)
    assert main(["index", "create", bucket, "--set", "pairs.threshold=0.5"]) == 0
    assert main(["index", "create", bucket]) != 0
    assert "exists already, and is not empty" in capsys.readouterr().err
    assert main(["index", "add", bucket, str(tmp_path / "a.txt"), "--id-prefix", "n/"]) == 0
    assert main(["index", "query", bucket, str(tmp_path / "b.txt"), "--exit-code"]) == 3
    assert main(["index", "list", bucket]) == 0
    assert main(["index", "tables", bucket, "--output", str(tmp_path / "out")]) == 0
    assert bucket in (tmp_path / "out" / "_RUN.json").read_text()


def test_a_client_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing client is named together with the package that installs it."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)

    with pytest.raises(ConfigError, match=r"s3://box/pages: opening it needs pip install 'nddup\[s3\]'"):
        nddup.repository.open("s3://box/pages")
    with pytest.raises(ConfigError, match="gs://box/pages: opening it needs pip install 'nddup\\[gs\\]'"):
        nddup.repository.open("gs://box/pages")
