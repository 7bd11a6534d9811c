"""What this process opens by itself, without Spark."""

import os
from urllib.parse import urlsplit

from nddup.storage.local_storage import local_path

SUBMITTED = ("SPARK_ENV_LOADED", "PYSPARK_GATEWAY_PORT")
"""Set where spark-submit started this process."""


def is_submitted() -> bool:
    """Whether spark-submit started this process: then a session of its own is there, and is to be used."""
    return any(name in os.environ for name in SUBMITTED)


def is_local(path: str) -> bool:
    """Whether a path names a file or folder of this machine. One that does not exist may be one of Hadoop's."""
    if urlsplit(path).scheme not in ("", "file"):
        return False
    return os.path.exists(local_path(path)) or "HADOOP_CONF_DIR" not in os.environ  # noqa: PTH110
