"""Arguments that several commands take, and what a value may be."""

import argparse
from typing import Any


def add_parser(
    commands: "argparse._SubParsersAction[Any]", name: str, *, summary: str, description: str, epilog: str = ""
) -> argparse.ArgumentParser:
    """The parser of one command; `epilog` keeps its lines."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """INPUT…, and the settings that say how to read them."""
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="file or folder; any path Hadoop knows, taken literally"
    )
    parser.add_argument("--config", metavar="FILE", help="YAML, only what differs from the defaults (see conf/)")
    parser.add_argument("--set", action="append", default=[], dest="assignments", metavar="a.b=c", help="one setting")


def add_finished_run(parser: argparse.ArgumentParser) -> None:
    """RUN."""
    parser.add_argument("run", metavar="RUN", help="folder of a finished run")


def add_master(parser: argparse.ArgumentParser) -> None:
    """--master."""
    parser.add_argument("--master", metavar="URL", help="Spark master; default local[*], or spark-submit's")


def positive(text: str) -> int:
    """A whole number of at least 1.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def share(text: str) -> float:
    """A number from 0 to 1.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, got {text!r}")
    return value
