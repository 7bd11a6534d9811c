"""Files that are executed, such as compiled kernels: only those are read that no other user can have written.

    find_stranger   why another user could have put files in a folder
    make_own        make a folder that only this user writes
    open_own        open a file if it is this user's, or root's
    open_lock       open a file to lock that no stranger can lock
    open_unlinked   open a file of a listing, through no link that another user could have put in its way since

A folder is safe if it and every folder and link on the way to it belong to this user or to root and nobody else may
write in them. Then nobody else can exchange what lies below, so one look is enough. Folders above it may be open to all
if they are sticky, as `/tmp`: there only the owner can exchange a folder or link. The file itself is looked at once it
has been opened. All of this costs some 30 µs for a folder, and 2 µs for a file.
"""

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG, S_ISVTX, S_IWGRP, S_IWOTH
from typing import BinaryIO

from nddup.errors import ConfigError

OTHERS_WRITE = S_IWGRP | S_IWOTH
MAX_LINKS = 40
"""Links on the way to a folder, as for Linux."""

READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW

WHOLE = getattr(os, "O_NOFOLLOW_ANY", 0)
"""The flag of macOS that refuses links anywhere on the way."""

FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW

LINKED = "since it was listed a link came in its way, where others may write"


def absolute(path: str) -> str:
    """Return a path from the root on; one that begins there needs no current folder.

    Raises:
        ConfigError: if the path is relative, and the current folder was removed.
    """
    if path.startswith("/"):
        return path
    try:
        return os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 - as it is written
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: the current folder was removed; go to another, or write paths from the root"
        ) from None


class ForeignFileError(Exception):
    """A file that another user wrote, or could have written; it is not read."""


def find_stranger(folder: str) -> str:
    """Return in words why another user could have put files in a folder; empty if none could, or it is not there.

    Example:
        >>> find_stranger("/"), find_stranger("/dev/shm")
        ('', '/dev/shm can be written by others')
    """
    place, links = "/", 0
    ahead = [*_names(absolute(folder)), ""]  # `..` is what links make it
    while ahead:
        name = ahead.pop()
        path = os.path.join(place, name) if name != ".." else os.path.dirname(place)  # noqa: PTH118, PTH120
        try:
            status = os.lstat(path)
            if S_ISLNK(status.st_mode):
                target = os.readlink(path)  # noqa: PTH115 - of a string
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{path}: {error.strerror}"
        is_link = S_ISLNK(status.st_mode)
        if status.st_uid not in {os.geteuid(), 0} or not (is_link or S_ISDIR(status.st_mode)):
            return f"{path} is another user's"
        if is_link:
            links += 1
            if links > MAX_LINKS:
                return f"{path}: {os.strerror(errno.ELOOP)}"
            place = "/" if target.startswith("/") else place
            ahead += _names(target)
            continue
        is_sticky = status.st_mode & S_ISVTX and ahead
        if status.st_mode & OTHERS_WRITE and not is_sticky:
            return f"{path} can be written by others"
        place = path
    return ""


def _names(path: str) -> list[str]:
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def find_stranger_beside(folder: str) -> str:
    """Return why others than those who can write the folder above could have put files in a folder, as above.

    For what was made of sources in the folder above: their owner is trusted, whoever that is.
    """
    try:
        status = os.lstat(folder)
        above = os.stat(os.path.dirname(folder))  # noqa: PTH116, PTH120
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{folder}: {error.strerror}"
    if not S_ISDIR(status.st_mode) or status.st_uid not in {os.geteuid(), 0, above.st_uid}:
        return f"{folder} is another user's"
    return f"{folder} can be written by others" if _is_more_open(status, above) else ""


def _is_more_open(status: os.stat_result, above: os.stat_result) -> bool:
    """Return whether others may write a file or folder who may not write in the folder above it."""
    opened = status.st_mode & OTHERS_WRITE
    return bool(opened & ~above.st_mode or (opened & S_IWGRP and status.st_gid != above.st_gid))


def make_own(folder: str, mode: int = 0o700) -> None:
    """Make a folder, and those above it, which nobody else may write in; what is there stays as it is.

    Raises:
        OSError: if it cannot be made.
    """
    made = Path(folder)
    if not made.is_dir():
        make_own(str(made.parent), mode)
        made.mkdir(mode=mode, exist_ok=True)


def open_own(path: str, *, beside: str = "") -> BinaryIO:
    """Open a file for reading that only this user or root can have written; or, with `beside`, who writes that folder.

    Raises:
        ForeignFileError: if another could have.
        OSError: if it cannot be opened.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ForeignFileError(path) from error
        raise
    try:
        status = os.fstat(number)
        owners, is_open = {os.geteuid(), 0}, bool(status.st_mode & OTHERS_WRITE)
        if beside:
            above = os.stat(beside)  # noqa: PTH116 - of a string
            owners, is_open = owners | {above.st_uid}, _is_more_open(status, above)
        if not S_ISREG(status.st_mode) or status.st_uid not in owners or is_open:
            raise ForeignFileError(path)  # noqa: TRY301 - the descriptor is closed below
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def open_lock(path: Path) -> BinaryIO:
    """Open a file to lock, which those can open who may write in its folder: others could hold the lock for ever.

    Raises:
        OSError: if it cannot be opened.
    """
    mode = 0o600 | 3 * (path.parent.stat().st_mode & OTHERS_WRITE)
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    if os.fstat(number).st_uid == os.geteuid():
        os.fchmod(number, mode)
    return os.fdopen(number, "r+b")


@dataclass(frozen=True)
class KernelFolder:
    """A folder that may hold compiled kernels.

    Attributes:
        above: the folder with the sources, if this one lies in it; else empty.
        mode: the permissions with which it is made: kernels of an installation serve all users.
    """

    path: str
    above: str = ""
    mode: int = 0o755

    def stranger(self) -> str:
        """Return in words why another user could have put files in it; empty if none could."""
        return find_stranger_beside(self.path) if self.above else find_stranger(self.path)

    def make(self) -> None:
        """Make the folder.

        Raises:
            PermissionError: if another user could have put files in it.
            OSError: if it cannot be made.
        """
        make_own(self.path, self.mode)
        if stranger := self.stranger():
            raise PermissionError(0, stranger)


def open_unlinked(path: str) -> int:
    """Open a file for reading without waiting, through no link where another user could put one.

    A listing resolves links, and refuses those that lead elsewhere. What it found is opened later, by other processes:
    whoever may write in a folder on the way could have put a link there meanwhile. Links in folders that only this user
    and root can write are followed: of a collection that several machines read, a folder may be a link on some of them.

    Args:
        path: absolute and normal.

    Raises:
        OSError: if it cannot be opened; ELOOP for such a link.

    Cost: two system calls; where a link or another spelling is met, two for each folder on the way.
    """
    with suppress(OSError):
        number = os.open(path, READ | WHOLE)
        if WHOLE or _is_at(number, path):
            return number
        os.close(number)
    place = path
    for _ in range(MAX_LINKS):
        try:
            number, link = _walk(place)
            if not link:
                return number
            above = os.path.dirname(link)  # noqa: PTH120 - of a string
            if find_stranger(above):
                break
            place = os.path.normpath(os.path.join(above, os.readlink(link)) + place[len(link) :])  # noqa: PTH115, PTH118
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error
    raise OSError(errno.ELOOP, LINKED, path)


def _is_at(number: int, path: str) -> bool:
    """Return whether Linux says that an open file was reached without links; false where it cannot say."""
    try:
        return os.readlink(f"/proc/self/fd/{number}") == path  # noqa: PTH115
    except OSError:
        return False


def _walk(path: str) -> tuple[int, str]:
    """Open a file from folder to folder; return its descriptor, or the path of the first link on the way."""
    number, place, last = os.open("/", FOLDER), "", path.count("/")
    for depth, name in enumerate(path.split("/")[1:], 1):
        above, place = number, f"{place}/{name}"
        try:
            number = os.open(name, READ if depth == last else FOLDER, dir_fd=above)
        except OSError:
            if not S_ISLNK(os.lstat(name, dir_fd=above).st_mode):
                raise
            return -1, place
        finally:
            os.close(above)
    return number, ""
