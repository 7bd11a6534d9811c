"""What a command is doing, on standard error: within a second, and only for as long as it takes.

On a terminal it is one line: the seconds, a bar over all steps that never goes back, and the name of the step.
Elsewhere, each step that lasts longer than `PATIENCE` is named once in a line. A command that is done sooner says
nothing. Only the standard library is imported, so that the line is there before anything else is loaded.
"""

import sys
import threading
import time
from types import TracebackType
from typing import Self

PATIENCE = 0.7
"""Seconds before a step is named."""

REFRESH_SECONDS = 0.3
BAR = 24
"""Characters of a bar."""


def bar(finished: float, total: float) -> str:
    """A bar of `BAR` letters."""
    filled = int(BAR * finished / total) if total else 0
    return "█" * filled + "·" * (BAR - filled)


class Steps:
    """The steps of one command, one after another, as a context.

    Args:
        command: its name.
        count: how many steps it has at most.
        is_quiet: say nothing.
    """

    def __init__(self, command: str, count: int, *, is_quiet: bool = False) -> None:
        self._command, self._count, self._is_quiet = command, count, is_quiet
        self._step, self._name, self._part = 0, "load the program", 0.0
        self._started = self._began = time.monotonic()
        self._said = -1
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Begin to watch the time."""
        if not self._is_quiet:
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the line away: what follows is the result, or the error."""
        self._done.set()
        if self._watcher.ident is not None:
            self._watcher.join()
        if self._said >= 0 and sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def begin(self, name: str) -> None:
        """Say what is done from now on."""
        self._step, self._name, self._part, self._began = self._step + 1, name, 0.0, time.monotonic()

    def far(self, done: int, whole: int) -> None:
        """Say how much of the step is done."""
        self._part = max(self._part, min(done / whole, 1.0)) if whole else self._part

    def line(self) -> str:
        """The line as a terminal shows it."""
        share = max(0, min((self._step - 1 + self._part) / self._count, 1.0))
        seconds = time.monotonic() - self._started
        return f"  {self._command:<10} {seconds:7.1f} s  {bar(share, 1)} {self._name}"

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
