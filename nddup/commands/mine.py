"""`nddup mine`: mine the maximal, or closed, frequent itemsets of any FIMI file, in one process without Spark."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nddup.commands.options import add_parser, positive
from nddup.errors import ConfigError, NddupError, OutputError, OutputExistsError, StoppedError
from nddup.ground.progress import Steps
from nddup.ground.shown import counted, one_line

if TYPE_CHECKING:
    from nddup.mining.frequent_sets import Mined

STEPS = 3
"""Number of steps of `mine_file`, for progress."""

EPILOG = """input: each line of FILE is a transaction, its items separated by blanks. Items
are any words. An item repeated on a line counts once; empty lines are skipped;
gzip, bz2, zstd and xz are detected. For near-duplicates an item is a document,
and a line lists the documents that share one feature. A maximal set is then a
cluster, and its support is the number of features that all its documents share.

output: one set a line, its items followed by its support, the number of lines
that hold all of them
        by default the maximal sets: frequent sets that no other contains
        with --closed the closed sets: adding any item would lower the support.
        There are more of them, and a lower support only adds sets. (The items
        common to all lines are not listed as a set of their own.)
sets and items are sorted, shorter items first, so that numbers are in numeric
order.

memory: 8 bytes for each item of each line while reading; then 24 bytes for
each pair of items with K common lines.

examples:
  nddup mine retail.dat.gz --support 88
  nddup mine context.fimi --support 85 --min-size 2 --output clusters.txt
  nddup mine chess.dat --support 1918 --closed --max-sets 1000
        stops after 1,000 sets, and says so
"""


def mine_file(  # noqa: PLR0913 - the options of the command
    file: str, *, support: int, output: str | None = None, min_size: int = 1, closed: bool = False,
    max_sets: int | None = None,
) -> None:  # fmt: skip
    """Mine a file and write its sets; note on standard error if there are none or `max_sets` was reached.

    Args:
        file: path of the transactions, plain or compressed.
        support: least number of transactions that contain a set.
        output: file to write, which must not exist; None: standard output.
        min_size: least size of a set that is written.
        closed: closed sets instead of maximal ones.
        max_sets: number of sets after which to stop; None: no limit.

    Raises:
        ConfigError: if there is no such file.
        OutputError: if `output` exists or cannot be written.
        NddupError: if the file cannot be read to its end, or does not hold transactions.
    """
    path, target = Path(file), Path(output) if output else None
    if not path.exists():
        raise ConfigError(f"{file}: no such file")
    if path.is_dir():
        raise ConfigError(f"{file}: is a folder, not a FIMI file")
    if target is not None and (target.exists() or target.is_symlink()):
        raise OutputExistsError(f"--output {output}: exists already; give another file")
    if target is not None and not target.absolute().parent.is_dir():
        raise OutputError(f"--output {output}: there is no folder {target.absolute().parent}")

    with Steps("mine", STEPS) as steps:
        steps.begin("load the kernels")
        from nddup.compiling.install import compile_once  # noqa: PLC0415
        from nddup.mining.fimi import read_fimi  # noqa: PLC0415 - after the progress line
        from nddup.mining.frequent_sets import mine_context  # noqa: PLC0415

        compile_once(steps)
        steps.begin(f"read {one_line(path.name)}")
        try:
            context, names = read_fimi(_pieces_of(path))
        except (OSError, ValueError) as error:
            raise NddupError(f"{file}: {error}") from error
        except StoppedError as error:
            raise NddupError(f"{file}: {error.reason}: {error}") from error

        steps.begin("mine the sets")
        mined = mine_context(context, support, closed=closed, min_size=min_size, max_sets=max_sets)

    lines = len(context.offsets) - 1
    if not lines:
        sys.stderr.write(f"nddup: {one_line(file)}: no transactions\n")
    elif not len(mined.itemsets.supports):
        size = f"{counted(lines, 'line')} of {counted(len(names), 'item')}"
        sys.stderr.write(f"nddup: {one_line(file)}: no set of {min_size} or more is in {support:,} of its {size}\n")
    _write(mined, names, target)
    if not mined.is_complete:
        kind = "closed" if closed else "maximal"
        text = f"{one_line(file)} has more {kind} sets than those given"
        sys.stderr.write(f"nddup: stopped at --max-sets {max_sets}: {text}\n")


def _pieces_of(path: Path) -> Iterator[bytes]:
    """Read a file in pieces, expanded.

    Raises:
        OSError: if it cannot be read.
        StoppedError: if its compression is damaged.
        ValueError: for a file of another kind, such as an archive.
    """
    from nddup.reading.streams import PIECE, Expanded, compression_of  # noqa: PLC0415

    with path.open("rb") as file:
        stream = Expanded(file, compression_of(file.peek()))
        first = stream.read(PIECE)
        if b"\0" in first:  # archives have zero bytes; what knows them loads slowly
            from nddup.reading.containers import known_binary  # noqa: PLC0415

            if kind := known_binary(first, path.name):
                raise ValueError(kind)
        yield first
        yield from iter(lambda: stream.read(PIECE), b"")


def _write(mined: "Mined", names: list[bytes], target: Path | None) -> None:
    """Write the sets; a file gets its name only when it is complete."""
    from nddup.mining.fimi import format_sets  # noqa: PLC0415

    lines = format_sets(mined.itemsets, names)
    if target is None:
        try:
            sys.stdout.buffer.writelines(lines)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader stopped; without this Python would report it again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return

    part = target.with_name(target.name + ".part")
    try:
        with part.open("wb") as file:
            file.writelines(lines)
        part.replace(target)
    except OSError as error:
        raise OutputError(f"--output {target}: {error.strerror}") from error


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    mine = add_parser(commands, "mine", summary="mine the maximal sets of any FIMI file, without Spark", epilog=EPILOG,
                      description="Find all maximal (or closed) sets of items that at least K lines of a FIMI file"
                      " have in common.")  # fmt: skip
    mine.add_argument("file", metavar="FILE", help="transactions of items, plain or compressed")
    mine.add_argument("--support", required=True, type=positive, metavar="K",
                      help="least number of lines that hold a set")  # fmt: skip
    mine.add_argument("-o", "--output", metavar="FILE",
                      help="write the sets to FILE, which must not exist (default: standard output)")  # fmt: skip
    mine.add_argument("--min-size", type=positive, default=1, metavar="N",
                      help="leave out smaller sets (default 1: keep single items that are in no larger"
                      " set)")  # fmt: skip
    mine.add_argument("--closed", action="store_true", help="list all closed sets, not only the maximal ones")
    mine.add_argument("--max-sets", type=positive, metavar="N", help="stop after N sets (default: no limit)")


def execute(options: argparse.Namespace) -> int:
    """Write the sets."""
    mine_file(options.file, support=options.support, output=options.output, min_size=options.min_size,
              closed=options.closed, max_sets=options.max_sets)  # fmt: skip
    return 0
