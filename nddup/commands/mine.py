"""`nddup mine`: maximal sets of any FIMI file, without Spark."""

import argparse
from typing import Any

from nddup.commands.options import add_parser, positive

EPILOG = """a line of FILE is a transaction: its items, between blanks. For near-duplicates an item is a document
and a line one feature, with the documents that hold it; then a maximal set is a cluster, and its support the features
that all of them share.
Items may be any words; items repeated on a line count once; blank lines are nothing; gzip is recognised.

what comes out, one set a line: its items, then the number of lines that hold them all
        by default every maximal set: no other frequent set contains it
        --closed gives every set to which no item can be added without losing a line; more sets, and the same
        for every support below. (The items that every line holds are not a set of their own.)
sets and items are in one order, shorter items first, so that numbers come as numbers.

memory: 8 bytes for every item of every line while it is read; then 24 for every pair of items that meet K times.

examples:
  nddup mine retail.dat.gz --support 88
  nddup mine context.fimi --support 85 --min-size 2 --output clusters.txt
  nddup mine chess.dat --support 1918 --closed --max-sets 1000      stops there, and says so on standard error
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Its arguments."""
    mine = add_parser(
        commands, "mine", summary="maximal sets of any FIMI file, without Spark", epilog=EPILOG,
        description="Find all maximal (or closed) sets of items that K lines of a FIMI file have in common.",
    )  # fmt: skip
    mine.add_argument("file", metavar="FILE", help="transactions of items, plain or gzip")
    mine.add_argument("--support", required=True, type=positive, metavar="K", help="least number of lines")
    mine.add_argument("--output", metavar="FILE", help="file of the sets; must not exist; default standard output")
    mine.add_argument("--min-size", type=positive, default=1, metavar="N",
                      help="leave out smaller sets (default 1: frequent items in no larger set come out)")  # fmt: skip
    mine.add_argument("--closed", action="store_true", help="all closed sets, not only the maximal ones")
    mine.add_argument("--max-sets", type=positive, metavar="N", help="stop when there are more (default: never)")


def execute(options: argparse.Namespace) -> int:
    """Write the sets."""
    from nddup.results.mine_file import mine_file  # noqa: PLC0415

    mine_file(options.file, support=options.support, output=options.output, min_size=options.min_size,
              closed=options.closed, max_sets=options.max_sets)  # fmt: skip
    return 0
