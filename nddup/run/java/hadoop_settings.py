"""What a small session on one machine knows of Hadoop, and what Hadoop writes there: no more than anybody needs."""

from typing import Any

from lxml import etree
from pyspark.sql import SparkSession

UNUSED = frozenset({"yarn-default.xml", "mapred-default.xml"})
"""The files of defaults that are dropped. Code that asks for one of these settings has the same default of its own."""


def drop_unused_defaults(spark: SparkSession) -> None:
    """Remove the defaults of YARN and MapReduce from Hadoop's settings of a classic session.

    Spark compresses all of Hadoop's settings and sends them with each scan and each write. Two thirds of some 1,100 are
    of YARN and MapReduce. What the user's files, Spark or `spark.hadoop.*` have set is kept.

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
    """Let Hadoop write no file of checksums beside each file of this machine; those that are there are still compared.

    For each file, and so for each of these, Hadoop starts a process that sets its permissions: 5 ms where a table of a
    small run has a hundred bytes.

    Cost: two calls to Java.
    """
    java: Any = spark
    settings = java.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    java._jvm.org.apache.hadoop.fs.FileSystem.getLocal(settings).setWriteChecksum(False)  # noqa: SLF001
