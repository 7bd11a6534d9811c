"""Pairs that texts confirm (`pairs.confirm`) on the embedded engine: all tables against their definitions."""

import pytest

import nddup
from tests.local.confirmed_texts import draw_case, require_as_defined

TABLES = ("documents", "pairs", "clusters", "keep")


@pytest.mark.parametrize("confirm", ["edit", "resemblance"])
@pytest.mark.parametrize("seed", range(0, 60, 20))
def test_tables_are_those_of_the_definitions(seed: int, confirm: str) -> None:
    """Groups of equal texts, confirmed pairs, their maximal sets, and the keep-list in policy order are as defined."""
    for number in range(seed, seed + 20):
        case = draw_case(number)._replace(confirm=confirm)

        run = nddup.find_duplicates(case.table, **case.settings)

        require_as_defined(case, {name: getattr(run, name).to_pylist() for name in TABLES})
