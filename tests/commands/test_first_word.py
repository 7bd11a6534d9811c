"""Each command starts its progress line before it loads, compiles, reads or starts anything slow."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.test_start_up import HEAVY, place
from tests.places import ROOT

__all__ = ["place"]

PROGRAM = """
import json, sys, threading
from nddup.cli import main

loaded, start = [], threading.Thread.start

def begin(thread):
    if thread._target.__name__ == "_watch":
        loaded.append(sorted(sys.modules))
    start(thread)

threading.Thread.start = begin
sys.stderr.isatty = lambda: True
status = main(sys.argv[1:])
sys.stderr.write("\\n" + json.dumps({"status": status, "loaded": loaded[0]}) + "\\n")
"""
"""Prints the modules loaded when the progress line starts; `test_steps` proves that the line appears in time."""

COMMANDS = {
    "run": ["run", "pages.jsonl", "--output", "new", "--set", "output.report=false"],
    "inspect": ["inspect", "pages.jsonl"],
    "show": ["show", "run"],
    "report": ["report", "run"],
    "check": ["check", "run"],
    "evaluate": ["evaluate", "run", "--truth", "list.csv"],
    "truth": ["truth", "run", "--output", "new.csv"],
    "sweep": ["sweep", "pages.jsonl", "--grid", "grid.yaml", "--output", "new-sweep"],
    "against": ["against", "pages.jsonl", "pages.jsonl"],
    "mine": ["mine", "context.fimi", "--support", "2"],
    "explain": ["explain"],
    "index": ["index", "create", "repository"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_begins_before_anything_is_loaded(name: str, place: Path) -> None:
    """No slow library, no kernel and no Spark is loaded when the progress line starts."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *COMMANDS[name]], cwd=place, capture_output=True, text=True,
                          check=False, env={"PYTHONPATH": str(ROOT), "PATH": ""})  # fmt: skip

    said = json.loads(done.stderr.splitlines()[-1])
    assert said["status"] == 0, done.stderr
    assert HEAVY & set(said["loaded"]) == set()
