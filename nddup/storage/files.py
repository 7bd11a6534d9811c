"""Files that are not tables, over Hadoop's FileSystem: any path Spark can read works here too.

With `hadoop_listing` the only module that touches the JVM behind the session. It lists inputs, reads parts of files as
stored, reads and writes small text files, and copies, moves and removes files.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from nddup.errors import ConfigError, NddupError, OutputError
from nddup.redaction import drop_login
from nddup.scanning.file_heads import Look, Seen
from nddup.scanning.input_files import (
    RUN,
    InputFile,
    Listing,
    Placed,
    is_utf8,
    local_path,
    make_listing,
    missing_input,
    table_input,
    table_with_log,
    uri_of,
    why_skipped,
)
from nddup.scanning.walk import walk_inputs
from nddup.storage.hadoop_listing import LEAST_FILES, Entry, entry_of, list_folder, look_in_folders
from nddup.storage.local_storage import LocalStorage

LOCAL = "org.apache.hadoop.fs.LocalFileSystem"
"""Hadoop's own class for the files of this machine."""


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
        own = [text for text in inputs if self.is_own(text)]
        here = walk_inputs(own)
        found = {uri_of(path): place for path, place in here.files.items()}
        skipped, repeated = list(here.skipped), list(here.repeated)
        for text in inputs:
            if text in own:
                continue
            root = self._status(text)
            base = root.path.rstrip("/") if root.is_folder else root.path.rstrip("/").rpartition("/")[0]
            for entry in self._walk(root, skipped):
                uri = re.sub("^file:/+", "file:/", entry.uri)  # as Spark spells it
                if uri in found:
                    repeated.append(drop_login(uri))
                    continue
                found[uri] = Placed(base, entry.path, entry.size, entry.modified)
        return make_listing(found, skipped, repeated)

    def look_in_tasks(self, inputs: list[str], files: Sequence[InputFile], look: Look) -> dict[str, Seen]:
        """Call `look_in_folders` for the files below INPUT folders that only Java can open."""
        remote = [file for file in files if not self._opens_itself(file.path)]
        if len(remote) < LEAST_FILES:
            return {}
        folders = [root.uri for root in map(self._status, inputs) if root.is_folder]
        return look_in_folders(self._spark, folders, remote, look)

    def read_head(self, path: str, size: int) -> bytes:
        """Read the first `size` bytes of a file, as stored; errors as `read_part`."""
        return self.read_part(path, 0, size)

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Read `size` bytes of a file from a place, as stored; fewer where it ends.

        Raises:
            NddupError: if it cannot be opened.
        """
        if self._opens_itself(path):
            return LocalStorage().read_part(path, start, size)
        try:
            where = self._path(path)
            stream = where.getFileSystem(self._hadoop).open(where)
            try:
                if start:
                    stream.seek(start)
                return bytes(stream.readNBytes(size))
            finally:
                stream.close()
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

    def _qualified(self, path: str) -> Any:  # noqa: ANN401 - a java.net.URI
        where = self._path(path)
        return where.getFileSystem(self._hadoop).makeQualified(where).toUri()

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
        """Make a folder and its parents.

        Raises:
            OutputError: if it cannot be made or written.
        """
        try:
            where = self._path(path)
            where.getFileSystem(self._hadoop).mkdirs(where)
        except Exception as error:
            raise OutputError(f"{path}: cannot be written ({_reason(error)})") from error

    def read_text(self, path: str) -> str:
        """Read a small UTF-8 file.

        Raises:
            OutputError: if it is not there or cannot be read.
        """
        try:
            where = self._path(path)
            files = where.getFileSystem(self._hadoop)
            if files.exists(where):  # a Java exception costs some hundred times as much as this
                stream = files.open(where)
                try:
                    return bytes(stream.readAllBytes()).decode()
                finally:
                    stream.close()
        except Exception as error:
            raise OutputError(f"{path}: cannot be read ({_reason(error)})") from error
        raise OutputError(f"{path}: cannot be read (no such file)")

    def write_text(self, path: str, text: str | Iterator[str]) -> None:
        """Write a UTF-8 file, whole or piece by piece, replacing what is there.

        Raises:
            OutputError: if it cannot be written.
        """
        try:
            where = self._path(path)
            stream = where.getFileSystem(self._hadoop).create(where, True)  # noqa: FBT003
            try:
                for piece in [text] if isinstance(text, str) else text:
                    stream.write(piece.encode())
            finally:
                stream.close()
        except Exception as error:
            raise OutputError(f"{path}: cannot be written ({_reason(error)})") from error

    def copy_files(self, paths: Sequence[str], target: str, *, without: int = 0) -> None:
        """Concatenate files into one, in Java, replacing what is there.

        Args:
            paths: the files, in order.
            target: the file to write.
            without: bytes to leave out at the end of each.

        Raises:
            OutputError: if one cannot be read, or the target cannot be written.
        """
        try:
            where = self._path(target)
            into = where.getFileSystem(self._hadoop).create(where, True)  # noqa: FBT003
            try:
                for part in map(self._path, paths):
                    system = part.getFileSystem(self._hadoop)
                    size = system.getFileStatus(part).getLen() - without
                    stream = system.open(part)
                    try:
                        self._jvm.org.apache.commons.io.IOUtils.copyLarge(stream, into, 0, size)
                    finally:
                        stream.close()
            finally:
                into.close()
        except Exception as error:
            raise OutputError(f"{target}: cannot be written ({_reason(error)})") from error

    def move(self, path: str, target: str) -> None:
        """Rename a file; the folder of the new name must be there.

        Raises:
            OutputError: if it cannot be moved.
        """
        try:
            where = self._path(path)
            is_moved = where.getFileSystem(self._hadoop).rename(where, self._path(target))
        except Exception as error:
            raise OutputError(f"{target}: cannot be written ({_reason(error)})") from error
        if not is_moved:
            raise OutputError(f"{target}: cannot be written ({path} cannot be moved there)")

    def _path(self, path: str) -> Any:  # noqa: ANN401 - a Java object
        """Return a text as Hadoop's Path: as a URI if it has a scheme and is one, else as a literal name."""
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path):
            return self._make_path(None, None, path)
        try:
            return self._make_path(self._make_uri(path))
        except Py4JJavaError:  # it has a scheme but is no URI: it contains a blank or a bracket
            return self._make_path(path)

    def _list(self, path: str) -> list[Entry]:
        """List a folder, sorted by name; empty if it is not there."""
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
            is_local = str(system.getClass().getName()) == LOCAL
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

    def _walk(self, found: Entry, skipped: list[tuple[str, str]], *, below: bool = False) -> Iterator[Entry]:
        """Yield files at or below an entry, by name; `skipped` gets hidden ones, those beside a collection and runs."""
        if not found.is_folder:
            yield found
            return
        where = self._make_path(self._make_uri(found.uri))
        children = list_folder(self._jvm, where.getFileSystem(self._hadoop), where)
        names = {child.name for child in children}
        if below and RUN in names:
            skipped.append((found.path, "results of a run"))
            return
        table = table_with_log(names, lambda name: self.children(f"{found.uri}/{name}"))
        if table is not None:
            raise table_input(drop_login(found.uri), table)
        for child in children:
            why = why_skipped(child.name, is_folder=child.is_folder)
            if why is None:
                yield from self._walk(child, skipped, below=True)
            else:
                skipped.append((child.path, why))


def _system_of(uri: Any) -> str:  # noqa: ANN401 - a java.net.URI
    """Return the file system of a URI: scheme, host and port, without the login."""
    return drop_login(f"{uri.getScheme()}://{uri.getRawAuthority() or ''}/")


def _reason(error: Exception) -> str:
    """Return the first line of an error's message, without the Java class and its stack."""
    cause = getattr(error, "java_exception", None)
    text = str(cause.getMessage() or cause.toString()) if cause is not None else str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
