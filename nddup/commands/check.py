"""`nddup check`: verify the promises of a run."""

import argparse
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nddup.commands.options import add_finished_run, add_json, add_master, add_parser, share
from nddup.progress import Steps
from nddup.shown import print_json, print_out

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
    with Steps("check", 1) as steps:
        from nddup.start_up import prevent_blas_import, prevent_pandas_import  # noqa: PLC0415

        prevent_pandas_import()
        prevent_blas_import()
        from nddup.results.check import check_run  # noqa: PLC0415
        from nddup.results.opening import open_run  # noqa: PLC0415

        steps.begin("open the run")
        run = open_run(options.run, master=options.master).run
        report = check_run(
            run, max_rejects=options.max_rejects, begin=lambda step, *at: steps.begin_at(f"check {step}", *at),
            tell=lambda finding: None if options.json else steps.print_above(f"{finding.line()}\n"),
        )  # fmt: skip
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

    with Steps("check", 3) as steps:
        report = check_passages(path, steps)
    if not is_json:
        print_out("".join(f"{finding.line()}\n" for finding in report.findings))
    return report
