"""The commands, a module each: `add` gives it a parser, `execute` does it and returns the exit status.

Spark and numba are loaded inside `execute`, so that `--help` and the other commands do without them.
"""

import argparse
from typing import Any, Protocol

from nddup.commands import check, explain, inspect, mine, report, run, show


class Command(Protocol):
    """What a command's module holds."""

    def add(self, commands: "argparse._SubParsersAction[Any]") -> None:
        """Add the command's parser and its arguments."""

    def execute(self, options: argparse.Namespace) -> int:
        """Do it; the exit status."""


COMMANDS: dict[str, Command] = {
    "run": run,
    "inspect": inspect,
    "show": show,
    "report": report,
    "check": check,
    "mine": mine,
    "explain": explain,
}
"""In the order in which `--help` lists them."""
