"""Cases of which `make test` tries the first, or some, and `make nightly` or `make explore` the others."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest
from hypothesis import settings


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
