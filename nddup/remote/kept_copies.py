"""Copies of files elsewhere on this machine: each is fetched once, read from here, and removed when the room is needed.

    list_kept     addresses                   -> the files at and below each, noted here
    open_kept     the address of such a file  -> its copy, opened; fetched first if it is not here
    find_kept     the same                    -> the path of its copy
    read_kept     the same, a place           -> some bytes of it

The folder is `inputs` in the cache of the user, with a note and a copy for each address. A copy has the size, the time
and the version of its file in its name, so that another version has another copy. Processes agree by locks.
"""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from hashlib import sha256
from json import dumps, loads
from pathlib import Path
from secrets import token_hex
from shutil import disk_usage
from threading import Lock
from typing import BinaryIO, NamedTuple

from nddup.errors import ConfigError, UnreachableError
from nddup.ground.own_files import make_own
from nddup.ground.progress import note
from nddup.ground.shown import parse_size, spell_size
from nddup.ground.start_up import CACHE_FOLDER, cache_folder
from nddup.remote.addresses import RemoteFile, spell_bare
from nddup.remote.fetch import list_remote, read_remote

CACHE_SIZE = "NDDUP_CACHE_SIZE"
"""Environment variable with the bytes that the copies may have together, such as 50g; else half of the free disk.

Where inputs of T bytes have room for only R, n passes fetch T + (n - 1) (T - R), and in each pass some files more: what
a pass needs is known only after the one before, so its bytes are kept here or fetched again. A run has two passes, to
sketch and to confirm, one more for `output.kept`, and one more for files of at most `SMALL`, whose heads are all of
them. So at most twice the inputs are fetched with any room in two passes, with R of half of T in three, and with two
thirds in four, as `reading_order` of the embedded workers begins with what is left.
"""

SMALL = 1 << 20
"""Bytes of a file that is fetched whole when its first bytes are asked for, even if not all files have room."""

LISTED_AT_ONCE = 16

PART_OF_ROOM = 32
"""Of the room that is left, a process may fill 1/PART_OF_ROOM before it looks again: there may be many files."""

OPENINGS = 5
"""How often a copy is fetched again that others removed before it was opened."""


_room: dict[tuple[int, Path], int] = {}
"""The bytes that a process may still fetch to a folder before it looks how much is there."""

_room_lock = Lock()

UNUSED_SECONDS = 30 * 86_400
"""Seconds without use after which a copy is removed."""


class _Noted(NamedTuple):
    """A file, the path of its copy, and whether all files listed with it have room together."""

    file: RemoteFile
    copy: Path
    have_room: bool


def list_kept(urls: Sequence[str]) -> list[dict[str, RemoteFile]]:
    """Return what `list_remote` lists of each address, noted for the other functions; errors as there.

    Raises:
        ConfigError: if this machine has no folder for copies.
    """
    with ThreadPoolExecutor(LISTED_AT_ONCE) as threads:
        listings = list(threads.map(list_remote, urls))
    files = {file.url: file for listed in listings for file in listed.values()}
    folder, have_room = _folder(), sum(file.size for file in files.values()) <= max_bytes()
    remove_unused(folder)
    for file in files.values():
        name = _name(file.url)
        if not (file.modified or file.version):  # nothing would tell another file from this one
            for copy in folder.glob(f"{name}-*"):
                copy.unlink(missing_ok=True)
        path, text = folder / f"{name}.json", dumps([*file[1:], have_room])
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            draft = folder / f".{name}-{token_hex(4)}"
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        else:
            os.utime(path)
    return listings


def max_bytes() -> int:
    """Return the bytes that the copies may have together.

    Raises:
        ConfigError: for a size that is none.
    """
    given = os.environ.get(CACHE_SIZE)
    if given:
        try:
            return parse_size(given)
        except ValueError as error:
            raise ConfigError(f"{CACHE_SIZE}: {error}") from error
    folder = _folder()
    copies = sum(size for _, size, _ in _copies(folder))
    return (disk_usage(folder).free + copies) // 2


def open_kept(url: str) -> BinaryIO:
    """Open the copy of a file to read its bytes as stored.

    Raises:
        UnreachableError: if the file cannot be fetched, or has changed since it was listed.
    """
    for _ in range(OPENINGS):
        with suppress(FileNotFoundError):  # another process needed the room
            return open(find_kept(url), "rb", buffering=0)  # noqa: PTH123 - the caller closes it
    raise UnreachableError(f"{spell_bare(url)}: its copy is removed while it is needed; raise {CACHE_SIZE}")


def find_kept(url: str) -> Path:
    """Return the path of the copy of a file; errors as `open_kept`."""
    noted = _note_of(url)
    if _is_there(noted):
        return noted.copy
    with locked(noted.copy.with_name(f"{_name(url)[:2]}.lock")):
        if not _is_there(noted):
            _fetch(noted)
    return noted.copy


def read_kept(url: str, start: int, size: int) -> bytes:
    """Return some bytes of a file: of its copy, or if not all files have room together, of the file itself."""
    noted = _note_of(url)
    if noted.have_room or noted.file.size <= SMALL or _is_there(noted):
        with open_kept(url) as file:
            file.seek(start)
            data = b""
            while len(data) < size and (more := file.read(size - len(data))):
                data += more
            return data
    return b"".join(read_remote(noted.file, start, start + size))


def _name(url: str) -> str:
    return sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _folder() -> Path:
    return own_folder("inputs", "files elsewhere need a folder of your own for their copies")


def _note_of(url: str) -> _Noted:
    folder, name = _folder(), _name(url)
    try:
        size, modified, version, have_room = loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnreachableError(f"{spell_bare(url)}: the note on it is gone; run the command again") from error
    file = RemoteFile(url, size, modified, version)
    return _Noted(file, folder / f"{name}-{sha256(dumps(file[1:]).encode()).hexdigest()[:16]}", have_room)


def _is_there(noted: _Noted) -> bool:
    try:
        is_whole = noted.copy.stat().st_size == noted.file.size
        os.utime(noted.copy)  # it is in use
    except OSError:
        return False
    return is_whole


def _fetch(noted: _Noted) -> None:
    """Fetch a file; its copy gets its name once it is whole."""
    draft = noted.copy.with_name(f".{noted.copy.name}-{token_hex(4)}")
    try:
        _make_room(noted)
        with draft.open("xb") as file:
            os.truncate(file.fileno(), noted.file.size)  # counts at once among what is here
            done = 0
            for piece in read_remote(noted.file):
                file.write(piece)
                done += len(piece)
                note(f"{spell_size(done)} of {spell_size(noted.file.size)}")
        draft.replace(noted.copy)
    except OSError as error:
        name, why = spell_bare(noted.file.url), error.strerror or error
        raise UnreachableError(f"{name}: its copy cannot be written to {noted.copy.parent} ({why})") from error
    finally:
        draft.unlink(missing_ok=True)


def _make_room(noted: _Noted) -> None:
    """Remove the copies that were used longest ago, until a file has room."""
    size, folder = noted.file.size, noted.copy.parent
    with _room_lock:
        left = _room.get((os.getpid(), folder), 0) - size
        _room[os.getpid(), folder] = left
    if left >= 0:
        return
    most = max_bytes()
    if size > most:
        raise UnreachableError(
            f"{spell_bare(noted.file.url)}: has {spell_size(size)}, more than its copies may have together; raise"
            f" {CACHE_SIZE} ({spell_size(most)})"
        )
    with locked(folder / "room.lock"):
        copies = sorted(_copies(folder))
        whole = sum(size for _, size, _ in copies) + size
        for _, other, path in copies:
            if whole <= most:
                break
            if not path.name.startswith("."):  # another process is writing that
                path.unlink(missing_ok=True)
                whole -= other
    with _room_lock:
        _room[os.getpid(), folder] = max(0, most - whole) // PART_OF_ROOM


def _copies(folder: Path) -> list[tuple[float, int, Path]]:
    """Return when each copy was used, its size and its path."""
    copies = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if "-" in entry.name:
                    status = entry.stat(follow_symlinks=False)
                    copies.append((status.st_mtime, status.st_size, Path(entry.path)))
    return copies


def own_folder(name: str, need: str) -> Path:
    """Return a folder in the cache of the user; it is made if it is not there.

    Args:
        need: what needs it, for the message.

    Raises:
        ConfigError: if the user has none that nobody else can write to.
    """
    base = cache_folder()
    if base is None:
        raise ConfigError(f"{need}; set {CACHE_FOLDER} to one")
    folder = base / name
    make_own(str(folder))
    return folder


def remove_unused(folder: Path) -> None:
    """Remove the files and folders in a folder that nobody has used for `UNUSED_SECONDS`."""
    before = time.time() - UNUSED_SECONDS
    for path in folder.iterdir():
        with suppress(OSError):
            if path.stat(follow_symlinks=False).st_mtime < before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock, which is a file, for the block."""
    with path.open("ab") as file:
        flock(file, LOCK_EX)
        yield
