"""`nddup check`: prove the run's promises."""

import argparse
import sys
from typing import Any

from nddup.commands.options import add_finished_run, add_master, add_parser


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Its arguments."""
    parser = add_parser(
        commands, "check", summary="prove the run's promises",
        description="Recount a finished run by a plain method; exit status 1 when a promise fails.",
    )  # fmt: skip
    add_finished_run(parser)
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Print what was proved; 1 when a promise fails."""
    from nddup.check import check_run  # noqa: PLC0415
    from nddup.session import start_session  # noqa: PLC0415

    report = check_run(start_session(master=options.master, settings={}), options.run)
    sys.stdout.write(report.text())
    return 0 if report.is_sound else 1
