"""The command line: `nddup`, and the same arguments for the scripts in `jobs/`.

Exit status: 0 done; 2 wrong use or configuration, in one line; 1 a failure at work, or a promise `check` found broken.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from nddup import __version__
from nddup.config import load_config
from nddup.errors import ConfigError, NddupError, OutputError

UNREADABLE = re.compile(r"Encountered error while reading file (\S+?)\.?\s")
LATER = ("evaluate", "truth", "sweep", "index", "report", "explain")

EPILOG = """examples:
  nddup run pages.xml --output out/run                        defaults: resemblance >= 0.8 of 5-word shingles
  nddup run a.jsonl b.jsonl --output out/run --set pairs.threshold=0.9
  nddup run hdfs:///romip --output hdfs:///out --config conf/romip2005.yaml --master yarn
  nddup inspect pages/                                        how files would be read, before a long run
  nddup show out/run                                          what was found, in the terminal
  nddup show out/run --doc 007                                one document and its clusters
  nddup check out/run                                         recount everything by another method
  nddup mine context.fimi --support 85                        maximal sets of any FIMI file, without Spark
"""

RUN_EPILOG = """what it leaves in DIR:
  documents/ rejects/ pairs/ clusters/ members/ keep/         tables, Parquet
  duplicates.txt                                              a cluster a line: ids, tab, common features
  metrics.json                                                what was counted

examples:
  nddup run samples/debdocs --output out/demo
  nddup run pages.xml --output out --set input.record=page --set input.id=@id --set input.content=title+body
  nddup run news.jsonl --output out --set pairs.measure=overlap --set pairs.threshold=85
        85 is a count of common features, 0.85 a share of the larger sketch
  nddup run pages/ --output out --set keep.policy=first --set output.kept=jsonl
  nddup run pages/ --output out --set spark.driver.memory=8g --master 'local[4]'
"""


INSPECT_EPILOG = """examples:
  nddup inspect pages/                                        what each file is, and why
  nddup inspect dump.xml --set input.record=page --set input.id=@id --set input.content=title+body
"""


MINE_EPILOG = """a line of FILE is a transaction: its items, between blanks. For near-duplicates an item is a document
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


class _Parser(argparse.ArgumentParser):
    """Wrong use is one line and exit status 2."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"nddup: {message} (see {self.prog} --help)\n")
        sys.exit(2)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="nddup",
        description="Find clusters of near-duplicate documents: sets in which every pair is alike.",
        epilog=EPILOG,
        formatter_class=raw,
    )
    parser.add_argument("--version", action="version", version=f"nddup {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    run = commands.add_parser(
        "run", help="a collection to clusters", description="Read a collection and find its near-duplicates.",
        epilog=RUN_EPILOG, formatter_class=raw,
    )  # fmt: skip
    run.add_argument("--output", required=True, metavar="DIR", help="folder of the run; must not exist")
    run.add_argument("--overwrite", action="store_true", help="replace the run that is in DIR")
    run.add_argument("--resume", action="store_true", help="not available in this version")
    inspect = commands.add_parser(
        "inspect", help="how files would be read, before a long run",
        description="Show format, encoding, first records, and what would be rejected of the first 1,000 of each file.",
        epilog=INSPECT_EPILOG, formatter_class=raw,
    )  # fmt: skip
    for command in (run, inspect):
        command.add_argument(
            "inputs", nargs="+", metavar="INPUT", help="file or folder; any path Hadoop knows, taken literally"
        )
        command.add_argument("--config", metavar="FILE", help="YAML, only what differs from the defaults (see conf/)")
        command.add_argument(
            "--set", action="append", default=[], dest="assignments", metavar="a.b=c", help="one setting"
        )
    show = commands.add_parser("show", help="results in the terminal", description="Show a finished run.")
    show.add_argument("run", metavar="RUN", help="folder of a finished run")
    show.add_argument("--cluster", metavar="ID", help="the members of one cluster")
    show.add_argument("--doc", metavar="ID", help="one document: kept or not, its pairs and clusters")
    check = commands.add_parser(
        "check", help="prove the run's promises",
        description="Recount a finished run by a plain method; exit status 1 when a promise fails.",
    )  # fmt: skip
    check.add_argument("run", metavar="RUN", help="folder of a finished run")
    _add_mine(commands.add_parser(
        "mine", help="maximal sets of any FIMI file, without Spark",
        description="Find all maximal (or closed) sets of items that K lines of a FIMI file have in common.",
        epilog=MINE_EPILOG, formatter_class=raw,
    ))  # fmt: skip
    for command in (run, inspect, show, check):
        command.add_argument("--master", metavar="URL", help="Spark master; default local[*], or spark-submit's")
    for name in LATER:
        commands.add_parser(name, add_help=False)
    return parser


def _add_mine(mine: argparse.ArgumentParser) -> None:
    mine.add_argument("file", metavar="FILE", help="transactions of items, plain or gzip")
    mine.add_argument("--support", required=True, type=_positive, metavar="K", help="least number of lines")
    mine.add_argument("--output", metavar="FILE", help="file of the sets; must not exist; default standard output")
    mine.add_argument("--min-size", type=_positive, default=1, metavar="N",
                      help="leave out smaller sets (default 1: frequent items in no larger set come out)")  # fmt: skip
    mine.add_argument("--closed", action="store_true", help="all closed sets, not only the maximal ones")
    mine.add_argument("--max-sets", type=_positive, metavar="N", help="stop when there are more (default: never)")


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in LATER:
        return _fail(f"{given[0]} is not available in this version", 2)
    options = build_parser().parse_args(given)
    try:
        return _dispatch(options)
    except NddupError as error:
        return _fail(str(error), 2 if isinstance(error, (ConfigError, OutputError)) else 1)
    except KeyboardInterrupt:
        return _fail("interrupted; the output is not a result", 1)
    except Exception as error:
        if os.environ.get("NDDUP_DEBUG"):
            raise
        return _fail(f"{_reason(error)} (NDDUP_DEBUG=1 shows the trace)", 1)


def _dispatch(options: argparse.Namespace) -> int:
    if options.command == "run":
        return _run(options)
    if options.command == "mine":
        from nddup.mine import mine_file  # noqa: PLC0415 - numba is loaded only by commands that need it

        mine_file(options.file, support=options.support, output=options.output, min_size=options.min_size,
                  closed=options.closed, max_sets=options.max_sets)  # fmt: skip
        return 0
    from nddup.session import start_session  # noqa: PLC0415 - Spark is loaded only by commands that need it

    if options.command == "inspect":
        return _inspect(options)
    spark = start_session(master=options.master, settings={})
    if options.command == "show":
        from nddup.show import show_run  # noqa: PLC0415

        sys.stdout.write(show_run(spark, options.run, cluster=options.cluster, doc=options.doc))
        return 0
    from nddup.check import check_run  # noqa: PLC0415

    report = check_run(spark, options.run)
    sys.stdout.write(report.text())
    return 0 if report.is_sound else 1


def _run(options: argparse.Namespace) -> int:
    if options.resume:
        raise ConfigError("--resume is not available in this version; --overwrite starts again")
    config = load_config(options.config, options.assignments)
    from nddup.job import run_job  # noqa: PLC0415
    from nddup.progress import start_logging  # noqa: PLC0415
    from nddup.session import start_session  # noqa: PLC0415
    from nddup.show import summarise  # noqa: PLC0415

    start_logging()
    spark = start_session(master=options.master, settings=config.spark)
    metrics = run_job(spark, options.inputs, options.output, config, overwrite=options.overwrite)
    sys.stdout.write(summarise(metrics, options.output))
    return 0


def _inspect(options: argparse.Namespace) -> int:
    config = load_config(options.config, options.assignments)
    from nddup.preview import preview  # noqa: PLC0415 - as in _dispatch
    from nddup.session import start_session  # noqa: PLC0415
    from nddup.storage import Storage  # noqa: PLC0415

    spark = start_session(master=options.master, settings=config.spark)
    sys.stdout.write(preview(Storage(spark), options.inputs, config))
    return 0


def _fail(message: str, status: int) -> int:
    sys.stderr.write("nddup: " + " ".join(message.split()) + "\n")
    return status


def _reason(error: Any) -> str:  # noqa: ANN401
    """The line of an error that says what happened: the file that broke, a worker's last line, or the first cause."""
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    file = UNREADABLE.search(" ".join(lines))
    if file:
        return f"{file[1]}: cannot be read ({causes[-1] if causes else lines[0]})"
    errors = [line for line in lines if line.partition(":")[0].rpartition(".")[2].endswith(("Error", "Exception"))]
    said = [line for line in errors if "Traceback (most recent call last)" not in line]
    if len(said) < len(errors):  # of a worker: its own error follows its trace
        return said[0] if said else errors[0]
    return (causes[-1:] or said or lines or [type(error).__name__])[0]
