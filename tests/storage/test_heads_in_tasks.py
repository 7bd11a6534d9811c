"""Heads of remote files examined in tasks: the findings are those of the driver, for any file."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyspark.sql import SparkSession

from nddup.errors import ConfigError
from nddup.scanning.collection import Collection, find_files
from nddup.scanning.file_heads import HeadError, HeadFound
from nddup.scanning.input_files import InputFile
from nddup.settings.load import build_config
from nddup.spark import session_files
from nddup.spark.session_files import Storage, look_in_folders
from tests.scanning.small_files import WHOLE

LINES = b'{"id": "1", "text": "a"}\n{"id": "2", "text": "b"}\n'
MOST = 2000
Find = Callable[..., tuple[Collection, set[str]]]


@pytest.fixture
def find(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Find:
    """Find files through Hadoop alone, in tasks for `least` small files or more; also return what the driver opened."""
    monkeypatch.setattr(Storage, "is_own", lambda *_: False)
    monkeypatch.setattr(session_files, "MOST_BYTES", MOST)
    opened: set[str] = set()
    read_part = Storage.read_part

    def note(self: Storage, path: str, start: int, size: int) -> bytes:
        opened.add(path.rpartition("/")[2])
        return read_part(self, path, start, size)

    monkeypatch.setattr(Storage, "read_part", note)

    def find(*inputs: Path, least: int = 1, **settings: object) -> tuple[Collection, set[str]]:
        monkeypatch.setattr(session_files, "LEAST_FILES", least)
        opened.clear()
        config = build_config({"input": settings}, origin="test")
        return find_files(Storage(spark), [str(path) for path in inputs], config.input), set(opened)

    return find


def fill(folder: Path) -> Path:
    """Write files of every format, plain, compressed, damaged, empty, of no format, and with odd names."""
    data = {f"deep/year=2020/{name}": text for name, text in WHOLE.items()}
    data |= dict.fromkeys(("a b.jsonl", "c[1].jsonl", "a%20b", "q?x", "кот#;&+.json", "star*", "{1,2}", "x,y"), LINES)
    data |= {
        "a.gz": gzip.compress(LINES),
        "a.bz2": bz2.compress(WHOLE["xml"]),
        "a.xz": lzma.compress(LINES),
        "a.zst": zstandard.compress(LINES),
        "plain.gz": LINES,
        "damaged.gz": gzip.compress(LINES)[:10] + b"\xff" * 9,
        "empty.jsonl": b"",
        "open.jsonl": LINES.rstrip(),
        "table.csv": b"id,text\n1,a b\n2,c d\n",
        "empty.csv": b"",
        "page.html": b"<html><body>a</body></html>",
        "page": b"<!DOCTYPE html><html><body>a</body></html>",
        "a.warc": b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 1\r\n\r\na\r\n\r\n",
        "picture.png": b"\x89PNG\r\n\x1a\n\0\0\0",
        "old.koi8": "<docs><doc><id>1</id><text>кот</text></doc></docs>".encode("koi8-r"),
        "note.txt": b"only words",
        "words.txt.gz": gzip.compress(b"only words"),
        "long.jsonl": LINES * 50,
        "long.txt": b"words " * 400,
        "moving.jsonl._COPYING_": LINES,
        "README.md": b"skipped",
        "broken.jsonl": LINES,
        ".broken.jsonl.crc": b"crc\0" + (512).to_bytes(4, "big") + b"\0\0\0\0",
    }
    for name, content in data.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    pq.write_table(pa.table({"id": ["1"], "text": ["a"]}), folder / "table.parquet", compression="none")
    return folder


@pytest.mark.parametrize("settings", [{}, {"format": "jsonl"}, {"record": "doc", "max_record": 700}])
def test_tasks_see_what_the_driver_sees(find: Find, tmp_path: Path, settings: dict[str, Any]) -> None:
    """Tasks give the same groups and the same reasons for unread files; the driver opens only what no task can."""
    folder = fill(tmp_path / "in [1] %20")

    here, all_opened = find(folder, least=1000, **settings)
    there, opened = find(folder, **settings)

    assert there == here
    kinds = {group.head.format.kind for group in here.groups}
    assert kinds >= (
        {settings.get("format", "xml")} if settings else {"xml", "jsonl", "csv", "html", "parquet", "warc"}
    )
    assert {reason for _, reason, _ in here.unread} >= {"damaged", "unreadable"}
    assert opened == {"long.jsonl", "long.txt", "moving.jsonl._COPYING_", "broken.jsonl"}
    assert len(all_opened) >= len(here.listing.files) - 1


def test_texts_alone_are_documents_and_nothing_understood_is_refused(find: Find, tmp_path: Path) -> None:
    """From findings of tasks too, plain texts alone are documents, and a folder without a known format is refused."""
    for name in ("a.txt", "b.txt.gz", "deep/c.md"):
        (tmp_path / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "texts" / name).write_bytes(gzip.compress(b"words") if name.endswith("gz") else b"words")
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "a").write_bytes(b"\x7fELF\0")

    assert find(tmp_path / "texts") == (find(tmp_path / "texts", least=9)[0], set())
    with pytest.raises(ConfigError) as here:
        find(tmp_path / "binary", least=9)
    with pytest.raises(ConfigError) as there:
        find(tmp_path / "binary")
    assert str(there.value) == str(here.value)


def test_files_that_are_inputs_themselves_are_opened_by_the_driver(find: Find, tmp_path: Path) -> None:
    """The driver opens files that are inputs themselves, because their folder may hold anything else."""
    folder = fill(tmp_path / "in")
    (tmp_path / "beside.jsonl").write_bytes(LINES)
    inputs = [folder / "deep", tmp_path / "beside.jsonl", folder / "a.gz"]

    found, opened = find(*inputs)

    assert opened == {"beside.jsonl", "a.gz"}
    assert found == find(*inputs, least=1000)[0]
    assert find(*inputs[1:])[1] == opened


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[InputFile]:
    """Three files of a folder; the listed size of the last is too long by one byte."""
    monkeypatch.setattr(session_files, "LEAST_FILES", 1)
    found = []
    for name, more in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / f"{name}.jsonl").write_bytes(LINES)
        found.append(InputFile(f"file:{tmp_path}/{name}.jsonl", name, len(LINES) + more, 0))
    return found


def test_only_what_was_asked_for_and_did_not_change_is_told(
    spark: SparkSession, tmp_path: Path, three: list[InputFile]
) -> None:
    """Files that are not of the listed size, or in a folder that is missing, are left to the driver."""
    asked, seen = three[1:], HeadError("seen", "")

    def look(*_: object) -> HeadError:
        return seen

    assert look_in_folders(spark, [f"file:{tmp_path}"], asked, look) == {asked[0].path: seen}
    assert look_in_folders(spark, [f"file:{tmp_path}/none"], asked, look) == {}


def test_a_task_that_fails_leaves_all_to_the_driver(
    spark: SparkSession, tmp_path: Path, three: list[InputFile]
) -> None:
    """If a task fails, all files are left to the driver, which reports what is wrong."""

    def look(*_: object) -> HeadFound:
        raise MemoryError

    assert look_in_folders(spark, [f"file:{tmp_path}"], three, look) == {}
