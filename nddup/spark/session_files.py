"""The files that a Spark session reaches: Hadoop's, those of this machine, or those shared with a Connect server.

A client of Connect has no JVM to reach other files, so a path is a local path for both sides. This is verified: the
server is asked to read one of the inputs, and a file that this process wrote into the folder of the run. If it does not
find them, the run is refused.

Hadoop's FileSystem is reached through the JVM behind the session: inputs are listed, parts of files read as stored,
small text files written, files copied, moved and removed. A folder is listed in a few calls to Java instead of ten for
each file: Java writes the result of `listStatus` as one JSON text, of the fields of the statuses, not their getters:
the getter of the owner would start a program for each file of a local disk. Statuses that cannot be written so are
asked one by one. The heads of many small files are looked at by Spark tasks, each as the driver would; files that no
task has seen are left to the caller: those that Spark skips or cannot read, and those that changed.
"""

import json
import pickle
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from secrets import token_hex
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError, NddupError, OutputError
from nddup.ground.shown import drop_login
from nddup.reading.formats import FileHead
from nddup.scanning.file_heads import RAW_HEAD_BYTES, HeadFound, Look, Seen, WholeContent, is_hidden, is_refused
from nddup.scanning.found import Batches
from nddup.scanning.input_files import (
    BESIDE_WHY,
    RUN,
    InputFile,
    Listing,
    Placed,
    is_utf8,
    local_path,
    make_listing,
    missing_input,
    run_input,
    table_input,
    table_of_others,
    uri_of,
    why_skipped,
)
from nddup.scanning.walk import walk_inputs
from nddup.spark.schemas import STRICT, reader_of, table
from nddup.spark.session_access import JavaObject, is_connect
from nddup.storage.local_storage import LocalStorage, find_link


class Entry(NamedTuple):
    """A file or folder: its URI, its path in its file system, and what the file system says of it."""

    uri: str
    path: str
    is_folder: bool
    size: int
    modified: int
    """In milliseconds."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


MOST_BYTES = RAW_HEAD_BYTES
"""Longest file that is read whole for its head: reading a longer one takes more time than the driver's calls for it."""

TASK_FILES = 256
"""Files inspected by one task: some 0.2 s of work."""

LEAST_FILES = 1000
"""Minimum number of files for a Spark job: the driver reads the heads of fewer in the time that the job takes."""

LOCAL = ("org.apache.hadoop.fs.LocalFileSystem", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem")
"""Hadoop's own class for the files of this machine, and Hive's, which only delegates to it: the order of the jars
decides between them."""

WHERE = "over Spark Connect files lie where this process and the server have them under one local path"


def list_folder(jvm: JavaObject, system: JavaObject, path: JavaObject) -> list[Entry]:
    """List a folder, sorted by name; a file gives itself. Raises what Java raises if it is not there.

    Cost: two calls to Java; ten for each file on file systems with unusual statuses.
    """
    statuses = system.listStatus(path)
    try:
        entries = [_of_fields(row) for row in json.loads(_mapper_of(jvm).writeValueAsString(statuses))]
    except (Py4JError, AttributeError, KeyError, TypeError, ValueError):
        entries = [entry_of(status) for status in statuses]
    return sorted(entries, key=lambda entry: entry.name)


@lru_cache(maxsize=1)
def _mapper_of(jvm: JavaObject) -> JavaObject:
    """Return the mapper that writes fields as JSON, made once for a session: looking up a Java class searches all jars.

    Raises:
        Py4JError, TypeError: in a Spark without the library Jackson.
    """
    jackson = jvm.com.fasterxml.jackson
    visible, of = jackson.annotation.JsonAutoDetect.Visibility, jackson.annotation.PropertyAccessor
    mapper = jackson.databind.ObjectMapper()
    mapper.setVisibility(of.ALL, visible.NONE).setVisibility(of.FIELD, visible.ANY)
    return mapper


def entry_of(status: JavaObject) -> Entry:
    """Make an entry of a status by asking it for each value."""
    uri = status.getPath().toUri()
    size, modified = int(status.getLen()), int(status.getModificationTime())
    return Entry(str(uri.toString()), str(uri.getPath()), bool(status.isDirectory()), size, modified)


def _of_fields(row: dict[str, Any]) -> Entry:
    """Make an entry of the fields of a status; one of `viewfs` wraps that of another file system.

    Raises:
        KeyError, TypeError: if it has other fields.
    """
    uri = (row["modifiedPath"] if "modifiedPath" in row else row["path"])["uri"]
    facts = row.get("myFs", row)
    size, modified = int(facts["length"]), int(facts["modification_time"])
    return Entry(uri, unquote(urlsplit(uri).path), bool(facts["isdir"]), size, modified)


def look_in_folders(
    spark: SparkSession, folders: Sequence[str], files: Sequence[InputFile], look: Look
) -> dict[str, Seen]:
    """Return what `look` finds in small files in folders, by path; nothing if they are fewer than `LEAST_FILES`.

    Args:
        folders: URIs. All small files below them are read. The JVM lists the folders again.
        look: looks at a file. Its first argument opens the file, its second gives the path and the size.

    Returns:
        The findings, without the files that Spark skips, cannot read or finds with another size; those of no file where
        Spark cannot list the folders.

    Cost: one action, and one of Spark's own where it lists more than 32 folders. A few bytes a file come back.
    """
    sizes = {file.path: file.size for file in files if file.size <= MOST_BYTES}
    if not folders or len(sizes) < LEAST_FILES:
        return {}

    heads = {file.path: look(WholeContent(b""), file) for file in files if not file.size}  # Spark reads none of them
    try:
        rows = _looked(spark, folders, look, tasks=-(-len(sizes) // TASK_FILES))
        for row in rows.collect():
            values = pickle.loads(zlib.decompress(row["told"]))  # noqa: S301 - this run's own tasks wrote it
            heads |= {path: seen for path, size, seen in values if sizes.get(path) == size}
    except (PySparkException, Py4JJavaError):
        return {}  # the caller opens the files itself, and reports why any of them cannot be read
    return heads


def _looked(spark: SparkSession, folders: Sequence[str], look: Look, *, tasks: int) -> DataFrame:
    """Look at the small files below some folders.

    Schema out:  told binary: a compressed pickle of a list of (path, size, Seen), for each batch of files
    """
    reader = reader_of(spark, "binaryFile").options(**dict.fromkeys(STRICT, "true"))  # the caller tells of such a file
    rows = reader.load([unquote(folder) for folder in folders]).where(F.col("length") <= MOST_BYTES)
    rows = rows.select(F.col("_metadata.file_path").alias("path"), "content").coalesce(tasks)
    return rows.mapInArrow(partial(_look_at_rows, look=look), table("told binary"))


# In a worker ---------------------------------------------------------------------------------------------------------


def _look_at_rows(batches: Batches, *, look: Look) -> Batches:
    """Look at the files of a task; equal heads are written once a batch."""
    for batch in batches:
        heads: dict[FileHead, FileHead] = {}
        rows = []
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            data = content.as_py()
            seen = look(WholeContent(data), InputFile(path, unquote(path), len(data), 0))
            if isinstance(seen, HeadFound):
                seen = seen._replace(head=heads.setdefault(seen.head, seen.head))
            rows.append((path, len(data), seen))
        yield pa.RecordBatch.from_pydict({"told": [zlib.compress(pickle.dumps(rows), 1)]})


class Storage:
    """Hadoop's FileSystem for one session."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - no public door to Hadoop
        self._make_path, self._make_uri = jvm.org.apache.hadoop.fs.Path, jvm.java.net.URI  # look-ups search all jars
        self._hadoop: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001
        self._spark, self._jvm = spark, jvm

    def list_inputs(self, inputs: list[str]) -> Listing:
        """Find the files of INPUT paths, which are literal; folders are searched recursively.

        Raises:
            ConfigError: if an input does not exist or cannot be listed; for those of this machine as `walk_inputs`.
        """
        local = [text for text in inputs if self.is_own(text)]
        here = walk_inputs(local)
        placed = {uri_of(path): place for path, place in here.files.items()}
        skipped, repeated = list(here.skipped), list(here.repeated)
        for text in inputs:
            if text in local:
                continue
            root = self._status(text)
            base = root.path.rstrip("/") if root.is_folder else root.path.rstrip("/").rpartition("/")[0]
            for entry, is_beside in self._walk(root, skipped):
                uri = re.sub("^file:/+", "file:/", entry.uri)  # as Spark spells it
                if uri in placed and (is_beside or not placed[uri].beside):
                    repeated += [] if is_beside else [drop_login(uri)]
                    continue
                placed[uri] = Placed(base, entry.path, entry.size, entry.modified, entry.path if is_beside else "")
        return make_listing(placed, skipped, repeated, here.tables)

    def look_in_tasks(self, inputs: list[str], files: Sequence[InputFile], look: Look) -> dict[str, Seen]:
        """Call `look_in_folders` for the files below INPUT folders that only Java can open."""
        remote = [file for file in files if not self._opens_itself(file.path)]
        if len(remote) < LEAST_FILES:
            return {}
        folders = [root.uri for root in map(self._status, inputs) if root.is_folder]
        return look_in_folders(self._spark, folders, remote, look)

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """As `LocalStorage.read_part`."""
        if self._opens_itself(path):
            return LocalStorage().read_part(path, start, size)
        try:
            where = self._path(path)
            with closing(where.getFileSystem(self._hadoop).open(where)) as stream:
                if start:
                    stream.seek(start)
                return bytes(stream.readNBytes(size))
        except Exception as error:
            raise NddupError(f"{path}: cannot be read ({_reason(error)})") from error

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there."""
        where = self._path(path)
        return bool(where.getFileSystem(self._hadoop).exists(where))

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path is a folder or lies in it, by the places that links of this machine lead to."""
        if self.is_own(path) and self.is_own(folder):
            return LocalStorage().is_within(path, folder)
        inner, outer = (self._qualified(text) for text in (path, folder))
        if _system_of(inner) != _system_of(outer):
            return False
        within, around = str(inner.getPath()).rstrip("/"), str(outer.getPath()).rstrip("/")
        return within == around or within.startswith(around + "/")

    def full_path(self, path: str) -> str:
        """Return a path as an absolute URI with its file system, without user and password."""
        return drop_login(str(self._qualified(path).toString()))

    def spelled(self, path: str) -> str:
        """Return a path as Spark takes it: absolute, without percent encoding, whatever `_path` made of its text."""
        where = self._path(path)
        return str(where.getFileSystem(self._hadoop).makeQualified(where).toString())

    def _qualified(self, path: str) -> JavaObject:
        where = self._path(path)
        return where.getFileSystem(self._hadoop).makeQualified(where).toUri()

    def find_link(self, path: str) -> str | None:
        """As `FolderFiles.find_link`."""
        return find_link(path) if self.is_own(path) else None

    def children(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; empty if it is not there."""
        return [entry.name for entry in self._list(path)]

    def times(self, path: str) -> dict[str, int]:
        """Return when each file in a folder was last written, by name: milliseconds of the file system's clock."""
        return {entry.name: entry.modified for entry in self._list(path)}

    def sizes(self, path: str) -> dict[str, int]:
        """Return the bytes of each file in a folder, by name, without hidden files, which the system writes."""
        return {entry.name: entry.size for entry in self._list(path) if not entry.name.startswith((".", "_"))}

    def digests(self, path: str) -> dict[str, int] | None:
        """Return the CRC-32 of each file at or below a path of this machine; None for any other path."""
        return LocalStorage().digests(path) if self.is_own(path) else None

    def remove(self, path: str) -> None:
        """Remove a file or a folder with all in it; do nothing if it is not there."""
        where = self._path(path)
        where.getFileSystem(self._hadoop).delete(where, True)  # noqa: FBT003 - Java has no names

    def make_folder(self, path: str) -> None:
        """As `LocalStorage.make_folder`."""
        with _writing(path):
            where = self._path(path)
            where.getFileSystem(self._hadoop).mkdirs(where)

    def read_text(self, path: str) -> str:
        """As `LocalStorage.read_text`."""
        try:
            where = self._path(path)
            files = where.getFileSystem(self._hadoop)
            if files.exists(where):  # a Java exception costs some hundred times as much as this
                with closing(files.open(where)) as stream:
                    return bytes(stream.readAllBytes()).decode()
        except Exception as error:
            raise OutputError(f"{path}: cannot be read ({_reason(error)})") from error
        raise OutputError(f"{path}: cannot be read (no such file)")

    def write_text(self, path: str, text: str | Iterator[str]) -> None:
        """As `LocalStorage.write_text`."""
        with _writing(path):
            where = self._path(path)
            with closing(where.getFileSystem(self._hadoop).create(where, True)) as stream:  # noqa: FBT003
                for piece in [text] if isinstance(text, str) else text:
                    stream.write(piece.encode())

    def copy_files(self, paths: Sequence[str], target: str, *, without: int = 0) -> None:
        """As `LocalStorage.copy_files`, in Java."""
        with _writing(target):
            where = self._path(target)
            with closing(where.getFileSystem(self._hadoop).create(where, True)) as into:  # noqa: FBT003
                for part in map(self._path, paths):
                    system = part.getFileSystem(self._hadoop)
                    size = system.getFileStatus(part).getLen() - without
                    with closing(system.open(part)) as stream:
                        self._jvm.org.apache.commons.io.IOUtils.copyLarge(stream, into, 0, size)

    def move(self, path: str, target: str) -> None:
        """As `LocalStorage.move`."""
        with _writing(target):
            where = self._path(path)
            is_moved = where.getFileSystem(self._hadoop).rename(where, self._path(target))
        if not is_moved:
            raise OutputError(f"{target}: cannot be written ({path} cannot be moved there)")

    def _path(self, path: str) -> JavaObject:
        """Return a text as Hadoop's Path: as a URI if it has a scheme and is one, else as a literal name."""
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path):
            return self._make_path(None, None, path)
        try:
            return self._make_path(self._make_uri(path))
        except Py4JJavaError:  # it has a scheme but is no URI: it contains a blank or a bracket
            return self._make_path(path)

    def _list(self, path: str) -> list[Entry]:
        where = self._path(path)
        system = where.getFileSystem(self._hadoop)
        return list_folder(self._jvm, system, where) if system.exists(where) else []

    def _opens_itself(self, path: str) -> bool:
        """Return whether Python can open a file itself, without a call to Java."""
        return path.startswith("file:/") and self._reads_own

    @cached_property
    def _reads_own(self) -> bool:
        """Whether Hadoop sees this machine's files as Python does: Python then opens them without calls to Java."""
        return self.is_own("file:/")

    def is_own(self, text: str) -> bool:
        """Return whether Hadoop, too, takes a path for one of this machine, and for the same one."""
        if not is_utf8(text):  # Java cannot spell it; the machine's other files tell what Hadoop sees
            return self._reads_own
        try:
            where = self._path(text)
            system = where.getFileSystem(self._hadoop)
            is_local = str(system.getClass().getName()) in LOCAL
            return is_local and str(system.makeQualified(where).toUri().getPath()) == local_path(text)
        except (Py4JJavaError, ConfigError):
            return False

    def _status(self, text: str) -> Entry:
        try:
            where = self._path(text)
            system = where.getFileSystem(self._hadoop)
            if system.exists(where):
                return entry_of(system.getFileStatus(where))
        except Exception as error:
            raise ConfigError(f"INPUT {text}: cannot be listed ({_reason(error)})") from error
        raise missing_input(text)

    def _walk(
        self, entry: Entry, skipped: list[tuple[str, str]], *, below: bool = False
    ) -> Iterator[tuple[Entry, bool]]:
        """Yield files at or below an entry, by name, and whether they are only beside others; others are `skipped`."""
        if not entry.is_folder:
            yield entry, False
            return
        where = self._make_path(self._make_uri(entry.uri))
        children = list_folder(self._jvm, where.getFileSystem(self._hadoop), where)
        names = {child.name for child in children}
        if RUN in names:
            if not below:
                raise run_input(drop_login(entry.uri))
            skipped.append((entry.path, "results of a run"))
            return
        table = table_of_others(names, lambda name: self.children(f"{entry.uri}/{name}"))
        if table is not None:
            raise table_input(drop_login(entry.uri), table)
        for child in children:
            why = why_skipped(child.name, is_folder=child.is_folder)
            if why is None:
                yield from self._walk(child, skipped, below=True)
            elif why == BESIDE_WHY:
                yield child, True
            else:
                skipped.append((child.path, why))


def _system_of(uri: JavaObject) -> str:
    """Return the file system of a URI: scheme, host and port, without the login."""
    return drop_login(f"{uri.getScheme()}://{uri.getRawAuthority() or ''}/")


@contextmanager
def _writing(target: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise OutputError(f"{target}: cannot be written ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    """Return the first line of an error's message, without the Java class and its stack."""
    cause = getattr(error, "java_exception", None)
    text = str(cause.getMessage() or cause.toString()) if cause is not None else str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


class SharedStorage(LocalStorage):
    """A `LocalStorage` for a session with a server; the path of an input is a URI as Spark spells it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._is_seen = False

    def list_inputs(self, inputs: list[str]) -> Listing:
        """Find the files of INPUT paths, which are literal; folders are searched recursively. One small action.

        Raises:
            ConfigError: if an input does not exist, cannot be listed, or differs from what the server finds there.
        """
        for text in inputs:
            _require_local(f"INPUT {text}", text)
        listing = super().list_inputs(inputs)
        files = tuple(replace(file, path=uri_of(file.path)) for file in listing.files)
        seen = [file for file in files if is_utf8(file.path) and not (is_hidden(file.path) or is_refused(file.path))]
        if seen:  # Spark cannot open the others
            self._require_same(min(seen, key=lambda file: file.size))
        return Listing(files, listing.skipped, listing.repeated)

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there. ConfigError: also for a path of another file system."""
        _require_local(path, path)
        return super().exists(path)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents; for the first one, check that the server sees a file in it. One small action.

        Raises:
            ConfigError: for a path of another file system.
            OutputError: if it cannot be made or written, or the server does not see the file in it.
        """
        is_new = not self.exists(path)
        super().make_folder(path)
        if self._is_seen:
            return

        text = token_hex(16)
        sign = f"{path}/seen-{text[:8]}.txt"
        self.write_text(sign, text)
        try:
            read = [row["value"] for row in reader_of(self._spark, "text").load(local_path(sign)).collect()]
        except PySparkException:
            read = []
        self.remove(sign)
        if read != [text]:
            if is_new:
                self.remove(path)
            raise OutputError(f"{path}: the Spark server does not see what this process writes there; {WHERE}")
        self._is_seen = True

    def _require_same(self, file: InputFile) -> None:
        """Check that the server finds a file under its name and with its size."""
        asked = reader_of(self._spark, "binaryFile").load(local_path(file.path))
        try:
            rows = [tuple(row) for row in asked.select(F.col("_metadata.file_path"), "length").collect()]
        except PySparkException:
            rows = []
        if rows != [(file.path, file.size)]:
            came = f"finds {drop_login(rows[0][0])}, {rows[0][1]} bytes" if rows else "finds nothing there"
            raise ConfigError(f"INPUT {local_path(file.path)}: the Spark server {came}; {WHERE}")


def _require_local(what: str, path: str) -> None:
    try:
        local_path(path)
    except ConfigError as error:
        raise ConfigError(f"{drop_login(what)}: {WHERE}") from error


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
