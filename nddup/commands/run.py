"""`nddup run`: find the near-duplicates of a collection."""

import argparse
import json
import os
from collections.abc import Callable
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Any

from nddup.commands.options import add_all_known, add_inputs, add_json, add_master, add_parser
from nddup.errors import ConfigError, NeedsSparkError
from nddup.ground.progress import Steps
from nddup.ground.shown import print_json, print_out
from nddup.ground.start_up import prevent_pandas_import
from nddup.settings import profiles

if TYPE_CHECKING:  # a command loads these when it runs
    from nddup.embedded.processes import Processes
    from nddup.engines.engine import FinishedRun
    from nddup.settings.schema import Config

Make = Callable[..., dict[str, Any]]
"""Makes a run from inputs, output and settings, and returns its metrics."""

EPILOG = """files written to DIR:
  documents/ rejects/ pairs/ clusters/ members/ keep/ false_components/
        tables in Parquet
  duplicates.txt
        one cluster a line: its ids, then the number of common features; past
        1 GB a folder of parts
  metrics.json
        counts and timings
  texts/ report/index.html
        the report, a page that opens from disk

examples:
  nddup run samples/debdocs --output out/demo
  nddup run pages.xml --output out --set input.record=page --set input.id=@id \\
      --set input.content=title+body
  nddup run news.jsonl --output out --set pairs.measure=overlap \\
      --set pairs.threshold=85
        85 is a count of common features; 0.85 a share of the larger sketch
  nddup run pages/ --output out --set keep.policy=first --set output.kept=jsonl
  nddup run pages/ --output out --resume
        reuses what an interrupted run had finished
  nddup run pages/ --output out --set spark.driver.memory=8g \\
      --master 'local[4]'
  nddup run titles.csv --output out --config short
        a profile: settings for short texts
  nddup run new/ --onto out-1 --as 2026-11-28 --output out-2
        a night: only what is new is read

"""


PROFILES = fill(
    f"profiles for --config: {', '.join(profiles())}", width=79, subsequent_indent="  ", break_on_hyphens=False
)


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "run", summary="find the near-duplicates of a collection", epilog=EPILOG + PROFILES,
        description="Read a collection of documents and find its clusters of near-duplicates.",
    )  # fmt: skip
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for the results; must not exist")
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--overwrite", action="store_true", help="replace the run in DIR")
    existing.add_argument("--resume", action="store_true",
                          help="finish the run in DIR: reuse tables whose inputs and settings are unchanged; start one"
                          " if there is none")  # fmt: skip
    parser.add_argument("--engine", choices=("auto", "local", "spark"),
                        help="local: this machine, without Java; spark: any size; auto, the default: local where it"
                        " can do the work")  # fmt: skip
    parser.add_argument("--table", metavar="CATALOG.SCHEMA.TABLE",
                        help="on Spark: a table of a catalog is INPUT, as it is now; its copy, DIR.table, stays beside"
                        " the results")  # fmt: skip
    parser.add_argument("--tables", metavar="CATALOG.SCHEMA",
                        help="on Spark: also save the tables, with comments, in this schema of a catalog; existing"
                        " ones are replaced only with --overwrite or --resume")  # fmt: skip
    parser.add_argument("--log-format", choices=("text", "json"), default="text",
                        help="format of the log lines, one for each stage")  # fmt: skip
    parser.add_argument("--names-from", metavar="RUN",
                        help="an earlier run, or REPO@N: families keep the names they have there; the report begins"
                        " with what is new")  # fmt: skip
    parser.add_argument("--onto", metavar="RUN",
                        help="a finished run, made with output.onto=true: read only what is new, and make the tables"
                        " of one run over all; its settings hold")  # fmt: skip
    parser.add_argument("--as", dest="batch", metavar="NAME",
                        help="a name for the inputs, such as a date: their sources are NAME/…; with --onto, one after"
                        " all before it")  # fmt: skip
    parser.add_argument("--without", metavar="FILE",
                        help="with --onto: a list of ids, documents that leave; INPUT may then be missing")  # fmt: skip
    add_all_known(parser, "keep.force and --without")
    add_json(parser)
    add_inputs(parser, "*")
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Run the job and print its summary."""
    if options.without and not options.onto:
        raise ConfigError(f"--without {options.without}: takes documents out of a run; name it with --onto")
    if not options.inputs and not options.without and not options.table:
        raise ConfigError("INPUT: expected a file or folder, got none")
    if options.table and options.engine in (None, "auto"):
        options.engine = "spark"
    processes = _start_processes(options)
    try:
        _look_at_paths(options)
        with Steps("run", 4 if options.table else 3, is_quiet=options.log_format == "json") as steps:
            config, make, arguments = _prepare(options, processes, steps)
    except BaseException:
        if processes is not None:
            processes.kill()
        raise
    made = _run(make, options, config, arguments)

    if options.json:
        print_json(made)
        return 0
    from nddup.ground.metrics import RunMetrics  # noqa: PLC0415
    from nddup.results.show import summarise  # noqa: PLC0415

    metrics = RunMetrics.read(made)
    report = f"{options.output}/report/index.html" if config.output.report else None
    rejects = _first_rejects(options.output) if metrics.stages.sketch.rejected else []
    print_out(summarise(metrics, options.output, report=report, rejects=rejects))
    return 0


def _first_rejects(output: str) -> list[str]:
    """Return a sentence about the first reject of each reason; none if the run can be read on Spark only."""
    from nddup.results.opening import is_read_here, open_here  # noqa: PLC0415
    from nddup.results.show import first_rejects  # noqa: PLC0415

    return first_rejects(open_here(output).run) if is_read_here(output, master=None) else []


def _start_processes(options: argparse.Namespace) -> "Processes | None":
    """Start the worker processes of the embedded engine, unless they are not needed: they load while this one does.

    Before the kernels are compiled, they would all compile the same.
    """
    from nddup.compiling.install import USUAL, are_compiled  # noqa: PLC0415
    from nddup.embedded.processes import Processes  # noqa: PLC0415
    from nddup.storage.local_storage import is_submitted  # noqa: PLC0415

    is_local = options.engine != "spark" and options.master is None and not is_submitted()
    return Processes.start(options.inputs) if is_local and are_compiled(USUAL) else None


def _prepare(
    options: argparse.Namespace, processes: "Processes | None", steps: Steps
) -> tuple["Config", Make, dict[str, Any]]:
    from nddup.engines.choose import choose_engine  # noqa: PLC0415
    from nddup.ground.progress import start_logging  # noqa: PLC0415
    from nddup.settings.load import load_config  # noqa: PLC0415

    chosen = [f"engine={options.engine}"] if options.engine else []
    chosen += ["keep.all_known=true"] if options.all_known else []
    chosen += [f"output.names_from={json.dumps(options.names_from)}"] if options.names_from else []
    config = load_config(options.config, [*options.assignments, *chosen], os.environ)
    start_logging(options.log_format)
    is_here = not options.onto or _is_here(options.onto)
    if options.onto and is_here:
        config = _go_on(options.onto, config)
    choice = choose_engine(options.inputs, options.output, config, master=options.master)
    if (options.tables or options.table) and choice.engine == "local":
        given = f"--tables {options.tables}" if options.tables else f"--table {options.table}"
        raise ConfigError(f"{given}: only Spark knows catalogs, and this run is not on it: add --engine spark")
    arguments = {
        "overwrite": options.overwrite,
        "resume": options.resume,
        "log_format": options.log_format,
        "first_log_line": f"engine: {choice.engine} ({choice.why})",
    }
    arguments |= {"onto": options.onto, "batch": options.batch, "without": options.without}
    if config.output.names_from is not None:
        arguments["earlier"] = _open_earlier(config.output.names_from, is_here=choice.engine == "local")
    if choice.engine == "local":
        if not is_here:
            raise ConfigError(f"--onto {options.onto}: expected a folder of this machine, or --engine spark")
        return config, _prepare_here(config, processes), arguments
    if processes is not None:
        processes.kill()
    return *_prepare_spark(options, config, steps), arguments


def _is_here(path: str) -> bool:
    from nddup.results.opening import is_read_here  # noqa: PLC0415

    return is_read_here(path, master=None)


def _go_on(path: str, config: "Config") -> "Config":
    prevent_pandas_import()
    from nddup.stages.onto import settings_onto  # noqa: PLC0415
    from nddup.storage.local_folder import LocalFolder  # noqa: PLC0415

    return settings_onto(config, LocalFolder(path))


def _open_earlier(path: str, *, is_here: bool) -> "FinishedRun | None":
    """Open what output.names_from names: a version of a repository, REPO@N, or a run in a bucket; None for a folder."""
    from nddup.remote.addresses import is_bucket  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage, is_local  # noqa: PLC0415

    repo, _, version = path.rpartition("@")
    if not repo or not version.isdecimal() or (is_local(path) and LocalStorage().exists(path)):
        if not (is_here and is_bucket(path)):
            return None
        from nddup.engines.duck import DuckRun  # noqa: PLC0415
        from nddup.storage.bucket_run import BucketRun  # noqa: PLC0415

        return DuckRun(BucketRun(path).fetch())
    import nddup.repository  # noqa: PLC0415

    return nddup.repository.open(repo, int(version)).open_run()


def _look_at_paths(options: argparse.Namespace) -> None:
    """Refuse a missing input and an occupied output folder before anything is loaded.

    Only paths that are surely on this machine are checked: a setting may give Spark another default file system.
    """
    from nddup.scanning.input_files import missing_input, split_version  # noqa: PLC0415
    from nddup.storage.local_storage import is_local, is_submitted  # noqa: PLC0415

    if options.config or is_submitted() or any("spark." in text for text in options.assignments):
        return
    from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415

    storage = LocalStorage()
    for path in options.inputs:
        if is_local(path) and not storage.exists(split_version(path)[0]):
            raise missing_input(path)
    if is_local(options.output) and storage.exists(options.output):
        from nddup.storage.run_folder import RunFolder  # noqa: PLC0415

        RunFolder(storage, options.output).look(may_change=options.overwrite or options.resume)


def _run(make: Make, options: argparse.Namespace, config: "Config", arguments: dict[str, Any]) -> dict[str, Any]:
    """Make a run and return its metrics; go on with Spark if the embedded engine has too little memory."""
    from nddup.engines.choose import has_java  # noqa: PLC0415
    from nddup.ground.progress import say  # noqa: PLC0415

    try:
        return make(options.inputs, options.output, config, **arguments)
    except NeedsSparkError as error:
        if config.engine != "auto" or not has_java():
            raise
        say(f"engine: spark ({error})", form=options.log_format)
    with Steps("run", 2, is_quiet=options.log_format == "json") as steps:
        _, make = _prepare_spark(options, config, steps)
    return make(
        options.inputs, options.output, config, **arguments | {"overwrite": False, "resume": True, "first_log_line": ""}
    )


def _prepare_here(config: "Config", processes: "Processes | None") -> Make:
    from nddup.settings.plan import processes_of  # noqa: PLC0415

    count = processes_of(config)
    if processes is not None and count > 1:
        processes.fork(count)
    elif processes is not None:
        processes.kill()
        processes = None
    prevent_pandas_import()
    from nddup.embedded.run import run_locally  # noqa: PLC0415

    return partial(run_locally, processes=processes)


def _prepare_spark(options: argparse.Namespace, config: "Config", steps: Steps) -> tuple["Config", Make]:
    from nddup.compiling.install import compile_once  # noqa: PLC0415
    from nddup.spark.java import is_small  # noqa: PLC0415
    from nddup.spark.run import run_job  # noqa: PLC0415
    from nddup.spark.session import address_of, start_session  # noqa: PLC0415
    from nddup.spark.session_tables import SparkFolder  # noqa: PLC0415
    from nddup.spark.steps.outputs import copy_table, require_place, save_tables  # noqa: PLC0415
    from nddup.stages.onto import settings_onto  # noqa: PLC0415
    from nddup.storage.local_storage import is_submitted  # noqa: PLC0415

    if options.master is None and not is_submitted():
        compile_once(steps)
    steps.begin(f"start Spark at {address_of(options.master)}" if options.master else "start Spark")
    read = [*options.inputs, *([options.onto] if options.onto else [])]
    spark = start_session(master=options.master, settings=config.spark, is_small=is_small(read))
    if options.onto and not _is_here(options.onto):
        config = settings_onto(config, SparkFolder(spark, options.onto))
    run = partial(run_job, spark)
    if options.tables:
        require_place(spark, options.tables, overwrite=options.overwrite or options.resume)
    if options.table:
        flags = {name: bool(getattr(options, name)) for name in ("overwrite", "resume")}
        steps.begin(f"copy the table {options.table}")
        options.inputs = [*options.inputs, copy_table(spark, options.table, options.output, **flags)]
    if not options.tables:
        return config, run

    def run_and_save(inputs: list[str], output: str, config: Any, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        metrics = run(inputs, output, config, **arguments)
        save_tables(spark, output, options.tables)
        return metrics

    return config, run_and_save
