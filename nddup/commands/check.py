"""`nddup check`: verify the promises of a run."""

import argparse
import sys
from typing import Any

from nddup.commands.options import add_finished_run, add_master, add_parser, share


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "check", summary="verify the promises of a run",
        description="Recount a finished run by a plain, independent method. Exit status 1 if a promise is broken.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument(
        "--max-rejects",
        type=share,
        metavar="SHARE",
        help="also fail if a larger share of the records was rejected, such as 0.05",
    )
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Print a line for each promise; return 1 if one is broken."""
    from nddup.results.check import check_run  # noqa: PLC0415
    from nddup.run.java.options import is_small  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415

    spark = start_session(master=options.master, settings={}, is_small=is_small([options.run]))
    report = check_run(spark, options.run, max_rejects=options.max_rejects)
    sys.stdout.write(report.text())
    return 0 if report.is_sound else 1
