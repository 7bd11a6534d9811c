"""Another user than the one who installed nddup, without a home and in a read-only installation."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

import nddup.repository
from nddup.embedded.run import run_locally
from nddup.ground.start_up import cache_folder
from nddup.settings.load import build_config
from tests.finished_runs import rows_of, write_texts
from tests.opened.made_runs import write_family
from tests.places import ROOT
from tests.samples_by_night import first

NOBODY = "65534"
TABLES = ("documents", "pairs", "clusters", "members", "keep")

RUN = """
import gc, sys
from nddup.cli import main
status = main(sys.argv[1:])
from numba.core.registry import CPUDispatcher
kernels = [one for one in gc.get_objects() if isinstance(one, CPUDispatcher) and one.__module__.startswith("nddup")]
print("found", sum(sum(one.stats.cache_hits.values()) for one in kernels))
print("compiled", sum(sum(one.stats.cache_misses.values()) for one in kernels))
sys.exit(status)
"""

COMMANDS = """
import json, signal, sys
from nddup.cli import main
signal.alarm(60)
for command in json.loads(sys.argv[1]):
    print(main(command))
"""

KERNELS = """
from nddup.ground.arrays import compiled

@compiled
def add(x: int) -> int:
    return x + 1

@compiled
def double(x: int) -> int:
    return 2 * x
"""
CALL = """
from made import add, double
print(add(1), double(2), sum(len(kernel.stats.cache_misses) for kernel in (add, double)))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can enter; in it, `here` can be written by all."""
    folder = Path(mkdtemp(prefix="nddup-users-"))
    folder.chmod(0o755)
    (folder / "here").mkdir()
    (folder / "here").chmod(0o1777)
    yield folder
    for sub in folder.rglob("*"):
        if sub.is_dir():
            sub.chmod(0o755)
    shutil.rmtree(folder)


def packages() -> str:
    """Return the folders of the installed packages."""
    return os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))


def everyones_python() -> str | None:
    """Return a Python of this version that another user can execute, this one or the system's; None without one."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for program in (os.path.realpath(sys.executable), shutil.which(version, path="/usr/local/bin:/usr/bin")):
        if program and all(folder.stat().st_mode & 1 for folder in (Path(program), *Path(program).parents)):
            return program
    return None


def ask(
    code: str, *arguments: str, installed: Path, here: Path, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run code as another user with an empty environment; as this user without privileges if there is no other way."""
    others = everyones_python()
    if os.geteuid() != 0:
        before = []
    elif others:
        before = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    else:
        before = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]  # root may then write no read-only folder
    path = os.pathsep.join((str(installed), packages()))
    command = [*before, "env", "-i", "PATH=/usr/bin:/bin", f"PYTHONPATH={path}"]
    command += [f"{name}={value}" for name, value in variables.items()]
    python = others if os.geteuid() == 0 and others else sys.executable
    return subprocess.run(
        [*command, python, "-P", "-c", code, *arguments], cwd=here, capture_output=True, text=True, check=False
    )


def make_read_only(folder: Path) -> set[Path]:
    """Let nobody write in a folder; return the files in it."""
    for sub in (folder, *folder.rglob("*")):
        sub.chmod(0o555 if sub.is_dir() else 0o444)
    return set(folder.rglob("*"))


def test_kernels_of_the_installation_serve_everyone(place: Path) -> None:
    """A user without a home runs a read-only installation: the same tables, no kernel compiled, no file beside them."""
    pages = place / "pages.jsonl"
    lines = [{"id": f"d{number}", "text": " ".join(f"w{word}" for word in range(number, 60))} for number in range(9)]
    pages.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run_locally([str(pages)], str(place / "ours"), build_config({}, origin="test"))
    shutil.copytree(ROOT / "nddup", place / "installed" / "nddup")
    files = make_read_only(place / "installed")

    done = ask(RUN, "run", str(pages), "--output", "theirs", installed=place / "installed", here=place / "here")

    assert done.returncode == 0, done.stderr
    found = dict(line.split() for line in done.stdout.splitlines() if line.startswith(("found ", "compiled ")))
    assert int(found["found"]) > 0
    assert int(found["compiled"]) == 0
    for name in TABLES:
        assert rows_of(place / "here" / "theirs", name) == rows_of(place / "ours", name)
    assert [path.name for path in (place / "here").iterdir()] == ["theirs"]
    assert set((place / "installed").rglob("*")) == files


@pytest.mark.parametrize("home", first(1, [None, "relative", "/proc", "", "/nonexistent"]))
def test_where_nothing_can_be_written_kernels_are_compiled_in_memory(place: Path, home: str | None) -> None:
    """Kernels work all the same, and one line says so; no folder named `~` or after the variable appears."""
    (place / "installed").mkdir()
    (place / "installed" / "made.py").write_text(KERNELS)
    (place / "installed" / "nddup").symlink_to(ROOT / "nddup")
    (place / "installed").chmod(0o555)
    variables = {} if home is None else {"HOME": home}

    done = ask(CALL, installed=place / "installed", here=place / "here", **variables)

    assert done.stdout == "2 4 2\n", done.stderr
    assert done.stderr.count("\n") == 1
    assert "compiled kernels cannot be kept" in done.stderr
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert list((place / "here").iterdir()) == []


def test_a_folder_for_kernels_can_be_named(place: Path) -> None:
    """With NUMBA_CACHE_DIR, an arbitrary user keeps kernels there: the last process compiles none.

    A file that was cut short is replaced, not reported as an error of the command.
    """
    (place / "installed").mkdir()
    (place / "installed" / "made.py").write_text(KERNELS)
    (place / "installed" / "nddup").symlink_to(ROOT / "nddup")
    (place / "installed").chmod(0o555)
    folder = str(place / "here" / "kernels")

    done = ask(CALL, installed=place / "installed", here=place / "here", NUMBA_CACHE_DIR=folder)

    assert (done.stdout, done.stderr) == ("2 4 2\n", "")

    damaged = [*Path(folder).rglob("made.add*.nbc"), *Path(folder).rglob("made.double*.nbi")]
    assert len(damaged) == 3  # of `add` the code for Python and that for other kernels
    for file in damaged:
        file.chmod(0o666)
        file.write_bytes(file.read_bytes()[:9])

    again, then = (
        ask(CALL, installed=place / "installed", here=place / "here", NUMBA_CACHE_DIR=folder) for _ in range(2)
    )

    assert (again.stdout, again.stderr) == ("2 4 2\n", "")
    assert (then.stdout, then.stderr) == ("2 4 0\n", "")


@pytest.mark.parametrize("name", ["XDG_CACHE_HOME", "NDDUP_CACHE_DIR"])
def test_a_cache_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Compiled kernels are executed, so they are taken from no folder that any user could have filled."""
    monkeypatch.delenv("NDDUP_CACHE_DIR", raising=False)
    monkeypatch.setenv(name, str(tmp_path / "cache" / ("nddup" if name.startswith("NDDUP") else "")))
    assert cache_folder() == tmp_path / "cache" / "nddup"

    (tmp_path / "cache" / "nddup").mkdir(parents=True)
    (tmp_path / "cache" / "nddup").chmod(0o777)

    assert cache_folder() is None


def test_a_folder_that_cannot_be_listed_is_one_line(place: Path) -> None:
    """Of an input or a run: no command leaves it out, opens by name what it holds, or waits for a pipe in it."""
    run = write_family(place / "run")
    (place / "pages" / "closed").mkdir(parents=True)
    write_texts(place / "pages" / "closed" / "a.jsonl", {"a": "one"})
    (run / "_stages").mkdir(exist_ok=True)
    os.mkfifo(run / "_stages" / "documents.json")
    for closed in (run / "_stages", place / "pages" / "closed"):
        closed.chmod(0o111)
    commands = [["show", str(run)], ["check", str(run)], ["report", str(run)]]
    commands += [["run", str(run / "documents"), "--output", str(run), how] for how in ("--resume", "--overwrite")]
    commands += [["run", str(place / "pages"), "--output", "new"]]

    done = ask(COMMANDS, json.dumps(commands), installed=ROOT, here=place / "here")

    assert done.stdout.split() == ["2"] * len(commands)
    said = [line for line in done.stderr.splitlines() if line.startswith("nddup:")]
    assert len(said) == len(commands)
    assert all("cannot be listed" in line and "Permission denied" in line for line in said)


def test_a_version_that_may_not_be_read_is_not_called_damaged(place: Path) -> None:
    """The file of a version that is another user's: one line says so."""
    pages, repo = write_texts(place / "here" / "a.jsonl", {"a": "some words of a text"}), str(place / "repo")
    nddup.repository.create(repo, local={"processes": 1}).add({"a": "some words of a text"})
    (place / "repo" / "commits" / "2.json").chmod(0o600)
    commands = [["index", "query", repo, str(pages)], ["index", "list", repo], ["index", "check", repo]]

    done = ask(COMMANDS, json.dumps(commands), installed=ROOT, here=place / "here")

    assert done.stdout.split() == ["2"] * len(commands)
    said = [line for line in done.stderr.splitlines() if line.startswith("nddup: ")]
    assert said == [f"nddup: {repo}: commits/2.json cannot be read (Permission denied)"] * len(commands)
