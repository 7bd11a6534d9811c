"""However the process that started them ends, worker processes end with it, and no pipe stays open."""

import json
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
    process = begin(*arguments, "--set", "local.processes=2", "--set", "input.format=text")
    deadline = time.monotonic() + 60
    while len(members(process.pid)) < 4 or not list((folder / "out").glob("*")):
        assert time.monotonic() < deadline, "the workers did not start"
        time.sleep(0.1)
    time.sleep(0.3)  # they are reading
    return process


def begin(*arguments: str) -> "subprocess.Popen[str]":
    """Start a command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


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


@pytest.mark.spark
def test_nothing_of_spark_outlives_a_killed_job(tmp_path: Path) -> None:
    """Neither a process nor a file of `spark.local.dir`, once it has tables and shuffles there."""
    page, out, local = tmp_path / "in.jsonl", tmp_path / "out", tmp_path / "local"
    lines = ({"id": at, "text": " ".join(f"w{at // 2}-{word}" for word in range(60))} for at in range(400))
    page.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    settings = (f"spark.local.dir={local}", "spark.sql.shuffle.partitions=2", "spark.driver.memory=1g")
    given = [word for setting in settings for word in ("--set", setting)]
    process = begin("run", str(page), "--output", str(out), "--engine", "spark", "--master", "local[1]", *given)
    deadline = time.monotonic() + 300
    while not (held := [path for path in local.rglob("*_*") if path.is_file()]) and process.poll() is None:
        assert time.monotonic() < deadline, "no table was made"
        time.sleep(0.05)

    process.kill()

    assert held
    wait_for_the_end(process)
    assert [path for path in local.rglob("*") if path.is_file()] == []
    assert not (out / "_COMPLETE").exists()


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
