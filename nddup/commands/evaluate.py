"""`nddup evaluate`: compare a run with a list of known duplicates."""

import argparse
from typing import Any

from nddup.commands.options import add_finished_run, add_json, add_master, add_parser, positive
from nddup.progress import Steps
from nddup.shown import print_json, print_out

EPILOG = """formats of FILE, detected from its first lines (UTF-8; plain, gz, bz2, zst or xz):
  pairs         id_a,id_b[,score[,...]]          separated by tabs, semicolons, commas or blanks; header optional
  groups        id id id ...                     one group a line
  JSON lines    {"id_a": 1, "id_b": 2, "score": 0.9}, or ["a", "b", "c"], or {"members": ["a", "b"]}

files written to RUN:
  evaluation.json                                all numbers
  evaluation/unique_to_reference.csv             pairs found only in the list: score, estimated resemblance, urls
  evaluation/unique_to_run.csv                   pairs found only in the run

examples:
  nddup evaluate out/demo --truth samples/debdocs/truth_w5_j070.tsv
  nddup evaluate out/run --truth groups.txt --as groups --delimiter blank
  nddup evaluate out/run --truth pairs.csv --header yes --score similarity
  nddup evaluate out/run --labels judged.csv
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "evaluate", summary="compare a run with a list of known duplicates", epilog=EPILOG,
        description="Compare a finished run with a reference list: five counts, precision, recall, F1,"
        " and the pairs found on one side only.",
    )  # fmt: skip
    add_finished_run(parser)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--truth", metavar="FILE", help="the reference list; any path Hadoop can open")
    given.add_argument(
        "--labels",
        metavar="FILE",
        help="pairs that a person judged instead: id, id, label (yes or no, 1 or 0) a line. Prints precision and recall"
        " at the run's own threshold and above, and writes RUN/evaluation/labels.json",
    )
    parser.add_argument("--as", dest="kind", choices=("pairs", "groups"), help="what a line holds (default: detected)")
    parser.add_argument(
        "--delimiter",
        choices=("tab", "semicolon", "comma", "blank"),
        help="what separates the fields (default: detected)",
    )
    parser.add_argument("--header", choices=("yes", "no"), help="whether line 1 names the columns (default: detected)")
    parser.add_argument(
        "--score", metavar="COLUMN", help="name or number of the score column, or none (default: the third)"
    )
    parser.add_argument(
        "--rows", type=positive, metavar="N", help="most rows of each list of unmatched pairs (default 1,000,000)"
    )
    add_json(parser)
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Compare, and print the numbers as a table."""
    with Steps("evaluate", 7) as steps:
        from nddup.start_up import prevent_pandas_import  # noqa: PLC0415

        prevent_pandas_import()
        from nddup.results.evaluate import (  # noqa: PLC0415
            WRITTEN,
            Options,
            describe,
            evaluate_run,
        )
        from nddup.results.labelled_pairs import describe_labels, evaluate_labels  # noqa: PLC0415
        from nddup.results.opening import open_run  # noqa: PLC0415

        reading = Options(
            kind=options.kind,
            delimiter=options.delimiter,
            header=None if options.header is None else options.header == "yes",
            score=options.score,
            written=options.rows or WRITTEN,
        )
        steps.begin("open the run")
        opened = open_run(options.run, master=options.master, beside=(options.truth or options.labels,))
        if options.labels:
            steps.begin("compare with the labels")
            labelled = evaluate_labels(opened, options.labels)
            _print(labelled, describe_labels(labelled), is_json=options.json)
            return 0
        evaluation = evaluate_run(opened, options.truth, reading, steps=steps)
    _print(evaluation, describe(evaluation, options.run), is_json=options.json)
    return 0


def _print(found: dict[str, Any], text: str, *, is_json: bool) -> None:
    if is_json:
        print_json(found)
    else:
        print_out(text)
