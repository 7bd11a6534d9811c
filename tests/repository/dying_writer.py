"""Program that changes copies of a repository and is killed at a write: `python dying_writer.py REPO FOLDER STEP`.

For each of VERBS a copy, FOLDER/VERB/n, is changed by a process that is killed at its n-th write, for every n that is a
multiple of STEP or one of the last five. One copy more, of the highest number, is changed by a process that finishes.

A write is anything that changes the disk: a file or folder made, written, flushed, renamed, linked or removed. Python
announces most of them beforehand (`sys.addaudithook`). Data written to a file goes through `_TornFile`: a process
killed there has written half of it. Arrow writes mapped arrays without it, in a draft folder that is later renamed.
"""

import builtins
import errno
import io
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

WRITES = {"os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}
VERBS: dict[str, Callable[[Any], object]] = {
    "add": lambda repo: repo.add({f"n{i}": f"new text number {i} " * (i + 1) for i in range(4)}),
    "replace": lambda repo: repo.add({"d0": "another text altogether"}, replace=True),
    "remove": lambda repo: repo.remove(["d1", "d2"]),
    "compact": lambda repo: repo.compact(days=0),
    "merge": lambda repo: repo.compact(),
}
VERBS["claim"] = VERBS["add"]  # on a disk without links


class _Count:
    """A counter of writes below a folder, which kills this process before the n-th."""

    def __init__(self, folder: str, last: int) -> None:
        self.folder, self.last, self.count = folder, last, 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if (opens or event in WRITES) and str(arguments[0]).startswith(self.folder):
            self.step()

    def step(self) -> None:
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


class _TornFile(io.FileIO):
    """A file in which each write may be the last, half done."""

    step: Callable[[], None]

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        view = memoryview(data).cast("B")
        half = super().write(view[: len(view) // 2]) or 0
        self.step()
        return half + (super().write(view[half:]) or 0)


def change(repo: str, verb: str, last: int) -> int:
    """Open the repository, make a change, and return its number of writes; end this process at write `last`."""
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415

    opened = Repository(repo)
    counter, real = _Count(repo, last), io.open
    _TornFile.step = staticmethod(counter.step)

    def fsync(_: int) -> None:  # data written by a killed process survives without it
        counter.step()

    def open_torn(file: Any, mode: str = "r", *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as `open`
        if mode == "wb" and str(file).startswith(repo):
            return io.BufferedWriter(_TornFile(file, mode))
        return real(file, mode, *given, **named)

    def refuse(draft: Path, final: Path) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported", str(draft), None, str(final))

    os.fsync, io.open, builtins.open = fsync, open_torn, open_torn  # type: ignore[assignment]
    if verb == "claim":
        os.link = refuse  # type: ignore[assignment]
    sys.addaudithook(counter)
    VERBS[verb](opened)
    return counter.count


def main() -> None:
    """Kill one process after another, each forked from this one, which has loaded everything.

    It has also changed copies itself, to load the kernels, which would take each process half a second. The only
    threads are those of libraries that expect forks.
    """
    source, folder, step = sys.argv[1:]
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415

    for work in VERBS.values():
        with TemporaryDirectory() as scratch:
            work(Repository(str(shutil.copytree(source, Path(scratch) / "repo"))))
    for verb in VERBS:
        place, counted = Path(folder) / verb, Path(folder) / "writes"
        _change_copy(source, place / "whole", verb, 0, counted)
        writes = int(counted.read_text())
        (place / "whole").rename(place / str(writes + 1))
        for number in range(1, writes + 1):
            if number % int(step) == 0 or number > writes - 5:
                _change_copy(source, place / str(number), verb, number, counted)


def _change_copy(source: str, copy: Path, verb: str, last: int, counted: Path) -> None:
    """Change a copy in a process that is killed at write `last`; 0: in one that finishes and notes its writes."""
    shutil.copytree(source, copy)
    child = os.fork()
    if not child:
        counted.write_text(str(change(str(copy), verb, last)))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) != bool(last) or (status and not last):
        sys.exit(f"{verb}: status {status} where the writer dies at write {last}")


if __name__ == "__main__":
    main()
