"""`nddup inspect`: show how files would be read, before a long run."""

import argparse
import os
from typing import Any

from nddup.commands.options import add_inputs, add_master, add_parser
from nddup.progress import Steps
from nddup.shown import print_out

EPILOG = """examples:
  nddup inspect pages/                                        the format of each file, and why
  nddup inspect dump.xml --set input.record=page --set input.id=@id --set input.content=title+body
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "inspect", summary="show how files would be read", epilog=EPILOG,
        description="Show the format, encoding and first records of each file, and which of its first 1,000 records"
        " would be rejected.",
    )  # fmt: skip
    add_inputs(parser)
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Print the preview."""
    with Steps("inspect", 3) as steps:
        from nddup.start_up import prevent_pandas_import  # noqa: PLC0415

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
