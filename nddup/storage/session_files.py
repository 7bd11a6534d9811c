"""The files that a Spark session reaches: Hadoop's, those of this machine, or those shared with a Connect server."""

from pyspark.sql import SparkSession

from nddup.spark.reach import is_connect
from nddup.storage.files import Storage
from nddup.storage.local_storage import LocalStorage
from nddup.storage.shared_files import SharedStorage

SessionFiles = Storage | SharedStorage


def files_of(spark: SparkSession) -> SessionFiles:
    """Return the files of a session: all that its Hadoop opens or, on Spark Connect, files of this machine."""
    return SharedStorage(spark) if is_connect(spark) else Storage(spark)


def files_at(spark: SparkSession, path: str) -> SessionFiles | LocalStorage:
    """Return the files to use for a folder and all in it: Python's if the folder is on this machine.

    Through Hadoop, each local file would cost several calls to Java, which starts a process to set its permissions.
    """
    files = files_of(spark)
    return LocalStorage() if isinstance(files, Storage) and files.is_own(path) else files
