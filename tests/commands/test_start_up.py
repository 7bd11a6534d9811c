"""The modules that a command loads: only those it uses, no Spark for local files, and none before its progress line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nddup.repository
from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from tests.finished_runs import write_texts
from tests.places import ROOT

HEAVY = {
    "chardet", "duckdb", "lxml", "matplotlib", "numba", "numpy", "pandas", "py4j", "pyarrow", "pydantic", "pyspark",
    "rapidfuzz", "resiliparse", "scipy.linalg", "scipy.sparse", "scipy.special", "scipy.stats", "selectolax", "yaml",
    "nddup.ground.metrics", "nddup.sketching.recipe", "numba.np.arrayobj", "numba.np.polynomial", "pyarrow.parquet",
}  # fmt: skip
"""Packages that take 0.1 s or more to load, or load such packages; modules that stand for parts of nddup, and one for
all that numba loads only to compile a kernel."""

KERNELS = {"numba", "numpy", "yaml"}
"""numba reads its own settings from YAML."""

SETTINGS = {"numba", "numpy", "pydantic", "yaml"}
RUN = {"duckdb", "nddup.ground.metrics", "numpy", "pyarrow", "pydantic"}
SKETCHING = {"nddup.sketching.recipe", "pyarrow.parquet"}
TEXTS = {"chardet", "resiliparse"}
READ_BY = KERNELS | TEXTS | {"lxml", "pyarrow", "selectolax"}

PROGRAM = """
import gc, json, sys, threading
from nddup.cli import main

begun, start = [], threading.Thread.start

def begin(thread):
    if getattr(thread._target, "__name__", "") == "_watch":
        begun.append(sorted(sys.modules))
    start(thread)

threading.Thread.start = begin
sys.stderr.isatty = lambda: True
try:
    status = main(sys.argv[1:])
except SystemExit as ended:
    status = ended.code
loaded = sorted(sys.modules)
looked = sum(generation["collections"] for generation in gc.get_stats())
said = {"status": status, "begun": begun[:1], "loaded": loaded, "looked": looked}
print("\\n" + json.dumps(said), file=sys.stderr)
"""
"""Prints the modules loaded when the progress line starts, and in the end; `test_steps` proves that the line appears in
time."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, its input, a truth list, a grid, a FIMI file and a repository."""
    folder = tmp_path_factory.mktemp("start")
    words = [f"w{number}" for number in range(60)]
    texts = {f"d{number}": " ".join([*words[:number], "x", *words[number:]]) for number in range(4)}
    pages = write_texts(folder / "pages.jsonl", texts)
    (folder / "list.csv").write_text("d0,d1,0.9\nd0,d3,0.5\n")
    (folder / "grid.yaml").write_text("pairs.threshold: [0.7]\n")
    (folder / "context.fimi").write_text("1 2\n1 2\n")
    run_locally([str(pages)], str(folder / "run"), build_config({}, origin="test"))
    estimated = build_config({"pairs": {"confirm": "none"}}, origin="test")
    run_locally([str(pages)], str(folder / "estimated"), estimated)
    nddup.repository.create(str(folder / "repo")).add([str(pages)])
    return folder


COMMANDS: dict[str, tuple[list[str], set[str]]] = {
    "help": (["--help"], set()),
    "run": (["run", "pages.jsonl", "--output", "again"], SETTINGS | RUN | READ_BY | SKETCHING | {"rapidfuzz"}),
    "show": (["show", "run"], RUN),
    "report": (["report", "run"], RUN | {"rapidfuzz"}),
    "check": (["check", "run"], SETTINGS | RUN | READ_BY | SKETCHING),
    "check of sketches": (["check", "estimated"], SETTINGS | RUN | READ_BY | SKETCHING),
    "split": (["split", "run", "--parts", "a=.5,b=.5", "--by", "source", "--output", "split"],
              SETTINGS | RUN | READ_BY | SKETCHING | {"rapidfuzz"}),
    "diff": (["diff", "run", "estimated"], SETTINGS | RUN),
    "mine": (["mine", "context.fimi", "--support", "2"], KERNELS | TEXTS),
    "explain": (["explain"], SETTINGS | {"nddup.sketching.recipe"}),
    "inspect": (["inspect", "pages.jsonl"], SETTINGS | READ_BY),
    "evaluate": (["evaluate", "run", "--truth", "list.csv"], SETTINGS | RUN | TEXTS),
    "query": (["index", "query", "repo", "pages.jsonl"], SETTINGS | READ_BY | SKETCHING),
    "against": (["against", "pages.jsonl", "pages.jsonl"], SETTINGS | READ_BY | SKETCHING | {"nddup.ground.metrics"}),
    "truth": (["truth", "run", "--output", "truth.csv"], SETTINGS | RUN | READ_BY | SKETCHING | {"rapidfuzz"}),
    "sweep": (["sweep", "pages.jsonl", "--grid", "grid.yaml", "--output", "sweep", "--truth", "list.csv"],
              SETTINGS | RUN | READ_BY | SKETCHING | {"matplotlib"}),
}  # fmt: skip
"""The arguments of each command, and the modules of `HEAVY` that it may load."""

LIKE_OTHERS = {"check of sketches", "split", "against", "truth"}
"""Commands that may load what `check`, `run` and `query` may; `make nightly` tries them."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name in LIKE_OTHERS)) for name in COMMANDS]
)
def test_a_command_loads_what_it_uses(name: str, place: Path) -> None:
    """A command over local files loads no slow module that it does not use, nor any before its progress line starts."""
    arguments, allowed = COMMANDS[name]

    said = _called(arguments, place)
    if "numba.np.polynomial" in said["loaded"]:  # a kernel was compiled, as in the first call of an installation
        said = _called(arguments, place)

    assert said["status"] == 0
    assert HEAVY & set(said["loaded"]) <= allowed
    assert [HEAVY & set(loaded) for loaded in said["begun"]] == ([set()] if name != "help" else [])
    assert said["looked"] < 60  # garbage collections; with Python's default threshold there would be some hundred


def _called(arguments: list[str], place: Path) -> dict[str, Any]:
    """What a process that calls the command says of its modules, its garbage collections and its exit status."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], cwd=place, capture_output=True, text=True,
                          check=True, env={"PYTHONPATH": str(ROOT), "PATH": ""})  # fmt: skip
    said: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    return said


def test_importing_the_package_loads_nothing() -> None:
    """`import nddup` loads no slow module, and `dir(nddup)` still lists `find_duplicates` and `open`."""
    program = "import sys, nddup; print(*sys.modules, *dir(nddup))"

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert HEAVY & set(done.stdout.split()) == set()
    assert {"find_duplicates", "open"} <= set(done.stdout.split())


def test_opening_a_run_compiles_nothing_and_loads_no_spark(place: Path) -> None:
    """Opening a run loads no Spark and no kernels: explanations and new thresholds need them. (Arrow loads pandas.)"""
    program = "import sys, nddup; nddup.open('run')._repr_html_(); print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], cwd=place, capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(ROOT), "PATH": ""})  # fmt: skip

    assert HEAVY & set(done.stdout.split()) <= RUN | {"pandas", "pyarrow.parquet"}
