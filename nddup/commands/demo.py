"""`nddup demo`: a first run, over a small collection that comes with the package."""

import argparse
from importlib.resources import files
from pathlib import Path
from typing import Any

from nddup.commands.options import add_parser
from nddup.commands.run import execute as run_collection
from nddup.errors import OutputError
from nddup.shown import one_line, print_out


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "demo", summary="find the near-duplicates of 150 pages that come with nddup",
        description="Write 150 pages of documentation to DIR/pages and find their near-duplicates: results in DIR/run.",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        default="nddup-demo",
        metavar="DIR",
        help="folder to make (default: nddup-demo); must not exist",
    )


def execute(options: argparse.Namespace) -> int:
    """Write the pages, run, and say how to look at the result.

    Raises:
        OutputError: if the folder exists or cannot be written.
    """
    folder = Path(options.output)
    try:
        (folder / "pages").mkdir(parents=True)
        for file in files("nddup").joinpath("demo").iterdir():
            (folder / "pages" / file.name).write_bytes(file.read_bytes())
    except OSError as error:
        raise OutputError(f"--output {folder}: {error.strerror}; give another folder") from error
    made = folder / "run"
    status = run_collection(
        argparse.Namespace(
            inputs=[str(folder / "pages")], output=str(made), engine="local", overwrite=False, resume=False,
            tables=None, json=False, log_format="text", config=None, assignments=[], master=None,
        )
    )  # fmt: skip
    name = one_line(made)
    print_out(
        f"\nlook at it:\n  nddup show {name}\n  xdg-open {name}/report/index.html\n  nddup check {name}\n"
        f"your own files:\n  nddup run FILE-OR-FOLDER --output out/run\n"
    )
    return status
