"""`nddup passages`: what is repeated below the document."""

import argparse
from typing import Any

from nddup.commands.options import add_inputs, add_parser
from nddup.shown import one_line, print_out
from nddup.steps import Steps

EPILOG = """examples:
  nddup passages corpus/ --output out/passages                      runs of 50 tokens or more in two documents or more
  nddup passages out/run --output out/passages                      the same among the kept documents of a run
  nddup passages corpus/ --output out/clean --set output.kept=as-input
        also the collection with one copy of each passage: the same files in out/clean/kept
  nddup passages corpus/ --output out/spans --set output.tagged=as-input
        the collection with the spans of passages in each record, nothing cut: out/spans/tagged
  nddup passages news/ --output out/reprints --set passages.min_tokens=20
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
    parser.add_argument("--output", metavar="DIR", required=True, help="write the tables to DIR, which must not exist")
    parser.add_argument(
        "--engine", choices=("auto", "local", "spark"), help="local: this machine; spark is refused, as yet"
    )


def execute(options: argparse.Namespace) -> int:
    """Find passages, write them, and print what was found."""
    with Steps("passages", 5) as steps:
        from nddup.start_up import prevent_blas_import, prevent_pandas_import  # noqa: PLC0415

        prevent_pandas_import()
        prevent_blas_import()
        from nddup.errors import ConfigError  # noqa: PLC0415
        from nddup.results.against.against_output import require_new  # noqa: PLC0415
        from nddup.results.passages import passages_output as written  # noqa: PLC0415
        from nddup.results.passages.find_passages import find_passages, find_source  # noqa: PLC0415
        from nddup.run.compiling import compile_once  # noqa: PLC0415
        from nddup.run.engines import choose_engine_of_paths  # noqa: PLC0415
        from nddup.settings.load import load_config  # noqa: PLC0415
        from nddup.stages.stage import require_taggable  # noqa: PLC0415

        folder = require_new(options.output, options.inputs)
        given = [*options.assignments, *([f"engine={options.engine}"] if options.engine else [])]
        config = load_config(options.config, given)
        written.require_writable(config)
        engine = choose_engine_of_paths(options.inputs, config, master=None)
        if engine.engine == "spark":
            raise ConfigError(
                f"passages are found on one machine, in its memory, not on Spark ({engine.why}): give local files"
            )
        compile_once(steps)
        steps.begin("find the files and their formats")
        source = find_source(options.inputs, config)
        require_taggable(source.collection, config)
        found = find_passages(source, steps)
        steps.begin("write the tables")
        told = list(written.write_found(found, source, options.inputs, folder))
    page = [f"report: {options.output}/report/index.html"] if config.output.report else []
    lines = [*written.summarise(found, source), *told, *page, f"tables in {options.output}"]
    print_out("".join(f"{one_line(line)}\n" for line in lines))
    return 0
