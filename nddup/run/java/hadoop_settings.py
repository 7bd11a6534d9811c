"""Spare a small session on one machine the Hadoop settings and checksum files that nobody needs there."""

from typing import Any

from lxml import etree
from pyspark.sql import SparkSession

UNUSED = frozenset({"yarn-default.xml", "mapred-default.xml"})
"""Files whose defaults are dropped. Code that reads one of these settings has the same default of its own."""


def drop_unused_defaults(spark: SparkSession) -> None:
    """Remove the defaults of YARN and MapReduce from Hadoop's settings of a classic session.

    Spark compresses all Hadoop settings and sends them with each scan and each write. Two thirds of some 1,100 belong
    to YARN and MapReduce. Settings from the user's files, Spark or `spark.hadoop.*` are kept.

    Cost: a call to Java for the list, and one for each setting removed: 0.1 s.
    """
    java: Any = spark
    settings = java.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - there is no other way to Hadoop's settings
    listed = java._jvm.java.io.StringWriter()  # noqa: SLF001
    settings.writeXml(listed)
    for setting in etree.fromstring(listed.toString().encode()):
        sources = {source.text for source in setting.iter("source")}
        if sources and sources <= UNUSED:
            settings.unset(setting.findtext("name"))


def write_no_checksums(spark: SparkSession) -> None:
    """Stop Hadoop from writing a checksum file beside each local file; existing checksums are still compared.

    Hadoop starts a process to set the permissions of each file it writes, checksum files too: 5 ms each, where a table
    of a small run has a hundred bytes.

    Cost: two calls to Java.
    """
    java: Any = spark
    settings = java.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    java._jvm.org.apache.hadoop.fs.FileSystem.getLocal(settings).setWriteChecksum(False)  # noqa: SLF001
