"""How the JVM of a session is started: its Java, its options, the archive of its classes, and its messages meanwhile.

    find_java              the Java that Spark's scripts would start, as its installation describes it
    users_options ...      the options: ours for a short life, and the user's, which take precedence
    archiving              the option that maps Spark's classes from a file, or makes it
    capture_jvm_stderr     the standard error of a JVM: held back while it starts, and read for why it did not
    drop_unused_defaults, write_no_checksums, remember_names     what a running session on one machine is spared

All but the last line read files of this machine only, and load neither pyspark nor py4j. `nddup.spark.session` puts
them together.
"""

import hashlib
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from nddup.errors import reason_of
from nddup.ground.own_files import ForeignFileError, make_own, open_own
from nddup.ground.shown import clean
from nddup.ground.start_up import cache_folder
from nddup.scanning.input_files import local_path
from nddup.scanning.walk import sizes_of
from nddup.storage.local_storage import is_local

if TYPE_CHECKING:  # a command asks for the size of its inputs before it loads Spark
    from pyspark.sql import SparkSession

JavaObject: TypeAlias = Any
"""A method of an object of Java, or the value of a field."""

OLDEST, MODULE = 17, "jdk.incubator.vector"
"""The oldest version of Java that Spark runs on, and a module that it needs."""

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC")
"""Options of a JVM that ends before it would gain from the optimising compiler or from a parallel garbage collector."""

SMALL_BYTES = 256 << 20
"""Stored bytes of the inputs up to which a session is short-lived: some 20,000 to 40,000 pages, for which Spark's plans
and Java's compilers cost more than the work."""

DEFAULTS, EXTRA = "spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"
"""Settings with the options of an installation and of a user; the user's come later on Java's command line and win."""

VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Environment variables with further options of a user; they come before ours, or win anyway."""

_FLAG = re.compile(r"-XX:[+-]?(\w+)|-X(share|int|comp|mixed)\b")
_COLLECTOR = re.compile(r"Use\w+GC")

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

USUAL = ("WARNING: Using incubator modules",)
"""Beginnings of JVM warnings to suppress: they come at every start, before an option or logger could silence them."""

HOW = f"install Java {OLDEST} or newer (Debian: apt-get install openjdk-{OLDEST}-jre-headless), or set JAVA_HOME to it"
REFUSED = "the master did not accept the application within a minute; is it a Spark master, and of this version?"
STDERR = 2

_EXCEPTION = re.compile(r"^(?:Exception in thread \"[^\"]*\" )?(?:[a-z]\w*\.)+(?:\w+\$)*[A-Z]\w*(?:Exception|Error): ")
_USELESS = ("Error: Could not create the Java Virtual Machine", "Error: A fatal exception has occurred", "\tat ", "at ")
_LOGGED = re.compile(r"^[\d:/ ]*(?:ERROR|WARN|FATAL) [\w.$]+: ")

UNUSED_DEFAULTS = frozenset({"yarn-default.xml", "mapred-default.xml"})
"""Files whose defaults are dropped. Code that reads one of these settings has the same default of its own."""

CLASSES = (
    "functions",
    "org.apache.spark.sql.functions",
    "PythonUtils",
    "PythonSQLUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.Observation",
    "SimplePythonFunction",
    "org.apache.spark.sql.execution.python.UserDefinedPythonFunction",
)
"""The names that PySpark asks for. A name that another version does not know costs one request."""


class Java(NamedTuple):
    """An installed Java: its folder, the text of its file `release`, and its major version, 0 if unknown."""

    home: Path
    release: str
    major: int

    @property
    def lacks_module(self) -> bool:
        """Whether it lists its modules, and the one that Spark needs is not among them."""
        listed = re.search(r'^MODULES="(.*)"', self.release, re.MULTILINE)
        return listed is not None and MODULE not in listed[1].split()


def find_java() -> Java | None:
    """Return the Java that Spark's scripts would start: that of JAVA_HOME if set, else of PATH; None if missing."""
    given = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(given) / "bin") if given else None)
    if program is None:
        return None
    home = Path(program).resolve().parents[1]
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    return Java(home, release, major_of(release))


def major_of(release: str) -> int:
    r"""Return the major version in the text of a file `release`; 8 for `1.8.0_402`; 0 if it names none.

    Example:
        >>> major_of('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"')
        17
    """
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    return int(match[1]) if match else 0


def users_options(settings: Mapping[str, str]) -> str:
    """Return all of the user's options for Java, as one text."""
    options = [os.environ.get(name, "") for name in VARIABLES] + [settings.get(name, "") for name in (DEFAULTS, EXTRA)]
    return " ".join(text for text in options if text)


def give_way(ours: Iterable[str], users: str) -> list[str]:
    """Return our options without those that the user's options set; all choices of a garbage collector count as one.

    Example:
        >>> give_way(SHORT_LIVED, "-XX:+UseG1GC -XX:ReservedCodeCacheSize=1g -Da=b")
        ['-XX:TieredStopAtLevel=1']
    """
    named = flags_of(users)
    return [option for option in ours if not flags_of(option) & named]


def flags_of(options: str) -> set[str]:
    """Return the names of Java's own flags in a text of options; `GC` stands for any choice of a garbage collector.

    Example:
        >>> sorted(flags_of("-Xshare:off -Xss4m -XX:-UseSerialGC -XX:TieredStopAtLevel=1"))
        ['GC', 'TieredStopAtLevel', 'share']
    """
    names = {first or second for first, second in _FLAG.findall(options)}
    return {"GC" if _COLLECTOR.fullmatch(name) else name for name in names}


def join_options(options: Iterable[str]) -> str:
    """Join options into one text that Spark can split again: those with blanks, quotes or backslashes are quoted."""
    quoted = (option.replace("\\", "\\\\").replace('"', '\\"') for option in options)
    return " ".join(f'"{option}"' if re.search(r"[\s\"'\\]", option) else option for option in quoted)


def is_small(paths: Iterable[str]) -> bool:
    """Return whether these paths are on this machine and hold at most `SMALL_BYTES` together; a missing one has none.

    Cost: one `stat` a file, until the sum is too large.
    """
    given = list(paths)
    if not all(map(is_local, given)):
        return False
    left = SMALL_BYTES
    for _, size in sizes_of([local_path(path) for path in given]):
        left -= size
        if left < 0:
            return False
    return True


def archiving(java: Java | None, settings: Mapping[str, str], users: str) -> list[str]:
    """Return the options to use the archive that fits, or to make one; none if neither is possible.

    The archive is Java's own "class data sharing" (JEP 350, JDK 13 and later). The JVM of a first session writes the
    classes it has loaded to a file when it ends; later sessions on this machine map that file. Its name depends on all
    that Java compares, so another Java or another Spark makes a file of its own. It can only save time: if there is
    none, or Java finds that it does not fit, a session starts as usual (`-Xshare:auto`). Java writes the head of the
    file last, so an incomplete file does not fit.
    """
    path = archive_path(java, settings, users)
    if path is None:
        return []
    if path.is_file() and not _is_given_up(path):
        try:
            open_own(str(path)).close()
            os.utime(path)  # marks it as in use
        except (OSError, ForeignFileError):  # Java would execute it
            return []
        return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", SILENT]
    if not _has_room(path.parent):
        return []
    _remove_old(path)
    return [f"-XX:ArchiveClassesAtExit={path}", SILENT]


def archive_path(java: Java | None, settings: Mapping[str, str], users: str) -> Path | None:
    """Return the file for this Java, Spark and options; None if the user chose an archive, or Java would refuse ours.

    Java refuses an archive if the class path has a folder with files, such as Spark's folder of settings.
    """
    import pyspark  # noqa: PLC0415 - see above

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
    key = repr((str(java.home), java.release, str(jars.resolve()), files, users.split()))
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
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
    try:
        make_own(str(folder))
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


@contextmanager
def capture_jvm_stderr() -> Iterator[list[str]]:
    """Hold back the standard error of a process started in the block; yield its lines so far, without the `USUAL` ones.

    The process keeps this standard error for its whole life. If the block ends without an error, all its lines are
    passed on, later ones too. After an error they are not: the error's message will quote them. What this process
    itself writes to `sys.stderr` goes where it went before.
    """
    captured: list[str] = []
    is_open, one_at_a_time = threading.Event(), threading.Lock()
    receiver, sender = os.pipe()
    sys.stderr.flush()
    before = os.dup(STDERR)

    def listen() -> None:
        with os.fdopen(receiver, errors="replace") as lines:
            for line in lines:
                if line.startswith(USUAL):
                    continue
                with one_at_a_time:
                    if is_open.is_set():
                        _pass_on(line)
                    else:
                        captured.append(line.rstrip())

    thread = threading.Thread(target=listen, daemon=True)
    os.dup2(sender, STDERR)
    os.close(sender)
    thread.start()
    try:
        with _own_words(before):
            yield captured
    except BaseException:
        os.dup2(before, STDERR)
        thread.join(timeout=1)  # it ends with the process, if that ends
        raise
    finally:
        os.dup2(before, STDERR)
        os.close(before)
    with one_at_a_time:
        is_open.set()
        for line in captured:
            _pass_on(f"{line}\n")


@contextmanager
def _own_words(before: int) -> Iterator[None]:
    """Let `sys.stderr` write to the standard error `before` within the block, so that progress is still shown."""
    usual = sys.stderr
    try:
        is_usual = usual.fileno() == STDERR
    except (AttributeError, OSError, ValueError):  # a notebook, or a test, has put something else in its place
        is_usual = False
    if not is_usual:
        yield
        return
    with os.fdopen(os.dup(before), "w", encoding=usual.encoding, errors=usual.errors, buffering=1) as stream:
        sys.stderr = stream
        try:
            yield
        finally:
            sys.stderr = usual


def why_not_started(error: BaseException, lines: list[str], java: Java | None) -> str:
    """Return one line that says why a session did not start: the deepest known cause.

    Args:
        error: raised by the start.
        lines: Java's lines on standard error meanwhile.
        java: the Java that was to run; None if there is none.
    """
    logged = [line for line in lines if _LOGGED.match(line.strip())]
    if "stopped SparkContext" in str(error):  # it does not say why
        return f"Spark did not start: {_plain(logged[0]) if logged else REFUSED}"
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return f"Spark did not start: {_plain(reason_of(error))}"

    # Java itself did not run, or it exited: the error does not say why.
    if java is None:
        return f"Spark did not start: no Java was found; {HOW}"
    if 0 < java.major < OLDEST:
        return f"Spark did not start: {java.home} is Java {java.major}; {HOW}"
    if java.lacks_module:
        return f"Spark did not start: {java.home} has no module {MODULE}; {HOW}"
    useful = [line for line in lines if line.strip() and not line.startswith(_USELESS)]
    return f"Spark did not start: {_plain(useful[0]) if useful else str(error)}"


def _plain(line: str) -> str:
    """Strip the time and the class names before the message of a line from Java."""
    shorter = _LOGGED.sub("", line.strip())
    while _EXCEPTION.match(shorter):
        shorter = _EXCEPTION.sub("", shorter)
    return shorter.removeprefix("Error: ")


def _pass_on(line: str) -> None:
    sys.stderr.write(clean(line))
    sys.stderr.flush()


def drop_unused_defaults(spark: "SparkSession") -> None:
    """Remove the defaults of YARN and MapReduce from Hadoop's settings of a classic session.

    Spark compresses all Hadoop settings and sends them with each scan and each write. Two thirds of some 1,100 belong
    to YARN and MapReduce. Settings from the user's files, Spark or `spark.hadoop.*` are kept.

    Cost: a call to Java for the list, and one for each setting removed: 0.1 s.
    """
    from lxml import etree  # noqa: PLC0415 - only here

    java: Any = spark
    settings = java.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - there is no other way to Hadoop's settings
    listed = java._jvm.java.io.StringWriter()  # noqa: SLF001
    settings.writeXml(listed)
    for setting in etree.fromstring(listed.toString().encode()):
        sources = {source.text for source in setting.iter("source")}
        if sources and sources <= UNUSED_DEFAULTS:
            settings.unset(setting.findtext("name"))


def write_no_checksums(spark: "SparkSession") -> None:
    """Stop Hadoop from writing a checksum file beside each local file; existing checksums are still compared.

    Hadoop starts a process to set the permissions of each file it writes, checksum files too: 5 ms each, where a table
    of a small run has a hundred bytes.

    Cost: two calls to Java.
    """
    java: Any = spark
    settings = java.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    java._jvm.org.apache.hadoop.fs.FileSystem.getLocal(settings).setWriteChecksum(False)  # noqa: SLF001


def remember_names(spark: "SparkSession") -> None:
    """Pin the classes in `CLASSES`, and later their methods, in a classic session. Cost: one request a name, once.

    `sc._jvm.functions.col("a")` sends three commands: what `functions` is, what its `col` is, and the call. For the
    first one Java tries to load classes that are in no jar, from all jars: a tenth of the driver's time in a run over
    few documents. The answers do not change while the JVM runs, so they are kept where PySpark looks first.

    Only methods are kept, which do not change; a field is asked for each time.
    """
    from py4j.java_gateway import JavaClass, JavaMember  # noqa: PLC0415 - a client of Spark Connect has none

    class _Remembered(JavaClass):  # type: ignore[misc] # py4j has no types
        """A Java class whose methods are looked up once."""

        def __getattr__(self, name: str) -> JavaObject:
            member = super().__getattr__(name)
            if isinstance(member, JavaMember):
                self.__dict__[name] = member
            return member

    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark looks nowhere else
    for name in CLASSES:
        java_class = getattr(jvm, name)
        if type(java_class) is JavaClass:
            setattr(jvm, name, _Remembered(java_class._fqn, java_class._gateway_client))  # noqa: SLF001
