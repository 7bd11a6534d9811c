"""The archive of Spark's classes: loaded and checked once, then mapped into memory by each Java machine that starts.

Java's own "class data sharing" (JEP 350, JDK 13 and later). The Java machine of a first session writes down the classes
it has loaded when it ends; later sessions on this machine map them. The file is named by all that Java compares, so
that another Java or another Spark makes one of its own. It can only save time: where there is none, or Java finds that
it does not fit, a session starts as it would without (`-Xshare:auto`). Java writes the head of the file last, so a file
that is not whole does not fit.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyspark

from nddup.run.java.installed import Java
from nddup.run.java.java_options import flags_of
from nddup.storage.machine import cache_folder

PATTERN = "spark-*.jsa*"
FREE_BYTES = 1 << 30
"""Room on the disk without which none is written: an archive takes 150 to 200 MB."""

KNOWN = range(17, 25)
"""Versions of Java that have these options. Java does not start with one that it does not know."""

UNUSED_SECONDS = 30 * 24 * 3600
"""An archive that no session took for so long is removed when another is made."""

MAKING_SECONDS = 600
"""After so long a file without a head is made again."""

SILENT = "-Xlog:cds*=off"
"""Java says on standard output why an archive does not fit, and which classes it leaves out."""

_OWN_ARCHIVE = {"share", "SharedArchiveFile", "ArchiveClassesAtExit", "AutoCreateSharedArchive", "SharedClassListFile"}
_CLASS_PATHS = ("SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_PREPEND_CLASSES")
_CLASS_PATH = "spark.driver.extraClassPath"


def archiving(java: Java | None, settings: Mapping[str, str], users: str) -> list[str]:
    """The options to use the archive that fits, or to make one; none where anything speaks against it.

    Args:
        java: the Java that Spark will take.
        settings: of Spark, as the user gave them.
        users: the user's own options for Java.
    """
    path = archive_path(java, settings, users)
    if path is None:
        return []
    if path.is_file() and not _is_given_up(path):
        with suppress(OSError):
            os.utime(path)  # in use: not one of the old
        return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", SILENT]
    if not _has_room(path.parent):
        return []
    _remove_old(path)
    return [f"-XX:ArchiveClassesAtExit={path}", SILENT]


def archive_path(java: Java | None, settings: Mapping[str, str], users: str) -> Path | None:
    """The file for this Java, this Spark and these options; None where a user sees to it, or Java would not take it.

    Java refuses an archive whose class path has a folder with files, as that of Spark's settings is.
    """
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    is_plain = not any(os.environ.get(name) for name in _CLASS_PATHS) and _CLASS_PATH not in settings
    if java is None or java.major not in KNOWN or "openj9" in java.release.lower():
        return None
    if not is_plain or (jars.parent / "conf").exists() or flags_of(users) & _OWN_ARCHIVE:
        return None
    try:
        files = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(jars))
    except OSError:
        return None
    told = repr((str(java.home), java.release, str(jars.resolve()), files, users.split()))
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    path = cache_folder() / f"spark-{pyspark.__version__}-java-{java.major}-{digest}.jsa"
    return None if ":" in str(path) else path  # to Java a colon ends the name


def _is_given_up(path: Path) -> bool:
    """Whether a file was begun long ago and never ended: Java was killed meanwhile."""
    try:
        with path.open("rb") as file:
            is_whole = any(file.read(4))
        return not is_whole and time.time() - path.stat().st_mtime > MAKING_SECONDS
    except OSError:
        return False


def _has_room(folder: Path) -> bool:
    """Whether the folder, made where it is missing, can be written and has room."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > FREE_BYTES
    except OSError:
        return False


def _remove_old(path: Path) -> None:
    """Remove the archives beside one that no session took for long."""
    for other in path.parent.glob(PATTERN):
        with suppress(OSError):
            if other != path and time.time() - other.stat().st_mtime > UNUSED_SECONDS:
                other.unlink()
