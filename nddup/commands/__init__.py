"""The commands: `add` declares the arguments of one, `execute` runs it and returns its exit status.

This room parses arguments and prints; features and engines do the work. It may import these and everything below
them, but Spark and numba only inside `execute`: `--help` and the commands without Spark must start quickly.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nddup.commands import begin, finished, index, measure, mine, passages, run


@dataclass
class Command:
    """A command: what adds its parser and its arguments, and what runs it.

    It raises NddupError for errors that the user can fix.
    """

    add: "Callable[[argparse._SubParsersAction[Any]], None]"
    execute: Callable[[argparse.Namespace], int]


COMMANDS: dict[str, Command] = {
    "run": Command(run.add, run.execute),
    "inspect": Command(begin.add_inspect, begin.execute_inspect),
    "show": Command(finished.add_show, finished.execute_show),
    "report": Command(finished.add_report, finished.execute_report),
    "check": Command(finished.add_check, finished.execute_check),
    "evaluate": Command(measure.add_evaluate, measure.execute_evaluate),
    "truth": Command(measure.add_truth, measure.execute_truth),
    "sweep": Command(measure.add_sweep, measure.execute_sweep),
    "index": Command(index.add_index, index.execute_index),
    "against": Command(passages.add_against, passages.execute_against),
    "passages": Command(passages.add_passages, passages.execute_passages),
    "split": Command(finished.add_split, finished.execute_split),
    "diff": Command(finished.add_diff, finished.execute_diff),
    "mine": Command(mine.add, mine.execute),
    "explain": Command(begin.add_explain, begin.execute_explain),
    "serve": Command(index.add_serve, index.execute_serve),
    "demo": Command(begin.add_demo, begin.execute_demo),
    "setup": Command(begin.add_setup, begin.execute_setup),
}
"""The commands by name, in the order of `--help`."""
