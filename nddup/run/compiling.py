"""Compile all kernels once for an installation: `nddup setup` does it, or the first command that needs them.

    are_compiled    whether that has been done
    compile_once    do it, unless it has been done, or nothing could be kept

Each process compiles the kernels that it calls and does not find on disk: correct at any time, but a first run would
wait here and there for seconds without a word. So all are compiled beforehand, side by side on all cores, with a bar.

A file in a folder that holds kernels says that it was done, for one version of nddup, Numba and Python. Only the
standard library is imported here: the processes that compile load while this one does.
"""

import fcntl
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from subprocess import Popen
from typing import Any

from nddup import __version__
from nddup.children import start_python
from nddup.errors import NddupError
from nddup.progress import Steps
from nddup.start_up import cache_folder

PARTS = (
    "mine_sketches", "run_embedded", "sketch_and_pair", "compare_collections", "follow_leaders", "look_up",
    "check_results",
)  # fmt: skip
"""Functions of `nddup.run.kernels`, the longest first; each is called in a process of its own."""

LAST = "call_kernels"
"""The function that calls all kernels again. If two processes add to one file of Numba's cache at the same moment, only
the second addition stays: what was lost is compiled here."""

EVENTS = 463
"""How often a kernel is compiled, or loaded from the disk, in all these processes: about, for the bar."""

START = "from nddup.run.compiling import call_part; call_part(sys.argv[1], int(sys.argv[2]))"
DOING = "compile the kernels, once for an installation"
WAITING = "wait for another process, which compiles the kernels"


def are_compiled() -> bool:
    """Return whether the kernels of this version have been compiled and kept."""
    return any(Path(folder, _stamp()).exists() for folder in _folders())


def compile_once(steps: Steps) -> float:
    """Compile all kernels, unless that has been done or nothing could be kept; return the seconds it took.

    Of two processes at once, the second waits. Where no folder can be written, each process compiles what it calls, and
    the first kernel says so.

    Args:
        steps: the progress of the command, which gets one more step.

    Raises:
        NddupError: if a process that compiles fails.

    Cost: about 110 seconds of CPU time, on all cores; three file names looked up where it has been done.
    """
    if are_compiled():
        return 0.0
    folder = _writable()
    if folder is None:
        return 0.0
    began = time.monotonic()
    with (folder / "compiling.lock").open("a") as lock:
        steps.begin(WAITING)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not are_compiled():
            steps.begin(DOING)
            _compile(steps)
            (folder / _stamp()).touch()
    return time.monotonic() - began


def _stamp() -> str:
    return f"compiled-{__version__}-numba{version('numba')}-{sys.implementation.cache_tag}"


def _folders() -> list[Path]:
    """Return the folders that may hold the stamp: one for each place where kernels are looked for, in that order."""
    given, own = os.environ.get("NUMBA_CACHE_DIR"), cache_folder()
    beside = Path(__file__).absolute().parent / "__pycache__"
    return [*([Path(given)] if given else []), beside, *([own / "kernels"] if own else [])]


def _writable() -> Path | None:
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "compiling.lock").open("a"):
                return folder
    return None


def _compile(steps: Steps) -> None:
    """Call every part in processes of their own, as many at a time as there are cores."""
    with _counted(steps) as told:
        waiting, running = list(PARTS), dict[str, Popen[bytes]]()
        try:
            while waiting or running:
                while waiting and len(running) < len(os.sched_getaffinity(0)):
                    part = waiting.pop(0)
                    running[part] = _start(part, told)
                time.sleep(0.05)
                for name in [name for name, process in running.items() if process.poll() is not None]:
                    _require(running.pop(name))
            running[LAST] = _start(LAST, told)
            _require(running[LAST])
        finally:
            for process in running.values():
                process.kill()
                process.wait()


def _start(part: str, told: int) -> "Popen[bytes]":
    return start_python(START, part, str(told), descriptors=[told])


def _require(process: "Popen[bytes]") -> None:
    if process.wait():
        raise NddupError("the kernels could not be compiled; the error of the process that failed is above")


@contextmanager
def _counted(steps: Steps) -> Iterator[int]:
    """Give a descriptor to which processes write a byte for each kernel; show how many there are, and the time left."""
    ours, theirs = os.pipe()

    def count() -> None:
        began, done = time.monotonic(), 0
        while read := len(os.read(ours, 1 << 12)):
            done = min(done + read, EVENTS - 1)
            steps.advance(done, EVENTS)
            steps.note(f"about {(time.monotonic() - began) * (EVENTS - done) / done:.0f} s left")
        os.close(ours)

    counter = threading.Thread(target=count, daemon=True)
    counter.start()
    try:
        yield theirs
    finally:
        os.close(theirs)
        counter.join()


# In a process that compiles -------------------------------------------------------------------------------------------


def call_part(name: str, told: int) -> None:
    """Call the kernels of one function of `nddup.run.kernels`.

    Args:
        name: of the function, without `_`.
        told: a descriptor to which a byte is written for each kernel; if nobody reads it, this process ends.
    """
    from nddup.arrays import KernelCache, leave_saying_to_others  # noqa: PLC0415 - the caller loads no kernel
    from nddup.run import kernels  # noqa: PLC0415

    leave_saying_to_others()
    load, save = KernelCache.load_overload, KernelCache.save_overload

    def load_and_tell(self: KernelCache, sig: Any, target_context: Any) -> Any:  # noqa: ANN401 - of numba
        found = load(self, sig, target_context)
        if found is not None:
            _tell(told)
        return found

    def save_and_tell(self: KernelCache, sig: Any, data: Any) -> None:  # noqa: ANN401 - of numba
        save(self, sig, data)
        _tell(told)

    KernelCache.load_overload, KernelCache.save_overload = load_and_tell, save_and_tell  # type: ignore[method-assign]
    part = getattr(kernels, name, None) or getattr(kernels, f"_{name}")
    part()


def _tell(told: int) -> None:
    try:
        os.write(told, b".")
    except OSError:  # the process that waits for this one has ended
        os._exit(1)
