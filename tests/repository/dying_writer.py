"""Program that changes copies of a folder, killed at a write: `python dying_writer.py SOURCE FOLDER STEP VERB...`.

SOURCE is a repository; for `night` it holds a finished run `old` and a batch `in/b`, which goes onto it as `new`.
For each verb a copy, FOLDER/VERB/n, is changed by a process that is killed at its n-th write, for every n that is a
multiple of STEP or one of the last four. One copy more, of the highest number, is changed by a process that finishes.

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
VERBS: dict[str, Callable[[str], object]] = {
    "add": lambda path: _open(path).add({f"n{i}": f"new text number {i} " * (i + 1) for i in range(4)}),
    "replace": lambda path: _open(path).add({"d0": "another text altogether"}, replace=True),
    "remove": lambda path: _open(path).remove(["d1", "d2"]),
    "compact": lambda path: _open(path).compact(days=0),
    "merge": lambda path: _open(path).compact(),
    "night": lambda path: go_on(path, resume=False),
}
VERBS["claim"] = VERBS["add"]  # on a disk without links


def _open(path: str) -> Any:  # noqa: ANN401 - loaded with its kernels
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415

    return Repository(path)


def go_on(path: str, *, resume: bool) -> None:
    """Run the batch `in/b` of a folder onto its run `old`."""
    from nddup.embedded.run import run_locally  # noqa: PLC0415
    from nddup.settings.load import build_config  # noqa: PLC0415
    from nddup.stages.onto import settings_onto  # noqa: PLC0415
    from nddup.storage.local_folder import LocalFolder  # noqa: PLC0415

    given = build_config({"output": {"report": False}, "local": {"processes": 1}}, origin="test")
    config = settings_onto(given, LocalFolder(f"{path}/old"))
    run_locally([f"{path}/in/b"], f"{path}/new", config, batch="b", onto=f"{path}/old", resume=resume)


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
    """Make a change, and return its number of writes; end this process at write `last`."""
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
    VERBS[verb](repo)
    return counter.count


def main() -> None:
    """Kill one process after another, each forked from this one, which has loaded everything.

    It has also changed copies itself, to load the kernels, which would take each process half a second. The only
    threads are those of libraries that expect forks.
    """
    source, folder, step, *verbs = sys.argv[1:]
    for verb in verbs:
        with TemporaryDirectory() as scratch:
            VERBS[verb](str(shutil.copytree(source, Path(scratch) / "copy")))
    for verb in verbs:
        place, counted = Path(folder) / verb, Path(folder) / "writes"
        _change_copy(source, place / "whole", verb, 0, counted)
        writes = int(counted.read_text())
        (place / "whole").rename(place / str(writes + 1))
        for number in range(1, writes + 1):
            if number % int(step) == 0 or number > writes - 4:
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
