"""`nddup show`: print the results of a run."""

import argparse
from typing import Any

from nddup.commands.options import add_finished_run, add_json, add_master, add_parser, positive
from nddup.shown import print_json, print_out
from nddup.steps import Steps


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands,
        "show",
        summary="print the results of a run",
        description="Print the summary and the largest clusters of a finished run.",
    )
    add_finished_run(parser)
    parser.add_argument("--cluster", metavar="ID", help="print the members of one cluster instead")
    parser.add_argument(
        "--doc", metavar="ID", help="print one document instead: whether it is kept, its pairs and clusters"
    )
    parser.add_argument(
        "--borderline",
        type=positive,
        metavar="N",
        help="print the N pairs nearest to the threshold instead; RUN/report/borderline.html has the first 20 with both"
        " texts side by side",
    )
    parser.add_argument(
        "--context",
        metavar="DIR",
        help="write the context and its concepts to DIR instead, for tools of formal concept analysis: context.cxt"
        " (Burmeister), context.csv, concepts.csv",
    )
    add_json(parser)
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Print the run, a cluster or a document."""
    with Steps("show", 2) as steps:
        steps.begin("open the run")
        from nddup.results.opening import open_run  # noqa: PLC0415
        from nddup.results.show import rows_of, show_borderline, show_run  # noqa: PLC0415

        run = open_run(options.run, master=options.master).run
        steps.begin("read its tables")
        if options.context:
            from nddup.results.formal_context import write_context  # noqa: PLC0415

            context = write_context(run, options.context)
            told = f"{len(context.features):,} features of {len(context.documents):,} documents in {options.context}"
            text = f"{told}: context.cxt, context.csv, concepts.csv\n"
        elif options.json:
            found = rows_of(run, cluster=options.cluster, doc=options.doc, borderline=options.borderline)
        elif options.borderline:
            text = show_borderline(run, options.borderline)
        else:
            text = show_run(run, cluster=options.cluster, doc=options.doc)
    if options.json and not options.context:
        print_json(found)
    else:
        print_out(text)
    return 0
