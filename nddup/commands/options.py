"""Arguments shared by several commands, and the types of their values."""

import argparse
from textwrap import fill
from typing import Any

from nddup.errors import ConfigError


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Folds a description to the terminal's width; examples stay as they are written, in 79 columns."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n\n" in text or "\n  " in text:
            return super()._fill_text(text, width, indent)
        return fill(" ".join(text.split()), width, break_on_hyphens=False)


def add_parser(
    commands: "argparse._SubParsersAction[Any]", name: str, *, summary: str, description: str, epilog: str = ""
) -> argparse.ArgumentParser:
    """Add the parser of one command. The line breaks of `epilog` are kept."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=description, epilog=epilog, formatter_class=HelpFormatter
    )
    add_common(parser)
    return parser


def add_common(parser: argparse.ArgumentParser) -> None:
    """Declare the options of every command; without them, `options` has no such attribute."""
    parser.add_argument("-q", "--quiet", action="store_true", default=argparse.SUPPRESS,
                        help="no progress and no log lines")  # fmt: skip
    parser.add_argument("-v", "--verbose", action="store_true", default=argparse.SUPPRESS,
                        help="print the full traceback of an unexpected error, as with NDDUP_DEBUG=1")  # fmt: skip


def add_inputs(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """Declare INPUT… and the settings of a run."""
    parser.add_argument("inputs", nargs=nargs, metavar="INPUT",
                        help="file or folder, here, of s3, gs, az, hf, https, or of Hadoop; no wildcards")  # fmt: skip
    add_settings(parser)


def add_settings(
    parser: argparse.ArgumentParser,
    files: str = "YAML file of settings, or the name of a profile, such as short",
    one: str = "one setting",
) -> None:
    """Declare --config and --set; the texts say which settings."""
    parser.add_argument("--config", metavar="FILE", help=files)
    parser.add_argument("--set", action="append", default=[], dest="assignments", metavar="a.b=c", type=assignment,
                        help=f"{one}; may be repeated")  # fmt: skip


def add_finished_run(parser: argparse.ArgumentParser) -> None:
    """Declare RUN."""
    parser.add_argument("run", metavar="RUN", help="folder of a finished run")


def add_all_known(parser: argparse.ArgumentParser, of: str) -> None:
    """Declare --all-known for a list of ids."""
    parser.add_argument("--all-known", action="store_true",
                        help=f"exit status 2 if an id of {of} is no document (default: if none is)")  # fmt: skip


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare --json."""
    parser.add_argument("--json", action="store_true", help="print the result as one line of JSON")


def add_master(parser: argparse.ArgumentParser) -> None:
    """Declare --master."""
    parser.add_argument("--master", metavar="URL",
                        help="Spark master, or sc://HOST:PORT, a server of Spark Connect (default: local[*], or that"
                        " of spark-submit)")  # fmt: skip


def assignment(text: str) -> str:
    """Check that an argument is a setting with a value, `a.b=c`; what it means is checked later.

    Raises:
        argparse.ArgumentTypeError: if there is no value: blanks around the equals sign split it into several arguments.
    """
    if "=" not in text or text.startswith("="):
        name = text.strip("=") or "pairs.threshold"
        raise argparse.ArgumentTypeError(f"expected {name}=VALUE, without blanks around =, got {text!r}")
    return text


def positive(text: str) -> int:
    """Parse a whole number of at least 1.

    Raises:
        argparse.ArgumentTypeError: if the text is anything else.
    """
    return _at_least(1, text)


def natural(text: str) -> int:
    """Parse a whole number of at least 0.

    Raises:
        argparse.ArgumentTypeError: if the text is anything else.
    """
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {text!r}")
    return int(text)


def share(text: str) -> float:
    """Parse a number from 0 to 1.

    Raises:
        argparse.ArgumentTypeError: if the text is anything else.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, got {text!r}")
    return value


def read_versions(text: str) -> tuple[int, int]:
    """Read the first and the last of some versions of a repository: 3..7, or 3.

    Raises:
        ConfigError: for anything else.
    """
    low, dots, high = text.partition("..")
    if not low.isdigit() or (dots and not high.isdigit()):
        raise ConfigError(f"--versions {text}: expected a version, or two such as 3..7")
    first, last = int(low), int(high if dots else low)
    if first > last:
        raise ConfigError(f"--versions {text}: no version is in it; the lower one comes first")
    return first, last
