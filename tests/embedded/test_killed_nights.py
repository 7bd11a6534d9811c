"""A run onto another that is killed at any write leaves the other as it was, and is finished by `--resume`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from tests.finished_runs import sorted_tables
from tests.nights import SETTINGS, write_batches
from tests.places import ROOT
from tests.repository.dying_writer import go_on

WRITER = ROOT / "tests" / "repository" / "dying_writer.py"


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder by their paths in it."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("step", [40, pytest.param(1, marks=pytest.mark.nightly)], ids=["sample", "every write"])
def test_a_night_is_killed_at_a_write(tmp_path: Path, step: int) -> None:
    source = tmp_path / "source"
    write_batches(source / "in")
    given = {**SETTINGS, "output": {"report": False, "onto": True}, "input": {"max_rejects": None}}
    run_locally([str(source / "in" / "a")], str(source / "old"), build_config(given, origin="test"), batch="a")
    command = [sys.executable, str(WRITER), str(source), str(tmp_path), str(step), "night"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    *killed, whole = sorted((tmp_path / "night").iterdir(), key=lambda path: int(path.name))
    old, due = contents(source / "old"), sorted_tables(whole / "new")

    assert len(killed) > 7
    for copy in killed:
        assert contents(copy / "old") == old, copy.name
        go_on(str(copy), resume=True)
        assert sorted_tables(copy / "new") == due, copy.name
        assert contents(copy / "old") == old, copy.name
