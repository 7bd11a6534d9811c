"""A repository in a bucket, and where a rename replaces files: the same tables, and of two writers one wins."""

import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs as arrow_files

import nddup.repository
from nddup.cli import main
from nddup.errors import ConfigError, OutputError
from nddup.repository.opened_repository import Repository
from nddup.repository.places.bucket_place import BucketPlace
from nddup.repository.places.find_place import find_place
from nddup.repository.segments.commits import LostRaceError, UnansweredCommitError, versions_in
from nddup.repository.table_totals import tables_totals

WORDS = "a text of some words that is like many others but for its end "
BATCHES = [{f"d{i}": WORDS * 3 + str(i // 3) for i in range(6)}, {"x": "a text alone"}, {"d1": WORDS * 3 + "and more"}]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a stand-in of S3, with a bucket `box`."""
    s3fs = pytest.importorskip("s3fs")
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - only where it is installed

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    s3fs.S3FileSystem(key="a", secret="b", endpoint_url=address).mkdir("box")  # noqa: S106 - of a stand-in
    yield address
    server.stop()


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a repository of this test may lie; the client finds the server as users name it."""
    for name, value in {"ENDPOINT_URL": server, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "cache"))
    return f"s3://box/{tmp_path.name}/pages"


@pytest.fixture
def hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder behind the very adapter that leads to HDFS, with the file system of this machine below it."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.arrow import ArrowFSWrapper  # noqa: PLC0415

    class StandIn(ArrowFSWrapper):  # type: ignore[misc]
        protocol = "hdfs"

        def __init__(self, **_: Any) -> None:  # noqa: ANN401
            super().__init__(arrow_files.LocalFileSystem())

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(path).removeprefix("hdfs://name").rstrip("/")

    fsspec.register_implementation("hdfs", StandIn, clobber=True)
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "cache"))
    return f"hdfs://name{tmp_path}/pages"


def fill(path: str) -> Repository:
    """Three batches, one of which replaces a document, and a removal."""
    repo = nddup.repository.create(path, pairs={"threshold": 0.5}, local={"processes": 1})
    for batch in BATCHES:
        repo.add(batch, replace=True)
    repo.remove(["d2"])
    return repo


def require_same(path: str, tmp_path: Path) -> None:
    """All that is asked of a repository has the answer of one on this disk, also after its copies were removed."""
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
    """Created, filled, asked, compacted and checked through the client that users have."""
    require_same(bucket, tmp_path)


def test_hadoop_gives_the_tables_of_a_disk(hadoop: str, tmp_path: Path) -> None:
    """The same through the adapter that leads to HDFS."""
    require_same(hadoop, tmp_path)


def race(path: str) -> None:
    """Two writers hold the same version: the second is told in one line, and leaves nothing."""
    fill(path)
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
    """S3 refuses to create what is there."""
    race(bucket)

    assert BucketPlace(bucket)._keeps_condition(".draft")  # noqa: SLF001


def test_a_store_that_passes_over_the_condition_is_noticed(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers claim the version there; a claim that was just written refuses the others."""
    files = BucketPlace(bucket)._files  # noqa: SLF001 - the one client of all who open it
    real = files.pipe_file
    monkeypatch.setattr(files, "pipe_file", lambda path, value, **_: real(path, value))
    race(bucket)
    place = BucketPlace(bucket)
    assert not place._keeps_condition(".draft")  # noqa: SLF001
    place.write_draft(".8-0123456789ab.claim", b"claimed")
    with pytest.raises(LostRaceError, match="version 8 was committed meanwhile"):
        nddup.repository.open(bucket).add({"c": "a text of a third writer"})


def test_hadoop_commits_by_claims(hadoop: str, tmp_path: Path) -> None:
    """Its rename replaces a file that is there, so it cannot tell two writers apart."""
    for name in "ab":
        (tmp_path / name).write_text(name)
    place = BucketPlace(hadoop)
    place._files.mv(str(tmp_path / "a"), str(tmp_path / "b"))  # noqa: SLF001
    assert (tmp_path / "b").read_text() == "a"

    race(hadoop)
    place.write_draft(".8-0123456789ab.claim", b"claimed")
    with pytest.raises(LostRaceError, match="version 8 was committed meanwhile"):
        nddup.repository.open(hadoop).add({"c": "a text of a third writer"})


def lose_answers(
    monkeypatch: pytest.MonkeyPatch, bucket: str, send: Callable[[Callable[[bytes], Any], bytes], Any]
) -> None:
    """The client hears nothing after it sent a commit; SEND is what happened to it on its way."""
    files = BucketPlace(bucket)._files  # noqa: SLF001 - the one client of all who open it
    real = files.pipe_file

    def pipe_file(path: str, value: bytes, **given: Any) -> None:  # noqa: ANN401
        if path.endswith(".json"):
            send(lambda data: real(path, data, **given), value)
            raise ConnectionError("the line was cut")
        real(path, value, **given)

    monkeypatch.setattr(files, "pipe_file", pipe_file)


def test_a_commit_whose_answer_was_lost_counts(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies there is what was sent."""
    fill(bucket)
    with monkeypatch.context() as patch:
        lose_answers(patch, bucket, lambda put, value: put(value))
        written = nddup.repository.open(bucket).add({"y": "one more text"})

    assert written.commit is not None
    assert "y" in nddup.repository.open(bucket).tables()["documents"]["doc_id"].to_pylist()


def test_a_lost_answer_hides_no_other_writer(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another commit lies there: the race is lost, whatever was heard."""
    fill(bucket)
    with monkeypatch.context() as patch:
        lose_answers(patch, bucket, lambda put, value: put(value.replace(b'"add"', b'"ADD"')))
        with pytest.raises(LostRaceError):
            nddup.repository.open(bucket).add({"y": "one more text"})


def test_a_commit_of_which_nothing_is_known_keeps_its_segment(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may still arrive; until then the version before is the newest. A later `compact` removes the segment."""
    fill(bucket)
    before = set(find_place(bucket).segments())
    with monkeypatch.context() as patch:
        lose_answers(patch, bucket, lambda *_: None)
        with pytest.raises(UnansweredCommitError, match=r"no answer to the commit of version 6 \(the line was cut\)"):
            nddup.repository.open(bucket).add({"y": "one more text"})

    assert len(set(find_place(bucket).segments()) - before) == 1
    repo = nddup.repository.open(bucket)
    assert repo.version == 5
    repo.compact(days=0)
    assert len(find_place(bucket).segments()) == 1


def test_another_file_than_was_written_is_refused(bucket: str, tmp_path: Path) -> None:
    """In one line: of a file that is cut, and of one that is gone."""
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


def test_the_commands_take_a_bucket(bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twice into the same one is refused; a version is written as a run on this machine."""
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
    """With what installs it."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)

    with pytest.raises(ConfigError, match=r"s3://box/pages: a repository there needs pip install 'nddup\[s3\]'"):
        nddup.repository.open("s3://box/pages")
    with pytest.raises(ConfigError, match="gs://box/pages: a repository there needs fsspec and its client"):
        nddup.repository.open("gs://box/pages")


def test_copies_that_nobody_used_for_long_go(bucket: str, tmp_path: Path) -> None:
    """When a segment is written; those in use stay."""
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
