"""`nddup setup`: compile the kernels, once for an installation."""

import argparse
from typing import Any

from nddup.commands.options import add_parser
from nddup.progress import Steps
from nddup.shown import print_out


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command, which has no arguments."""
    add_parser(
        commands, "setup", summary="compile the kernels, once for an installation",
        description="Compile the kernels, on all cores, in about a minute. The first command that needs them does the"
        " same; an image,\nor a machine that many users share, is better set up beforehand. They are kept beside the"
        " package; if its folder cannot\nbe written, in $NUMBA_CACHE_DIR or the user's cache.",
    )  # fmt: skip


def execute(options: argparse.Namespace) -> int:
    """Compile what has not been compiled, and say how long it took.

    Raises:
        OutputError: if there is no folder that could keep the kernels.
    """
    from nddup.errors import OutputError  # noqa: PLC0415
    from nddup.run.compiling import are_compiled, compile_once  # noqa: PLC0415

    del options
    with Steps("setup", 1) as steps:
        seconds = compile_once(steps)
    if not are_compiled():
        raise OutputError("setup: no folder for compiled kernels can be written; NUMBA_CACHE_DIR names one")
    print_out(f"the kernels are compiled ({seconds:.0f} s)\n" if seconds else "the kernels were compiled already\n")
    return 0
