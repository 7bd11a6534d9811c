"""`nddup report`: the run as a page."""

import argparse
import sys
from typing import Any

from nddup.commands.options import add_finished_run, add_master, add_parser

EPILOG = """RUN/report/index.html opens from disk in any browser; the folder holds all it needs, and fetches nothing.
`nddup run` writes it at its end (output.report=false: not). Write it again after `nddup evaluate`, or for a cluster
whose texts were not stored: these are read again from the inputs, as long as they did not change.

examples:
  nddup report out/run
  nddup report out/run --cluster 0123456789abcdef
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Its arguments."""
    parser = add_parser(
        commands, "report", summary="the run as a page", epilog=EPILOG,
        description="Write RUN/report/index.html again, from what is in RUN.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument("--cluster", metavar="ID", action="append", default=[],
                        help="read the texts of this cluster again from the inputs; may be repeated")  # fmt: skip
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Write the report and say where it is."""
    from nddup.results.report.folder import report_run  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415

    spark = start_session(master=options.master, settings={})
    sys.stdout.write(f"report in {report_run(spark, options.run, asked=options.cluster)}\n")
    return 0
