"""The same bytes give the same records, however Spark splits a file, and as a file that is read from its start."""

import io
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead
from nddup.reading.records import Record, Reject
from nddup.reading.streams import find_open_end
from nddup.run.session import SPLITTING, set_to
from nddup.scanning.chunks import parse_chunks
from nddup.scanning.collection import Collection, find_files
from nddup.scanning.sketch_records import SketchRecords
from nddup.scanning.whole_files import StoredFile, read_file
from nddup.settings.load import build_config
from nddup.settings.scan_rules import limits_of, sketch_rule
from nddup.spark.reading.scan import scan
from nddup.storage.files import Storage
from nddup.tables import CHUNKS

MAX_RECORD = 10_000
WHOLE = {
    "xml": b"<?xml version='1.0'?>\n<docs><doc><id>1</id><text>a</doc_>b</text></doc>\n"
    b"<doc><id>2</id><text>c</text></doc><doc><id>3</id><text>d</text><more/></doc>\n</docs>\n",
    "prefixed": b"<r:docs xmlns:r='u'><r:doc><r:id>1</r:id><r:text>a</r:text></r:doc ><!-- </r:do -->"
    b"<r:doc><r:id>2</r:id><r:text>b</r:text></r:doc></r:docs>",
    "one": b"<doc><id>1</id><title>t</title><text>a</text></doc>",
    "rows": b"<posts>\n<row Id='1' Body='a' />\n<row Id='2' Body='b>c'/>\n<row Id='3' Body='c'/>\n</posts>",
    "trec": b"<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>a</TEXT>\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\n<HL>h</HL><TEXT>b</TEXT>\n"
    b"</DOC>",
    "web": b"<DOC><DOCNO>1</DOCNO><DOCHDR>http://a/</DOCHDR><html>a</html></DOC>"
    b"<DOC><DOCNO>2</DOCNO><DOCHDR>http://b/</DOCHDR><html>b</html>\nc</DOC>",
    "wiki": b"<mediawiki><page><title>A</title><id>1</id><revision><text>a</text></revision></page>"
    b"<page><title>B</title><id>2</id><revision><text>b</text></revision><x/></page></mediawiki>\n",
    "feed": b"<rss><channel><item><guid>1</guid><title>a</title></item><item><guid>2</guid><title>b</title>"
    b"<description>c</description></item></channel></rss>",
    "jsonl": b'{"id": "1", "text": "a"}\n\n{"id": "2", "text": "b"}\r\n{"id": "3", "text": "c"}',
    "marked": b"\xef\xbb\xbf<docs><doc><id>1</id><text>\xd0\xb0</text></doc><doc><id>2</id><text>b</text></doc></docs>",
    "utf-16": "<docs><doc><id>1</id><text>a</text></doc><doc><id>2</id><text>b</text></doc></docs>".encode("utf-16"),
}
"""Small files of each format that Spark cuts, whole: every one is tested cut off at each of its bytes."""
SETTINGS = {"feed": {"format": "rss"}}


def head_of(name: str) -> FileHead:
    """The head of a small file, told from all of it."""
    return read_head(WHOLE[name], **SETTINGS.get(name, {}))


def chunks_of(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """CHUNKS as a worker gets them."""
    return CHUNKS.batch([pa.array(column) for column in zip(*rows, strict=True)])


def read_from_start(data: bytes, head: FileHead) -> list[Record | Reject]:
    """The records of a file that one task reads."""
    file = StoredFile("a", "", 0, partial(io.BytesIO, data))
    return [record for record, _ in read_file(file, head, MAX_RECORD)]


def cut(data: bytes, separator: bytes) -> list[tuple[int, bytes]]:
    """The chunks of a file as Hadoop cuts it, each with the byte whose split gives it: `find_open_end` says which."""
    chunks, at, anchor = [], 0, 0
    while at < len(data):
        end = data.find(separator, at)
        value = data[at : end if end >= 0 else len(data)]
        chunks.append((anchor, value.removeprefix(b"\xef\xbb\xbf") if at == 0 else value))
        anchor, at = end, (end + len(separator) if end >= 0 else len(data))
    return chunks


def read_split(data: bytes, head: FileHead, ends: list[int], chunks: list[tuple[int, bytes]]) -> list[Record | Reject]:
    """The records of a file that is split at these places, the last split read first, as another task would."""
    at = find_open_end(lambda start, size: data[start : start + size], len(data), head.separator, max_record=MAX_RECORD)
    found: list[Record | Reject] = []
    for start, end in reversed(list(pairwise([0, *ends, len(data)]))):
        rows = [(value, "a", start, start <= at < end) for anchor, value in chunks if start <= anchor < end]
        if rows:
            parsed = parse_chunks([chunks_of(rows)], head, MAX_RECORD)
            found[:0] = [one.record for some in parsed for one in some]
    return found


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_cut_off_anywhere_and_split_anyhow_gives_the_same_records(name: str) -> None:
    """Every length of a small file under every size of split: the records, the rejects, their reasons."""
    head = head_of(name)
    for length in range(1, len(WHOLE[name]) + 1):
        data = WHOLE[name][:length]
        chunks, expected, seen = cut(data, head.separator), read_from_start(data, head), set()
        for size in range(1, length + 1):
            places = tuple(anchor // size for anchor, _ in chunks)
            if places not in seen:  # else the same chunks are together
                seen.add(places)
                found = read_split(data, head, list(range(size, length, size)), chunks)
                assert found == expected, (length, size)


def test_the_end_of_a_file_is_found_however_far_its_last_separator_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the whole file: for every length of the last chunk, in one reading or several, and past the longest."""
    monkeypatch.setattr("nddup.reading.streams.TAIL", 3)
    for separator in (b"\n", b"</d>"):
        for before in (b"", separator, b"<d>a" + separator):
            for length in range(130):
                data = before + b"x" * length

                at = find_open_end(lambda start, size: data[start : start + size], len(data), separator, max_record=100)  # noqa: B023

                open_end = max(data.rfind(separator), 0)
                is_seen = length and (length <= 100 or len(data) <= 100 + len(separator))
                assert at == (open_end if is_seen else -1 if before or length else 0), (before, length)


# In Spark ------------------------------------------------------------------------------------------------------------


def read_with(spark: SparkSession, collection: Collection, size: int | None) -> list[tuple[Any, ...]]:
    """The records of a collection under a size of split; None reads each file from its start."""
    config = build_config({}, origin="test")
    if size is None:
        collection = collection.read_whole({file.source for file in collection.listing.files})
    records = scan(
        spark, collection, SketchRecords(sketch_rule(config)), files=Storage(spark), limits=limits_of(config)
    )
    with set_to(spark, dict(zip(SPLITTING, (str(size or 1 << 20), "0", "1"), strict=True))):
        rows = records.orderBy("source", "split", "seq").collect()
    return [
        (row["source"], row["doc_id"], row["reason"], row["detail"], bytes(row["sketch_fingerprint"])) for row in rows
    ]


def test_sparks_splits_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Files of every format, whole and cut off, one of them where a separator ends, under splits of several sizes."""
    for name in ("xml", "rows", "trec", "web", "jsonl", "marked"):
        data, head = WHOLE[name], head_of(name)
        for length in (len(data) - 5, data.rfind(head.separator, 0, -1) + len(head.separator)):
            (tmp_path / f"{name}-{length}").write_bytes(data[:length])
    collection = find_files(Storage(spark), [str(tmp_path)], build_config({}, origin="test").input)

    expected = read_with(spark, collection, None)

    assert len({row[0] for row in expected}) == len(collection.listing.files) == 12
    assert {"truncated", None} <= {row[2] for row in expected}
    for size in (29, 47, 83):
        assert read_with(spark, collection, size) == expected, size


@pytest.mark.parametrize("name", ["prefixed", "jsonl"])
def test_chunks_are_where_hadoop_gives_them(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """The model of these tests against Hadoop's own reader: two splits at every byte, and splits of a few bytes."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public door to Hadoop
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    hadoop, lib = jvm.org.apache.hadoop, jvm.org.apache.hadoop.mapreduce
    data, separator = WHOLE[name], head_of(name).separator
    (tmp_path / "a").write_bytes(data)
    path = hadoop.fs.Path(str(tmp_path / "a"))
    hosts = gateway.new_array(jvm.java.lang.String, 0)
    task = lib.task.TaskAttemptContextImpl(hadoop.conf.Configuration(), lib.TaskAttemptID())

    def given(start: int, end: int) -> list[bytes]:
        reader = lib.lib.input.LineRecordReader(separator)
        reader.initialize(lib.lib.input.FileSplit(path, start, end - start, hosts), task)
        found = []
        while reader.nextKeyValue():
            found.append(bytes(reader.getCurrentValue().copyBytes()))
        reader.close()
        return found

    chunks = cut(data, separator)
    splittings = [[0, at, len(data)] for at in range(1, len(data))]
    splittings += [[*range(0, len(data), size), len(data)] for size in (1, 3, 5)]
    for ends in splittings:
        for start, end in pairwise(ends):
            assert given(start, end) == [value for anchor, value in chunks if start <= anchor < end], (start, end)
