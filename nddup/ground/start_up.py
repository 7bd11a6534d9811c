"""Start-up, of this process and of Python processes of its own: what libraries need not load, and what children import.

The current folder may hold anybody's files. `python -c` and `python -m` put it first on the module path, so a
`numpy.py` beside the data would be executed in every child. A child started here imports from where its parent did,
except from the current folder: `-P` keeps Python from adding it, and `module_path` leaves it out of the parent's path,
unless the user named it in PYTHONPATH or nddup itself is there. Only the standard library is imported here: children
start while the caller is still loading.
"""

import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import F_GETFL, fcntl
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from nddup.ground.own_files import KernelFolder, find_stranger

ROOT = str(Path(__file__).absolute().parents[2])
"""The folder (or zip archive) that holds this package."""

SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable that does the same as `-P`; processes that others start for nddup, such as Spark's, get it."""

_SET_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's <sys/prctl.h>."""


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


def start_python(
    code: str, *arguments: str, environment: Mapping[str, str] | None = None, descriptors: Iterable[int] = ()
) -> "subprocess.Popen[bytes]":
    """Start this interpreter with some code; it imports what this process would, but nothing of the current folder.

    The child stays in the caller's process group, so that a signal to the group, such as a scheduler's, ends both. It
    ignores an interrupt from the keyboard: the caller receives it too, and ends the child.

    Args:
        arguments: its `sys.argv[1:]`.
        environment: variables to add to those of this process.
        descriptors: open files that it inherits.
    """
    flags = {"-I": sys.flags.isolated, "-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site}
    command = [sys.executable, "-P", *(flag for flag, is_set in flags.items() if is_set)]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a child starts with the mask of this thread
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter
            [*command, "-c", _SET_PATH + code, json.dumps(module_path()), *arguments],
            pass_fds=tuple(descriptors),
            stdin=subprocess.DEVNULL,
            env={**os.environ, SAFE_PATH: "1", **(environment or {})},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def module_path() -> list[str]:
    """Return the folders that children import from: those of this process, without the current folder.

    The current folder stays if PYTHONPATH names it, or if this package is there.
    """
    named = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    wanted = {os.path.realpath(folder) for folder in (ROOT, *named)}
    try:
        here = os.path.realpath(os.getcwd())  # noqa: PTH109 - compared as text
        folders = dict.fromkeys(os.path.abspath(folder) for folder in sys.path)  # noqa: PTH100
    except FileNotFoundError:  # the current folder was removed
        here, folders = "", dict.fromkeys(folder for folder in sys.path if os.path.isabs(folder))  # noqa: PTH117
    kept = [folder for folder in folders if (real := os.path.realpath(folder)) != here or real in wanted]
    return kept if ROOT in kept else [*kept, ROOT]


@contextmanager
def safe_path_for_others() -> Iterator[None]:
    """Have every process that is started within the block, also by a library, leave out the current folder."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before


def end_with_parent(parent: int) -> None:
    """Have the system kill this process when its parent ends; call it right after the fork, in the child.

    On systems other than Linux it does nothing.

    Args:
        parent: number of the process that forked this one. It has one thread: the signal comes when that thread ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal.SIGKILL))
        if os.getppid() != parent:  # it ended before that
            os._exit(1)


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
        below: a folder in those that serve several source files.
    """
    given, cache, beside = os.environ.get(KERNELS), _cache_place(), Path(source).absolute().parent
    return [
        *([KernelFolder(str(Path(given, below)))] if given else []),
        KernelFolder(str(beside / "__pycache__"), above=str(beside)),
        *([KernelFolder(str(cache / "kernels" / below), mode=0o700)] if cache else []),
    ]
