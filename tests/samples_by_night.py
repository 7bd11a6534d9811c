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

STARTED_BY = (
    "Dockerfile", "conf", "docker-compose.yml", "jobs", "nddup/spark/daemon.py", "nddup/spark/java.py",
    "nddup/spark/session_access.py",
)  # fmt: skip
"""What starts a job in a process of its own: on a cluster, at a server of Spark Connect, or from Airflow; a session's
settings are tried by all tests of Spark."""


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


@cache
def is_started_anew() -> bool:
    """Return whether `STARTED_BY` was changed within a day, as far as git can tell."""
    changes = [["log", "--since=1 day ago", "--format=%h"], ["status", "--porcelain"]]
    answers = [
        subprocess.run(["git", *change, "--", *STARTED_BY], cwd=ROOT, capture_output=True, check=False)  # noqa: S607
        for change in changes
    ]
    return any(answer.returncode or answer.stdout for answer in answers)


def by_day_if_started_anew(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that starts jobs in a dear way as nightly, unless that way is new."""
    return test if is_started_anew() else pytest.mark.nightly(test)
