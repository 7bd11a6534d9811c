"""Files opened where they were listed: through no link that another user could have put in their way since.

    open_unlinked   a path without links -> a descriptor of the file there

A listing resolves links, and refuses those that lead elsewhere. What it found is opened later, by other processes:
whoever may write in a folder on the way could have put a link there meanwhile.
"""

import errno
import os
from contextlib import suppress
from stat import S_ISLNK

from nddup.ground.own_files import MAX_LINKS, find_stranger

READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW

WHOLE = getattr(os, "O_NOFOLLOW_ANY", 0)
"""The flag of macOS that refuses links anywhere on the way."""

FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW

LINKED = "since it was listed a link came in its way, where others may write"


def open_unlinked(path: str) -> int:
    """Open a file for reading without waiting, through no link where another user could put one.

    Links in folders that only this user and root can write are followed: of a collection that several machines read, a
    folder may be a link on some of them.

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
