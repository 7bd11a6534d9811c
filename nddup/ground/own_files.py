"""Files that are executed, such as compiled kernels: only those are read that no other user can have written.

    find_stranger   why another user could have put files in a folder
    make_own        make a folder that only this user writes
    open_own        open a file if it is this user's, or root's
    open_lock       open a file to lock that no stranger can lock

A folder is safe if it and every folder and link on the way to it belong to this user or to root and nobody else may
write in them. Then nobody else can exchange what lies below, so one look is enough. Folders above it may be open to all
if they are sticky, as `/tmp`: there only the owner can exchange a folder or link. The file itself is looked at once it
has been opened. All of this costs some 30 µs for a folder, and 2 µs for a file.
"""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG, S_ISVTX, S_IWGRP, S_IWOTH
from typing import BinaryIO

OTHERS_WRITE = S_IWGRP | S_IWOTH
MAX_LINKS = 40
"""Links on the way to a folder, as for Linux."""


class ForeignFileError(Exception):
    """A file that another user wrote, or could have written; it is not read."""


def find_stranger(folder: str) -> str:
    """Return in words why another user could have put files in a folder; empty if none could, or it is not there.

    Example:
        >>> find_stranger("/"), find_stranger("/dev/shm")
        ('', '/dev/shm can be written by others')
    """
    place, links = "/", 0
    ahead = [*_names(os.path.join(os.getcwd(), folder)), ""]  # noqa: PTH109, PTH118 - `..` is what links make it
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
        path: of the folder.
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
