"""`nddup split`: a finished run divided into parts that no found pair joins, such as a training and a test set."""

import argparse
from typing import Any

from nddup.commands.options import add_all_known, add_finished_run, add_json, add_master, add_parser
from nddup.ground.progress import Steps
from nddup.ground.shown import one_line, print_json, print_out
from nddup.ground.start_up import prevent_pandas_import

EPILOG = """\
A unit, all documents that are connected by found pairs, goes to one part as a whole; sizes come as near to the shares
as units allow. DIR/split has the part of each document, DIR/shares what each part has and should have, DIR/train (as
the part is called) its records. `nddup check DIR` counts again that no pair crosses.

examples:
  nddup split out/run --parts train=.8,valid=.1,test=.1 --output out/split
  nddup split out/run --parts train=.9,test=.1 --by lang --fixed published-test.csv --output out/split
  nddup split out/new --parts train=.9,test=.1 --from out/split --output out/split-2
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "split", summary="divide a run into parts that share no near-duplicates", epilog=EPILOG,
        description="Divide the documents of a finished run into parts, such as training and test, so that no found"
        " near-duplicates are in two of them.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument(
        "--parts", required=True, metavar="NAME=SHARE,…",
        help="the parts and their shares of the documents, of sum 1: train=.8,valid=.1,test=.1",
    )  # fmt: skip
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write, which must not exist")
    parser.add_argument(
        "--by", metavar="COLUMN,…", default="",
        help="keep the shares also among the documents of each value of these columns: source, url, those of archives,"
        " or fields of the records, which are read again unless keep.policy names them",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which of many such splits (default 1)")
    parser.add_argument(
        "--fixed", metavar="FILE",
        help="ids with the part that they must be in, such as `doc-1,test`; all near-duplicates come with them",
    )  # fmt: skip
    add_all_known(parser, "FILE")
    parser.add_argument(
        "--from", dest="earlier", metavar="SPLIT",
        help="folder of an earlier split: documents stay in its parts, as far as no new pair joins two of them",
    )  # fmt: skip
    parser.add_argument("--no-records", action="store_true", help="write the tables alone, not the records")
    add_json(parser)
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Split the run, write the output and print the summary."""
    with Steps("split", 2) as steps:
        prevent_pandas_import()
        from nddup.results.opening import is_read_here  # noqa: PLC0415
        from nddup.splitting.assign_units import read_parts  # noqa: PLC0415
        from nddup.splitting.write_split import SplitCall, say_split, split_here  # noqa: PLC0415

        call = SplitCall(
            parts=read_parts(options.parts),
            seed=options.seed,
            by=tuple(dict.fromkeys(name.strip() for name in options.by.split(",") if name.strip())),
            output=options.output,
            fixed=options.fixed,
            earlier=options.earlier,
            all_known=options.all_known,
            is_writing=not options.no_records,
        )
        steps.begin("open the run")
        beside = [path for path in (options.output, options.fixed, options.earlier) if path is not None]
        if is_read_here(options.run, *beside, master=options.master):
            steps.begin("split it")
            run, told = split_here(options.run, call)
        else:
            from nddup.spark.session import start_session  # noqa: PLC0415
            from nddup.spark.split_given import split_on_spark  # noqa: PLC0415

            spark = start_session(master=options.master, settings={})
            steps.begin("split it")
            run, told = split_on_spark(spark, options.run, call)
    if options.json:
        print_json({"counts": told.counts, "shares": told.shares, "by": told.furthest, "listed": told.listed})
    else:
        lines = [*say_split(told, run), f"tables{' and records' if call.is_writing else ''} in {options.output}"]
        print_out("".join(f"{one_line(line)}\n" for line in lines))
    return 0
