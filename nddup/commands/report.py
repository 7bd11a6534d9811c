"""`nddup report`: write the report of a run again."""

import argparse
from collections.abc import Mapping
from functools import partial
from typing import Any

from nddup.commands.options import add_finished_run, add_master, add_parser
from nddup.progress import Steps
from nddup.shown import print_out

EPILOG = """RUN/report/index.html opens from disk in any browser and fetches nothing from the network. `nddup run`
writes it at its end unless output.report=false. Write it again after `nddup evaluate`, to include the comparison, or
to add texts that were not stored: those of a cluster, or of documents to compare side by side. They are read from the
inputs, which must not have changed.

examples:
  nddup report out/run
  nddup report out/run --cluster 0123456789abcdef
  nddup report out/run --doc a --doc b
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "report", summary="write the report of a run again", epilog=EPILOG,
        description="Write RUN/report/index.html again from the tables in RUN.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument("--cluster", metavar="ID", action="append", default=[],
                        help="add the texts of this cluster, read from the inputs; may be repeated")  # fmt: skip
    parser.add_argument("--doc", metavar="ID", action="append", default=[], dest="documents",
                        help="add the text of this document, read from the inputs; may be repeated")  # fmt: skip
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Write the report, and print where it is."""
    with Steps("report", 2) as steps:
        steps.begin("open the run")
        from nddup.start_up import prevent_pandas_import  # noqa: PLC0415

        prevent_pandas_import()
        from nddup.report.gather import Asked  # noqa: PLC0415
        from nddup.report.write import report_run  # noqa: PLC0415
        from nddup.results.opening import open_run  # noqa: PLC0415

        run, folder, *_ = open_run(options.run, master=options.master)
        steps.begin("write the report")
        is_asked = options.cluster or options.documents
        asked = Asked(options.cluster, partial(_read_again, options), options.documents) if is_asked else None
        where = report_run(run, folder, asked)
    print_out(f"report in {where}\n")
    return 0


def _read_again(options: argparse.Namespace, documents: Mapping[str, tuple[str, bytes]]) -> Any:  # noqa: ANN401 - Arrow
    """Read the texts of documents again from the inputs of the run: without Spark if they are on this machine."""
    from nddup.results.reread_texts import read_texts  # noqa: PLC0415

    return read_texts(options.run, documents, master=options.master)
