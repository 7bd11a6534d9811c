"""`nddup inspect`, `demo` and `setup`: what comes before a run of one's own.

inspect   how files would be read
demo      a first run, over a small collection that comes with the package
setup     the kernels compiled, once for an installation
"""

import argparse
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from nddup.commands.options import add_inputs, add_master, add_parser
from nddup.commands.run import add as add_run
from nddup.commands.run import execute as run_collection
from nddup.errors import OutputError
from nddup.ground.progress import Steps
from nddup.ground.shown import one_line, print_out
from nddup.ground.start_up import prevent_pandas_import

INSPECT_EPILOG = """examples:
  nddup inspect pages/                                        the format of each file, and why
  nddup inspect dump.xml --set input.record=page --set input.id=@id --set input.content=title+body
"""

PAGES = "boost.jsonl.gz"
"""The file of the pages; beside it is their licence."""

MOST_FOLDERS = 100
"""Maximum number of names of folders that are tried."""


def add_inspect(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "inspect", summary="show how files would be read", epilog=INSPECT_EPILOG,
        description="Show the format, encoding and first records of each file, and which of its first 1,000 records"
        " would be rejected.",
    )  # fmt: skip
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
    parser = add_parser(
        commands, "demo", summary="find the near-duplicates of 150 pages that come with nddup",
        description="Write 150 pages of documentation to DIR/pages and find their near-duplicates: results in DIR/run.",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="folder to make, or of an earlier demo, which is replaced (default: nddup-demo, or nddup-demo-2 and so on"
        " where that is another's)",
    )


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
    """Return the pages of the package and their licence: bytes by name of file."""
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
    add_parser(
        commands, "setup", summary="compile the kernels, once for an installation",
        description="Compile the kernels, on all cores, in about a minute. The first command that needs them does the"
        " same; an image,\nor a machine that many users share, is better set up beforehand. They are kept beside the"
        " package; if its folder cannot\nbe written, in $NUMBA_CACHE_DIR or the user's cache.",
    )  # fmt: skip


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
