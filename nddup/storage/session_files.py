"""The files that a session of Spark reaches: Hadoop's, those of this machine, or those shared with a Connect server."""

from pyspark.sql import SparkSession

from nddup.spark.reach import is_connect
from nddup.storage.files import Storage
from nddup.storage.local_storage import LocalStorage
from nddup.storage.shared_files import SharedStorage

SessionFiles = Storage | SharedStorage


def files_of(spark: SparkSession) -> SessionFiles:
    """The files of a session: whatever its Hadoop opens; without a JVM beside this process, files of the machine."""
    return SharedStorage(spark) if is_connect(spark) else Storage(spark)


def files_at(spark: SparkSession, path: str) -> SessionFiles | LocalStorage:
    """The files of a session, for a folder and what lies in it: opened by Python where it is on this machine.

    Each file costs several calls to Java there, which starts a process to set its permissions.
    """
    files = files_of(spark)
    return LocalStorage() if isinstance(files, Storage) and files.is_own(path) else files
