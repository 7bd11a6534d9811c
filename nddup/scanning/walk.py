"""The walk over INPUT paths of this machine, the same for both engines and every command.

    walk_inputs   INPUT paths -> Walked: the regular files, each once, and all that is skipped, with the reason
    sizes_of      paths       -> the size of each regular file, for estimates
    members_of    a WACZ file -> the WARC files in it
    open_stored   opens these and any other file of an INPUT, also one elsewhere (`nddup.scanning.walk_remote`)

Only regular files are opened, of a WACZ file the WARC files in it. A file is named by its path in an INPUT and opened
by that path without links (`nddup.ground.own_files`).
"""

import errno
import io
import lzma
import os
import posixpath
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple, cast

from nddup.errors import ConfigError, StoppedError
from nddup.ground.own_files import open_unlinked
from nddup.remote.addresses import is_remote
from nddup.scanning.input_files import (
    BESIDE_WHY,
    RUN,
    Placed,
    address_of,
    is_of_this_machine,
    local_path,
    missing_input,
    percent_spelled,
    run_input,
    table_input,
    table_of_others,
    uri_of,
    why_skipped,
)

if TYPE_CHECKING:
    from nddup.scanning.table_snapshots import TablePath

SPECIAL = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
"""What a file that is not regular is called. Opening one may wait for ever, or change a machine's state."""

MOST_PARTITIONS = 8
"""Maximum number of parents of an INPUT folder that are looked at, for the log of a table that the folder is a part of.
"""

OUTSIDE = "a link that leads outside INPUT; give what it leads to as an INPUT to read it"
NOWHERE = "a link that leads nowhere"
UNREACHABLE = "a link whose target cannot be reached"
OTHER_NAME = "another name of a file that is read"
OTHER_FOLDER = "a link to a folder that is read under its own name"
GONE = "removed while the folder was listed"


class Walked(NamedTuple):
    """The files, by address (`input_files.address_of`); the skipped ones with the reason; those given twice; tables."""

    files: dict[str, Placed]
    skipped: tuple[tuple[str, str], ...]
    repeated: tuple[str, ...]
    tables: tuple[str, ...] = ()


_MEMBER = re.compile(r"archive/.+\.w?arc(\.gz|\.zst)?", re.IGNORECASE)

_MARK = re.compile(r"\.wacz!", re.IGNORECASE)

BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods of a file in an archive that are expanded some kB at a time."""

_ERRORS = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, LookupError, ValueError, OverflowError, EOFError,
    struct.error, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""What `zipfile` raises besides OSError for a damaged, encrypted or unknown archive, in opening and in reading it."""


def walk_inputs(inputs: Sequence[str]) -> Walked:
    """Find the files of INPUT paths, which are literal; folders are searched recursively.

    A file of two names (a hard link, a second mount) is read once, under its first name. Links below an INPUT are
    followed last, and only to what lies inside an INPUT and has not been reached by its own name: so no walk is
    endless, and no file is compared with itself. From a snapshot in the cache of Hugging Face, which is all links, they
    are also followed to the files of its store.

    Raises:
        ConfigError: if an input does not exist, cannot be listed, is no file or folder, or holds a table whose log says
            which of its files count (Delta, Iceberg, Hudi).

    Cost: one listing of each folder and one status of each file.
    """
    tables = {text: table for text in inputs if (table := _table_at(text)) is not None}
    roots = {text: _root(text) for text in inputs if text not in tables}
    walk = _Walk([real for _, real, _ in roots.values()])
    for text in inputs:
        if text in tables:
            walk.take_table(text, tables[text])
            continue
        path, real, status = roots[text]
        try:
            if stat.S_ISDIR(status.st_mode):
                _refuse_inside_table(text, real)
                walk.take_folder(path, real, path.rstrip("/"), below=False)
            else:
                walk.take_file(path, real, status, path.rpartition("/")[0])
        except OSError as error:
            raise _unlistable(text, path, error) from error
    walk.follow_links()
    return walk.result()


def _table_at(text: str) -> "TablePath | None":
    """Return the table that an INPUT names; None for all else, also for a folder inside a table."""
    from nddup.scanning.table_snapshots import find_table  # noqa: PLC0415

    if not text or not is_of_this_machine(text):
        return None
    return find_table(local_path(text))


def sizes_of(paths: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the path and size of each regular file at or below some paths; what cannot be read is left out.

    Links below a path are not followed: what they lead to is found by its own name or is not read.
    """
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        try:
            status = os.stat(path)  # noqa: PTH116 - thousands of files, so `os` for speed
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in entries if not entry.is_symlink()]
            elif stat.S_ISREG(status.st_mode):
                yield path, status.st_size
        except OSError:
            continue


class _Candidate(NamedTuple):
    """A regular file as it was reached: its names sort in this order."""

    is_beside: bool
    is_by_link: bool
    name: bytes
    base: str
    path: str
    real: str
    status: os.stat_result


class _Walk:
    """What the walk has found so far."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self._stores = tuple(store for root in roots if (store := _store_of(root)))
        self._found: list[_Candidate] = []
        self._links: list[tuple[str, str]] = []
        self._skipped: dict[str, str] = {}
        self._walked: set[str] = set()
        self._copied: dict[str, Placed] = {}
        self._tables: list[str] = []
        self._repeated: list[str] = []

    def take_file(
        self, path: str, real: str, status: os.stat_result, base: str, order: tuple[bool, bool] = (False, False)
    ) -> None:
        """Take a file, whose path without links is `real`, if it is regular; `order` begins its candidate."""
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFREG:
            self._found.append(_Candidate(*order, os.fsencode(path), base, path, real, status))
        else:
            self._skip(path, SPECIAL.get(kind, "not a regular file"))

    def take_table(self, text: str, table: "TablePath") -> None:
        """Take the files of the copy of a version of a table, named by the table and the version."""
        from nddup.scanning.table_snapshots import copy_snapshot  # noqa: PLC0415

        snapshot = copy_snapshot(table)
        if snapshot.name in self._tables:
            self._repeated.append(text)
            return
        self._tables.append(snapshot.name)
        self._copied |= snapshot.placed(str(PurePath(table.folder).parent))

    def take_folder(self, path: str, real: str, base: str, *, below: bool = True, by_link: bool = False) -> None:
        """Take the files below a folder, whose path without links is `real`. Links are left for `follow_links`."""
        waiting = [(path, real, below)]
        while waiting:
            path, real, below = waiting.pop()
            self._walked.add(real)
            with os.scandir(path) as entries:
                children = {entry.name: entry for entry in entries if not _is_checksum(entry.name)}
            if RUN in children:
                if not below:
                    raise run_input(percent_spelled(path))
                self._skip(path, "results of a run")
                continue
            _refuse_table(path, children)
            for name, entry in children.items():
                whole = os.path.join(path, name)  # noqa: PTH118 - for speed
                if entry.is_symlink():
                    self._links.append((whole, base))
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    self._skip(whole, GONE)
                    continue
                is_folder = stat.S_ISDIR(status.st_mode)
                why = why_skipped(name, is_folder=is_folder)
                if why is not None and why != BESIDE_WHY:
                    self._skip(whole, why)
                else:
                    there = os.path.join(real, name)  # noqa: PTH118
                    if is_folder:
                        waiting.append((whole, there, True))
                    else:
                        self.take_file(whole, there, status, base, (why is not None, by_link))

    def follow_links(self) -> None:
        """Follow the links inside the inputs, and those in what they lead to."""
        while self._links:
            waiting, self._links = sorted(self._links, key=lambda link: os.fsencode(link[0])), []
            for path, base in waiting:
                self._follow(path, base)

    def _follow(self, path: str, base: str) -> None:
        try:
            real = os.path.realpath(path, strict=True)
            status = os.stat(real)  # noqa: PTH116
        except PermissionError:
            return self._skip(path, UNREACHABLE)
        except OSError:  # the target is missing, or the link leads to itself
            return self._skip(path, NOWHERE)
        is_folder = stat.S_ISDIR(status.st_mode)
        why = why_skipped(path.rpartition("/")[2], is_folder=is_folder)
        is_beside = why == BESIDE_WHY
        why = None if is_beside else why
        if why is None and not self._may_follow(real, is_folder=is_folder):
            why = OUTSIDE
        if why is None and is_folder and real in self._walked:
            why = OTHER_FOLDER
        if why is not None:
            return self._skip(path, why)
        if is_folder:
            return self.take_folder(path, real, base, by_link=True)
        return self.take_file(path, real, status, base, (is_beside, True))

    def _may_follow(self, real: str, *, is_folder: bool) -> bool:
        """Return whether a link may be followed to a place: inside an INPUT, or to a file of its store of contents."""
        places = self._roots if is_folder else self._roots + self._stores
        return any(real == place or real.startswith(place.rstrip("/") + "/") for place in places)

    def result(self) -> Walked:
        """Return each file once, under the first of its names: its own before a link's, then in the order of bytes."""
        files, repeated = dict(self._copied), list(self._repeated)
        taken: dict[object, str] = {}
        named: set[str] = set()
        for is_beside, _, _, base, path, real, status in sorted(self._found, key=lambda entry: entry[:4]):
            address = address_of(path)
            if address in named:
                repeated += [] if is_beside else [uri_of(path)]
                continue
            first = taken.setdefault(_key_of(real, status), address)
            if first != address:
                self._skip(path, f"{OTHER_NAME}; {first}")
                continue
            named.add(address)
            modified = status.st_mtime_ns // 1_000_000
            is_archive = path.lower().endswith(".wacz")
            opened = path if is_archive else real  # its ending shows where the path of the archive ends
            inside = members_of(opened) if is_archive else []
            for mark, size in [(f"!{name}", size) for name, size in inside] or [("", status.st_size)]:
                beside = address if is_beside else ""
                placed = Placed(percent_spelled(base), percent_spelled(path + mark), size, modified, beside)
                files[address_of(opened + mark)] = placed
        return Walked(files, tuple(sorted(self._skipped.items())), tuple(repeated), tuple(self._tables))

    def _skip(self, path: str, why: str) -> None:
        self._skipped[address_of(path)] = why


def _store_of(root: str) -> str | None:
    """Return the folder that the links of a snapshot in the cache of Hugging Face lead to; None for another folder.

    Example:
        >>> _store_of("/hub/datasets--a--b/snapshots/5c1e/data"), _store_of("/data/snapshots")
        ('/hub/datasets--a--b/blobs', None)
    """
    above, separator, _ = root.partition("/snapshots/")
    return f"{above}/blobs" if separator and "--" in above.rpartition("/")[2] else None


def _root(text: str) -> tuple[str, str, os.stat_result]:
    """Return the path of an INPUT, the same without links, and the status of what it leads to."""
    try:
        path = local_path(text)
    except ConfigError as error:
        raise ConfigError(f"INPUT {text}: cannot be listed ({error})") from error
    try:
        status = os.stat(path)  # noqa: PTH116
        real = os.path.realpath(path)
    except FileNotFoundError:
        raise missing_input(text) from None
    except OSError as error:
        raise _unlistable(text, path, error) from error
    kind = stat.S_IFMT(status.st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        what = SPECIAL.get(kind, "neither of them")
        raise ConfigError(f"INPUT {text}: expected a file or a folder, got {what}; write its bytes to a file first")
    return path, real, status


def _unlistable(text: str, path: str, error: OSError) -> ConfigError:
    below = f"{percent_spelled(error.filename)}: " if error.filename not in (None, path) else ""
    return ConfigError(f"INPUT {text}: cannot be listed ({below}{error.strerror or error})")


def _key_of(path: str, status: os.stat_result) -> object:
    """Return a key, equal for two names of one file. Some file systems have no, or no lasting, numbers of files."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) if status.st_ino else path


def _is_checksum(name: str) -> bool:
    """Return whether a name is that of a checksum that Hadoop leaves beside each file; Hadoop does not list them."""
    return name.startswith(".") and name.endswith(".crc")


def _refuse_table(path: str, names: Collection[str], where: str = "") -> None:
    what = table_of_others(names, lambda name: _names_in(os.path.join(path, name)))  # noqa: PTH118
    if what is not None:
        raise table_input(f"{where}{percent_spelled(path)}", what)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _refuse_inside_table(text: str, real: str) -> None:
    for folder in list(PurePath(real).parents)[:MOST_PARTITIONS]:
        _refuse_table(str(folder), _names_in(str(folder)), f"{text} lies in ")


@lru_cache(maxsize=1)
def _archive(path: str, process: int, size: int, modified: int) -> zipfile.ZipFile:
    """Return the WACZ file opened last: its directory, of thousands of names, is read once for all its members."""
    del process, size, modified  # a process that is started has the place in an open file in common with its parent
    return zipfile.ZipFile(_open_regular(path))


def _open_archive(path: str) -> zipfile.ZipFile:
    status = os.stat(path)  # noqa: PTH116
    return _archive(path, os.getpid(), status.st_size, status.st_mtime_ns)


def members_of(path: str) -> list[tuple[str, int]]:
    """Return the name and the stored bytes of each WARC file in a WACZ file.

    None if it cannot be read, or if its files overlap: then each byte of it may be any number of files. None either if
    a name leads elsewhere, as `archive/../../x.warc` does for whoever takes it for a path.

    A WACZ file is a ZIP archive whose folder `archive` holds WARC files. Each of these is a file of the collection; its
    path, and its name in the tables, is `file.wacz!archive/x.warc.gz`. The index and the list of pages beside them are
    not read. Source: https://specs.webrecorder.net/wacz/1.1.1/

    Example:
        >>> members_of("/no/such.wacz")
        []
    """
    try:
        listed = _open_archive(path).infolist()
        is_sound = sum(one.compress_size for one in listed) <= os.stat(path).st_size  # noqa: PTH116
    except (OSError, *_ERRORS):
        return []
    members = [(one.filename, one.compress_size) for one in listed if _MEMBER.fullmatch(one.filename)]
    is_sound = is_sound and all(posixpath.normpath(name) == name for name, _ in members)
    return members if is_sound else []


def split_member(path: str) -> tuple[str, str] | None:
    """Return the path of a WACZ file and the name inside it; None for any other path.

    Example:
        >>> split_member("/a/b.wacz!archive/c.warc.gz"), split_member("/a/b.wacz")
        (('/a/b.wacz', 'archive/c.warc.gz'), None)
    """
    match = _MARK.search(path)
    return (path[: match.end() - 1], path[match.end() :]) if match else None


def open_stored(path: str) -> BinaryIO:
    """Open any file of an INPUT to read its bytes as stored: of this machine, elsewhere, or in a WACZ file.

    Args:
        path: `InputFile.path`: a path or URI `file:/…` of this machine, or an address that was listed.

    Raises:
        OSError: if a file of this machine cannot be opened.
        StoppedError: for one in a WACZ file that is damaged or encrypted, also while it is read.
        UnreachableError: for one elsewhere that cannot be fetched, or is another one than was listed.
    """
    inner = split_member(path)
    if is_remote(path):
        from nddup.remote.kept_copies import find_kept, open_kept  # noqa: PLC0415 - most inputs are on this machine

        return open_member(str(find_kept(inner[0])), inner[1]) if inner else open_kept(path)
    path = local_path(path) if path.startswith("file:/") else path
    inner = split_member(path)
    return open_member(*inner) if inner else _open_regular(path)


def _open_regular(path: str) -> BinaryIO:
    """Open a file; one that became a link, a pipe or a device since it was listed is refused, and blocks nobody."""
    number = open_unlinked(path)
    kind = stat.S_IFMT(os.fstat(number).st_mode)
    if kind != stat.S_IFREG:
        os.close(number)
        raise OSError(errno.EINVAL, f"since it was listed it became {SPECIAL.get(kind, 'another kind of file')}", path)
    return cast("BinaryIO", os.fdopen(number, "rb", buffering=0))


def open_member(path: str, name: str) -> BinaryIO:
    """Open a file in a WACZ file, to read its bytes as stored, whatever its checksum. Errors as `open_stored`.

    Of other methods than `BOUNDED` Python would expand all that it has read of a file at once: 45 bytes to a MB.
    """
    try:
        archive = _open_archive(path)
        if archive.getinfo(name).compress_type not in BOUNDED:
            raise NotImplementedError("expected a file that is stored or deflated")
        member = archive.open(name)
    except _ERRORS as error:
        raise _damaged(error) from error
    # Bytes before and after damaged ones are read, as of any WARC file; its own checksums tell what is wrong.
    member._expected_crc = None  # type: ignore[attr-defined]  # noqa: SLF001 - `zipfile` has no other way
    return cast(BinaryIO, _Member(member))


class _Member(io.RawIOBase):
    """A file in a WACZ file, whose damage is reported like that of any compressed file, after all bytes before it."""

    def __init__(self, stored: IO[bytes]) -> None:
        super().__init__()
        self._stored = stored

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stored.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        try:
            return self._stored.seek(offset, whence)
        except (OSError, *_ERRORS) as error:
            raise _damaged(error) from error

    def tell(self) -> int:
        return self._stored.tell()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            data: bytes = self._stored.read1(len(buffer))  # type: ignore[attr-defined]
        except (OSError, *_ERRORS) as error:
            raise _damaged(error) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stored.close()
        super().close()


def _damaged(error: Exception) -> StoppedError:
    return StoppedError("damaged", f"in its WACZ archive: {error or type(error).__name__}")
