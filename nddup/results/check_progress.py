"""What is seen while a run is checked: each promise as it is proved; on a terminal a bar that names the step."""

import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from nddup.steps import REFRESH_SECONDS, bar

if TYPE_CHECKING:
    from nddup.results.check import Finding

CLEAR = "\r\033[K"


class CheckProgress:
    """Writes findings to standard output, and the bar to standard error while it is a terminal.

    As a context: the bar is there from the start, and is gone at the end.
    """

    def __init__(self) -> None:
        self._step, self._done, self._of = "open the run", 0, 1
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, daemon=True) if sys.stderr.isatty() else None

    def __enter__(self) -> Self:
        """Show the bar."""
        if self._watcher is not None:
            self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()

    def begin(self, step: str, done: int, of: int) -> None:
        """A step begins; so many of so many are done."""
        self._step, self._done, self._of = f"check {step}", done, of

    def tell(self, finding: "Finding") -> None:
        """A promise was looked at."""
        with self._lock:
            if self._watcher is not None:
                sys.stderr.write(CLEAR)
                sys.stderr.flush()
            sys.stdout.write(f"{finding.line()}\n")
            sys.stdout.flush()

    def _watch(self) -> None:
        while True:
            with self._lock:
                seconds = time.monotonic() - self._started
                sys.stderr.write(f"{CLEAR}  {bar(self._done, self._of)} {seconds:6.1f} s  {self._step}")
                sys.stderr.flush()
            if self._ended.wait(REFRESH_SECONDS):
                sys.stderr.write(CLEAR)
                sys.stderr.flush()
                return
