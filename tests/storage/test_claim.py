"""Claims on a folder, by real processes on a local folder, without Spark."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nddup.errors import NddupError, OutputError
from nddup.storage import claim as module
from nddup.storage.claim import LOST, PREFIX, Claim
from tests.places import ROOT


class LocalFiles:
    """Local files, as `nddup.storage.claim.ClaimFiles`."""

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        return Path(path).exists()

    def times(self, path: str) -> dict[str, int]:
        """Return when each file was last written, in milliseconds."""
        found = {}
        for entry in os.scandir(path):
            try:
                found[entry.name] = entry.stat().st_mtime_ns // 1_000_000
            except FileNotFoundError:  # removed since
                continue
        return found

    def read_text(self, path: str) -> str:
        """Return the text of a file."""
        try:
            return Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise OutputError(str(error)) from error

    def write_text(self, path: str, text: str) -> None:
        """Write a file."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")

    def remove(self, path: str) -> None:
        """Remove a file."""
        Path(path).unlink(missing_ok=True)


def hold(folder: str) -> None:
    """Claim a folder and keep it until the process is killed."""
    Claim(LocalFiles(), folder, beat=0.1).take(print)
    print("held", flush=True)  # noqa: T201 - the waiting process reads it
    time.sleep(600)


def compete(folder: str, log: str, seconds: float) -> None:
    """Claim a folder again and again; log when it is taken and when it is released."""
    module.SETTLE_SECONDS, module.LOOK_SECONDS = 0.3, 0.01
    end = time.monotonic() + seconds
    note = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while time.monotonic() < end:
        claim = Claim(LocalFiles(), folder, beat=0.02)
        try:
            claim.take(print)
        except OutputError:
            continue
        os.write(note, f"{os.getpid()} in\n".encode())
        time.sleep(0.02)
        claim.check()
        os.write(note, f"{os.getpid()} out\n".encode())
        claim.release()


def start(call: str) -> "subprocess.Popen[str]":
    """Start a process that calls a function of this module."""
    command = [sys.executable, "-c", f"from tests.storage.test_claim import *; {call}"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@contextmanager
def holder(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that holds the folder, and kill it at the end."""
    with start(f"hold({str(folder)!r})") as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after 60 s."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def claims(folder: Path) -> list[str]:
    """Return the names of the claims in a folder, and of the notes on claims that were taken over."""
    return sorted(path.name for path in folder.glob(f"{PREFIX}*"))


def claim_elsewhere(folder: Path, *, age: float = 0) -> Path:
    """Write the claim of a process on another machine, last written `age` seconds ago."""
    path = folder / f"{PREFIX}0123456789abcdef"
    said = {"host": "far", "place": "another start", "process": os.getpid(), "born": 1, "since": "2026-01-05T00:00:00"}
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(said))
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_working_run_keeps_others_out_until_it_is_killed(tmp_path: Path) -> None:
    """A second run is refused while the process of the first lives; after kill -9 it takes over at once and says so."""
    said: list[str] = []
    with holder(tmp_path / "out") as process:
        with pytest.raises(OutputError, match=f"another run works there, process {process.pid} on .*; wait for its"):
            Claim(LocalFiles(), str(tmp_path / "out")).take(said.append)
        assert len(claims(tmp_path / "out")) == 1
        assert said == []

        process.kill()
        wait_until(lambda: module._born(process.pid) is None)  # noqa: SLF001 - a zombie, not yet waited for
        second = Claim(LocalFiles(), str(tmp_path / "out"))
        second.take(said.append)

    assert len(said) == 1
    assert f"taken over from process {process.pid} on " in said[0]
    assert said[0].endswith(": its process is gone")
    second.check()
    second.release()
    assert claims(tmp_path / "out") == []


def test_of_many_that_start_at_a_time_one_works(tmp_path: Path) -> None:
    """Of four processes that compete for three seconds, one at a time holds the folder, and they take turns."""
    (tmp_path / "out").mkdir()
    call = f"compete({str(tmp_path / 'out')!r}, {str(tmp_path / 'log')!r}, 3)"

    processes = [start(call) for _ in range(4)]
    assert [process.wait(120) for process in processes] == [0] * 4
    for process in processes:
        process.communicate()

    lines = (tmp_path / "log").read_text().split("\n")[:-1]
    turns = list(zip(lines[::2], lines[1::2], strict=True))
    assert all(entry.replace(" in", " out") == leaving for entry, leaving in turns)
    assert len(turns) >= 5
    assert claims(tmp_path / "out") == []


def test_two_runs_of_one_process_are_two(tmp_path: Path) -> None:
    """Two claims of one process exclude each other; when the first is released, the second succeeds."""
    first, second = (Claim(LocalFiles(), str(tmp_path)) for _ in range(2))
    first.take(print)
    first.take(print)

    with pytest.raises(OutputError, match=f"process {os.getpid()} on"):
        second.take(print)
    first.release()
    second.take(print)
    second.release()

    assert claims(tmp_path) == []


def test_a_claim_of_another_machine_dies_by_silence(tmp_path: Path) -> None:
    """A claim not written for long is taken over at once; if its owner writes it again, that blocks no one."""
    said: list[str] = []
    path = claim_elsewhere(tmp_path, age=500)
    claim = Claim(LocalFiles(), str(tmp_path))

    claim.take(said.append)

    assert len(said) == 1
    assert "taken over from process" in said[0]
    assert "on far, started 2026-01-05T00:00:00: nothing was heard of it for 50" in said[0]
    assert not path.exists()
    assert path.name + LOST in claims(tmp_path)
    claim.release()
    path.write_text("awake again")
    claim.take(said.append)
    assert len(said) == 1
    claim.release()


def test_a_claim_of_another_machine_that_is_written_is_alive(tmp_path: Path) -> None:
    """A run that finds the claim of another machine waits until it is written again, and is then refused."""
    path = claim_elsewhere(tmp_path)
    said: list[str] = []

    def answer(line: str) -> None:
        said.append(line)
        path.write_text(path.read_text())
        os.utime(path, (time.time() + 1,) * 2)

    with pytest.raises(OutputError, match=r"another run works there, process .* on far"):
        Claim(LocalFiles(), str(tmp_path)).take(answer)

    assert len(said) == 1
    assert "waiting up to 120 s for a sign of process" in said[0]
    assert claims(tmp_path) == [path.name]


@pytest.mark.parametrize("text", [None, "", "[1]", '{"host'])
def test_a_silent_claim_is_waited_for(tmp_path: Path, text: str | None) -> None:
    """A silent claim, even one that was only partly written, is taken over after it has been silent long enough."""
    path = claim_elsewhere(tmp_path)
    if text is not None:
        path.write_text(text)
    said: list[str] = []
    claim = Claim(LocalFiles(), str(tmp_path), beat=0.05, silence=0.4)

    claim.take(said.append)
    claim.release()

    assert [("waiting up to" in line, "taken over" in line) for line in said] == [(True, False), (False, True)]


def test_a_run_that_was_taken_over_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that slept too long stops at its next step, even if it wrote its claim once more when it woke up."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(module, "_place", lambda: "another start")
        sleeper = Claim(LocalFiles(), str(tmp_path), beat=1000)
    sleeper.take(print)
    sleeper.check()
    name = claims(tmp_path)[0]
    text = (tmp_path / name).read_text()
    second = Claim(LocalFiles(), str(tmp_path), beat=0.05, silence=0.2)

    second.take(print)

    with pytest.raises(NddupError, match="was taken over by another run"):
        sleeper.check()
    (tmp_path / name).write_text(text)
    with pytest.raises(NddupError, match="was taken over by another run"):
        sleeper.check()
    second.check()
    second.release()


def test_a_claim_beats(tmp_path: Path) -> None:
    """A claim is rewritten while it is held, and no longer after it was taken over."""
    claim = Claim(LocalFiles(), str(tmp_path), beat=0.02)
    claim.take(print)
    path = tmp_path / claims(tmp_path)[0]
    os.utime(path, (1, 1))
    wait_until(lambda: path.stat().st_mtime > 1)

    path.unlink()
    time.sleep(0.2)

    assert not path.exists()
    claim.release()


class ReadOnlyFiles(LocalFiles):
    """Files of a folder in which nothing can be written or removed."""

    def write_text(self, path: str, text: str) -> None:
        """Fail."""
        del text
        raise OutputError(f"{path}: cannot be written")

    def remove(self, path: str) -> None:
        """Fail, as for a file that is not there either."""
        raise OSError(30, "Read-only file system", path)


def test_why_a_folder_cannot_be_claimed_is_what_was_raised(tmp_path: Path) -> None:
    """Where nothing can be written, that is the error, not that nothing can be removed."""
    with pytest.raises(OutputError, match=r"cannot be written$"):
        Claim(ReadOnlyFiles(), str(tmp_path)).take(print)
