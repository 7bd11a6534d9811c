"""An archive of Spark's classes: loaded and checked once, then mapped into memory by each JVM that starts.

This is Java's own "class data sharing" (JEP 350, JDK 13 and later). The JVM of a first session writes the classes it
has loaded to a file when it ends; later sessions on this machine map that file. The file name depends on all that Java
compares, so another Java or another Spark makes a file of its own. The archive can only save time: if there is none, or
Java finds that it does not fit, a session starts as usual (`-Xshare:auto`). Java writes the head of the file last, so
an incomplete file does not fit.
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
from nddup.start_up import cache_folder

PATTERN = "spark-*.jsa*"
FREE_BYTES = 1 << 30
"""Free disk space below which no archive is written: one takes 150 to 200 MB."""

KNOWN = range(17, 25)
"""Versions of Java that have these options. Java does not start with an option it does not know."""

UNUSED_SECONDS = 30 * 24 * 3600
"""Age since its last use at which an archive is removed when another is made."""

MOST = 4
"""Archives on a machine, with the one that is being made: each takes 100 to 200 MB, and a change of Java, Spark or the
options makes another. The last used stay."""

MAKING_SECONDS = 600
"""Age at which a file without a head is made again."""

SILENT = "-Xlog:cds*=off"
"""Else Java prints on standard output why an archive does not fit, and which classes it leaves out."""

_OWN_ARCHIVE = {"share", "SharedArchiveFile", "ArchiveClassesAtExit", "AutoCreateSharedArchive", "SharedClassListFile"}
_CLASS_PATHS = ("SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_PREPEND_CLASSES")
_CLASS_PATH = "spark.driver.extraClassPath"


def archiving(java: Java | None, settings: Mapping[str, str], users: str) -> list[str]:
    """Return the options to use the archive that fits, or to make one; none if neither is possible.

    Args:
        java: the Java that Spark will use.
        settings: Spark's, as the user gave them.
        users: the user's own options for Java.
    """
    path = archive_path(java, settings, users)
    if path is None:
        return []
    if path.is_file() and not _is_given_up(path):
        with suppress(OSError):
            os.utime(path)  # marks it as in use
        return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", SILENT]
    if not _has_room(path.parent):
        return []
    _remove_old(path)
    return [f"-XX:ArchiveClassesAtExit={path}", SILENT]


def archive_path(java: Java | None, settings: Mapping[str, str], users: str) -> Path | None:
    """Return the file for this Java, Spark and options; None if the user chose an archive, or Java would refuse ours.

    Java refuses an archive if the class path has a folder with files, such as Spark's folder of settings.
    """
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    is_plain = not any(os.environ.get(name) for name in _CLASS_PATHS) and _CLASS_PATH not in settings
    folder = cache_folder()
    if folder is None or java is None or java.major not in KNOWN or "openj9" in java.release.lower():
        return None
    if not is_plain or (jars.parent / "conf").exists() or flags_of(users) & _OWN_ARCHIVE:
        return None
    try:
        files = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(jars))
    except OSError:
        return None
    told = repr((str(java.home), java.release, str(jars.resolve()), files, users.split()))
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    path = folder / f"spark-{pyspark.__version__}-java-{java.major}-{digest}.jsa"
    return None if ":" in str(path) else path  # a colon ends the name for Java


def _is_given_up(path: Path) -> bool:
    """Return whether a file was begun long ago and never finished: Java was killed meanwhile."""
    try:
        with path.open("rb") as file:
            is_whole = any(file.read(4))
        return not is_whole and time.time() - path.stat().st_mtime > MAKING_SECONDS
    except OSError:
        return False


def _has_room(folder: Path) -> bool:
    """Return whether the folder, created if missing, is writable and has room."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > FREE_BYTES
    except OSError:
        return False


def _remove_old(path: Path) -> None:
    """Remove the other archives in the folder of `path` but the last used, and those unused for `UNUSED_SECONDS`."""
    used = []
    for other in path.parent.glob(PATTERN):
        with suppress(OSError):
            used += [(other.stat().st_mtime, other)] if other != path else []
    for place, (when, other) in enumerate(sorted(used, reverse=True), 2):
        if place > MOST or time.time() - when > UNUSED_SECONDS:
            with suppress(OSError):  # a session that has mapped it keeps it
                other.unlink()
