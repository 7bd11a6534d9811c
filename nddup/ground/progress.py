"""Progress on standard error: of a command, shown within a second, and of the stages of a run.

    Steps      the steps of a command, one after another
    Progress   the stages of a run: a line for each on a terminal or in a notebook, log lines elsewhere

On a terminal a command has one line, erased at the end: the seconds, a bar over all steps that never goes back, and the
name of the step. Elsewhere, each step that lasts longer than `PATIENCE` is named once, on its own line, and again every
`AGAIN` seconds if it says how far it is. A command that finishes sooner prints nothing. Only the standard library is
loaded at first, so that the line appears before anything else is loaded.
"""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self

from nddup.ground.shown import clean, one_line, print_out
from nddup.ground.signals import require_no_signal

PATIENCE = 0.7
"""Seconds before progress is shown."""

REFRESH_SECONDS = 0.3
AGAIN = 10.0
"""Seconds between two lines about one step that says how far it is, where there is no terminal."""

BAR = 12
"""Length of a bar in characters."""


CLEAR, CLEAR_IN_NOTEBOOK = "\r\033[K", "\r" + " " * 100 + "\r"
"""Text that erases the last line; notebooks understand only its carriage return."""

_quiet: list[bool] = []

_shown: "list[Steps]" = []
"""The steps that this process shows."""

logger = logging.getLogger("nddup")

LONGEST = 500
"""Characters of an error message shown in a line."""

DESCRIPTIONS = {
    "sketch": "read every record and reduce it to a sketch",
    "pairs": "find the near-duplicates",
    "clusters": "mine maximal sets of near-duplicates",
    "keep": "choose the documents that stay",
    "output": "write the kept documents themselves",
    "frequent": "list frequent sets of small components",
    "kept": "read the kept documents again and write them",
}
"""The description of each stage and of each step without a table; those of tables are their own (`Table.doing`)."""

UNITS = {
    "collapse": "records", "prune": "parts", "match": "parts", "confirm": "parts", "expand": "pairs",
    "components": "pairs", "mine": "parts", "name": "members", "write": "rows",
}  # fmt: skip
"""The unit that each step of the embedded engine counts in."""

AT_ONCE = frozenset(["collapse", "expand", "components", "name"])
"""Steps of one pass over arrays: only their size is known."""

LogFormat = Literal["text", "json"]


def be_quiet() -> None:
    """Show no progress in this process."""
    _quiet.append(True)


def was_turned_off() -> bool:
    """Return whether progress was turned off for this process."""
    return bool(_quiet)


def bar(finished: float, total: float) -> str:
    """Draw a bar of `BAR` characters; empty if `total` is 0."""
    filled = int(BAR * finished / total) if total else 0
    return "█" * filled + "·" * (BAR - filled)


def fit(line: str) -> str:
    """Cut a line to the width of the terminal: what ran over its edge could not be erased."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):  # a notebook
        return line
    return line[: columns - 1] if columns else line  # 0: a terminal that tells no width


class Steps:
    """Shows the steps of one command, one after another; a context manager.

    Args:
        count: number of its steps, at most.
    """

    def __init__(self, command: str, count: int, *, is_quiet: bool = False) -> None:
        self._command, self._count, self._is_quiet = command, count, is_quiet or was_turned_off()
        self._step, self._name, self._part, self._noted = 0, "load the program", 0.0, ""
        self._started = self._began = time.monotonic()
        self._said, self._said_at = -1, 0.0
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread that shows the progress."""
        if not self._is_quiet:
            self._watcher.start()
        _shown.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Erase the line: the result or the error follows."""
        self._done.set()
        _shown.remove(self)
        if self._watcher.ident is not None:
            self._watcher.join()
        self._erase()

    def begin(self, name: str) -> None:
        """Begin the next step."""
        require_no_signal()
        self._step, self._name, self._part, self._began = self._step + 1, name, 0.0, time.monotonic()
        self._noted = ""

    def begin_at(self, name: str, done: int, count: int) -> None:
        """Begin a step after `done` of `count` steps, where their number is found out on the way."""
        self._step, self._count = done, count
        self.begin(name)

    def print_above(self, text: str) -> None:
        """Write a part of the result on standard output, with the line out of its way."""
        with self._lock:
            self._erase()
            print_out(text)
            sys.stdout.flush()

    def advance(self, done: int, whole: int) -> None:
        """Report how much of the step is done; a smaller share than before is ignored."""
        self._part = max(self._part, min(done / whole, 1.0)) if whole else self._part

    def note(self, text: str) -> None:
        """Show a text after the name of the step."""
        self._noted = f"; {text}"

    def line(self) -> str:
        """Return the line as a terminal shows it."""
        share = max(0, min((self._step - 1 + self._part) / self._count, 1.0))
        seconds = time.monotonic() - self._started
        return fit(f"  {self._command:<10} {seconds:7.1f} s  {bar(share, 1)} {self._name}{self._noted}")

    def _erase(self) -> None:
        if self._said >= 0 and sys.stderr.isatty():
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def _watch(self) -> None:
        while not self._done.wait(REFRESH_SECONDS):
            with self._lock:
                if sys.stderr.isatty():
                    if time.monotonic() - self._started >= PATIENCE:
                        self._said = self._step
                        sys.stderr.write(f"{CLEAR}{self.line()}")
                        sys.stderr.flush()
                elif self._is_to_say():
                    self._said, self._said_at = self._step, time.monotonic()
                    sys.stderr.write(f"nddup {self._command}: {self._name}{self._noted}\n")
                    sys.stderr.flush()

    def _is_to_say(self) -> bool:
        """Return whether a line about the step is due, where there is no terminal."""
        now = time.monotonic()
        if self._said < self._step:
            return now - self._began >= PATIENCE
        return bool(self._noted) and now - self._said_at >= AGAIN


@dataclass
class StageNotes:
    """What the caller of a stage adds to its line: notes for people, facts for the JSON line."""

    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Progress:
    """Reports each stage and, on a terminal or in a notebook, how far the running one has come.

    Args:
        form: `json`: one JSON object a line, also on a terminal.
        is_brief: on a terminal or in a notebook the line of a stage is erased when the stage ends.
    """

    def __init__(self, *, is_quiet: bool = False, form: LogFormat = "text", is_brief: bool = False) -> None:
        self._is_quiet, self._is_brief = is_quiet or was_turned_off(), is_brief
        self._is_json = form == "json"
        self._clear = CLEAR_IN_NOTEBOOK if in_notebook() else CLEAR
        self._is_seen = (sys.stderr.isatty() or in_notebook()) and not is_quiet and not self._is_json
        self._step = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[StageNotes]:
        """Show that the stage `name` runs, then how long it took and what its caller added."""
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

        require_no_signal()
        self._say(name, started, "done", shown.facts)
        text = f"{name:<10} {time.monotonic() - started:7.1f} s  {one_line(clean(', '.join(shown.notes)))}"
        if self._is_seen:
            sys.stderr.write(self._clear if self._is_brief else f"{self._clear}  {text}\n")
            sys.stderr.flush()
        elif not self._is_quiet and not self._is_json:
            logger.info("%s", text)

    def describe(self, name: str) -> None:
        """Name the current work, which begins: a stage, or a table of it."""
        require_no_signal()
        self._step = doing(name)

    def how_far(self) -> str:
        """Return how far the stage has come, for the line on a terminal."""
        return self._step

    def _say(self, name: str, started: float, status: str, facts: dict[str, Any]) -> None:
        """Log the line of a stage, if lines are JSON."""
        if self._is_json and not self._is_quiet:
            seconds = round(time.monotonic() - started, 3)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = {"time": now, "event": "stage", "stage": name, "status": status, "seconds": seconds, **facts}
            logger.info("%s", json.dumps(line, ensure_ascii=False))

    def _watch(self, name: str, started: float, done: threading.Event) -> None:
        while not done.wait(REFRESH_SECONDS):
            line = fit(f"  {name:<10} {time.monotonic() - started:7.1f} s  {self.how_far()}")
            sys.stderr.write(f"{self._clear}{line}")
            sys.stderr.flush()


class LocalProgress(Progress):
    """Progress on one machine: for each step, the bytes read or the rows done."""

    _at: tuple[str, int, int] | None = None

    def describe(self, name: str) -> None:
        """As `Progress.describe`, and forget the last step."""
        super().describe(name)
        self._at = None

    def step(self, name: str, done: int, size: int) -> None:
        """Note that `done` of `size` of a step is done: bytes for `reading`, else rows or parts."""
        self._at = (name, done, size)

    def how_far(self) -> str:
        """Return a bar with the step's name and how much of it is done; for a step in `AT_ONCE` only its size."""
        if self._at is None:
            return super().how_far()
        name, done, size = self._at
        if name == "reading":
            return f"{bar(done, size)} {name} {done >> 20:,}/{size >> 20:,} MB"
        unit = UNITS[name.partition(" ")[0]]
        return f"{name} {size:,} {unit}" if name in AT_ONCE else f"{bar(done, size)} {name} {done:,}/{size:,} {unit}"


def doing(name: str) -> str:
    """Describe a stage or the making of a table; the number of a round, as in `stars-3`, is ignored."""
    from nddup import tables  # noqa: PLC0415 - loads Arrow, which a command's line does not wait for

    name = name.partition("-")[0]
    table = (tables.WORKING | tables.RESULTS).get(name)
    return DESCRIPTIONS.get(name) or (table.doing if table else "") or f"make {name}"


def note(text: str) -> None:
    """Show a text after the name of the step that a command is at, if it is at any."""
    for steps in _shown[-1:]:
        steps.note(text)


def is_quiet_for(*, progress: bool | None) -> bool:
    """Set up logging as a Python program asked for it; return whether to be quiet.

    Args:
        progress: None: a line on a terminal or in a notebook, elsewhere log lines of the level INFO, which appear only
            if the program has set up logging; True: without such logging they go to standard error; False: nothing.
    """
    if progress and not (sys.stderr.isatty() or in_notebook() or logger.hasHandlers()):
        start_logging()
    return progress is False


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


def say(text: str, *, form: LogFormat | None = None) -> None:
    """Log a line about the run as a whole, in this form; None: the form given to `start_logging`."""
    form = form or next((one.form for one in logger.handlers if isinstance(one, _StandardError)), "text")
    text = one_line(clean(text))
    if form == "json":
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = json.dumps({"time": now, "event": "notice", "text": text}, ensure_ascii=False)
    logger.warning("%s", text)


class _StandardError(logging.Handler):
    """Writes to the current `sys.stderr`, which may have been replaced since logging started."""

    form: LogFormat = "text"

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")


def start_logging(form: LogFormat = "text") -> None:
    """Send log lines of nddup to standard error: with the time of day, or unchanged if they are JSON."""
    if not logger.handlers:
        logger.addHandler(_StandardError())
    pattern = "%(message)s" if form == "json" else "%(asctime)s %(name)s %(message)s"
    if isinstance(logger.handlers[0], _StandardError):
        logger.handlers[0].form = form
    logger.handlers[0].setFormatter(logging.Formatter(pattern, "%H:%M:%S"))
    logger.setLevel(logging.ERROR if was_turned_off() else logging.INFO)
