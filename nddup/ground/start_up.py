"""Start-up: what libraries need not load, so that it is fast, and the folders of what is made once."""

import gc
import os
import sys
from collections.abc import Sequence
from fcntl import F_GETFL, fcntl
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from nddup.ground.own_files import KernelFolder, find_stranger

CACHE_FOLDER = "NDDUP_CACHE_DIR"
"""Environment variable with the path of the cache folder."""

KERNELS = "NUMBA_CACHE_DIR"
"""Environment variable with a folder for compiled kernels."""

LIGHT = {
    "PYDANTIC_DISABLE_PLUGINS": "__all__",  # it would search all packages for them
    "OPENBLAS_NUM_THREADS": "1",  # NumPy would start a thread for each core, which spins for a while; none is used
}
"""Environment of a command, unless it is set."""

COLLECTED_AFTER = 200_000
"""New objects between two searches for cycles among young objects. What libraries create while loading is never freed;
with Python's default of 700 a short command spends a tenth of its time on searching it."""


class _NoPandas:
    """An import finder that refuses pandas."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Refuse pandas; leave all other modules to other finders."""
        del path, target
        if name == "pandas":
            raise ImportError("pandas is not loaded here")
        return None


def open_streams() -> None:
    """Open /dev/null as standard input, output or error where this process was started without it (`2>&-`).

    Otherwise the next file opened would have the number of the closed stream, and what is written to that, by this
    process or one that it starts, would be written into the file. A shell gives the number to the script that it reads,
    so an output that cannot be written counts as closed.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if not _is_open(number):
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)  # noqa: FBT003 - takes no name
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - by number


def _is_open(number: int) -> bool:
    try:
        mode = fcntl(number, F_GETFL) & os.O_ACCMODE
    except OSError:
        return False
    return number == 0 or mode != os.O_RDONLY


def collect_rarely() -> None:
    """Let Python look for garbage in this process once in `COLLECTED_AFTER` objects."""
    gc.set_threshold(COLLECTED_AFTER)


def prevent_pandas_import() -> None:
    """Keep pyarrow from loading pandas in this process, unless pandas is loaded already.

    At its first list pyarrow checks whether the values come from pandas, and loads pandas for that: 0.3 s. It checks
    once. Pandas can be imported afterwards; only pyarrow does not know of it. For processes that are nddup's own.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415 - a command that only prints help needs none

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)


def cache_folder() -> Path | None:
    """Return the folder for files made once on this machine: `NDDUP_CACHE_DIR`, else `nddup` in the user's cache.

    None if the user has no home, or if another user could have put files there: they would be executed.
    """
    folder = _cache_place()
    return None if folder is None or find_stranger(str(folder)) else folder


def _cache_place() -> Path | None:
    given = os.environ.get(CACHE_FOLDER)
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # noqa: PTH117 - "" is none
        base = os.path.expanduser("~/.cache") if os.environ.get("HOME", "/").startswith("/") else ""  # noqa: PTH111
    folder = Path(base) / "nddup"
    return folder if folder.is_absolute() else None


def kernel_folders(source: str, below: str = "") -> list[KernelFolder]:
    """Return the folders that may hold the kernels of a source file, in the order in which they are looked at.

    They are that of NUMBA_CACHE_DIR, `__pycache__` beside the source, and that of the user.

    Args:
        source: path of the file.
        below: a folder in those that serve several source files.
    """
    given, own, beside = os.environ.get(KERNELS), _cache_place(), Path(source).absolute().parent
    return [
        *([KernelFolder(str(Path(given, below)))] if given else []),
        KernelFolder(str(beside / "__pycache__"), above=str(beside)),
        *([KernelFolder(str(own / "kernels" / below), mode=0o700)] if own else []),
    ]
