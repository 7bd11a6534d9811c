"""Refuse an output that overlaps what a command reads, whatever links lead to either of them.

An output within an input would be read as input the next time; an input within an output would be removed when that
output is replaced.
"""

from collections.abc import Iterable
from typing import Protocol

from nddup.errors import OutputError
from nddup.redaction import drop_login


class Comparing(Protocol):
    """The part of a file system that compares the places of paths."""

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path is a folder or lies in it, by the places that links lead to."""


def require_apart(files: Comparing, inputs: Iterable[str], output: str, *, name: str = "--output") -> None:
    """Refuse an output that is, holds, or lies in one of the paths that a command reads.

    Args:
        files: the file system of the output.
        inputs: files and folders that are read.
        output: the file or folder that will be written; it need not exist.
        name: what the output is called in the message.

    Raises:
        OutputError: one line that names both paths.

    Cost: a look at each folder above each path.
    """
    for path in inputs:
        shown = drop_login(path).removeprefix("file://")
        if files.is_within(path, output):
            raise OutputError(f"{name} {output}: holds INPUT {shown}, which would be removed")
        if files.is_within(output, path):
            raise OutputError(f"{name} {output}: lies in INPUT {shown}, so the next run would read it")
