"""Hadoop in a session on one machine: unused defaults are dropped, other settings kept, and no checksums written."""

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from nddup.spark.java import drop_unused_defaults, write_no_checksums


def test_only_unused_defaults_are_dropped(spark: SparkSession) -> None:
    settings = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    settings.reloadConfiguration()
    before = {name: settings.get(name) for name in ("fs.file.impl", "hadoop.tmp.dir", "io.serializations")}
    settings.set("mapreduce.job.name", "a name")
    assert settings.get("yarn.acl.enable") is not None

    drop_unused_defaults(spark)

    assert settings.get("yarn.acl.enable") is None
    assert settings.get("mapreduce.map.memory.mb") is None
    assert settings.get("mapreduce.job.name") == "a name"
    assert settings.get("mapreduce.fileoutputcommitter.algorithm.version") == "1"  # Spark's, not Hadoop's
    assert {name: settings.get(name) for name in before} == before


def test_no_checksums_are_written_and_those_there_are_compared(spark: SparkSession, tmp_path: Path) -> None:
    """No checksum is written, existing ones are still compared, and a file that is written again loses its checksum."""
    hadoop: Any = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr] # noqa: SLF001
    files, place = hadoop.FileSystem.getLocal(spark._jsc.hadoopConfiguration()), hadoop.Path(str(tmp_path / "file"))  # noqa: SLF001
    checksum = tmp_path / ".file.crc"
    try:
        files.setWriteChecksum(True)
        files.create(place).close()
        assert checksum.exists()
        (tmp_path / "file").write_text("other")
        with pytest.raises(Py4JJavaError, match="ChecksumException"):
            files.open(place).readAllBytes()
    finally:
        write_no_checksums(spark)

    files.create(place).close()

    assert not checksum.exists()
