"""`nddup check`: prove the run's promises."""

import argparse
import sys
from typing import Any

from nddup.commands.options import add_finished_run, add_master, add_parser, share


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Its arguments."""
    parser = add_parser(
        commands, "check", summary="prove the run's promises",
        description="Recount a finished run by a plain method; exit status 1 when a promise fails.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument(
        "--max-rejects", type=share, metavar="SHARE", help="fail also where more of the records are rejects, as 0.05"
    )
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Print what was proved; 1 when a promise fails."""
    from nddup.results.check import check_run  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415

    spark = start_session(master=options.master, settings={})
    report = check_run(spark, options.run, max_rejects=options.max_rejects)
    sys.stdout.write(report.text())
    return 0 if report.is_sound else 1
