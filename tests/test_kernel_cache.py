"""A kernel is compiled again when any file it was compiled from has changed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.samples_by_night import by_day_if_changed, first

HELPER = """
from nddup.ground.kernels import compiled
from made.constants import STEP


@compiled
def add(x: int) -> int:
"""
CALLER = """
from nddup.ground.kernels import compiled, is_compiled
from made import helper


@compiled
def call(x: int) -> int:
    return helper.add(x)
"""


def answer(folder: Path, how: str) -> tuple[bool, int]:
    """Return whether a new process finds the calling kernel compiled, and the kernel's result for 1."""
    called = "from made.caller import call, is_compiled; print(is_compiled(call), call(1), len(call.stats.cache_hits))"
    path = f"{Path(__file__).resolve().parents[1]}:{folder}"
    done = subprocess.run(
        [sys.executable, "-c", f"import nddup.ground.kernels as a; {how}; {called}"],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    found, value, loaded = done.stdout.split()
    assert int(loaded) == (found == "True")
    return found == "True", int(value)


@by_day_if_changed("nddup/ground")
@pytest.mark.parametrize("how", first(1, ["assert a.IS_KNOWN", "a.IS_KNOWN = False"]))
def test_a_change_of_what_a_kernel_calls_or_takes_from_another_module_is_seen(how: str, tmp_path: Path) -> None:
    """A kernel is compiled again if code or constants of other modules change; Numba alone checks only its own file."""
    package = tmp_path / "made"
    package.mkdir()
    for name, text in {"__init__": "", "constants": "STEP = 1\n", "helper": f"{HELPER}    return x + STEP\n"}.items():
        (package / f"{name}.py").write_text(text)
    (package / "caller.py").write_text(CALLER)
    assert answer(tmp_path, how) == (False, 2)
    assert answer(tmp_path, how) == (True, 2)

    (package / "helper.py").write_text(f"{HELPER}    return 10 * x + STEP\n")
    assert answer(tmp_path, how) == (False, 11)
    (package / "constants.py").write_text("STEP = 5\n")
    assert answer(tmp_path, how) == (False, 15)
    assert answer(tmp_path, how) == (True, 15)
    (package / "caller.py").write_text(CALLER.replace("add(x)", "add(x) + 1"))  # with the helper from the disk
    assert answer(tmp_path, how) == (False, 16)
    assert answer(tmp_path, how) == (True, 16)


BOTH = """
import numpy as np
from nddup.ground.kernels import compiled


@compiled
def fill(count: int) -> np.ndarray:
    if count < 0:
        raise ValueError("a count is not negative")
    return np.full(count, 7)


@compiled
def add(count: int) -> int:
    return fill(count).sum()
"""
ASKED = """
from made import both
print(both.{first}, both.{second})
try:
    both.add(-1)
except ValueError as error:
    print(error)
print(*(len(kernel.stats.cache_hits) for kernel in (both.fill, both.add)))
"""


@by_day_if_changed("nddup/ground")
def test_a_kernel_serves_python_and_other_kernels(tmp_path: Path) -> None:
    """What Python calls and what other kernels call are stored apart, and loaded in any order."""
    package = tmp_path / "made"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "both.py").write_text(BOTH)
    folder = {"PYTHONPATH": f"{Path(__file__).resolve().parents[1]}:{tmp_path}"}

    def ask(first: str, second: str) -> list[str]:
        code = ASKED.format(first=first, second=second)
        done = subprocess.run([sys.executable, "-c", code], env=folder, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert ask("fill(1)", "add(2)") == ["[7] 14", "a count is not negative", "0 0"]
    assert ask("add(2)", "fill(1)") == ["14 [7]", "a count is not negative", "1 1"]
    for path in (package / "__pycache__").glob("both.add-*.nb[ci]"):  # compiled again, with the other from the disk
        path.unlink()
    assert ask("add(2)", "fill(1)") == ["14 [7]", "a count is not negative", "1 0"]


CHOICE = """
from typing import NamedTuple
from nddup.ground.kernels import compiled


class Limit(NamedTuple):
    most: int


@compiled
def is_many(limit: Limit, count: int) -> bool:
    for number in range(count):
        if number > limit.most:
            return True
    return False


@compiled
def choose(count: int) -> int:
    return 5 if is_many(Limit(2), count) else 7
"""


@by_day_if_changed("nddup/ground")
def test_a_kernel_that_others_called_before_is_called_by_python(tmp_path: Path) -> None:
    """A process that compiles nothing else puts it together from what is on the disk."""
    package = tmp_path / "made"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "choice.py").write_text(CHOICE)
    for asked, answer in (("choose(9)", "5"), ("is_many(Limit(2), 9)", "True")):
        done = subprocess.run(
            [sys.executable, "-c", f"from made.choice import Limit, choose, is_many; print({asked})"],
            env={"PYTHONPATH": f"{Path(__file__).resolve().parents[1]}:{tmp_path}"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == answer


WRITING = """
from typing import NamedTuple
import numpy as np
from numpy.typing import NDArray
from nddup.ground.kernels import Written, compiled


class Sums(NamedTuple):
    terms: NDArray[np.int64]
    totals: Written[np.int64]


@compiled
def add(sums: Sums, more: NDArray[np.int64], into: Written[np.int64], times: int) -> int:
    sums.totals[0] += times * (sums.terms.sum() + more.sum())
    into[0] = sums.totals[0]
    return into[0]


@compiled
def call(terms: NDArray[np.int64]) -> int:
    into = np.zeros(1, np.int64)
    return add(Sums(terms, np.zeros(1, np.int64)), into, into, 1)


@compiled
def spoil(terms: NDArray[np.int64]) -> None:
    terms[0] = 0


ones = np.ones(2, np.int64)
frozen = ones.copy()
frozen.flags.writeable = False
for terms in (ones, frozen):
    for more in (ones, frozen):
        for times in (2, np.int32(2)):
            into = np.zeros(1, np.int64)
            print(add(Sums(terms, np.zeros(1, np.int64)), more, into, times), into[0])
print(len(add.overloads), call(ones), call(frozen), len(call.overloads))
try:
    spoil(ones)
except Exception as error:
    print("readonly" in str(error), ones)
"""


@by_day_if_changed("nddup/ground")
def test_who_made_an_array_makes_no_other_kernel(tmp_path: Path) -> None:
    """Arrays that may be written and those that may not share one; what a kernel does not declare it cannot write."""
    (tmp_path / "writing.py").write_text(WRITING)
    folder = {"PYTHONPATH": f"{Path(__file__).resolve().parents[1]}:{tmp_path}"}
    asked = [sys.executable, "-c", "import writing"]
    for _ in range(2):  # compiled, then from the disk
        done = subprocess.run(asked, env=folder, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [*["8 8"] * 8, "1 2 2 1", "True [1 1]"]
