"""However Spark splits a file, it gives the same records as if it is read from its start."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nddup.scanning.collection import Collection, find_files
from nddup.scanning.sketch_records import SketchRecords
from nddup.settings.load import build_config
from nddup.settings.plan import record_limits, sketch_rule
from nddup.spark import hadoop_files
from nddup.spark.scan import scan
from nddup.spark.session import SPLITTING, set_to
from nddup.spark.session_files import Storage
from tests.scanning.small_files import WHOLE, cut, head_of


def read_with(spark: SparkSession, collection: Collection, size: int | None) -> list[tuple[Any, ...]]:
    """Return the records of a collection read in splits of `size` bytes; None reads each file from its start."""
    config = build_config({}, origin="test")
    if size is None:
        collection = collection.read_whole({file.source for file in collection.listing.files})
    records = scan(
        spark, collection, SketchRecords(sketch_rule(config)), files=Storage(spark), limits=record_limits(config)
    )
    with set_to(spark, dict(zip(SPLITTING, (str(size or 1 << 20), "0", "1"), strict=True))):
        rows = records.orderBy("source", "split", "seq").collect()
    return [
        (row["source"], row["doc_id"], row["reason"], row["detail"], bytes(row["sketch_fingerprint"])) for row in rows
    ]


def test_sparks_splits_change_nothing(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits of several sizes change no record, for files of every format cut off in a record or after a separator.

    The names of many files are broadcast.
    """
    for name in ("xml", "rows", "trec", "web", "jsonl", "marked"):
        data, head = WHOLE[name], head_of(name)
        for length in (len(data) - 5, data.rfind(head.separator, 0, -1) + len(head.separator)):
            (tmp_path / f"{name}-{length}").write_bytes(data[:length])
    collection = find_files(Storage(spark), [str(tmp_path)], build_config({}, origin="test").input)

    expected = read_with(spark, collection, None)

    assert len({row[0] for row in expected}) == len(collection.listing.files) == 12
    assert {"truncated", None} <= {row[2] for row in expected}
    for size, few in ((29, 32), (47, 32), (83, 0)):
        monkeypatch.setattr(hadoop_files, "FEW_FILES", few)
        assert read_with(spark, collection, size) == expected, size


@pytest.mark.parametrize("name", ["prefixed", "jsonl"])
def test_chunks_are_where_hadoop_gives_them(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Hadoop's reader cuts files as the model `cut` does, in two splits at every byte and in splits of a few bytes."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Hadoop has no public API here
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
