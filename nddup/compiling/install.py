"""Compile kernels once for an installation: `nddup setup` does it, or the first command that needs them.

    are_compiled    whether that has been done
    compile_once    do it, unless it has been done, or nothing could be kept

Each process compiles the kernels that it calls and does not find on disk: correct at any time, but a first run would
wait here and there for seconds without a word. So they are compiled beforehand, side by side on all cores, with a bar:
those of a run at default settings, which a first run waits for, or all.

A file in a folder that holds kernels says which were, for one version of nddup, Numba and Python, and one level of CPUs
if NUMBA_CPU_NAME names it; its name has a digest of the sources, as two builds may have one version. Only the standard
library is imported here: the processes that compile load while this one does.
"""

import fcntl
import hashlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from nddup import __version__
from nddup.errors import NddupError
from nddup.ground.own_files import KernelFolder, open_lock
from nddup.ground.progress import Steps
from nddup.ground.start_up import collect_rarely, kernel_folders, start_python

if TYPE_CHECKING:  # whether kernels are compiled is asked before numba is loaded
    from nddup.ground.kernels import OfNumba

EVENTS = {
    "_match_sketches": 67, "_mine_as_usual": 56, "_sketch_texts": 46, "_read_pages": 15, "_read_json": 16,
    "_run_as_usual": 48, "_compare_collections": 76, "_sketch_and_pair": 140, "_run_embedded": 92,
    "_mine_sketches": 62, "_check_results": 30, "_look_up": 17, "_cluster_around_leaders": 38,
}  # fmt: skip
"""Functions of `nddup.compiling.warm_up`, and about how often each compiles a kernel or loads one, for the bar."""

ROUNDS = (
    ("_match_sketches", "_mine_as_usual", "_sketch_texts", "_read_pages", "_read_json"), ("_run_as_usual",),
    ("_compare_collections", "_sketch_and_pair", "_run_embedded", "_mine_sketches", "_check_results", "_look_up",
     "_cluster_around_leaders"),
)  # fmt: skip
"""The functions that are called side by side, the longest first; those of a later round load what an earlier compiled.
"""

PARTS = tuple(part for parts in ROUNDS for part in parts)
USUAL = ("_match_sketches", "_mine_as_usual", "_sketch_texts", "_read_pages", "_run_as_usual")
"""The functions that call the kernels of a run of the embedded engine at default settings."""

OF_JSON = ("_read_json",)
"""Those by which lines of JSON are read."""

CHECK = (*USUAL, "_check_results")
"""Those of `nddup check` of such a run."""

ROOMS = ("against", "ground", "matching", "mining", "passages", "reading", "sketching", "verifying")
"""The rooms whose modules have kernels."""

START = "from nddup.compiling.install import call_parts; call_parts(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))"
DOING = "compile the kernels that this needs, only once"
WAITING = "wait for another process, which compiles the kernels"


def are_compiled(parts: Sequence[str] = ()) -> bool:
    """Return whether the kernels that some of PARTS, or all, call have been compiled and stored by this version."""
    return not _missing(parts)


def compile_once(steps: Steps, parts: Sequence[str] = ()) -> float:
    """Compile the kernels that some of PARTS, or all, call, unless that has been done; return the seconds it took.

    Of two processes at once, the second waits. Where no folder can be written, each process compiles what it calls, and
    the first kernel says so.

    Args:
        steps: the progress of the command, which gets one more step.
        parts: some of PARTS; none: all.

    Raises:
        NddupError: if a process that compiles fails.

    Cost: 100 to 200 seconds of CPU time on all cores, of USUAL two fifths; where it has been done, a pass over the
        sources of ROOMS, 1 MB.
    """
    if are_compiled(parts):
        return 0.0
    folder = _writable()
    if folder is None:
        return 0.0
    began = time.monotonic()
    with open_lock(folder / "compiling.lock") as lock:
        steps.begin(WAITING)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if missing := _missing(parts):
            steps.begin(DOING)
            _compile(folder, steps, missing)
    return time.monotonic() - began


def _missing(parts: Sequence[str]) -> list[str]:
    folders = _folders()
    return [part for part in parts or PARTS if not any(Path(folder.path, _stamp(part)).exists() for folder in folders)]


@cache
def _of_code() -> str:
    """Return a digest of the modules of ROOMS, and numba's version; in a zip archive no module is read."""
    digest = hashlib.blake2b(digest_size=8)
    for room in ROOMS:
        for file in sorted((Path(__file__).parents[1] / room).glob("*.py")):
            digest.update(file.name.encode() + file.read_bytes())
    return f"{digest.hexdigest()}-numba{version('numba')}"


def _stamp(part: str) -> str:
    level = "".join(f"-{name}" for name in [os.environ.get("NUMBA_CPU_NAME")] if name)  # else this machine's
    return f"compiled-{part[1:]}-{__version__}-{_of_code()}-{sys.implementation.cache_tag}{level}"


def _folders() -> list[KernelFolder]:
    """Return the folders that may hold the stamp: one for each place where kernels are looked for, in that order."""
    return [folder for folder in kernel_folders(__file__) if not folder.stranger()]


def _writable() -> Path | None:
    for folder in _folders():
        with suppress(OSError):
            folder.make()
            path = Path(folder.path)
            open_lock(path / "compiling.lock").close()
            return path
    return None


def _compile(folder: Path, steps: Steps, missing: Sequence[str]) -> None:
    with _counted(steps, sum(EVENTS[part] for part in missing)) as progress_fd:
        for together in ROUNDS:
            if parts := [part for part in together if part in missing]:
                _call_apart(folder, parts, progress_fd)
            for part in parts:
                (folder / _stamp(part)).touch()


def _call_apart(folder: Path, names: Sequence[str], progress_fd: int) -> None:
    """Call some parts in as many processes as there are cores; each takes the next part when it is done with one."""
    parts, given = os.pipe()
    os.write(given, bytes(range(len(names))))
    os.close(given)
    arguments = (str(folder / "saving.lock"), ",".join(names), str(parts), str(progress_fd))
    count = min(len(os.sched_getaffinity(0)), len(names))
    running = [start_python(START, *arguments, descriptors=[parts, progress_fd]) for _ in range(count)]
    os.close(parts)
    try:
        while running:
            time.sleep(0.05)
            ended = [process for process in running if process.poll() is not None]
            running = [process for process in running if process not in ended]
            if any(process.returncode for process in ended):
                raise NddupError("the kernels could not be compiled; the error of the process that failed is above")
    finally:
        for process in running:
            process.kill()
            process.wait()


@contextmanager
def _counted(steps: Steps, count: int) -> Iterator[int]:
    """Give a descriptor to which processes write a byte for each kernel; show how many, and the time left."""
    ours, theirs = os.pipe()

    def show() -> None:
        began, done = time.monotonic(), 0
        while read := len(os.read(ours, 1 << 12)):
            done = min(done + read, count - 1)
            steps.advance(done, count)
            left = (time.monotonic() - began) * (count - done) / done
            steps.note(f"{done} of {count}, {left:.0f} s left")
        os.close(ours)

    counter = threading.Thread(target=show, daemon=True)
    counter.start()
    try:
        yield theirs
    finally:
        os.close(theirs)
        counter.join()


# In a process that compiles -------------------------------------------------------------------------------------------


def call_parts(lock: str, names: str, parts: int, progress_fd: int) -> None:
    """Call functions of `nddup.compiling.warm_up` until all have been called, here or in another process.

    Args:
        lock: a file that the process which adds to Numba's cache locks: of two additions to one file at the same
            moment, only the second would stay.
        names: of the functions, with commas between them.
        parts: a descriptor that all processes read; each byte is the number of a function to call.
        progress_fd: a descriptor that receives one byte per kernel; a closed reader ends the process.
    """
    from nddup.compiling import warm_up as kernels  # noqa: PLC0415
    from nddup.ground.kernels import KernelCache, drop_events, suppress_cache_warning  # noqa: PLC0415 - loads numba

    collect_rarely()
    suppress_cache_warning()
    drop_events()
    load, save = KernelCache.load_overload, KernelCache.save_overload

    def load_and_report(self: KernelCache, sig: "OfNumba", target_context: "OfNumba") -> "OfNumba":
        overload = load(self, sig, target_context)
        if overload is not None:
            _report(progress_fd)
        return overload

    def save_and_report(self: KernelCache, sig: "OfNumba", data: "OfNumba") -> None:
        with open_lock(Path(lock)) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            save(self, sig, data)
        _report(progress_fd)

    KernelCache.load_overload, KernelCache.save_overload = load_and_report, save_and_report  # type: ignore[method-assign]
    while part := os.read(parts, 1):
        getattr(kernels, names.split(",")[part[0]])()


def _report(progress_fd: int) -> None:
    try:
        os.write(progress_fd, b".")
    except OSError:  # the process that waits for this one has ended
        os._exit(1)
