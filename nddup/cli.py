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
LATER = ("evaluate", "truth", "sweep", "mine", "index", "report", "explain")

EPILOG = """examples:
  nddup run pages.xml --output out/run                        defaults: resemblance >= 0.8 of 5-word shingles
  nddup run a.jsonl b.jsonl --output out/run --set pairs.threshold=0.9
  nddup run hdfs:///romip --output hdfs:///out --config conf/romip2005.yaml --master yarn
  nddup inspect pages/                                        how files would be read, before a long run
  nddup show out/run                                          what was found, in the terminal
  nddup show out/run --doc 007                                one document and its clusters
  nddup check out/run                                         recount everything by another method
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
    for command in (run, inspect, show, check):
        command.add_argument("--master", metavar="URL", help="Spark master; default local[*], or spark-submit's")
    for name in LATER:
        commands.add_parser(name, add_help=False)
    return parser


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
