"""Files over Hadoop's FileSystem: literal names, folders, compressed heads, text."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nddup.errors import ConfigError, NddupError, OutputError
from nddup.scanning.file_heads import HeadError, PartReader
from nddup.scanning.input_files import BESIDE_WHY, CHECKSUMS_WHY, InputFile
from nddup.spark import session_files
from nddup.spark.session_files import Storage
from nddup.storage.local_storage import LocalStorage

ODD_NAMES = ["a b.xml", "кот.xml", "a#b.xml", "a%20b.xml", "c[1].xml", "c{1,2}.xml", "q?x.xml", "star*.xml", "é;&+.xml"]


@pytest.fixture(params=["spark", "hadoop", "each", "local"])
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Storage | LocalStorage:
    """Files as Spark's engine finds them, through Hadoop alone, with each status asked for, and without a session."""
    if request.param == "local":
        return LocalStorage()
    if request.param != "spark":
        monkeypatch.setattr(Storage, "is_own", lambda *_: False)
    if request.param == "each":
        monkeypatch.setattr(session_files, "_of_fields", lambda row: row["none"])
    return Storage(request.getfixturevalue("spark"))


def fill(folder: Path, *names: str) -> Path:
    """Write files of these names, each with its name as content."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def sources(storage: Storage, *inputs: Path) -> list[str]:
    """Return the sources of the files of these inputs."""
    return [file.source for file in storage.list_inputs([str(path) for path in inputs]).files]


def test_a_folder_gives_all_files_below_it(storage: Storage, tmp_path: Path) -> None:
    """Folders are searched at every depth; sources are the paths below INPUT, in the order of their bytes."""
    fill(tmp_path, "b.xml", "B.xml", "deep/er/a.xml", "deep/c.xml", "year=2020/d.xml")

    assert sources(storage, tmp_path) == ["B.xml", "b.xml", "deep/c.xml", "deep/er/a.xml", "year=2020/d.xml"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_literal(storage: Storage, tmp_path: Path, name: str) -> None:
    """No character of a name is read as a pattern or an escape."""
    fill(tmp_path, name, "c1.xml")

    found = storage.list_inputs([str(tmp_path / name)]).files

    assert [file.source for file in found] == [name]
    assert storage.read_part(found[0].path, 0, 100).decode() == name
    assert found[0].size == len(name.encode())


def test_a_name_with_a_scheme_may_be_written_with_or_without_escapes(storage: Storage, tmp_path: Path) -> None:
    """`file:/a%20b` and `file:/a b` are the same file."""
    fill(tmp_path, "a b.xml")

    for text in (f"file:{tmp_path}/a b.xml", f"file://{tmp_path}/a%20b.xml"):
        assert [file.source for file in storage.list_inputs([text]).files] == ["a b.xml"]


def test_hidden_files_and_files_beside_a_collection_are_skipped_and_listed(storage: Storage, tmp_path: Path) -> None:
    """Every file that is not read is listed with the reason."""
    fill(tmp_path, "a.xml", "_b.xml", ".c.xml", "_d/e.xml", "README.md", "README.md.gz", "LICENSE", "sha256sums.txt")

    listing = storage.list_inputs([str(tmp_path)])

    assert [file.source for file in listing.files] == ["a.xml"]
    assert {(Path(path).name, why) for path, why in listing.skipped} == {
        ("_b.xml", "hidden"),
        (".c.xml", "hidden"),
        ("_d", "hidden"),
        ("README.md", BESIDE_WHY),
        ("README.md.gz", BESIDE_WHY),
        ("LICENSE", BESIDE_WHY),
        ("sha256sums.txt", CHECKSUMS_WHY),
    }


def test_results_of_a_run_below_an_input_are_skipped(storage: Storage, tmp_path: Path) -> None:
    """The output of a run inside a collection's folder is not read."""
    fill(tmp_path, "a.xml", "out/_RUN.json", "out/duplicates.txt")

    listing = storage.list_inputs([str(tmp_path)])

    assert [file.source for file in listing.files] == ["a.xml"]
    assert [why for _, why in listing.skipped] == ["results of a run"]
    with pytest.raises(ConfigError, match="out: holds the results of a run, which are no documents"):
        storage.list_inputs([str(tmp_path / "out")])


def test_a_file_beside_a_collection_is_read_when_it_is_named(storage: Storage, tmp_path: Path) -> None:
    """A file that is skipped in a folder is read if INPUT names it."""
    assert sources(storage, fill(tmp_path, "README.md") / "README.md") == ["README.md"]


def test_readmes_beside_pictures_alone_are_read(storage: Storage, tmp_path: Path) -> None:
    """They are skipped beside files of another kind, which pictures and scripts of pages are not."""
    fill(tmp_path, "README.md", "a.png", "deep/README.md", "deep/LICENSE", ".hidden")

    listing = storage.list_inputs([str(tmp_path)])

    assert [file.source for file in listing.files] == ["README.md", "a.png", "deep/LICENSE", "deep/README.md"]
    assert [why for _, why in listing.skipped] == ["hidden"]
    fill(tmp_path, "b.txt")
    assert sources(storage, tmp_path) == ["a.png", "b.txt"]
    both = storage.list_inputs([str(tmp_path), str(tmp_path / "README.md")])
    assert ([file.source for file in both.files], both.repeated) == (["README.md", "a.png", "b.txt"], ())


def test_a_hidden_file_that_is_named_is_listed(storage: Storage, tmp_path: Path) -> None:
    """A hidden file is skipped in a folder, and read if INPUT names it."""
    fill(tmp_path, "_a.xml", "b.xml")

    assert sources(storage, tmp_path / "_a.xml") == ["_a.xml"]
    assert sources(storage, tmp_path) == ["b.xml"]


def test_the_same_file_twice_is_read_once_and_said(storage: Storage, tmp_path: Path) -> None:
    """A file given twice, even with another spelling of its path, is read once and listed as repeated."""
    fill(tmp_path, "a.xml", "b.xml")

    listing = storage.list_inputs([str(tmp_path), str(tmp_path / "a.xml"), f"file:{tmp_path}/b.xml"])

    assert [file.source for file in listing.files] == ["a.xml", "b.xml"]
    assert [Path(path).name for path in listing.repeated] == ["a.xml", "b.xml"]


def test_sources_are_lengthened_where_two_would_be_equal(storage: Storage, tmp_path: Path) -> None:
    """Equal sources get as many parent folders as distinguish them; the others do not change."""
    fill(tmp_path, "x/1/a.xml", "y/1/a.xml", "y/1/b.xml", "z/c.xml")

    assert sources(storage, tmp_path / "x/1", tmp_path / "y/1", tmp_path / "z/c.xml") == [
        "b.xml",
        "c.xml",
        "x/1/a.xml",
        "y/1/a.xml",
    ]


def test_sources_do_not_depend_on_the_order_of_inputs(storage: Storage, tmp_path: Path) -> None:
    """The order of the collection is that of its sources, not of the inputs."""
    fill(tmp_path, "x/a.xml", "y/a.xml", "b.xml")
    inputs = [tmp_path / "x", tmp_path / "y/a.xml", tmp_path / "b.xml"]

    assert sources(storage, *inputs) == sources(storage, *reversed(inputs)) == ["b.xml", "x/a.xml", "y/a.xml"]


def test_a_missing_path_is_refused(storage: Storage, tmp_path: Path) -> None:
    """The error of a missing path names the INPUT as it was given."""
    with pytest.raises(ConfigError, match=r"^INPUT \S+/none.xml: no such file or folder$"):
        storage.list_inputs([str(tmp_path / "none.xml")])


def test_an_unknown_scheme_is_refused_in_one_line(storage: Storage) -> None:
    """A path whose scheme has no Hadoop FileSystem gives an error of one line that names the INPUT."""
    with pytest.raises(ConfigError, match=r"^INPUT foo:///a: cannot be listed \(.*foo.*\)$"):
        storage.list_inputs(["foo:///a"])


def test_the_head_of_a_file_is_what_is_stored(storage: Storage, tmp_path: Path) -> None:
    """The head is the stored bytes, also of a compressed file: as many as were asked for, or all."""
    data = gzip.compress(b"<a>" + b"x" * 100_000)
    (tmp_path / "a.xml.gz").write_bytes(data)

    assert storage.read_part(f"{tmp_path}/a.xml.gz", 0, 20) == data[:20]
    assert storage.read_part(f"{tmp_path}/a.xml.gz", 0, 1 << 20) == data


def test_a_head_that_cannot_be_read_is_named_in_one_line(storage: Storage, tmp_path: Path) -> None:
    """The error of a missing file has its name and the reason, without a stack trace."""
    with pytest.raises(NddupError, match=r"^\S*/none.xml: cannot be read \([^\n]*\)$"):
        storage.read_part(f"{tmp_path}/none.xml", 0, 10)


def test_text_is_read_as_it_was_written(storage: Storage, tmp_path: Path) -> None:
    """Text written whole or in pieces is read unchanged; writing makes folders and replaces an earlier file."""
    path = f"{tmp_path}/new [1] кот/a.txt"

    storage.write_text(path, "old and longer")
    storage.write_text(path, iter(["дом\t", "1\r\n", ""]))

    assert storage.read_text(path) == "дом\t1\r\n"


def test_text_that_is_missing_or_cannot_be_written_is_said(storage: Storage, tmp_path: Path) -> None:
    """A missing file, and a file where a folder is needed, are errors of one line."""
    fill(tmp_path, "file")

    with pytest.raises(OutputError, match=r"none: cannot be read \([^\n]*\)$"):
        storage.read_text(f"{tmp_path}/none")
    with pytest.raises(OutputError, match=r"below: cannot be written \([^\n]*\)$"):
        storage.write_text(f"{tmp_path}/file/below", "")
    with pytest.raises(OutputError, match=r"below: cannot be written \([^\n]*\)$"):
        storage.make_folder(f"{tmp_path}/file/below")


def test_remove_takes_a_file_or_a_whole_folder(storage: Storage, tmp_path: Path) -> None:
    """Files and folders are removed, their neighbours are not; removing a missing path is no error."""
    fill(tmp_path, "out/a", "out/deep/b", "out2/c", "file")

    for name in ("out", "file", "none"):
        storage.remove(f"{tmp_path}/{name}")

    assert storage.children(str(tmp_path)) == ["out2"]
    assert not storage.exists(f"{tmp_path}/out")
    assert storage.children(f"{tmp_path}/none") == []


def test_a_path_within_a_folder_is_told_from_one_beside_it(storage: Storage, tmp_path: Path) -> None:
    """`out2` is not within `out`."""
    assert storage.is_within(f"{tmp_path}/out/a", f"file:{tmp_path}/out/")
    assert storage.is_within(f"{tmp_path}/out", f"{tmp_path}/out")
    assert not storage.is_within(f"{tmp_path}/out2", f"{tmp_path}/out")
    assert not storage.is_within(str(tmp_path), f"{tmp_path}/out")


@pytest.mark.parametrize("way", ["own", "hadoop"])
def test_a_file_more_is_no_call_to_java_more(
    way: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls to Java grow with the folders, not the files: 300 files in two folders take at most 40."""
    fill(tmp_path, *(f"{folder}/{number}.xml" for folder in "ab" for number in range(150)))
    if way == "hadoop":
        monkeypatch.setattr(Storage, "is_own", lambda *_: False)
    storage, calls = Storage(spark), count_calls(spark, monkeypatch)

    found = storage.list_inputs([str(tmp_path)])

    assert len(found.files) == 300
    assert 0 < calls() <= 40


def test_a_head_more_is_no_call_to_java_more(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If tasks look at remote files, the heads of 300 take fewer calls to Java than there are files."""
    fill(tmp_path, *(f"{folder}/{number}.xml" for folder in "ab" for number in range(150)))
    monkeypatch.setattr(Storage, "is_own", lambda *_: False)
    monkeypatch.setattr(session_files, "LEAST_FILES", 300)
    storage = Storage(spark)
    listed = list(storage.list_inputs([str(tmp_path)]).files)
    calls = count_calls(spark, monkeypatch)

    def look(reader: PartReader, file: InputFile) -> HeadError:
        return HeadError(file.path, reader.read_part(file.path, 0, 100).decode())

    seen = storage.look_in_tasks([str(tmp_path)], listed, look)

    assert seen == {file.path: HeadError(file.path, file.source) for file in listed}
    assert 0 < calls() <= 200


def count_calls(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that counts the calls to Java since, without those by which Python releases objects."""
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]  # noqa: SLF001
    calls, send = list[str](), client.send_command

    def count(command: str, *given: Any, **how: Any) -> Any:  # noqa: ANN401 - as py4j has it
        calls.append(command)
        return send(command, *given, **how)

    monkeypatch.setattr(client, "send_command", count)
    return lambda: sum(not call.startswith("m\nd\n") for call in calls)


@pytest.mark.parametrize(
    ("system", "is_own"),
    [
        ("org.apache.hadoop.fs.LocalFileSystem", True),
        ("org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem", True),
        ("org.apache.hadoop.fs.RawLocalFileSystem", False),
    ],
)
def test_files_of_this_machine_are_known_by_their_file_system(
    system: str, spark: SparkSession, tmp_path: Path, *, is_own: bool
) -> None:
    """A session that names no file system for local files may have Hive's, which delegates to Hadoop's."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - Spark has no other way to it
    before, cached = hadoop.get("fs.file.impl"), "fs.file.impl.disable.cache"
    hadoop.set("fs.file.impl", system)
    hadoop.set(cached, "true")
    try:
        assert Storage(spark).is_own(f"{tmp_path}/a") is is_own
    finally:
        hadoop.set("fs.file.impl", before)
        hadoop.unset(cached)
