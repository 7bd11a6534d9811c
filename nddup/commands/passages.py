"""`nddup against`: which items of one collection stand in another; `nddup passages`: what is repeated in documents."""

import argparse
import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from nddup.commands.options import add_inputs, add_json, add_master, add_parser, add_settings, positive
from nddup.errors import ConfigError, NeedsSparkError
from nddup.ground.progress import Steps
from nddup.ground.shown import one_line, print_json, print_out
from nddup.ground.start_up import prevent_pandas_import

if TYPE_CHECKING:
    from nddup.passages.passages_output import Told
    from nddup.settings.schema import Config


PASSAGES_EPILOG = """examples:
  nddup passages corpus/ --output out/passages
        runs of 50 tokens or more in two documents or more
  nddup passages out/run --output out/passages
        the same among the kept documents of a run
  nddup passages corpus/ --output out/clean --set output.kept=as-input
        also the collection with one copy of each passage: the same files in
        out/clean/kept
  nddup passages corpus/ --output out/spans --set output.tagged=as-input
        the collection with the spans of passages in each record, nothing cut:
        out/spans/tagged
  nddup passages news/ --output out/reprints --set passages.min_tokens=20
  nddup passages s3a://crawl/2026/ --output s3a://crawl/passages
        on Spark, because the files are not on this machine
  nddup check out/passages
        prove the tables
"""


AGAINST_EPILOG = """verdicts:
  found         at least --threshold of the item stands in one document of A
                (--of item), or of a document of A in the item (--of document),
                or either (--of any)
  part          something is shared, but less
  clean         no shingle that counts is shared, and all of A was read
  not testable  short; common: its shingles are in more than
                against.max_document_frequency documents of A; or unread:
                nothing is shared with what could be read of A

Shingles are runs of --length tokens; all are compared, exactly. If B's
shingles do not fit into local.memory, B is taken in parts; the result is the
same. On Spark, A and B may lie anywhere, and the driver holds B.

examples:
  nddup against crawl/ benchmarks/ --by folder
        benchmarks/qa: 1,500 items, 1,199 found, 0 clean; not testable: 224
        short, 77 common
  nddup against train.jsonl test.jsonl --output out/against
        tables, and index.html with both texts side by side
  nddup against train.jsonl test.jsonl --exit-code
        3 if anything is found
  nddup against crawl/ qa.jsonl --set-b input.content=question+answer
  nddup against s3a://crawl/2026/ benchmarks/ --output out/against
        on Spark, because A is not on this machine
"""

FOUND_STATUS = 3
"""Exit status with --exit-code when something was found."""


def add_passages(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "passages", summary="find what is repeated below the document", epilog=PASSAGES_EPILOG,
        description="Find every run of tokens that stands in two documents or more, exactly, and what can be cut if one"
        " copy of each stays. INPUT may be the folder of a finished run: then its kept documents are read.",
    )  # fmt: skip
    add_inputs(parser)
    parser.add_argument("-o", "--output", metavar="DIR", required=True,
                        help="write the tables to DIR, which must not exist")  # fmt: skip
    parser.add_argument("--engine", choices=("auto", "local", "spark"),
                        help="local: this machine, in its memory; spark: by shuffles; auto, the default: local where"
                        " the files are on this machine and their tokens fit its memory")  # fmt: skip
    add_master(parser)


def execute_passages(options: argparse.Namespace) -> int:
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
            summary, more = find(options, config, steps)
        except NeedsSparkError as error:
            if config.engine != "auto" or not has_java():
                raise
            engine, why = "spark", str(error)
            summary, more = _find_on_spark(options, config, steps)
        engine_lines = [] if engine == "local" else [f"engine: spark ({why})"]
    page = [f"report: {options.output}/report/index.html"] if config.output.report else []
    lines = [*engine_lines, *summarise(summary, config), *more, *page, f"tables in {options.output}"]
    print_out("".join(f"{one_line(line)}\n" for line in lines))
    return 0


def _find_here(options: argparse.Namespace, config: "Config", steps: Steps) -> "tuple[Told, list[str]]":
    from nddup.against.against_output import new_folder  # noqa: PLC0415
    from nddup.compiling.install import compile_once  # noqa: PLC0415
    from nddup.passages import passages_output as written  # noqa: PLC0415
    from nddup.passages.find_passages import find_passages, find_source  # noqa: PLC0415
    from nddup.stages.stage import require_rewritable  # noqa: PLC0415

    folder = new_folder(options.output, options.inputs)
    compile_once(steps)
    steps.begin("find the files and their formats")
    source = find_source(options.inputs, config)
    require_rewritable(source.collection, config)
    passages = find_passages(source, steps)
    steps.begin("write the tables")
    lines = list(written.write_found(passages, source, options.inputs, folder))
    return written.tell(passages, source), lines


def _find_on_spark(options: argparse.Namespace, config: "Config", steps: Steps) -> "tuple[Told, list[str]]":
    from nddup.spark.inputs_given import find_on_spark  # noqa: PLC0415
    from nddup.spark.java import is_small  # noqa: PLC0415
    from nddup.spark.session import start_session  # noqa: PLC0415

    steps.begin("start Spark")
    small = is_small(options.inputs)
    spark = start_session(master=options.master, settings=config.spark, is_small=small)
    return find_on_spark(spark, options.inputs, config, options.output, steps)


def add_against(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "against", summary="find which items of one collection stand in another", epilog=AGAINST_EPILOG,
        description="For every item of B, say whether it stands in A: exact containment, with the shared spans.",
    )  # fmt: skip
    parser.add_argument("a", metavar="A", help="file or folder: the collection that may hold items")
    parser.add_argument("b", metavar="B", help="file or folder: the items; they are held in memory")
    parser.add_argument("--of", choices=("item", "document", "any"), default="item",
                        help="the share that counts: of an item in a document of A, of a document in an item, or"
                        " either (default item)")  # fmt: skip
    parser.add_argument("--threshold", type=_share, default="0.8", metavar="T",
                        help="least share of an item found (default 0.8)")  # fmt: skip
    parser.add_argument("--length", type=positive, default=8, metavar="N",
                        help="tokens of a shingle, up to 1,000 (default 8)")  # fmt: skip
    parser.add_argument("--by", choices=("source", "folder"), default="source",
                        help="group the matrix and the summary by file or by folder (default source)")  # fmt: skip
    parser.add_argument("--engine", choices=("auto", "local", "spark"),
                        help="what reads A and B: this machine, or Spark; auto, the default: Spark where one of them"
                        " is not here")  # fmt: skip
    add_master(parser)
    parser.add_argument(
        "--exit-code", action="store_true",
        help=f"exit status {FOUND_STATUS} if anything is found, 1 if nothing is but not all of A could be read",
    )  # fmt: skip
    parser.add_argument("--output-kept", metavar="DIR",
                        help="write A again to DIR, without the records in which an item is found, all else unchanged;"
                        " files of this machine only; must not exist")  # fmt: skip
    add_json(parser)
    parser.add_argument("-o", "--output", metavar="DIR",
                        help="write the tables and index.html to DIR, which must not exist")  # fmt: skip
    add_settings(parser, one="one setting, of input, against, local or spark")
    parser.add_argument("--set-b", action="append", default=[], metavar="a.b=c",
                        help="one setting for reading B only; may be repeated")  # fmt: skip


def _share(text: str) -> Fraction:
    """Parse a share in (0, 1], exactly as written; its denominator is at most 10**9."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value <= 1 or value.denominator > 10**9:
        raise argparse.ArgumentTypeError(f"expected a share in (0, 1], such as 0.8, got {text!r}")
    return value


def _start_spark(options: argparse.Namespace, config: Any, steps: Steps) -> Any:  # noqa: ANN401 - a Start, loaded here
    """Return the engine on Spark, if it is requested or needed; None for the engine of this machine."""
    from nddup.engines.choose import choose_engine_of_paths  # noqa: PLC0415

    if choose_engine_of_paths([options.a, options.b], config, master=options.master).engine == "local":
        return None
    from nddup.spark.inputs_given import engine_on_spark  # noqa: PLC0415
    from nddup.spark.java import is_small  # noqa: PLC0415
    from nddup.spark.session import start_session  # noqa: PLC0415

    steps.begin("start Spark")
    small = is_small([options.a, options.b])
    return engine_on_spark(start_session(master=options.master, settings=config.spark, is_small=small))


def execute_against(options: argparse.Namespace) -> int:
    """Compare, and print the result."""
    with Steps("against", 9) as steps:
        prevent_pandas_import()
        from nddup.against import against_output as written  # noqa: PLC0415
        from nddup.against.compare_collections import AskedAgainst, compare  # noqa: PLC0415
        from nddup.against.judge import Rules  # noqa: PLC0415
        from nddup.compiling.install import compile_once  # noqa: PLC0415
        from nddup.settings.load import load_config  # noqa: PLC0415

        if options.length > 1_000:  # noqa: PLR2004 - the greatest length of shingle.length too
            raise ConfigError(f"--length {options.length}: expected at most 1,000 tokens")
        folder = written.new_folder(options.output, [options.a, options.b]) if options.output else None
        if options.output_kept:
            others = [options.output] if options.output else []
            written.new_folder(options.output_kept, [options.a, options.b, *others], name="--output-kept")
        given = [*options.assignments, *([f"engine={options.engine}"] if options.engine else [])]
        config = load_config(options.config, given, os.environ)
        config_b = load_config(options.config, [*options.assignments, *options.set_b], os.environ)
        limits = config.against
        rules = Rules(options.of, options.threshold, limits.max_document_frequency, limits.min_shingles)
        asked = AskedAgainst(rules, options.length, options.by)
        start = _start_spark(options, config, steps)
        if start is not None and options.output_kept:
            raise ConfigError("--output-kept: only files that this machine reads are written again (--engine local)")
        compile_once(steps)
        compared = compare((options.a, config), (options.b, config_b), asked, steps, start)
        if folder is not None:
            steps.begin("write the tables and the page")
            written.write_compared(compared, folder)
        if options.output_kept:
            steps.begin("write A without what was found")
            written.write_kept(compared, options.output_kept)
    if options.json:
        print_json({name: compared.tables[name].to_pylist() for name in ("items", "matrix")})
    else:
        lines = [*written.summarise_verdicts(compared), *written.list_found(compared, is_written=folder is not None)]
        lines += [f"A without what was found in {options.output_kept}"] if options.output_kept else []
        lines += [f"tables and page in {options.output}"] if folder is not None else []
        print_out("".join(f"{one_line(line)}\n" for line in lines))
    is_found = any(line == "found" for line in compared.tables["items"]["verdict"].to_pylist())
    if not options.exit_code:
        return 0
    return FOUND_STATUS if is_found else int(not compared.shared.is_all_read)
