"""What is seen while a job runs: a line per stage on a terminal, log lines elsewhere, Spark's UI on both."""

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from pyspark.sql import SparkSession

from nddup import tables
from nddup.redaction import clean

logger = logging.getLogger("nddup")
BAR = 24
REFRESH_SECONDS = 0.3
LONGEST = 500
"""Letters of an error in a line."""

DESCRIPTION = "spark.job.description"
DESCRIPTIONS = {name: table.doing for name, table in (tables.WORKING | tables.RESULTS).items()} | {
    "sketch": "read every record and reduce it to a sketch",
    "pairs": "find the near-duplicates",
    "clusters": "mine maximal sets of near-duplicates",
    "keep": "choose the documents that stay",
    "output": "write the kept documents themselves",
    "frequent": "list frequent sets of small components",
    "kept": "read the kept documents again and write them",
    "postings": tables.POSTINGS.doing,
}
"""What Spark's UI says of the jobs of a stage, or of a step that is no table; tables have their own words."""

LogFormat = Literal["text", "json"]
Facts = Callable[[str], dict[str, Any]]


class Progress:
    """Announces stages and, on a terminal, the tasks done of the Spark stage that runs.

    Args:
        spark: the session.
        is_quiet: say nothing at all.
        form: `json`: one JSON object a line, also on a terminal.
        facts: what was counted of a stage, for its JSON line.
    """

    def __init__(
        self, spark: SparkSession, *, is_quiet: bool = False, form: LogFormat = "text", facts: Facts | None = None
    ) -> None:
        self._spark = spark
        self._is_quiet = is_quiet
        self._is_json = form == "json"
        self._is_terminal = sys.stderr.isatty() and not is_quiet and not self._is_json
        self._facts = facts or (lambda _: {})
        self._stage = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[list[str]]:
        """Show that `name` runs, then how long it took and the notes its caller added to the list."""
        notes: list[str] = []
        started = time.monotonic()
        outside, self._stage = self._spark.sparkContext.getLocalProperty(DESCRIPTION), name
        self.describe(name)
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(name, started, done), daemon=True)
        if self._is_terminal:
            watcher.start()
        try:
            yield notes
        except BaseException as error:
            words = " ".join(clean(str(error)).split())[:LONGEST]
            self._say(name, started, "failed", {"error": f"{type(error).__name__}: {words}"})
            raise
        finally:
            done.set()
            if self._is_terminal:
                watcher.join()
            self._spark.sparkContext.setLocalProperty(DESCRIPTION, outside)  # type: ignore[arg-type] # None: unset
        self._say(name, started, "done", self._facts(name))
        seconds = time.monotonic() - started
        text = f"{name:<10} {seconds:7.1f} s  {clean(', '.join(notes))}"
        if self._is_terminal:
            sys.stderr.write(f"\r\033[K  {text}\n")
            sys.stderr.flush()
        elif not self._is_quiet and not self._is_json:
            logger.info("%s", text)

    def describe(self, name: str) -> None:
        """Tell Spark's UI what the jobs that follow are for: a stage, or a table of it."""
        words = DESCRIPTIONS.get(name.partition("-")[0]) or f"make {name}"
        of_stage = "" if name == self._stage else f" {self._stage}:"
        self._spark.sparkContext.setJobDescription(f"nddup{of_stage} {name}: {words}")

    def _say(self, name: str, started: float, status: str, facts: dict[str, Any]) -> None:
        """The line of a stage, where lines are JSON."""
        if self._is_json and not self._is_quiet:
            seconds = round(time.monotonic() - started, 3)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = {"time": now, "event": "stage", "stage": name, "status": status, "seconds": seconds, **facts}
            logger.info("%s", json.dumps(line, ensure_ascii=False))

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


def say(text: str, *, form: LogFormat = "text") -> None:
    """Log a line about the run as a whole."""
    if form == "json":
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = json.dumps({"time": now, "event": "notice", "text": clean(text)}, ensure_ascii=False)
    logger.warning("%s", clean(text))


class _StandardError(logging.Handler):
    """Writes to what standard error is at the time, not to what it was when logging started."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")


def start_logging(form: LogFormat = "text") -> None:
    """Log lines of nddup to standard error: with the time of day, or as they are where they are JSON."""
    if not logger.handlers:
        logger.addHandler(_StandardError())
    pattern = "%(message)s" if form == "json" else "%(asctime)s %(name)s %(message)s"
    logger.handlers[0].setFormatter(logging.Formatter(pattern, "%H:%M:%S"))
    logger.setLevel(logging.INFO)
