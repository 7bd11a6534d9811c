"""Cases of which `make test` tries the first, or some, and `make nightly` or `make explore` the others.

The dearest are tried by day where what they prove has changed.
"""

import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from typing import Any

import pytest
from hypothesis import settings

from tests.places import ROOT

STARTS = ("nddup/spark/daemon.py", "nddup/spark/java.py", "nddup/spark/session_access.py")
"""What starts Spark for a job; the settings of a session are tried by all its tests."""
RECENT = "4 hours ago"
"""A change is tried on the way to the others; by night all is. A day's work would run these tests all day."""


def first(number: int, cases: Iterable[Any]) -> list[Any]:
    """Return all cases, those after the first `number` marked as nightly."""
    rest = iter(cases)
    return [*islice(rest, number), *(pytest.param(case, marks=pytest.mark.nightly) for case in rest)]


def every(step: int, cases: Iterable[Any]) -> list[Any]:
    """Return all cases, those between each `step`-th marked as nightly; the first one is tried by day."""
    return [case if not at % step else pytest.param(case, marks=pytest.mark.nightly) for at, case in enumerate(cases)]


def examples(by_day: int, drawn_anew: int) -> int:
    """Return the number of examples of a dear random test: in `make test`, which draws the same each time, or else."""
    return by_day if settings().derandomize else drawn_anew


def by_day_if_changed(*paths: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test that starts jobs in a dear way as nightly, unless these files or folders changed lately."""
    return (lambda test: test) if _have_changed(paths) else pytest.mark.nightly


@cache
def _have_changed(paths: tuple[str, ...]) -> bool:
    """Return whether a path was changed since `RECENT`, as far as git can tell."""
    changes = [["log", f"--since={RECENT}", "--format=%h"], ["status", "--porcelain"]]
    answers = [
        subprocess.run(["git", *change, "--", *paths], cwd=ROOT, capture_output=True, check=False)  # noqa: S607
        for change in changes
    ]
    return any(answer.returncode or answer.stdout for answer in answers)
