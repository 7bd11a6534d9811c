"""All kernels are compiled once, side by side, with progress; afterwards no command waits for them."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import numba
import pytest

import nddup
from nddup.cli import main
from nddup.compiling import install as compiling
from nddup.compiling import warm_up as kernels
from nddup.errors import NddupError
from nddup.ground import progress
from nddup.ground.kernels import is_compiled
from nddup.ground.own_files import KernelFolder
from nddup.ground.progress import Steps
from tests.places import ROOT


def _want(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(compiling, "ROUNDS", ((part,),))
    monkeypatch.setattr(compiling, "PARTS", (part,))
    monkeypatch.setattr(compiling, "EVENTS", {part: 31})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds no sign of compiled kernels, where few of them are wanted."""
    monkeypatch.setattr(compiling, "_folders", lambda: [KernelFolder(str(tmp_path / "kernels"))])
    _want(monkeypatch, "_check_results")
    monkeypatch.setattr(progress, "PATIENCE", 0.1)
    return tmp_path / "kernels"


def test_the_first_command_compiles_and_says_so(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`setup` compiles in processes of its own, with a line of progress; the next one finds that it was done."""
    assert not compiling.are_compiled()

    assert main(["setup"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("the kernels are compiled (")
    assert f"nddup setup: {compiling.DOING}" in printed.err
    assert compiling.are_compiled()
    stamp = compiling._stamp("_check_results")  # noqa: SLF001
    assert {path.name for path in place.iterdir()} - {"saving.lock"} == {"compiling.lock", stamp}

    assert main(["setup"]) == 0
    assert capsys.readouterr().out == "the kernels were compiled already\n"

    monkeypatch.setattr(compiling, "_of_code", lambda: "of another build of the same version")
    assert not compiling.are_compiled()


def test_a_process_that_fails_is_an_error(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing says that the kernels are compiled if they are not."""
    _want(monkeypatch, "_no_such_part")

    with Steps("setup", 1, is_quiet=True) as progress, pytest.raises(NddupError, match="could not be compiled"):
        compiling.compile_once(progress)
    assert place.exists()
    assert not compiling.are_compiled()


def test_where_nothing_can_be_kept_nothing_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run goes on, and each process compiles what it calls; `setup` says what is missing."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(compiling, "_folders", lambda: [KernelFolder(str(tmp_path / "file" / "kernels"))])

    with Steps("run", 1, is_quiet=True) as progress:
        assert compiling.compile_once(progress) == 0.0
    assert main(["setup"]) == 2
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().err


def test_every_part_exists() -> None:
    """The names of the parts are those of functions."""
    assert all(callable(getattr(kernels, part)) for part in compiling.PARTS)


ASK = """
import shlex, sys
from nddup.cli import main
from nddup.compiling import install, warm_up
from nddup.ground.kernels import KernelCache

asked, load = [], KernelCache.load_overload


def note(cache, sig, target):
    asked.append(f"{cache._function.__name__}{sig}")
    return load(cache, sig, target)


KernelCache.load_overload = note
for parts in sys.argv[1].split(","):
    for part in getattr(install, parts):
        getattr(warm_up, part)()
compiled = set(asked)
for command in sys.stdin:
    assert main(shlex.split(command)) == 0, command
print("beyond:", *(kernel for kernel in asked if kernel not in compiled))
"""


def _beyond(parts: str, commands: str, folder: Path) -> str:
    """Return the kernels that commands ask for in this process beyond those that setup compiles."""
    command = [sys.executable, "-c", ASK, parts]
    here = os.environ | {"NDDUP_LOCAL_PROCESSES": "1", "NDDUP_OUTPUT_REPORT": "false"}  # or other processes would ask
    ended = subprocess.run(command, input=commands, cwd=folder, stdout=subprocess.PIPE, text=True, check=True, env=here)
    return ended.stdout.rpartition("beyond:")[2].strip()


def test_a_usual_run_calls_usual_kernels(tmp_path: Path) -> None:
    """Of the sample, at default settings, no kernel is asked for that USUAL leaves out; nor by `check`, of CHECK. Lines
    of JSON ask for those of OF_JSON.
    """
    assert _beyond("USUAL", f"run {ROOT / 'samples/debdocs'} --output run\n", tmp_path) == ""
    assert _beyond("CHECK", "check run\n", tmp_path) == ""
    (tmp_path / "texts.jsonl").write_text('{"id": "a", "text": "one"}\n{"id": "b", "text": "<p>\\u00e9</p>"}\n')
    assert _beyond("USUAL,OF_JSON", "run texts.jsonl --output lines\n", tmp_path) == ""


COMMANDS = """
run SAMPLE --output one
run few --output few-run --set output.context=true --set output.onto=true
check one
check few-run
run more --output more-run --onto few-run --as later
check more-run
run SAMPLE --output words --set sketch.kind=i-match
run SAMPLE --output parts --set clusters.mode=partition --set pairs.threshold=0.5
check parts
run SAMPLE --output slots --set sketch.kind=minhash --set pairs.confirm=edit
check slots
mine few-run/context.fimi --support 1 --output sets
against few more --output hits
passages SAMPLE --output repeats
index create pages
index add pages few
index add pages more
index query pages few
"""


def test_after_setup_no_command_compiles(tmp_path: Path) -> None:
    """What commands give kernels is of the types that setup compiles them for, however few the texts are."""
    for folder, texts in (("few", ["a rose is a rose", "a rose is a rose is"]), ("more", ["a rose is a rose", "two"])):
        (tmp_path / folder).mkdir()
        for number, text in enumerate(texts):
            (tmp_path / folder / f"{number}.txt").write_text(f"{text} by any other name")

    commands = COMMANDS.strip().replace("SAMPLE", str(ROOT / "nddup/demo/boost.jsonl.gz"))
    assert _beyond("PARTS", commands, tmp_path) == ""


def test_no_kernel_is_forgotten() -> None:
    """After `setup`, no command compiles a kernel: the disk holds each one of the package."""
    kernels.call_kernels()
    names = [module.name for module in walk_packages(nddup.__path__, "nddup.") if "__main__" not in module.name]
    found = [
        (name, value)
        for name in names
        for value in vars(import_module(name)).values()
        if isinstance(value, numba.core.dispatcher.Dispatcher) and value.py_func.__module__ == name
    ]
    assert len(found) > 200
    assert {name.split(".")[1] for name, _ in found} == set(compiling.ROOMS)
    assert [f"{name}.{kernel.py_func.__name__}" for name, kernel in found if not is_compiled(kernel)] == []
