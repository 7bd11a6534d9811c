"""Transcripts of commands: exit status and printed lines, with times replaced by fixed ones."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from nddup.cli import main
from tests.places import ROOT


class Transcript(NamedTuple):
    """The exit status of a command and every line that it printed."""

    status: int
    out: list[str]
    err: list[str]


def record(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Transcript:
    """Run a command in this process."""
    monkeypatch.setattr("sys.argv", ["nddup", *arguments])
    capsys.readouterr()
    try:
        status = main(list(arguments))
    except SystemExit as left:
        status = int(str(left.code))
    printed = capsys.readouterr()
    return Transcript(status, normalised(printed.out), normalised(printed.err))


def record_apart(folder: Path, *arguments: str, **environment: str) -> Transcript:
    """Run a command in a separate process, as a shell does; its progress lines are left out."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from nddup.cli import main; sys.exit(main())", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    err = [line for line in normalised(done.stderr) if not line.startswith(f"nddup {arguments[0]}: ")]
    return Transcript(done.returncode, normalised(done.stdout), err)


def normalised(text: str) -> list[str]:
    """Return the lines of the text, with each time of day as `TIME` and each duration as ` 0.0 s`."""
    text = re.sub(r"^\d\d:\d\d:\d\d ", "TIME ", text, flags=re.MULTILINE)
    return re.sub(r" +\d+\.\d s", " 0.0 s", text).splitlines()
