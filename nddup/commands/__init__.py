"""The commands, one module each: `add` declares the arguments, `execute` runs the command and returns its exit status.

This room parses arguments and prints; the work is done in `results` and `run`. It may import both and everything below
them, but Spark and numba only inside `execute`: `--help` and the commands without Spark must start quickly.
"""

import argparse
from typing import Any, Protocol

from nddup.commands import (
    against,
    check,
    demo,
    evaluate,
    explain,
    index,
    inspect,
    mine,
    passages,
    report,
    run,
    serve,
    setup,
    show,
    sweep,
    truth,
)


class Command(Protocol):
    """The interface of a command's module."""

    def add(self, commands: "argparse._SubParsersAction[Any]") -> None:
        """Add the command's parser and its arguments."""

    def execute(self, options: argparse.Namespace) -> int:
        """Run the command and return its exit status. Raises NddupError for errors that the user can fix."""


COMMANDS: dict[str, Command] = {
    "run": run,
    "inspect": inspect,
    "show": show,
    "report": report,
    "check": check,
    "evaluate": evaluate,
    "truth": truth,
    "sweep": sweep,
    "index": index,
    "against": against,
    "passages": passages,
    "mine": mine,
    "explain": explain,
    "serve": serve,
    "demo": demo,
    "setup": setup,
}
"""The commands by name, in the order of `--help`."""
