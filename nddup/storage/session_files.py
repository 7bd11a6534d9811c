"""The files that a session of Spark reaches: Hadoop's, or those shared with a server of Spark Connect."""

from pyspark.sql import SparkSession

from nddup.spark.reach import is_connect
from nddup.storage.files import Storage
from nddup.storage.shared_files import SharedStorage

SessionFiles = Storage | SharedStorage


def files_of(spark: SparkSession) -> SessionFiles:
    """The files of a session: whatever its Hadoop opens; without a JVM beside this process, files of the machine."""
    return SharedStorage(spark) if is_connect(spark) else Storage(spark)
