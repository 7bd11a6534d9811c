"""Damaged lines of JSON lead the reader outside of no array."""

import subprocess
import sys

import pytest

from tests.places import ROOT


def read_lines(*options: str) -> "subprocess.CompletedProcess[str]":
    """Read damaged lines in a child."""
    command = [sys.executable, "-m", "scripts.try_damaged_lines", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_damaged_lines_are_read_within_bounds() -> None:
    """The reader's functions, interpreted, compare each index; `scripts.try_damaged_lines` reads a million lines."""
    done = read_lines("--interpreted", "--lines", "200")
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 50


@pytest.mark.nightly  # of the script, which runs then
def test_compiled_kernels_compare_their_indexes_where_that_is_tried() -> None:
    """A kernel with a wrong index ends by IndexError in such a process, before any line is read."""
    assert read_lines("--lines", "0").stdout == "0\n"
