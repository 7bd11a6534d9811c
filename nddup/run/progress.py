"""What is seen while a run works: a line for each stage on a terminal or in a notebook, log lines elsewhere."""

import json
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from nddup import tables, working_tables
from nddup.redaction import clean
from nddup.steps import REFRESH_SECONDS, bar

logger = logging.getLogger("nddup")
LONGEST = 500
"""Letters of an error in a line."""

CLEAR, CLEAR_IN_NOTEBOOK = "\r\033[K", "\r" + " " * 100 + "\r"
"""What takes the last line away; notebooks know the first character only."""

DESCRIPTIONS = {name: table.doing for name, table in (working_tables.WORKING | tables.RESULTS).items()} | {
    "sketch": "read every record and reduce it to a sketch",
    "pairs": "find the near-duplicates",
    "clusters": "mine maximal sets of near-duplicates",
    "keep": "choose the documents that stay",
    "output": "write the kept documents themselves",
    "frequent": "list frequent sets of small components",
    "kept": "read the kept documents again and write them",
}
"""What is being done in a stage, or in a step that is no table; tables have their own words."""

COMPILING = "compiling the kernels: about a minute, once for an installation"

UNITS = {
    "collapse": "records", "prune": "parts", "match": "parts", "expand": "pairs", "components": "pairs",
    "mine": "parts", "name": "members", "write": "rows",
}  # fmt: skip
"""What is counted in a step of the embedded engine."""

AT_ONCE = frozenset(["collapse", "expand", "components", "name"])
"""Steps of one pass over arrays: only their size is known."""

LogFormat = Literal["text", "json"]


@dataclass
class StageNotes:
    """What the caller of a stage adds to its line: notes for people, facts for the line in JSON."""

    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Progress:
    """Announces stages and, on a terminal, how far the one that runs has come.

    Args:
        is_quiet: say nothing at all.
        form: `json`: one JSON object a line, also on a terminal.
    """

    def __init__(self, *, is_quiet: bool = False, form: LogFormat = "text") -> None:
        self._is_quiet = is_quiet
        self._is_json = form == "json"
        self._clear = CLEAR_IN_NOTEBOOK if in_notebook() else CLEAR
        self._is_seen = (sys.stderr.isatty() or in_notebook()) and not is_quiet and not self._is_json
        self._step = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[StageNotes]:
        """Show that `name` runs, then how long it took and what its caller added."""
        shown, started = StageNotes(), time.monotonic()
        self.describe(name)
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(name, started, done), daemon=True)
        if self._is_seen:
            watcher.start()

        try:
            yield shown
        except BaseException as error:
            words = " ".join(clean(str(error)).split())[:LONGEST]
            self._say(name, started, "failed", {"error": f"{type(error).__name__}: {words}"})
            raise
        finally:
            done.set()
            if self._is_seen:
                watcher.join()
                sys.stderr.write(self._clear)

        self._say(name, started, "done", shown.facts)
        text = f"{name:<10} {time.monotonic() - started:7.1f} s  {clean(', '.join(shown.notes))}"
        if self._is_seen:
            sys.stderr.write(f"{self._clear}  {text}\n")
            sys.stderr.flush()
        elif not self._is_quiet and not self._is_json:
            logger.info("%s", text)

    def describe(self, name: str) -> None:
        """Say what is done from now on: a stage, or a table of it."""
        self._step = doing(name)

    def far(self) -> str:
        """How far the stage has come, for the line on a terminal."""
        return self._step

    def _say(self, name: str, started: float, status: str, facts: dict[str, Any]) -> None:
        """The line of a stage, where lines are JSON."""
        if self._is_json and not self._is_quiet:
            seconds = round(time.monotonic() - started, 3)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = {"time": now, "event": "stage", "stage": name, "status": status, "seconds": seconds, **facts}
            logger.info("%s", json.dumps(line, ensure_ascii=False))

    def _watch(self, name: str, started: float, done: threading.Event) -> None:
        while not done.wait(REFRESH_SECONDS):
            sys.stderr.write(f"{self._clear}  {name:<10} {time.monotonic() - started:7.1f} s  {self.far()}")
            sys.stderr.flush()


class LocalProgress(Progress):
    """Progress on one machine: of each step, the bytes that are read or the rows that are done."""

    _at: tuple[str, int, int] | None = None

    def describe(self, name: str) -> None:
        """As `Progress.describe`; no step of it has begun."""
        super().describe(name)
        self._at = None

    def step(self, name: str, done: int, size: int) -> None:
        """So much of a step is done: bytes when it reads, else rows or parts."""
        self._at = (name, done, size)

    def far(self) -> str:
        """A bar that names its step, and what is done; of a step that is done at once, its size."""
        if self._at is None:
            return super().far()
        name, done, size = self._at
        if name == "reading":
            return f"{bar(done, size)} {name} {done >> 20:,}/{size >> 20:,} MB"
        unit = UNITS[name.partition(" ")[0]]
        return f"{name} {size:,} {unit}" if name in AT_ONCE else f"{bar(done, size)} {name} {done:,}/{size:,} {unit}"


def doing(name: str) -> str:
    """What is done while a stage runs or a table is made; a table of several rounds ends with its number."""
    return DESCRIPTIONS.get(name.partition("-")[0]) or f"make {name}"


def is_quiet_for(*, progress: bool | None) -> bool:
    """Prepare what a Python program asked to see; returns whether to be quiet.

    Args:
        progress: None: a line for each stage on a terminal or in a notebook, elsewhere log lines of the level INFO,
            which are written where the program has set up logging; True: these are written to standard error also
            where it has not; False: nothing.
    """
    if progress and not (sys.stderr.isatty() or in_notebook() or logger.hasHandlers()):
        start_logging()
    return progress is False


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


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
