"""How nddup starts Python processes of its own: what they import, and that they end with the process that started them.

The current folder may hold anybody's files. `python -c` and `python -m` put it first on the module path, so a
`numpy.py` beside the data would be executed in every child. A child started here imports from where its parent did,
except from the current folder: `-P` keeps Python from adding it, and `module_path` leaves it out of the parent's path,
unless the user named it in PYTHONPATH or nddup itself is there.

Only the standard library is imported here: children start while the caller is still loading.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = str(Path(__file__).absolute().parents[2])
"""The folder (or zip archive) that holds this package."""

SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable that does the same as `-P`; processes that others start for nddup, such as Spark's, get it."""

_SET_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's <sys/prctl.h>."""


def start_python(
    code: str, *arguments: str, environment: Mapping[str, str] | None = None, descriptors: Iterable[int] = ()
) -> "subprocess.Popen[bytes]":
    """Start this interpreter with some code; it imports what this process would, but nothing of the current folder.

    The child stays in the caller's process group, so that a signal to the group, such as a scheduler's, ends both. It
    ignores an interrupt from the keyboard: the caller receives it too, and ends the child.

    Args:
        code: of the child.
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
