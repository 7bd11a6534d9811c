"""`nddup evaluate`: compare a run with a list of duplicates."""

import argparse
import sys
from typing import Any

from nddup.commands.options import add_finished_run, add_master, add_parser, positive

EPILOG = """what FILE may be, told from its first lines (plain, gz, bz2, zst, xz; UTF-8):
  pairs         id_a,id_b[,score[,...]]          between tabs, semicolons, commas or blanks; with or without a header
  groups        id id id ...                     a group a line
  JSON lines    {"id_a": 1, "id_b": 2, "score": 0.9}, or ["a", "b", "c"], or {"members": ["a", "b"]}

what it leaves in RUN:
  evaluation.json                                every number
  evaluation/unique_to_reference.csv             pairs that only the list has: scores, estimated resemblance, urls
  evaluation/unique_to_run.csv                   pairs that only the run has

examples:
  nddup evaluate out/demo --truth samples/debdocs/truth_w5_j070.tsv
  nddup evaluate out/run --truth groups.txt --as groups --delimiter blank
  nddup evaluate out/run --truth pairs.csv --header yes --score similarity
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Its arguments."""
    parser = add_parser(
        commands, "evaluate", summary="compare a run with a list of duplicates", epilog=EPILOG,
        description="Compare a finished run with a reference list: five numbers, precision, recall, F1, both rests.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument("--truth", required=True, metavar="FILE", help="the reference list; any path Hadoop knows")
    parser.add_argument("--as", dest="kind", choices=("pairs", "groups"), help="what a line is (default: told)")
    parser.add_argument("--delimiter", choices=("tab", "semicolon", "comma", "blank"), help="(default: told)")
    parser.add_argument("--header", choices=("yes", "no"), help="whether line 1 names the columns (default: told)")
    parser.add_argument("--score", metavar="COLUMN", help="name or number of the score, or none (default: the third)")
    parser.add_argument("--rows", type=positive, metavar="N", help="rows of each unique list (default 1,000,000)")
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Compare, and print the table."""
    from nddup.results.evaluate import WRITTEN, Options, evaluate_run  # noqa: PLC0415
    from nddup.results.evaluation import describe  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415

    reading = Options(
        kind=options.kind,
        delimiter=options.delimiter,
        header=None if options.header is None else options.header == "yes",
        score=options.score,
        written=options.rows or WRITTEN,
    )
    spark = start_session(master=options.master, settings={})
    sys.stdout.write(describe(evaluate_run(spark, options.run, options.truth, reading), options.run))
    return 0
