"""`nddup check`: verify the promises of a run."""

import argparse
import os
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nddup import steps
from nddup.commands.options import add_finished_run, add_json, add_master, add_parser, share
from nddup.shown import print_json, print_out
from nddup.steps import REFRESH_SECONDS, bar

if TYPE_CHECKING:  # loads the engine's modules
    from nddup.results.check import CheckReport


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "check", summary="verify the promises of a run",
        description="Recount a finished run, or what `nddup passages` wrote, by a plain, independent method. Exit"
        " status 1 if a promise is broken.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument(
        "--max-rejects",
        type=share,
        metavar="SHARE",
        help="also fail if a larger share of the records was rejected, such as 0.05",
    )
    add_json(parser)
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Print a line for each promise as it is proved; return 1 if one is broken."""
    if os.access(Path(options.run, "_PASSAGES.json"), os.F_OK):  # False where it may not be looked at
        return _tell(_check_passages(options.run, is_json=options.json), is_json=options.json)
    with CheckProgress() as progress:
        from nddup.start_up import prevent_blas_import, prevent_pandas_import  # noqa: PLC0415

        prevent_pandas_import()
        prevent_blas_import()
        from nddup.results.check import check_run  # noqa: PLC0415
        from nddup.results.opening import open_run  # noqa: PLC0415

        run = open_run(options.run, master=options.master).run
        tell = (lambda finding: None) if options.json else progress.tell  # noqa: ARG005
        report = check_run(run, max_rejects=options.max_rejects, begin=progress.begin, tell=tell)
    return _tell(report, is_json=options.json)


def _tell(report: "CheckReport", *, is_json: bool) -> int:
    """Print the last line, or all findings as JSON; return the exit status."""
    if is_json:
        print_json({"is_sound": report.is_sound, "findings": [asdict(finding) for finding in report.findings]})
    else:
        print_out(f"{report.summary()}\n")
    return 0 if report.is_sound else 1


def _check_passages(path: str, *, is_json: bool) -> "CheckReport":
    """Prove the tables of `nddup passages`, and print a line for each promise."""
    from nddup.results.passages.prove_passages import check_passages  # noqa: PLC0415
    from nddup.steps import Steps  # noqa: PLC0415

    with Steps("check", 3) as steps:
        report = check_passages(path, steps)
    if not is_json:
        print_out("".join(f"{finding.line()}\n" for finding in report.findings))
    return report


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

    def tell(self, finding: Any) -> None:  # noqa: ANN401 - a Finding, loaded later
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
