"""The console script: it ends the process itself, so nothing that was printed or promised may be lost on the way."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

NAME = "x" * 300

CONSOLE = "import sys; from nddup.cli import console; sys.exit(console())"


def run_console(*arguments: str, program: str = CONSOLE) -> subprocess.CompletedProcess[str]:
    """Run the console script in a process of its own, its output in a pipe."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["explain"], 0), (["show", "no-such-run"], 2), (["explain", "--set", "pairs.threshold=7"], 2), (["--no"], 2)],
)
def test_the_status_is_that_of_the_command(arguments: list[str], status: int) -> None:
    """All that was printed arrives, although Python's own clean-up is skipped."""
    done = run_console(*arguments)

    assert done.returncode == status
    assert (done.stdout if status == 0 else done.stderr).endswith("\n")


def test_what_a_command_leaves_for_the_end_is_done() -> None:
    """Temporary folders, for example, are removed at the end of the process."""
    program = (
        "import atexit, sys; from nddup import cli\n"
        "cli.main = lambda: atexit.register(print, 'removed') and 3\n"
        "sys.exit(cli.console())"
    )

    done = run_console(program=program)

    assert (done.returncode, done.stdout) == (3, "removed\n")


def test_a_folder_that_was_removed_is_needed_for_relative_paths_alone(tmp_path: Path) -> None:
    """A shell may stand in a folder that another one removed."""
    (tmp_path / "in.jsonl").write_text('{"id": 1, "text": "a b c d e f g"}\n')
    gone = str(tmp_path / "gone")
    program = f"import os; os.mkdir({gone!r}); os.chdir({gone!r}); os.rmdir({gone!r}); {CONSOLE}"

    relative = run_console("run", "in.jsonl", "--output", "out", program=program)
    done = run_console("run", f"{tmp_path}/in.jsonl", "--output", f"{tmp_path}/out", "-q", program=program)

    said = "nddup: in.jsonl: the current folder was removed; go to another, or write paths from the root\n"
    assert (relative.returncode, relative.stderr.splitlines(keepends=True)[-1]) == (2, said)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "arguments", [["show", NAME], ["run", NAME, "--output", "out"], ["mine", NAME, "--support", "2"]]
)
def test_a_name_that_is_too_long_is_one_line(arguments: list[str]) -> None:
    """No file has a name of 300 letters; the message shows its start."""
    done = run_console(*arguments)

    assert done.returncode == 2
    assert re.fullmatch(r"nddup: \S+…: File name too long", done.stderr.splitlines()[-1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize(
    "made_of_it",
    [
        "raise",
        "raise SystemError from error",
        "raise cli.OutputError('x') from None",
        "cli.progress.Steps('run', 1).begin('next')",
        "cli.progress.Progress().describe('keep')",
    ],
)
def test_a_signal_leaves_nothing_temporary(number: signal.Signals, made_of_it: str, tmp_path: Path) -> None:
    """Schedulers end a command by SIGTERM: it ends as by Ctrl-C, and says what is left, also if a library hides it."""
    program = (
        "import sys, time; from tempfile import TemporaryDirectory; from nddup import cli\n"
        "def work(*given):\n"
        f"    with TemporaryDirectory(dir={str(tmp_path)!r}):\n"
        "        print('begun', flush=True)\n"
        "        try:\n            time.sleep(60)\n"
        f"        except KeyboardInterrupt as error:\n            {made_of_it}\n"
        "cli.execute_with_buckets = work\n"
        "sys.exit(cli.console())"
    )
    command = subprocess.Popen(
        [sys.executable, "-c", program, "run", "pages", "--output", "out"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert command.stdout is not None
    assert command.stdout.readline() == "begun\n"
    assert len(list(tmp_path.iterdir())) == 1

    command.send_signal(number)

    assert command.communicate(timeout=60)[1] == "nddup: interrupted; `--resume` finishes it\n"
    assert command.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("unbuffered", [[], ["-u"]])
def test_a_reader_that_stops_is_no_error(unbuffered: list[str], tmp_path: Path) -> None:
    """`nddup show … | head`: nothing is printed about it, and the status is that of a broken pipe."""
    errors = tmp_path / "errors"
    with errors.open("w") as file:
        command = subprocess.Popen(
            [sys.executable, *unbuffered, "-c", CONSOLE, "explain"], cwd=ROOT, stdout=subprocess.PIPE, stderr=file
        )
        assert command.stdout is not None
        command.stdout.close()
        assert command.wait(timeout=60) == 141
    assert "Broken pipe" not in errors.read_text()


def test_a_full_disk_names_what_could_not_be_written() -> None:
    """`nddup explain > FILE` on a full disk: one line, which says that it is about standard output."""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", CONSOLE, "explain"]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "No space left on device: 'standard output'" in done.stderr
