"""However the process that started them ends, worker processes end with it, and no pipe stays open."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.samples_by_night import first

SPARSE = 40 << 30
"""Bytes of a file of one line without an end: hours of reading, and no disk space."""

PATIENCE = 10.0

PROGRAM = """
import sys
from nddup.cli import main
sys.exit(main(sys.argv[1:]))
"""


def start(folder: Path) -> "subprocess.Popen[str]":
    """Start a run over a sparse file with two worker processes, in a process group of its own; wait till they work."""
    with (folder / "a.txt").open("wb") as file:
        file.truncate(SPARSE)
    arguments = ["run", str(folder / "a.txt"), "--output", str(folder / "out"), "--engine", "local"]
    settings = ["--set", "local.processes=2", "--set", "input.format=text"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, *arguments, *settings],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(members(process.pid)) < 4 or not list((folder / "out").glob("*")):
        assert time.monotonic() < deadline, "the workers did not start"
        time.sleep(0.1)
    time.sleep(0.3)  # they are reading
    return process


def members(session: int) -> list[int]:
    """Return the processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            of = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(of[3]) == session and of[0] != "Z":
            found.append(int(folder.name))
    return found


def wait_for_the_end(process: "subprocess.Popen[str]") -> str:
    """Return what was printed, once every process that holds the pipe has ended."""
    try:
        printed, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"after {PATIENCE} s still there: {members(process.pid)}")
    deadline = time.monotonic() + PATIENCE
    while left := members(process.pid):  # a process closes its files before it is gone
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.1)
    return printed


@pytest.mark.parametrize("how", first(1, [signal.SIGKILL, signal.SIGTERM]))
def test_workers_end_with_a_killed_parent(tmp_path: Path, how: signal.Signals) -> None:
    """The parent alone is killed while its workers read: within seconds none is left."""
    process = start(tmp_path)

    process.send_signal(how)

    wait_for_the_end(process)


def test_an_interrupt_from_the_keyboard_ends_with_one_message(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group; only the command answers, in one line."""
    process = start(tmp_path)
    assert {os.getpgid(member) for member in members(process.pid)} == {process.pid}

    os.killpg(process.pid, signal.SIGINT)

    printed = wait_for_the_end(process)
    assert process.returncode == 130
    assert "Traceback" not in printed
    assert printed.splitlines()[-1] == "nddup: interrupted; `--resume` finishes it"


@pytest.mark.nightly
def test_a_kill_of_the_group_reaches_the_workers(tmp_path: Path) -> None:
    """A scheduler or `timeout` ends the processes of a run together."""
    process = start(tmp_path)

    os.killpg(process.pid, signal.SIGTERM)

    wait_for_the_end(process)
