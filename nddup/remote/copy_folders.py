"""Folders of this machine for copies of what lies elsewhere: only this user writes them, and what is unused goes."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from pathlib import Path

from nddup.errors import ConfigError
from nddup.ground.own_files import make_own
from nddup.ground.start_up import CACHE_FOLDER, cache_folder

UNUSED_SECONDS = 30 * 86_400
"""Seconds without use after which a copy is removed."""


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
