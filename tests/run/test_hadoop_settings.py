"""Hadoop's settings of a session on one machine: without defaults nobody needs, with all that anyone has set."""

from pyspark.sql import SparkSession

from nddup.run.java.hadoop_settings import drop_unused_defaults


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
