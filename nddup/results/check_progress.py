"""Progress of `nddup check`: each promise as soon as it is checked, and the current step.

Only the standard library is imported, so that the line appears before anything else is loaded.
"""

import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from nddup import steps
from nddup.shown import print_out
from nddup.steps import REFRESH_SECONDS, bar

if TYPE_CHECKING:
    from nddup.results.check import Finding

CLEAR = "\r\033[K"


class CheckProgress:
    """Findings on standard output, and a bar with the name of the step on standard error.

    Where standard error is not a terminal, a step that lasts longer than `steps.PATIENCE` is named once in a line
    instead. A context manager: it shows the bar on entry and removes it on exit.
    """

    def __init__(self) -> None:
        self._step, self._done, self._of = "open the run", 0, 1
        self._started = self._began = time.monotonic()
        self._said = ""
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._is_terminal = sys.stderr.isatty()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Show the bar."""
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        self._ended.set()
        self._watcher.join()
        self._clear()

    def begin(self, step: str, done: int, of: int) -> None:
        """Begin a step, after `done` of `of` steps."""
        self._step, self._done, self._of, self._began = f"check {step}", done, of, time.monotonic()

    def tell(self, finding: "Finding") -> None:
        """Write a finding."""
        with self._lock:
            self._clear()
            print_out(f"{finding.line()}\n")
            sys.stdout.flush()

    def _clear(self) -> None:
        if self._is_terminal:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def _watch(self) -> None:
        while not self._ended.wait(REFRESH_SECONDS):
            with self._lock:
                if self._is_terminal:
                    seconds = time.monotonic() - self._started
                    sys.stderr.write(f"{CLEAR}  {bar(self._done, self._of)} {seconds:6.1f} s  {self._step}")
                elif self._step != self._said and time.monotonic() - self._began >= steps.PATIENCE:
                    self._said = self._step
                    sys.stderr.write(f"nddup check: {self._step}\n")
                sys.stderr.flush()
