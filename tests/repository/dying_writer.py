"""Changes copies of a repository, and is killed at every write: `python dying_writer.py REPO FOLDER VERB`.

The n-th copy, FOLDER/n, is changed by a process that is killed at its n-th write; the last one comes through.

A write is anything that changes the disk: a file or folder made, written, renamed, linked or removed. Python tells of
each before it happens (`sys.addaudithook`); Arrow writes through Python's file objects here, whose `write` is wrapped.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

WRITES = {"os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}
VERBS: dict[str, Callable[[Any], object]] = {
    "add": lambda repo: repo.add({f"n{i}": f"new text number {i} " * (i + 1) for i in range(4)}),
    "replace": lambda repo: repo.add({"d0": "another text altogether"}, replace=True),
    "remove": lambda repo: repo.remove(["d1", "d2"]),
    "compact": lambda repo: repo.compact(days=0),
}


class _Count:
    """Counts writes below a folder, and kills this process before the n-th."""

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


def change(repo: str, verb: str, last: int) -> None:
    """Open, load what the verb needs, then count."""
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415

    opened = Repository(repo)
    counter = _Count(repo, last)

    def fsync(_: int) -> None:  # a process may die before it, but what it wrote outlives it without
        counter.step()

    os.fsync = fsync  # type: ignore[assignment]
    sys.addaudithook(counter)
    VERBS[verb](opened)


def main() -> None:
    """Kill one process after another, each forked from this one, which has loaded everything.

    Kernels too: each process would need 0.9 s for them. Of threads there are those of libraries that expect forks.
    """
    source, folder, verb = sys.argv[1:]
    import nddup.repository.opened_repository  # noqa: F401, PLC0415
    from nddup.run.kernels import load_kernels  # noqa: PLC0415

    load_kernels()
    last = 0
    is_killed = True
    while is_killed:
        last += 1
        repo = str(Path(folder) / str(last))
        shutil.copytree(source, repo)
        child = os.fork()
        if not child:
            change(repo, verb, last)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        is_killed = os.WIFSIGNALED(status)
        if status and not is_killed:
            sys.exit(f"{verb} failed before its write {last}")
    sys.stdout.write(f"{last}\n")


if __name__ == "__main__":
    main()
