"""A command in a folder of somebody else's files executes none of them, nor does any process that it starts."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from nddup.embedded.processes import FEW_BYTES
from nddup.ground.start_up import ROOT, module_path, start_python
from tests.finished_runs import write_texts

COMMAND = str(Path(sys.executable).with_name("nddup"))
SPRUNG = "SPRUNG"
"""A file that every trap writes, and the environment variable with its path."""

TRAP = f"import os; open(os.environ[{SPRUNG!r}], 'a').write(__name__ + chr(10)); raise SystemExit(3)\n"
OF_PYTHON = ("types", "json", "socket", "signal", "struct", "pickle", "sitecustomize")
OF_OTHERS = ("numpy", "numba", "pyarrow", "isal", "duckdb", "lxml", "chardet", "pydantic", "pyspark", "py4j", "pandas")
NUMBA = "cache_dir: kernels\ndisable_jit: 1\n"


def set_traps(folder: Path, monkeypatch: pytest.MonkeyPatch, *, names: tuple[str, ...]) -> Path:
    """Fill a folder with modules that leave a trace when executed, and enter it; return the file of the traces."""
    for name in names:
        (folder / f"{name}.py").write_text(TRAP)
    (folder / "nddup").mkdir()
    (folder / "nddup" / "__init__.py").write_text(TRAP)
    (folder / ".numba_config.yaml").write_text(NUMBA)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv(SPRUNG, str(folder / SPRUNG))
    return folder / SPRUNG


def write_input(file: Path, *, texts: int, words: int, more: int = 0) -> Path:
    draw = random.Random(7)  # noqa: S311 - no secret
    made = {
        f"d{number}": " ".join(f"{draw.randrange(10**40)}{'0' * more}" for _ in range(words)) for number in range(texts)
    }
    return write_texts(file, made | {"again": f"{made['d0']} more"})


def run(*command: str) -> str:
    """Run a command; return its standard output, after comparing its exit status with 0."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_worker_processes_import_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than 16 MB are read by worker processes, which see no modules and settings of numba beside the data."""
    sprung = set_traps(tmp_path, monkeypatch, names=OF_PYTHON + OF_OTHERS)
    file = write_input(tmp_path / "a.jsonl", texts=200, words=40, more=2_100)
    assert file.stat().st_size > FEW_BYTES

    run(COMMAND, "run", "a.jsonl", "--output", "out", "--set", "output.report=false", "--set", "local.processes=2")

    assert (tmp_path / "out" / "duplicates.txt").read_text().split()[:2] == ["again", "d0"]
    assert not sprung.exists()
    assert not (tmp_path / "kernels").exists()


def test_the_module_can_be_run_beside_modules_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m nddup` is the command; no package that it uses is taken from the current folder."""
    sprung = set_traps(tmp_path, monkeypatch, names=OF_OTHERS)
    (tmp_path / "nddup" / "__init__.py").unlink()  # Python itself would execute it; `-P` prevents that
    (tmp_path / "nddup").rmdir()
    write_input(tmp_path / "a.jsonl", texts=3, words=100)

    printed = run(sys.executable, "-m", "nddup", "inspect", "a.jsonl")

    assert "a.jsonl" in printed
    assert not sprung.exists()


def test_a_child_imports_from_where_its_parent_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child has the module path of its parent, with what the user named in PYTHONPATH, without the current folder."""
    here, named, added = tmp_path / "here", tmp_path / "named", tmp_path / "added"
    for folder in (here, named, added):
        folder.mkdir()
        (folder / f"of_{folder.name}.py").write_text("")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", f"{named}{os.pathsep}{os.pathsep}.")
    monkeypatch.setattr(sys, "path", ["", str(here), str(named), *sys.path, str(added)])
    assert module_path()[0] == str(here)  # named by "." in PYTHONPATH

    monkeypatch.setenv("PYTHONPATH", str(named))
    code = (
        "from importlib.util import find_spec; import nddup; "
        "found = [find_spec(name) is not None for name in ('of_here', 'of_named', 'of_added')]; "
        f"sys.exit(0 if found == [False, True, True] and nddup.__path__ == [{ROOT + '/nddup'!r}] else 1)"
    )

    assert start_python(code).wait() == 0


JOB = """
import sys
from nddup.spark.session import start_session

spark = start_session(master="local[1]", settings={}, is_small=True)

def list_modules(batches):
    import sys
    for batch in batches:
        yield batch.from_pydict({"path": [entry or "." for entry in sys.path]})

print(*[row.path for row in spark.range(1).coalesce(1).mapInArrow(list_modules, "path string").collect()])
"""


@pytest.mark.spark
def test_workers_of_spark_import_nothing_from_the_folder_where_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's Python workers, and the daemon that forks them, start in a folder of traps and touch none."""
    sprung = set_traps(tmp_path, monkeypatch, names=OF_PYTHON + OF_OTHERS)

    folders = run(sys.executable, "-P", "-c", JOB).split()

    assert not {".", str(tmp_path)} & set(folders)
    assert not sprung.exists()
