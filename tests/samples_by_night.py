"""Cases of which `make test` tries the first, and `make nightly` the others."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest


def first(number: int, cases: Iterable[Any]) -> list[Any]:
    """Return all cases, those after the first `number` marked as nightly."""
    rest = iter(cases)
    return [*islice(rest, number), *(pytest.param(case, marks=pytest.mark.nightly) for case in rest)]
