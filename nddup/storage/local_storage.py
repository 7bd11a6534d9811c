"""Files of this machine, without a JVM: the methods of `nddup.spark.session_files`, with the same answers.

Also the facts about this machine that a run asks for, and the refusal of an output that overlaps what a command reads,
whatever links lead to either of them. An output within an input would be read as input the next time; an input within
an output would be removed when that output is replaced.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from stat import S_ISDIR
from typing import Any, NamedTuple

from nddup.errors import ConfigError, NddupError, OutputError, OutputExistsError, StoppedError, first_line
from nddup.remote.addresses import is_remote, spell_bare
from nddup.scanning.input_files import InputFile, Listing, is_of_this_machine, local_path, make_listing, uri_of
from nddup.scanning.walk import open_stored, split_member, walk_inputs
from nddup.storage.claim import FolderFiles

__all__ = ["LocalStorage", "local_path"]

COPIED = 1 << 20
"""Bytes that `copy_files` copies at a time."""


class _Found(NamedTuple):
    """A file or folder: its absolute path, and its status in the file system."""

    path: str
    status: os.stat_result

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_folder(self) -> bool:
        return S_ISDIR(self.status.st_mode)


CONFIGURED = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Environment variables that lead Spark to a configuration of Hadoop: a plain path may then be in HDFS."""

SUBMITTED = ("SPARK_ENV_LOADED", "PYSPARK_GATEWAY_PORT")
"""Environment variables that are set where spark-submit started this process."""


def find_link(path: str) -> str | None:
    """Return the first link or special file below a folder of this machine; None if there is none, or no folder.

    Raises:
        OutputError: if a folder cannot be listed: names that are known could be opened in it all the same.

    Cost: one listing of each folder; a status of no file.
    """
    waiting = [local_path(path)]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        return entry.path
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise OutputError(f"{folder}: cannot be listed ({_reason(error)})") from error
    return None


class LocalStorage:
    """The file system of this machine. A path is either a plain path or a URI `file:/…`."""

    def list_inputs(self, inputs: list[str]) -> Listing:
        """Find the files of INPUT paths, which are literal; folders are searched recursively.

        The `path` of a file found is a plain path; a URI if its bytes are not UTF-8; its address if it is elsewhere.

        Raises:
            ConfigError: as `walk_inputs`.
            UnreachableError: as `walk_remote`.
        """
        away = [path for path in inputs if is_remote(path)]
        if not away:
            return make_listing(*walk_inputs(inputs))
        from nddup.scanning.walk_remote import walk_remote  # noqa: PLC0415 - most runs read files of this machine

        walks = [walk_inputs([path for path in inputs if not is_remote(path)]), walk_remote(away)]
        files = {path: place for walked in walks for path, place in walked.files.items()}
        repeated = [one for walked in walks for one in walked.repeated]
        tables = [one for walked in walks for one in walked.tables]
        return make_listing(files, [one for walked in walks for one in walked.skipped], repeated, tables)

    def look_in_tasks(self, inputs: list[str], files: Sequence[InputFile], look: object) -> dict[str, Any]:
        """Return nothing: this process opens files as fast as a task would."""
        del inputs, files, look
        return {}

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Read `size` bytes of a file from a place, as stored; fewer where it ends or, in an archive, is damaged.

        Raises:
            NddupError: if it cannot be opened.
            StoppedError: for a file in a damaged archive of which no byte can be read there.
        """
        if is_remote(path) and not split_member(path):
            from nddup.remote.kept_copies import read_kept  # noqa: PLC0415

            return read_kept(path, start, size)
        data = b""
        try:
            with open_stored(path) as file:
                file.seek(start)
                while len(data) < size and (more := file.read(size - len(data))):
                    data += more
                return data
        except StoppedError:
            if not data:
                raise
            return data
        except OSError as error:
            raise NddupError(f"{path}: cannot be read ({_reason(error)})") from error

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there. Raises ConfigError where permissions hide that."""
        try:
            return Path(local_path(path)).exists()
        except PermissionError as error:
            raise ConfigError(f"{path}: cannot be opened ({_reason(error)})") from error

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path is a folder or lies in it; false for a path of another file system.

        Links are followed on both sides, for a path that does not exist as far as it does. Folders are the same if the
        file system says so: also under two spellings, or mounted at two places.
        """
        try:
            within, around = (Path(os.path.realpath(local_path(text))) for text in (path, folder))
        except ConfigError:
            return False
        return any(place == around or _is_same(place, around) for place in (within, *within.parents))

    def full_path(self, path: str) -> str:
        """Return a path as an absolute URI with its file system, without secrets; that of a table has its version."""
        from nddup.scanning.table_snapshots import pinned  # noqa: PLC0415

        if is_remote(path):
            return spell_bare(pinned(path))
        return uri_of(pinned(local_path(path))).replace("file:/", "file:///", 1)

    def spelled(self, path: str) -> str:
        """Return a path as Spark takes it: absolute, without percent encoding."""
        return f"file:{local_path(path)}"

    def find_link(self, path: str) -> str | None:
        """As `find_link`."""
        return find_link(path)

    def children(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; empty if it is not there. Raises OutputError if it cannot be listed."""
        return sorted(child.name for child in _list_output(path))

    def times(self, path: str) -> dict[str, int]:
        """Return when each file in a folder was last written, by name, in milliseconds. Errors as `children`."""
        return {child.name: child.status.st_mtime_ns // 1_000_000 for child in _list_output(path)}

    def sizes(self, path: str) -> dict[str, int]:
        """Return the bytes of each file in a folder, by name, without hidden files, which the system writes.

        Errors as `children`.
        """
        sizes = {child.name: 0 if child.is_folder else child.status.st_size for child in _list_output(path)}
        return {name: size for name, size in sorted(sizes.items()) if not name.startswith((".", "_"))}

    def digests(self, path: str) -> dict[str, int] | None:
        """Return the CRC-32 of each file at or below a path, by its path there, without hidden files.

        Raises:
            OutputError: if one cannot be read.

        Cost: reads them, at several GB a second.
        """
        from nddup.ground.array_files import crc_of  # noqa: PLC0415

        top = Path(local_path(path))
        sums = {}
        try:
            for where in [top] if top.is_file() else sorted(top.rglob("*")):
                name = where.relative_to(top).as_posix() if where != top else top.name
                if where.is_file() and (where == top or not re.search(r"(?:^|/)[._]", name)):
                    sums[name] = crc_of(where)
        except OSError as error:
            raise OutputError(f"{path}: cannot be read ({_reason(error)})") from error
        return sums

    def remove(self, path: str) -> None:
        """Remove a file or a folder with all in it, and Hadoop's checksum of it; do nothing if it is not there.

        Raises:
            OutputError: if a folder cannot be removed.
        """
        where = Path(local_path(path))
        if where.is_dir() and not where.is_symlink():
            shutil.rmtree(where, ignore_errors=True)
            if where.exists():
                raise OutputError(f"{path}: cannot be removed")
        else:
            with suppress(FileNotFoundError, NotADirectoryError):
                where.unlink()
        _forget_checksum(where)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents.

        Raises:
            OutputError: if it cannot be made or written.
        """
        with writing(path):
            Path(local_path(path)).mkdir(parents=True, exist_ok=True)

    def read_text(self, path: str) -> str:
        """Read a small UTF-8 file.

        Raises:
            OutputError: if it is not there or cannot be read.
        """
        try:
            return Path(local_path(path)).read_bytes().decode()
        except FileNotFoundError as error:
            raise OutputError(f"{path}: cannot be read (no such file)") from error
        except (OSError, UnicodeDecodeError) as error:
            raise OutputError(f"{path}: cannot be read ({_reason(error)})") from error

    def write_text(self, path: str, text: str | Iterator[str]) -> None:
        """Write a UTF-8 file, whole or piece by piece, replacing what is there; make its folder.

        Raises:
            OutputError: if it cannot be written.
        """
        where = Path(local_path(path))
        with writing(path):
            where.parent.mkdir(parents=True, exist_ok=True)
            with where.open("wb") as file:
                file.writelines(piece.encode() for piece in ([text] if isinstance(text, str) else text))
        _forget_checksum(where)

    def copy_files(self, paths: Sequence[str], target: str, *, without: int = 0) -> None:
        """Concatenate files into one, replacing what is there.

        Args:
            without: bytes to leave out at the end of each.

        Raises:
            OutputError: if one cannot be read, or the target cannot be written.
        """
        where = Path(local_path(target))
        with writing(target), where.open("wb") as into:
            for path in map(local_path, paths):
                left = Path(path).stat().st_size - without
                with Path(path).open("rb") as part:
                    while left > 0 and (piece := part.read(min(left, COPIED))):
                        into.write(piece)
                        left -= len(piece)
        _forget_checksum(where)

    def move(self, path: str, target: str) -> None:
        """Rename a file; the folder of the new name must be there.

        Raises:
            OutputError: if it cannot be moved, or the name is taken.
        """
        source, where = Path(local_path(path)), Path(local_path(target))
        with writing(target):
            if where.exists():
                raise OutputError(f"{target}: cannot be written ({path} cannot be moved there)")
            source.rename(where)
        _forget_checksum(source)


def _is_same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return one.samefile(other)
    return False


def _list_output(path: str) -> list[_Found]:
    try:
        return _list(local_path(path))
    except PermissionError as error:
        raise OutputError(f"{path}: cannot be listed ({_reason(error)})") from error


def _list(folder: str) -> list[_Found]:
    """List a folder that nddup wrote, without broken links, names that are not UTF-8, and Hadoop's checksums.

    A file gives itself, a missing path nothing. Raises PermissionError if the folder or the status of a file in it
    cannot be read: leaving such files out would lose them silently.
    """
    files = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") and entry.name.endswith(".crc"):
                    continue
                try:
                    entry.name.encode()
                    files.append(_Found(os.path.join(folder, entry.name), entry.stat()))  # noqa: PTH118
                except PermissionError:
                    raise
                except (OSError, UnicodeEncodeError):
                    continue
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        return [_Found(folder, Path(folder).stat())]
    return files


def _forget_checksum(path: Path) -> None:
    """Remove the checksum that Hadoop left beside a file: it would not match the new content."""
    with suppress(OSError):
        (path.parent / f".{path.name}.crc").unlink()


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or first_line(error)


def is_submitted() -> bool:
    """Return whether spark-submit started this process: then its session is there already, and must be used."""
    return any(name in os.environ for name in SUBMITTED)


def is_local(path: str) -> bool:
    """Return whether a path is of this machine. A missing one may be Hadoop's, if one of `CONFIGURED` is set."""
    if not is_of_this_machine(path):
        return False
    return os.path.exists(local_path(path)) or not any(name in os.environ for name in CONFIGURED)  # noqa: PTH110


def is_readable(path: str) -> bool:
    """Return whether this process reads a path without Spark: one of this machine, or elsewhere by its own clients."""
    return is_remote(path) or is_local(path)


@contextmanager
def writing(target: object) -> Iterator[None]:
    """Name the target in the error of what cannot be written in the block.

    Raises:
        OutputError: for an OSError of the block; its other errors are those of what is read.
    """
    try:
        yield
    except NddupError:
        raise
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({_reason(error)})") from error


@contextmanager
def written_apart(output: str) -> Iterator[Path]:
    """Give a folder beside the output, which gets its name at the end; after an error nothing is left.

    What a killed command left there is removed.

    Raises:
        OutputError: if it cannot be written, or another command writes it.
    """
    folder = Path(local_path(output))
    apart = folder.with_name(f".{folder.name}.part")
    with writing(f"--output {output}"), ExitStack() as locks:
        with suppress(FileNotFoundError):
            _hold(apart, output, locks)
            shutil.rmtree(apart, ignore_errors=True)
        apart.mkdir(parents=True)
        _hold(apart, output, locks)
        try:
            yield apart
            apart.rename(folder)
        except BaseException:
            shutil.rmtree(apart, ignore_errors=True)
            raise


def _hold(apart: Path, output: str, locks: ExitStack) -> None:
    """Lock a folder until `locks` is closed, or this process ends; where the file system has no locks, do nothing."""
    place = os.open(apart, os.O_RDONLY | os.O_NOFOLLOW)
    locks.callback(os.close, place)
    try:
        flock(place, LOCK_EX | LOCK_NB)
    except BlockingIOError as error:
        raise OutputError(f"--output {output}: another command writes there") from error
    except OSError:
        pass


def require_new(
    files: FolderFiles, inputs: Iterable[str], output: str, *, name: str = "--output", kind: str = "folder"
) -> None:
    """As `require_apart`; also refuse an output that exists, or is a link that leads nowhere yet.

    Args:
        kind: what it is, a folder or a file.
    """
    if files.exists(output) or Path(output).is_symlink():
        raise OutputExistsError(f"{name} {output}: exists already; give another {kind}")
    require_apart(files, inputs, output, name=name)


def require_apart(files: FolderFiles, inputs: Iterable[str], output: str, *, name: str = "--output") -> None:
    """Refuse an output that is, holds, or lies in one of the paths that a command reads.

    Args:
        files: the file system of the output.
        inputs: files and folders that are read.
        output: the file or folder that will be written; it need not exist.
        name: what the output is called in the message.

    Raises:
        OutputError: one line that names both paths.

    Cost: a look at each folder above each path.
    """
    for path in inputs:
        shown = spell_bare(path).removeprefix("file://")
        if files.is_within(path, output):
            raise OutputError(f"{name} {output}: holds INPUT {shown}, which would be removed")
        if files.is_within(output, path):
            raise OutputError(f"{name} {output}: lies in INPUT {shown}, so the next run would read it")
