"""Files of any length and name on any file system that Spark reads give the same records as the same files locally."""

import bz2
import gzip
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from nddup.cli import main
from nddup.errors import NddupError
from nddup.reading.reference_lists import guess_layout
from nddup.reading.streams import StoppedError
from nddup.reading.xml_cutting import Pieces
from nddup.scanning.collection import find_files
from nddup.scanning.found import TextRule
from nddup.scanning.read_again import Contents
from nddup.scanning.sketch_records import SketchRecords
from nddup.settings.load import build_config
from nddup.settings.plan import record_limits, sketch_rule
from nddup.spark import hadoop_files, heavy_keys
from nddup.spark.hadoop_files import read_list
from nddup.spark.run import run_job
from nddup.spark.scan import scan
from nddup.spark.schemas import schema_of
from nddup.spark.session_files import Storage
from nddup.tables import FILES
from tests.places import ROOT
from tests.samples_by_night import first

DATA = st.lists(st.sampled_from([b"\n", b"\r", b"a", b"\xef\xbb\xbf", b"bc", b"\0"]), min_size=1).map(b"".join)


def lines_of(data: bytes) -> list[bytes]:
    """Return what Spark reads of a file: the bytes between line ends, without a byte order mark or empty last line."""
    lines = data.split(b"\n")
    lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
    return lines if lines[-1] else lines[:-1]


def rows(name: str, data: bytes) -> list[dict[str, Any]]:
    """Return the rows of FILES of one file, one per line."""
    known = {"path": name, "source": name, "compression": "", "most": 0, "size": len(data), "task": 0}
    return [known | {"content": line} for line in lines_of(data)]


@given(DATA, st.integers(1, 5))
def test_pieces_are_the_file(data: bytes, size: int) -> None:
    """The pieces of any file read as the file without its byte order mark, however few bytes are taken at a time."""
    stream = Pieces(lines_of(data), len(data))

    taken = b"".join(iter(lambda: stream.read(size), b""))

    assert taken == data.removeprefix(b"\xef\xbb\xbf")


def test_missing_pieces_are_said() -> None:
    """If bytes are missing, reading fails as damaged after all others: a reader stopped, or the file became shorter."""
    stream = io.BufferedReader(Pieces([b"abc", b"def"], 20), 4)

    assert stream.read(7) == b"abc\ndef"
    with pytest.raises(StoppedError, match="7 of 20 bytes came") as stopped:
        stream.read(1)
    assert stopped.value.reason == "damaged"


def test_a_file_that_went_or_became_a_pipe_is_not_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    """The JVM would wait for a pipe, and its own error has many lines."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, what in (("pipe.jsonl", "since it was listed it became a named pipe"), ("gone.jsonl", "No such file")):
        with pytest.raises(NddupError, match=rf"^\S*{name}: cannot be read \({what}[^\n]*$"):
            hadoop_files._load(spark.read.format("text"), [(tmp_path / name).as_uri()])  # noqa: SLF001


@given(st.lists(DATA, min_size=1, max_size=4), st.integers(1, 7), st.integers(0, 3))
def test_the_rows_of_a_task_are_its_files(files: list[bytes], width: int, untaken: int) -> None:
    """Each file of a task is read whole, within a batch or across batches, even if another file is skipped."""
    files = [b"x" + data for data in files]
    table = pa.Table.from_pylist(
        [row for n, data in enumerate(files) for row in rows(str(n), data)], schema=to_arrow_schema(schema_of(FILES))
    )
    found = {}
    for row in hadoop_files.rows_of(iter(table.to_batches(max_chunksize=width))):
        if row["path"] != str(untaken):
            found[row["path"]] = hadoop_files.open_row(row).read()

    assert found == {str(n): data for n, data in enumerate(files) if n != untaken}


def test_what_came_in_pieces_can_be_sought_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in pieces is written to the worker's disk to seek in it, as Parquet needs, and deleted when closed."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/none")
    data = b"ab\ncd" * 1000
    [row] = hadoop_files.rows_of(
        iter([pa.RecordBatch.from_pylist(rows("a", data), schema=to_arrow_schema(schema_of(FILES)))])
    )

    with hadoop_files.in_one_place(hadoop_files.open_row(row)) as file:
        file.seek(-4, io.SEEK_END)
        assert file.read() == data[-4:]
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "none"))
    [row] = hadoop_files.rows_of(
        iter([pa.RecordBatch.from_pylist(rows("a", data), schema=to_arrow_schema(schema_of(FILES)))])
    )
    with pytest.raises(NddupError, match=r"/none, a disk of Spark's workers: cannot be written \(No such file"):
        hadoop_files.in_one_place(hadoop_files.open_row(row))


@pytest.mark.parametrize(
    ("name", "ending"),
    [("a.WARC.GZ", ".gz"), ("a%20b.parquet", ".parquet"), ("part-0", ""), ("a.b c", ""), (".gz", ""), ("x.d/part", "")],
)
def test_the_ending_of_a_name_is_one_a_codec_can_claim(name: str, ending: str) -> None:
    """The ending starts at the last point, and is empty if Hadoop's settings would read it as something else."""
    assert hadoop_files._ending(f"s3a://bucket/folder.gz/{name}") == ending  # noqa: SLF001


# In Spark ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def remote(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The folder as a `s3a://` URI of another file system, where a file of more than 300 bytes counts as long.

    The file system is Hadoop's view of a folder: it shows that Spark's own readers open the files, not how S3 behaves.
    """
    monkeypatch.setattr(hadoop_files, "FETCHED_BYTES", 300)
    hadoop = spark._jsc.hadoopConfiguration()  # noqa: SLF001
    store = f"fetched{crc32(str(tmp_path).encode())}"  # Hadoop caches file systems by name
    options = {
        "fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        f"fs.viewfs.mounttable.{store}.link.{tmp_path}": tmp_path.as_uri(),
    }
    for key, value in options.items():
        hadoop.set(key, value)
    yield f"s3a://{store}{tmp_path}"
    for key in options:
        hadoop.unset(key)


def write_files(folder: Path) -> None:
    """Write files of all containers, compressed and plain, with and without endings, damaged and cut; most are long."""
    folder.mkdir()
    texts = [" ".join(f"word{(n * 7919 + i * i * 31) % 9973}" for i in range(30)) for n in range(12)]
    lines = "".join(json.dumps({"id": f"l{n}", "text": text}) + "\n" for n, text in enumerate(texts)).encode()
    table = "id,text\r\n" + "".join(f'c{n},"{text}\n\r\nx"\r\n' for n, text in enumerate(texts))
    pages = b"".join(
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://w/%d\r\nContent-Type: text/html\r\n"
        b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (n, len(text), text.encode())
        for n, text in enumerate(texts)
    )
    files = {
        "a b[1].jsonl.gz": gzip.compress(lines),
        "cut.jsonl.gz": gzip.compress(lines.replace(b'"l', b'"m'))[:-200],
        "whole.jsonl.bz2": bz2.compress(lines.replace(b'"l', b'"k')),
        "part-00000": zstandard.compress(lines.replace(b'"l', b'"p')),
        "TABLE.CSV": b"\xef\xbb\xbf" + table.encode(),
        "pages.warc": pages,
        "pages.warc.gz": gzip.compress(pages.replace(b"http://w", b"http://z")),
        "plain.jsonl.gz": lines.replace(b'"l', b'"n'),
        "long.jsonl": lines.replace(b'"l', b'"o') + b'{"id": "long", "text": "' + b"y" * 5000 + b'"}\n',
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    columns = {"id": [f"q{n}" for n in range(12)], "text": texts}
    pq.write_table(pa.table(columns), folder / "table.parquet", compression="none")


def records(spark: SparkSession, *inputs: str) -> tuple[list[str], list[str]]:
    """Return the records of these inputs with all their columns, and their contents, as a run reads them."""
    config = build_config({"input": {"max_record": 2000}}, origin="test")
    files = Storage(spark)
    collection = find_files(files, list(inputs), config.input)
    assert not collection.unread
    collection = collection.read_whole({"long.jsonl"})  # as a run does when a record of it is missing
    found = scan(spark, collection, SketchRecords(sketch_rule(config)), files=files, limits=record_limits(config))
    contents = scan(spark, collection, Contents(TextRule()), files=files, limits=record_limits(config))
    return sorted(map(str, found.collect())), sorted(map(str, contents.collect()))


@pytest.mark.parametrize("broadcast", first(1, [2, heavy_keys.MOST_BROADCAST]))
def test_files_of_another_file_system_are_read_as_local_ones(
    spark: SparkSession, tmp_path: Path, remote: str, monkeypatch: pytest.MonkeyPatch, broadcast: int
) -> None:
    """Every file is read: long and short, compressed, WARC, CSV, Parquet, with a record too long, with a wrong ending.

    The same holds if there are too many files for one broadcast.
    """
    write_files(tmp_path / "in")
    (tmp_path / "in" / "_hidden").write_bytes(gzip.compress(b'{"id": "h", "text": "' + b"a b c " * 20 + b'"}'))

    here = records(spark, f"{tmp_path}/in", f"{tmp_path}/in/_hidden")
    monkeypatch.setattr(heavy_keys, "MOST_BROADCAST", broadcast)
    there = records(spark, f"{remote}/in", f"{remote}/in/_hidden")

    assert there == here
    assert len(here[0]) > 12 * 8
    assert sum("reason='too large'" in row for row in here[0]) == 1
    assert sum("reason='damaged'" in row for row in here[0]) == 1
    assert not any("unreadable" in row for row in here[0])


def test_a_compressed_list_of_another_file_system_is_read(spark: SparkSession, tmp_path: Path, remote: str) -> None:
    """A compressed reference list is fetched in the same way as collection files."""
    lines = [f"{n * 7919 % 1000}\t{n * 104_729 % 1000}" for n in range(300)]
    packed = gzip.compress("\n".join(lines).encode())
    (tmp_path / "truth.tsv.gz").write_bytes(packed)
    layout = guess_layout(lines, kind="pairs", delimiter=None, header=False, score=None)

    entries = read_list(spark, f"{remote}/truth.tsv.gz", layout, compression="gzip", size=len(packed))

    found = sorted(sorted([row["doc_a"], row["doc_b"]]) for row in entries.collect())
    assert found == sorted(sorted(line.split("\t")) for line in lines)


def test_a_file_that_cannot_be_opened_fails_the_run(spark: SparkSession, tmp_path: Path, remote: str) -> None:
    """The error of a file that a worker cannot open names all such files; within `max_unreadable` they are rejects."""
    write_files(tmp_path / "in")
    for name in ("_a.gz", "_b.gz"):  # Spark skips such names, and the files are too long to send
        shutil.copy(tmp_path / "in" / "a b[1].jsonl.gz", tmp_path / name)
    inputs, output = [f"{remote}/{name}" for name in ("_a.gz", "_b.gz", "in/TABLE.CSV")], tmp_path / "out"
    tables: dict[str, Any] = {"output": {"texts": 0, "report": False}}

    with pytest.raises(NddupError, match=r"^files that cannot be read: 2, input.max_unreadable 0: _a.gz .*; _b.gz "):
        run_job(spark, inputs, str(output), build_config(tables, origin="test"))
    assert not (output / "_COMPLETE").exists()

    config = build_config({"input": {"max_unreadable": 2}, **tables}, origin="test")
    metrics = run_job(spark, inputs, str(output), config, resume=True)
    sketched = metrics["stages"]["sketch"]
    assert sketched["resumed"] == ["documents", "rejects"]
    assert sketched["rejected"]["unreadable"] == 2


def test_a_file_that_the_driver_cannot_open_fails_the_run_before_it_begins(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the driver cannot open a file, the run fails before it writes anything."""
    read_part = Storage.read_part

    def refuse(self: Storage, path: str, start: int, size: int) -> bytes:
        if "secret" in path:
            raise NddupError(f"{path}: cannot be read (denied)")
        return read_part(self, path, start, size)

    monkeypatch.setattr(Storage, "read_part", refuse)
    for name in ("secret-1", "secret-2", "open"):
        (tmp_path / f"{name}.jsonl").write_text('{"id": "1", "text": "a"}\n')

    with pytest.raises(NddupError, match=r"cannot be read: 2, .* secret-1.jsonl \(.*denied\)\); secret-2.jsonl "):
        run_job(spark, [str(tmp_path)], f"{tmp_path}/out", build_config({}, origin="test"))

    assert not (tmp_path / "out").exists()


def test_inspect_reads_any_hadoop_path(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`inspect` describes plain and compressed files of another file system as it describes local ones."""
    for path in (ROOT / "samples" / "debdocs").glob("debdocs.*"):
        shutil.copy(path, tmp_path)
    spark._jsc.hadoopConfiguration().set(f"fs.viewfs.mounttable.lake.link.{tmp_path}", tmp_path.as_uri())  # noqa: SLF001

    assert main(["inspect", str(tmp_path)]) == 0
    here = capsys.readouterr().out
    assert main(["inspect", f"viewfs://lake{tmp_path}"]) == 0

    assert capsys.readouterr().out == here.replace(", all there are", "")
