"""Progress of a command on standard error, shown within a second.

On a terminal it is one line, erased at the end: the seconds, a bar over all steps that never goes back, and the name of
the step. Elsewhere, each step that lasts longer than `PATIENCE` is named once, on its own line. A command that finishes
sooner prints nothing. Only the standard library is imported, so that the line appears before anything else is loaded.
"""

import sys
import threading
import time
from types import TracebackType
from typing import Self

PATIENCE = 0.7
"""Seconds before progress is shown."""

REFRESH_SECONDS = 0.3
BAR = 24
"""Length of a bar in characters."""


_quiet: list[bool] = []


def be_quiet() -> None:
    """Show no progress in this process, whatever asks for it."""
    _quiet.append(True)


def is_quiet() -> bool:
    """Return whether progress was turned off for this process."""
    return bool(_quiet)


def bar(finished: float, total: float) -> str:
    """Draw a bar of `BAR` characters; empty if `total` is 0."""
    filled = int(BAR * finished / total) if total else 0
    return "█" * filled + "·" * (BAR - filled)


class Steps:
    """Shows the steps of one command, one after another; a context manager.

    Args:
        command: its name.
        count: number of its steps, at most.
        is_quiet: print nothing.
    """

    def __init__(self, command: str, count: int, *, is_quiet: bool = False) -> None:
        self._command, self._count, self._is_quiet = command, count, is_quiet or bool(_quiet)
        self._step, self._name, self._part, self._noted = 0, "load the program", 0.0, ""
        self._started = self._began = time.monotonic()
        self._said = -1
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread that shows the progress."""
        if not self._is_quiet:
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Erase the line: the result or the error follows."""
        self._done.set()
        if self._watcher.ident is not None:
            self._watcher.join()
        if self._said >= 0 and sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def begin(self, name: str) -> None:
        """Begin the next step."""
        self._step, self._name, self._part, self._began = self._step + 1, name, 0.0, time.monotonic()
        self._noted = ""

    def advance(self, done: int, whole: int) -> None:
        """Report how much of the step is done; a smaller share than before is ignored."""
        self._part = max(self._part, min(done / whole, 1.0)) if whole else self._part

    def note(self, text: str) -> None:
        """Show a text after the name of the step, on a terminal."""
        self._noted = f"; {text}"

    def line(self) -> str:
        """Return the line as a terminal shows it."""
        share = max(0, min((self._step - 1 + self._part) / self._count, 1.0))
        seconds = time.monotonic() - self._started
        return f"  {self._command:<10} {seconds:7.1f} s  {bar(share, 1)} {self._name}{self._noted}"

    def _watch(self) -> None:
        while not self._done.wait(REFRESH_SECONDS):
            if sys.stderr.isatty():
                if time.monotonic() - self._started >= PATIENCE:
                    self._said = self._step
                    sys.stderr.write(f"\r\033[K{self.line()}")
                    sys.stderr.flush()
            elif self._said < self._step and time.monotonic() - self._began >= PATIENCE:
                self._said = self._step
                sys.stderr.write(f"nddup {self._command}: {self._name}\n")
                sys.stderr.flush()
