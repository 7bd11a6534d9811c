"""Pairs that texts confirm (`pairs.confirm`) on the embedded engine: all tables against their definitions."""

import pytest

import nddup
from nddup.errors import ConfigError
from tests.embedded.confirmed_texts import Case, draw_case, draw_together, require_as_defined
from tests.samples_by_night import first

TABLES = ("documents", "pairs", "clusters", "keep")


@pytest.mark.parametrize("cases", first(1, [24, 60]))
@pytest.mark.parametrize("confirm", ["edit", "resemblance"])
def test_tables_are_those_of_the_definitions(confirm: str, cases: int) -> None:
    """Groups of equal texts, confirmed pairs, their maximal sets, and the keep-list in policy order are as defined.

    Of these cases those of the same settings are one collection: a run costs more than a case.
    """
    alike: dict[tuple[int, float, float], list[int]] = {}
    for number in range(cases):
        case = draw_case(number)
        edit = case.edit_threshold if confirm == "edit" else 0
        alike.setdefault((case.length, case.threshold, edit), []).append(number)
    for (length, threshold, edit), seeds in alike.items():
        case = Case(draw_together(seeds).texts, length, threshold, edit, confirm)

        run = nddup.find_duplicates(case.table, **case.settings)

        require_as_defined(case, {name: getattr(run, name).to_pylist() for name in TABLES})


@pytest.mark.parametrize("confirm", ["edit", "resemblance"])
def test_characters_are_compared_where_shingles_are_of_characters(confirm: str) -> None:
    """With `shingle.unit: char`, groups, pairs, clusters and keep-list are those of the characters of the texts."""
    case = draw_together(range(3))._replace(length=4, unit="char", confirm=confirm, edit_threshold=0.8)

    run = nddup.find_duplicates(case.table, **case.settings)

    require_as_defined(case, {name: getattr(run, name).to_pylist() for name in TABLES})
    assert len(run.pairs)


@pytest.mark.parametrize("seed", first(2, range(4)))
def test_a_higher_threshold_needs_no_text(seed: int) -> None:
    """Recomputed with a higher threshold, all tables are those of a fresh run; a lower one is refused."""
    case = draw_case(seed)._replace(confirm="resemblance", threshold=0.6)
    low = nddup.find_duplicates(case.table, **case._replace(threshold=0.4).settings)

    again = low.rethreshold(0.6)

    require_as_defined(case, {name: getattr(again, name).to_pylist() for name in TABLES})
    with pytest.raises(ConfigError, match="only sketches are stored for a lower threshold"):
        again.rethreshold(0.5)
