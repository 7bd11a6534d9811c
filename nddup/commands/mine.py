"""`nddup mine`: maximal itemsets of any FIMI file, without Spark."""

import argparse
from typing import Any

from nddup.commands.options import add_parser, positive

EPILOG = """input: each line of FILE is a transaction, its items separated by blanks. Items are any words. An item
repeated on a line counts once; empty lines are skipped; gzip is detected. For near-duplicates an item is a document,
and a line lists the documents that share one feature. A maximal set is then a cluster, and its support is the number
of features that all its documents share.

output: one set a line, its items followed by its support, the number of lines that hold all of them
        by default the maximal sets: frequent sets that no other frequent set contains
        with --closed the closed sets: adding any item would lower the support. There are more of them, and a lower
        support only adds sets. (The items common to all lines are not listed as a set of their own.)
sets and items are sorted, shorter items first, so that numbers are in numeric order.

memory: 8 bytes for each item of each line while reading; then 24 bytes for each pair of items with K common lines.

examples:
  nddup mine retail.dat.gz --support 88
  nddup mine context.fimi --support 85 --min-size 2 --output clusters.txt
  nddup mine chess.dat --support 1918 --closed --max-sets 1000      stops after 1,000 sets, and says so
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    mine = add_parser(
        commands, "mine", summary="mine the maximal sets of any FIMI file, without Spark", epilog=EPILOG,
        description="Find all maximal (or closed) sets of items that at least K lines of a FIMI file have in common.",
    )  # fmt: skip
    mine.add_argument("file", metavar="FILE", help="transactions of items, plain or gzip")
    mine.add_argument(
        "--support", required=True, type=positive, metavar="K", help="least number of lines that hold a set"
    )
    mine.add_argument(
        "-o", "--output", metavar="FILE", help="write the sets to FILE, which must not exist (default: standard output)"
    )
    mine.add_argument(
        "--min-size", type=positive, default=1, metavar="N",
        help="leave out smaller sets (default 1: keep single items that are in no larger set)",
    )  # fmt: skip
    mine.add_argument("--closed", action="store_true", help="list all closed sets, not only the maximal ones")
    mine.add_argument("--max-sets", type=positive, metavar="N", help="stop after N sets (default: no limit)")


def execute(options: argparse.Namespace) -> int:
    """Write the sets."""
    from nddup.results.mine_file import mine_file  # noqa: PLC0415

    mine_file(options.file, support=options.support, output=options.output, min_size=options.min_size,
              closed=options.closed, max_sets=options.max_sets)  # fmt: skip
    return 0
