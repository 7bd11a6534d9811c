"""What this process opens by itself, without Spark."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from nddup.storage.local_storage import local_path

SUBMITTED = ("SPARK_ENV_LOADED", "PYSPARK_GATEWAY_PORT")
"""Set where spark-submit started this process."""

FOLDER = "NDDUP_CACHE_DIR"
"""Names the folder for what is made once on this machine."""


def is_submitted() -> bool:
    """Whether spark-submit started this process: then a session of its own is there, and is to be used."""
    return any(name in os.environ for name in SUBMITTED)


def is_local(path: str) -> bool:
    """Whether a path names a file or folder of this machine. One that does not exist may be one of Hadoop's."""
    if urlsplit(path).scheme not in ("", "file"):
        return False
    return os.path.exists(local_path(path)) or "HADOOP_CONF_DIR" not in os.environ  # noqa: PTH110


def cache_folder() -> Path:
    """The folder for what is made once on this machine: `NDDUP_CACHE_DIR`, else `nddup` in the user's cache folder."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "nddup"  # noqa: PTH117 - "" is none
