"""The archive of Spark's classes: loaded and checked once, then mapped into memory by each Java machine that starts.

Java's own "class data sharing" (JEP 350, JDK 13 and later). A first run records the classes it loads and writes them
down at its end; later sessions on this machine map them. The file is named by all that Java compares, so that another
Java or another Spark makes one of its own. It can only save time: where there is none, or Java finds that it does not
fit, a session starts as it would without (`-Xshare:auto`).
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from pyspark.sql import SparkSession

from nddup.run.java.installed import Java
from nddup.run.java.options import flags_of

NOTE = "spark.nddup.classArchive"
"""Where a session that records its classes notes the file they are for."""

FOLDER, PATTERN = "NDDUP_CACHE_DIR", "spark-*.jsa*"
FREE_BYTES = 1 << 30
"""Room on the disk without which none is written: an archive takes 150 to 200 MB."""

KNOWN = range(17, 25)
"""Versions of Java that have these options. Java does not start with one that it does not know."""

UNUSED_SECONDS = 30 * 24 * 3600
"""An archive that no session took for so long is removed when another is made."""

SILENT = "-Xlog:cds*=off"
"""Java says on standard output why an archive does not fit, and which classes it leaves out."""

_OWN_ARCHIVE = {"share", "SharedArchiveFile", "ArchiveClassesAtExit", "AutoCreateSharedArchive", "SharedClassListFile"}
_CLASS_PATHS = ("SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_PREPEND_CLASSES")
_CLASS_PATH = "spark.driver.extraClassPath"


class Archiving(NamedTuple):
    """What a session does about its classes: the options of its Java machine, and the file that it is to make."""

    options: list[str]
    makes: Path | None


NOTHING = Archiving([], None)


def archiving(java: Java | None, settings: Mapping[str, str], users: str) -> Archiving:
    """Use the archive that fits, or record the classes for one; neither where anything speaks against it.

    Args:
        java: the Java that Spark will take.
        settings: of Spark, as the user gave them.
        users: the user's own options for Java.
    """
    path = archive_path(java, settings, users)
    if path is None:
        return NOTHING
    if path.is_file():
        with suppress(OSError):
            os.utime(path)  # in use: not one of the old
        return Archiving([f"-XX:SharedArchiveFile={path}", "-Xshare:auto", SILENT], None)
    if not _has_room(path.parent):
        return NOTHING
    return Archiving(["-XX:+RecordDynamicDumpInfo", SILENT], path)


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


def cache_folder() -> Path:
    """The folder for what is made once on this machine: `NDDUP_CACHE_DIR`, else `nddup` in the user's cache folder."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "nddup"  # noqa: PTH117 - "" is none


def keep_classes(spark: SparkSession) -> None:
    """Write the archive that this session recorded for, if any. Whatever goes wrong, there is only no archive.

    Cost: some seconds, once for an installation.
    """
    with suppress(Exception):
        path = spark.sparkContext.getConf().get(NOTE)
        if path is not None:
            write_once(Path(path), partial(_dump, spark))


def write_once(path: Path, write: Callable[[Path], object]) -> None:
    """Make a file that appears whole or not at all, whoever else makes it at the same time; then remove old ones.

    Args:
        path: of the file; one that is there stays.
        write: writes to the path that it is given, in a folder of its own.
    """
    if path.exists():
        return
    with tempfile.TemporaryDirectory(prefix=".making-", dir=path.parent) as folder:
        file = Path(folder) / path.name
        write(file)
        if file.stat().st_size:
            file.replace(path)
    _remove_old(path)


def _dump(spark: SparkSession, file: Path) -> None:
    """Have the Java machine write the classes it has loaded, by the command that `jcmd PID VM.cds` gives too."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public door to the Java machine
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001

    def array(of: Any, *values: object) -> Any:  # noqa: ANN401 - Java's own
        made = gateway.new_array(of, len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    command = array(jvm.Object, array(jvm.String, "dynamic_dump", str(file)))
    named = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    call = array(jvm.Object, named, "vmCds", command, array(jvm.String, "[Ljava.lang.String;"))

    # The server's own class is closed to callers from outside its module; the method of its interface is not.
    methods = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
    (invoke,) = [method for method in methods if method.getName() == "invoke"]
    system, before = jvm.java.lang.System, jvm.java.lang.System.out
    system.setOut(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))  # Java tells the file's name
    try:
        invoke.invoke(jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer(), call)
    finally:
        system.setOut(before)


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
