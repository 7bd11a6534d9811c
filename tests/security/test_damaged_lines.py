"""Damaged lines of JSON lead the reader outside of no array."""

import subprocess
import sys

from tests.places import ROOT


def test_damaged_lines_are_read_within_bounds() -> None:
    """The reader's functions, interpreted, compare each index; `scripts.try_damaged_lines` reads a million lines."""
    command = [sys.executable, "-m", "scripts.try_damaged_lines", "--interpreted", "--lines", "200"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 50
