"""What a person sees while a job runs: a line per stage on a terminal, plain log lines elsewhere."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

logger = logging.getLogger("nddup")
BAR = 24
REFRESH_SECONDS = 0.3


class Progress:
    """Announces stages and, on a terminal, the tasks done of the Spark stage that runs."""

    def __init__(self, spark: SparkSession, *, is_quiet: bool = False) -> None:
        self._spark = spark
        self._is_quiet = is_quiet
        self._is_terminal = sys.stderr.isatty() and not is_quiet

    @contextmanager
    def stage(self, name: str) -> Iterator[list[str]]:
        """Show that `name` runs, then how long it took and the notes its caller added to the list."""
        notes: list[str] = []
        started = time.monotonic()
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(name, started, done), daemon=True)
        if self._is_terminal:
            watcher.start()
        try:
            yield notes
        finally:
            done.set()
            if self._is_terminal:
                watcher.join()
        seconds = time.monotonic() - started
        text = f"{name:<10} {seconds:7.1f} s  {', '.join(notes)}"
        if self._is_terminal:
            sys.stderr.write(f"\r\033[K  {text}\n")
            sys.stderr.flush()
        elif not self._is_quiet:
            logger.info("%s", text)

    def _watch(self, name: str, started: float, done: threading.Event) -> None:
        tracker = self._spark.sparkContext.statusTracker()
        while not done.wait(REFRESH_SECONDS):
            total = finished = 0
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    total += info.numTasks
                    finished += info.numCompletedTasks
            filled = BAR * finished // total if total else 0
            bar = "█" * filled + "·" * (BAR - filled)
            seconds = time.monotonic() - started
            sys.stderr.write(f"\r\033[K  {name:<10} {seconds:7.1f} s  {bar} {finished}/{total} tasks")
            sys.stderr.flush()


class _StandardError(logging.Handler):
    """Writes to what standard error is at the time, not to what it was when logging started."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")


def start_logging() -> None:
    """Log lines of nddup to standard error, with the time of day."""
    if not logger.handlers:
        handler = _StandardError()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s", "%H:%M:%S"))
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)
