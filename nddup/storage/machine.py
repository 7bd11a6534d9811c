"""What this process finds out about its machine without Spark."""

import os

from nddup.scanning.local_paths import is_of_this_machine
from nddup.storage.local_storage import local_path

SUBMITTED = ("SPARK_ENV_LOADED", "PYSPARK_GATEWAY_PORT")
"""Environment variables that are set where spark-submit started this process."""


def is_submitted() -> bool:
    """Return whether spark-submit started this process: then its session is there already, and must be used."""
    return any(name in os.environ for name in SUBMITTED)


def is_local(path: str) -> bool:
    """Return whether a path is of this machine. A missing one may be Hadoop's, if `HADOOP_CONF_DIR` is set."""
    if not is_of_this_machine(path):
        return False
    return os.path.exists(local_path(path)) or "HADOOP_CONF_DIR" not in os.environ  # noqa: PTH110
