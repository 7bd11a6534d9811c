"""`nddup show`: print the results of a run."""

import argparse
import os
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nddup.commands.options import add_finished_run, add_json, add_master, add_parser, positive
from nddup.progress import Steps
from nddup.shown import print_out, spell_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nddup.engines.engine import FinishedRun


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands,
        "show",
        summary="print the results of a run",
        description="Print the summary of a finished run, its largest families (a kept document and those that it"
        " stands for) and clusters; of what `nddup passages` wrote, the passages that save most tokens.",
    )
    add_finished_run(parser)
    parser.add_argument(
        "--cluster",
        metavar="ID",
        help="print one cluster instead: its members, the text that all share, and what each has beside it; reads the"
        " inputs again",
    )
    parser.add_argument(
        "--doc",
        metavar="ID",
        help="print one document instead: whether it is kept, its pairs and clusters; its repeated parts",
    )
    parser.add_argument("--passage", metavar="ID", help="print one passage instead, with its places")
    parser.add_argument(
        "--borderline",
        type=positive,
        metavar="N",
        help="print the N pairs nearest to the threshold instead; RUN/report/borderline.html shows 20, side by side",
    )
    parser.add_argument(
        "--context",
        metavar="DIR",
        help="write the context and its concepts to DIR instead, for tools of formal concept analysis",
    )
    add_json(parser)
    parser.add_argument(
        "--removed",
        action="store_true",
        help="print what was removed instead, and for which kept document; with --csv all of it",
    )
    parser.add_argument(
        "--csv",
        action="store_true",
        help="with --removed: a CSV file, a line for each removed document, with the reason",
    )
    parser.add_argument(
        "--extents",
        action="store_true",
        help="print a CSV file instead: for each cluster the number of shingles that all members have, their share of"
        " the shortest member, and their places in the representative; reads the inputs again",
    )
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Print the run, a cluster or a document."""
    with Steps("show", 2) as steps:
        steps.begin("open the run")
        from nddup.errors import ConfigError  # noqa: PLC0415
        from nddup.results.opening import open_run  # noqa: PLC0415

        if options.csv and not options.removed:
            raise ConfigError("--csv: needs --removed; `nddup show RUN --removed --csv` lists what was removed")
        if _may_be_passages(options) and (told := _tell_passages(options)) is not None:
            print_out(told)
            return 0
        if options.passage is not None:
            raise ConfigError(f"--passage: {options.run} is not a folder of `nddup passages`")
        run = open_run(options.run, master=options.master).run
        steps.begin("read its tables")
        lines = _lines(run, options)
        first = next(lines, "")  # an unreadable table is told before anything is printed
    for line in chain([first], lines):
        print_out(line)
    return 0


OF_RUNS = ("cluster", "borderline", "context", "removed", "extents")
"""Options that ask for what only a run has."""


def _may_be_passages(options: argparse.Namespace) -> bool:
    """Return whether the folder may be one of `nddup passages`; of one that is elsewhere, only Spark can tell."""
    from nddup.results.opening import is_read_here  # noqa: PLC0415
    from nddup.storage.local_storage import local_path  # noqa: PLC0415

    if not is_read_here(options.run, master=options.master):
        return True
    return os.access(Path(local_path(options.run), "_PASSAGES.json"), os.F_OK)  # False where it may not be looked at


def _tell_passages(options: argparse.Namespace) -> str | None:
    """Return what is asked for of a folder of passages; None if it is none."""
    from nddup.errors import ConfigError  # noqa: PLC0415
    from nddup.results.passages.show_passages import open_passages, rows_of, show_passages  # noqa: PLC0415

    with open_passages(options.run, master=options.master) as opened:
        if opened is None:
            return None
        for name in OF_RUNS:
            if getattr(options, name):
                raise ConfigError(f"--{name}: {options.run} was written by `nddup passages`, and is no run")
        asked = {"passage": options.passage, "doc": options.doc}
        return spell_json(rows_of(opened, **asked)) if options.json else show_passages(opened, **asked)


def _lines(run: "FinishedRun", options: argparse.Namespace) -> "Iterator[str]":
    """Yield what is asked for, a line or several at a time; what makes it is loaded when it is needed."""
    if options.context:
        from nddup.results.formal_context import write_context  # noqa: PLC0415

        context = write_context(run, options.context)
        told = f"{len(context.features):,} features of {len(context.documents):,} documents in {options.context}"
        yield f"{told}: context.cxt, context.csv, concepts.csv\n"
    elif options.extents:
        from nddup.results.common_text import extent_lines  # noqa: PLC0415

        yield from extent_lines(run, master=options.master)
    elif options.removed:
        from nddup.results.show import removed_lines, show_removed  # noqa: PLC0415

        yield from removed_lines(run) if options.csv else [show_removed(run)]
    else:
        yield _text(run, options)


def _text(run: "FinishedRun", options: argparse.Namespace) -> str:
    from nddup.results.show import rows_of, show_borderline, show_run  # noqa: PLC0415

    if options.json:
        return spell_json(rows_of(run, cluster=options.cluster, doc=options.doc, borderline=options.borderline))
    if options.borderline:
        return show_borderline(run, options.borderline)
    return show_run(run, cluster=options.cluster, doc=options.doc, master=options.master)
