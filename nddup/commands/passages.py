"""`nddup passages`: what is repeated below the document."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from nddup.commands.options import add_inputs, add_master, add_parser
from nddup.errors import NeedsSparkError
from nddup.ground.progress import Steps
from nddup.ground.shown import one_line, print_out
from nddup.ground.start_up import prevent_pandas_import

if TYPE_CHECKING:
    from nddup.passages.passages_output import Told
    from nddup.settings.schema import Config

EPILOG = """examples:
  nddup passages corpus/ --output out/passages                      runs of 50 tokens or more in two documents or more
  nddup passages out/run --output out/passages                      the same among the kept documents of a run
  nddup passages corpus/ --output out/clean --set output.kept=as-input
        also the collection with one copy of each passage: the same files in out/clean/kept
  nddup passages corpus/ --output out/spans --set output.tagged=as-input
        the collection with the spans of passages in each record, nothing cut: out/spans/tagged
  nddup passages news/ --output out/reprints --set passages.min_tokens=20
  nddup passages s3a://crawl/2026/ --output s3a://crawl/passages    on Spark, because the files are not on this machine
  nddup check out/passages                                          prove the tables
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "passages", summary="find what is repeated below the document", epilog=EPILOG,
        description="Find every run of tokens that stands in two documents or more, exactly, and what can be cut if one"
        " copy of each stays. INPUT may be the folder of a finished run: then its kept documents are read.",
    )  # fmt: skip
    add_inputs(parser)
    parser.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="write the tables to DIR, which must not exist"
    )
    parser.add_argument(
        "--engine", choices=("auto", "local", "spark"),
        help="local: this machine, in its memory; spark: by shuffles; auto, the default: local where the files are"
        " on this machine and their tokens fit its memory",
    )  # fmt: skip
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Find passages, write them, and print the summary."""
    with Steps("passages", 6) as steps:
        prevent_pandas_import()
        from nddup.engines.choose import choose_engine, has_java  # noqa: PLC0415
        from nddup.passages.find_passages import WEIGHT, paths_read  # noqa: PLC0415
        from nddup.passages.passages_output import require_writable, summarise  # noqa: PLC0415
        from nddup.settings.load import load_config  # noqa: PLC0415

        given = [*options.assignments, *([f"engine={options.engine}"] if options.engine else [])]
        config = load_config(options.config, given, os.environ)
        require_writable(config)
        read = paths_read(options.inputs)
        engine, why = choose_engine(read, options.output, config, master=options.master, weight=WEIGHT)
        find = _find_here if engine == "local" else _find_on_spark
        try:
            told, more = find(options, config, steps)
        except NeedsSparkError as error:
            if config.engine != "auto" or not has_java():
                raise
            engine, why = "spark", str(error)
            told, more = _find_on_spark(options, config, steps)
        said = [] if engine == "local" else [f"engine: spark ({why})"]
    page = [f"report: {options.output}/report/index.html"] if config.output.report else []
    lines = [*said, *summarise(told, config), *more, *page, f"tables in {options.output}"]
    print_out("".join(f"{one_line(line)}\n" for line in lines))
    return 0


def _find_here(options: argparse.Namespace, config: "Config", steps: Steps) -> "tuple[Told, list[str]]":
    """Find and write the passages on this machine; return the facts of the summary, and a line about each output."""
    from nddup.against.against_output import require_new  # noqa: PLC0415
    from nddup.compiling.install import compile_once  # noqa: PLC0415
    from nddup.passages import passages_output as written  # noqa: PLC0415
    from nddup.passages.find_passages import find_passages, find_source  # noqa: PLC0415
    from nddup.stages.stage import require_rewritable  # noqa: PLC0415

    folder = require_new(options.output, options.inputs)
    compile_once(steps)
    steps.begin("find the files and their formats")
    source = find_source(options.inputs, config)
    require_rewritable(source.collection, config)
    found = find_passages(source, steps)
    steps.begin("write the tables")
    lines = list(written.write_found(found, source, options.inputs, folder))
    return written.tell(found, source), lines


def _find_on_spark(options: argparse.Namespace, config: "Config", steps: Steps) -> "tuple[Told, list[str]]":
    """Find and write the passages on Spark; return as `_find_here`."""
    from nddup.spark.java import is_small  # noqa: PLC0415
    from nddup.spark.passages_given import find_on_spark  # noqa: PLC0415
    from nddup.spark.session import start_session  # noqa: PLC0415

    steps.begin("start Spark")
    small = is_small(options.inputs)
    spark = start_session(master=options.master, settings=config.spark, is_small=small)
    return find_on_spark(spark, options.inputs, config, options.output, steps)
