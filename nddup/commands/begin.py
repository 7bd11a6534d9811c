"""What comes before a run of one's own: `nddup inspect`, `demo` and `setup`; `explain`: what settings find and cost.

`nddup --version --json` too: what an installation is made of, as one line to send with a question.
"""

import argparse
import os
import platform
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from nddup.commands.options import add_inputs, add_master, add_parser, add_settings, positive, share
from nddup.commands.run import add as add_run
from nddup.commands.run import execute as run_collection
from nddup.errors import ConfigError, OutputError
from nddup.ground.progress import Steps
from nddup.ground.shown import one_line, parse_size, print_json, print_out
from nddup.ground.start_up import prevent_pandas_import

INSPECT_EPILOG = """examples:
  nddup inspect pages/
        the format of each file, and why
  nddup inspect dump.xml --set input.record=page --set input.id=@id \\
      --set input.content=title+body
"""

PAGES = "boost.jsonl.gz"
"""The file of the pages; beside it is their licence."""

MOST_FOLDERS = 100
"""Maximum number of names of folders that are tried."""


MOST_SLOTS = 100_000
"""Greatest number of ids, bands or rows that is explained: that of sketch.size, the slots of a signature."""

EXPLAIN_EPILOG = """three questions:
  nddup explain [--config FILE] [--set a.b=c]...
        the settings of a run: the error of an estimated resemblance, which
        pairs the threshold finds, how many ids two sketches must share, and
        the memory and disk space for a million documents
  nddup explain --bands B --rows R
        locality-sensitive hashing: a signature of B x R slots is cut into B
        bands of R rows. Two documents become a candidate if at least one whole
        band is equal. At resemblance s the probability is 1 - (1 - s^R)^B, an
        S-curve
  nddup explain --support K --size N
        sketches of N ids that are near-duplicates if they share K of them: the
        papers' k

how to read the curves: choose a threshold where the curve is steep. To its
left lie false candidates, to its right missed pairs. A larger sketch makes the
curve steeper: four times the ids halve the error.

examples:
  nddup explain
        the default settings
  nddup explain --set sketch.size=400 --set pairs.threshold=0.9 --at 0.87
  nddup explain --bands 20 --rows 5 --png curve.png
        the curve as a figure
  nddup explain --support 85 --size 100
        the settings of ROMIP 2005
  nddup explain --config romip2005
  nddup explain --documents 1000000000 --memory 2GB
        tasks, bytes and hours of the pairs stage on Spark
"""


BESIDE = ("duckdb", "pandas", "pyspark", "s3fs", "gcsfs", "adlfs", "huggingface_hub", "deltalake", "pyiceberg")
"""Libraries that decide no sketch, of the plain installation and of the extras."""


def add_inspect(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(commands, "inspect", summary="show how files would be read", epilog=INSPECT_EPILOG,
                        description="Show the format, encoding and first records of each file, and which of its first"
                        " 1,000 records would be rejected.")  # fmt: skip
    add_inputs(parser)
    add_master(parser)


def execute_inspect(options: argparse.Namespace) -> int:
    """Print the preview."""
    with Steps("inspect", 3) as steps:
        prevent_pandas_import()
        from nddup.settings.load import load_config  # noqa: PLC0415

        config = load_config(options.config, options.assignments, os.environ)
        from nddup.results.opening import open_files  # noqa: PLC0415
        from nddup.results.preview import preview  # noqa: PLC0415

        steps.begin("load what reads the inputs")
        files = open_files(*options.inputs, master=options.master, settings=config.spark)
        text = preview(files, options.inputs, config, steps=steps)
    print_out(text)
    return 0


def add_demo(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(commands, "demo", summary="find the near-duplicates of 150 pages that come with nddup",
                        description="Write 150 pages of documentation to DIR/pages and find their near-duplicates:"
                        " results in DIR/run.")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="DIR",
                        help="folder to make, or of an earlier demo, which is replaced (default: nddup-demo, or"
                        " nddup-demo-2 and so on where that is another's)")  # fmt: skip


def _is_free(folder: Path) -> bool:
    """Return whether the demo may write into a folder: it is not there, empty, or of an earlier demo, and writable."""
    try:
        if not folder.is_dir():
            return not folder.exists() and not folder.is_symlink()
        names = {path.name for path in folder.iterdir()}
        is_ours = not names or (
            names <= {"pages", "run"} and all((folder / "pages" / name).is_file() for name in _pages())
        )
    except OSError:
        return False
    return is_ours and all(os.access(path, os.W_OK) for path in (folder, *(folder / name for name in names)))


def _pages() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in files("nddup").joinpath("demo").iterdir() if file.is_file()}


def execute_demo(options: argparse.Namespace) -> int:
    """Write the pages, run, and say how to look at the result.

    Raises:
        OutputError: if the folder holds what is not of a demo, or cannot be written.
    """
    names = [options.output] if options.output else ["nddup-demo", *(f"nddup-demo-{n}" for n in range(2, MOST_FOLDERS))]
    folder = next((path for path in map(Path, names) if _is_free(path)), None)
    if folder is None:
        raise OutputError(f"--output {names[0]}: holds what is not of a demo, or is another's; give another folder")
    pages = _pages()
    try:
        (folder / "pages").mkdir(parents=True, exist_ok=True)
        for name, content in pages.items():
            (folder / "pages" / name).write_bytes(content)
    except OSError as error:
        raise OutputError(f"--output {folder}: {error.strerror}; give another folder") from error
    made = folder / "run"
    parser = argparse.ArgumentParser()
    add_run(parser.add_subparsers())
    given = ["run", str(folder / "pages" / PAGES), f"--output={made}", "--engine=local", "--overwrite"]
    status = run_collection(parser.parse_args(given))
    name = one_line(made)
    print_out(
        f"\nlook at it:\n  nddup show {name}\n  xdg-open {name}/report/index.html\n  nddup check {name}\n"
        f"your own files:\n  nddup run FILE-OR-FOLDER --output out/run\n"
    )
    return status


def add_setup(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command, which has no arguments."""
    add_parser(commands, "setup", summary="compile the kernels, once for an installation",
               description="Compile all kernels, on all cores, in minutes. A first run compiles those that it needs; an"
        " image,\nor a machine that many users share, is better set up beforehand. They are kept beside the package; if"
        " its folder\ncannot be written, in $NUMBA_CACHE_DIR or the user's cache.")  # fmt: skip


def execute_setup(options: argparse.Namespace) -> int:
    """Compile the kernels that are not compiled yet, and say how long it took.

    Raises:
        OutputError: if there is no folder that could keep the kernels.
    """
    from nddup.compiling.install import are_compiled, compile_once  # noqa: PLC0415

    del options
    with Steps("setup", 1) as steps:
        seconds = compile_once(steps)
    if not are_compiled():
        raise OutputError("setup: no folder for compiled kernels can be written; NUMBA_CACHE_DIR names one")
    print_out(f"the kernels are compiled ({seconds:.0f} s)\n" if seconds else "the kernels were compiled already\n")
    return 0


def add_explain(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "explain", summary="show what settings will find and cost", epilog=EXPLAIN_EPILOG,
        description="Explain what a sketch and a threshold find, miss and cost. Reads no documents.",
    )  # fmt: skip
    parser.add_argument("--bands", type=positive, metavar="B", help="bands of a signature; requires --rows")
    parser.add_argument("--rows", type=positive, metavar="R", help="slots of a band; requires --bands")
    parser.add_argument("--support", type=positive, metavar="K", help="least number of common ids; requires --size")
    parser.add_argument("--size", type=positive, metavar="N", help="ids of a sketch; requires --support")
    parser.add_argument("--at", type=share, action="append", default=[], metavar="S",
                        help="add this resemblance to the table; may be repeated")  # fmt: skip
    parser.add_argument("--documents", type=positive, metavar="N",
                        help="tasks, bytes and hours that the pairs of N documents take on Spark")  # fmt: skip
    parser.add_argument("--memory", metavar="M",
                        help="with --documents: memory of the Python worker of a task; else 2GB, or what large"
                             " blocks take")  # fmt: skip
    parser.add_argument("--schema", action="store_true",
                        help="print the JSON Schema of the settings instead, for editors of YAML files")  # fmt: skip
    parser.add_argument("--png", metavar="FILE", help="draw the curve to FILE, which must not exist")
    add_settings(parser)


def execute_explain(options: argparse.Namespace) -> int:
    """Print the explanation, and draw the curve on request.

    Raises:
        ConfigError: for options that do not go together, or if there is no curve to draw.
    """
    if options.schema:
        from nddup.settings.schema import Config  # noqa: PLC0415

        print_json(Config.model_json_schema())
        return 0
    asked = {name for name in ("bands", "rows", "support", "size") if getattr(options, name) is not None}
    if asked and asked not in ({"bands", "rows"}, {"support", "size"}):
        given = ", ".join(f"--{name}" for name in ("bands", "rows", "support", "size") if name in asked)
        raise ConfigError(f"explain: expected --bands with --rows, or --support with --size, got {given}")
    if asked and (options.config or options.assignments):
        raise ConfigError("explain: either --config and --set, or --bands with --rows, or --support with --size")
    if asked and options.documents is not None:
        raise ConfigError("explain: --documents goes with the settings of a run, not with --bands or --support")
    for name in sorted(asked):
        if getattr(options, name) > MOST_SLOTS:
            raise ConfigError(f"explain: --{name} {getattr(options, name)}: expected at most {MOST_SLOTS:,}")
    if "size" in asked and options.support > options.size:
        raise ConfigError(f"explain: --support {options.support} is more than --size {options.size}")
    with Steps("explain", 1) as steps:
        steps.begin("compute")
        explanation = _explain(options, asked)
    if options.png:
        if not explanation.curves:
            raise ConfigError("--png: these settings have no curve to draw")
        from nddup.explaining.curves import draw_curves  # noqa: PLC0415

        draw_curves(explanation.curves, explanation.mark, options.png)
    print_out(explanation.text())
    return 0


def _explain(options: argparse.Namespace, asked: set[str]) -> Any:  # noqa: ANN401 - an Explanation, loaded here
    from nddup.explaining.curves import (  # noqa: PLC0415
        explain_bands,
        explain_capacity,
        explain_support,
    )
    from nddup.explaining.effects import explain_settings  # noqa: PLC0415
    from nddup.settings.load import load_config  # noqa: PLC0415

    if "bands" in asked:
        return explain_bands(options.bands, options.rows, asked=options.at)
    if "size" in asked:
        return explain_support(options.support, options.size, asked=options.at)
    config = load_config(options.config, options.assignments, os.environ)
    explanation = explain_settings(config, asked=options.at)
    if options.documents is None:
        return explanation
    memory = _worker_memory(options.memory) if options.memory else None
    lines = explain_capacity(config, documents=options.documents, memory=memory, ids_of_sketch=explanation.ids)
    return replace(explanation, more=(*explanation.more, "", *lines))


def _worker_memory(given: str) -> int:
    """Return the bytes of --memory."""
    try:
        return parse_size(given)
    except ValueError as error:
        raise ConfigError(f"--memory {given}: {error}") from error


def describe_installation() -> dict[str, Any]:
    """Return versions, the machine, and which kernels are compiled; no path, no name and no setting of the user."""
    from nddup.compiling.install import are_compiled  # noqa: PLC0415 - the other commands start without these
    from nddup.engines.choose import has_java, machine_memory  # noqa: PLC0415
    from nddup.storage.run_folder import versions  # noqa: PLC0415

    return {
        **versions(),
        **{name: _version_of(name) for name in BESIDE},
        "system": platform.platform(),
        "implementation": sys.implementation.name,
        "processors": len(os.sched_getaffinity(0)),
        "memory": machine_memory(),
        "has_java": has_java(),
        "are_kernels_compiled": are_compiled(),
    }


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
