"""Cases of which `make test` tries the first, or some, and `make nightly` or `make explore` the others.

The dearest are tried by day where what they prove has changed.
"""

import subprocess
from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Any

import pytest
from hypothesis import settings

from tests.places import ROOT

STARTS = ("nddup/spark/daemon.py", "nddup/spark/java.py", "nddup/spark/session_access.py")
"""What starts Spark for a job; the settings of a session are tried by all its tests."""
LOCKS = ("requirements-dev.lock", "airflow-requirements.lock")
"""Other versions of what is installed change what any dear test proves."""
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


def by_day_if_changed(*paths: str) -> pytest.MarkDecorator:
    """Return the mark of a dear test or case: nightly, unless one of these files, folders, or a lock changed lately."""
    return pytest.mark.thorough if _have_changed((*paths, *LOCKS)) else pytest.mark.nightly


def _have_changed(paths: Iterable[str]) -> bool:
    """Return whether a path was changed since `RECENT`, as far as git can tell."""
    changed = _changed_lately()
    return changed is None or any(file == path or file.startswith(f"{path}/") for path in paths for file in changed)


@cache
def _changed_lately() -> frozenset[str] | None:
    """Return the files changed since `RECENT`, committed or not, by their paths from the root; None without git."""
    log = ["log", f"--since={RECENT}", "--name-only", "--format="]
    status = ["status", "--porcelain", "--no-renames", "--untracked-files=all"]
    found: set[str] = set()
    for command, start in ((log, 0), (status, len("XY "))):
        told = subprocess.run(
            ["git", "-c", "core.quotePath=false", *command],  # noqa: S607
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if told.returncode:
            return None
        found |= {line[start:] for line in told.stdout.splitlines()}
    return frozenset(found)
