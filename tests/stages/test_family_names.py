"""Names of families that last, by their definition, over random partitions of documents that come and go."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from nddup.engines.duck import DuckEngine
from nddup.stages.families import list_meetings, name_families
from nddup.tables import KEEP, NAMES
from tests.engine_rows import rows_of, see_rows
from tests.samples_by_night import first

Families = Mapping[str, frozenset[str]]
"""The documents of each family, by the one that is kept."""


def draw(drawn: np.random.Generator, ids: list[str]) -> Families:
    """Draw families of the documents, some of which are forced out and have none."""
    heads = [one for one in ids if drawn.random() < 0.4] or ids[:1]
    of = {one: heads[drawn.integers(len(heads))] for one in ids if drawn.random() < 0.95}
    return {head: frozenset(one for one in ids if one == head or (one not in heads and of.get(one) == head))
            for head in heads}  # fmt: skip


def name_plainly(
    before: Mapping[str, frozenset[str]], ever: set[str], after: Families, ids: list[str]
) -> dict[str, str]:
    """Return the name of each later family by the definition, its pairs gone through one by one."""
    shared = [(len(old & new), name, head) for name, old in before.items() for head, new in after.items() if old & new]
    shared.sort(key=lambda row: (-row[0], row[1], -len(after[row[2]]), min(after[row[2]])))
    names = dict[str, str]()
    for _, name, head in shared:
        if head not in names and name not in names.values():
            names[head] = name
    others = [head for head in after if head not in names]
    taken = ever | set(ids)
    for head in sorted(others, key=lambda one: min(after[one])):
        free = sorted(after[head] - ever)
        if free:
            names[head] = free[0]
            continue
        number = 2
        while f"{min(after[head])}~{number}" in taken:
            number += 1
        names[head] = f"{min(after[head])}~{number}"
        taken.add(names[head])
    return names


def keep_rows(families: Families, ids: list[str]) -> list[dict[str, object]]:
    """Return KEEP of these families."""
    of = {one: head for head, members in families.items() for one in members}
    return [{"doc_id": one, "kept": of.get(one) == one, "duplicate_of": None if of.get(one) == one else of.get(one)}
            for one in ids]  # fmt: skip


@pytest.mark.parametrize("chains", first(1, [8, 40]))
def test_names_follow_their_definition(chains: int) -> None:
    """Over chains of five runs every family has the name that the definition gives it, and no name comes back."""
    pool = [f"d{number}" for number in range(14)] + ["d1~2", "d3~2"]
    drawn = np.random.default_rng(61)
    for _ in range(chains):
        ids = sorted(one for one in pool if drawn.random() < 0.8)
        families = draw(drawn, ids)
        names = {head: min(members) for head, members in families.items()}
        ever, rows = set(names.values()), [{"name": name, "doc_id": head} for head, name in names.items()]
        for _ in range(4):
            later_ids = sorted(one for one in pool if drawn.random() < 0.8)
            later = draw(drawn, later_ids)
            engine = DuckEngine("test")
            see_rows(engine, KEEP, keep_rows(families, ids), name="before_keep")
            see_rows(engine, KEEP, keep_rows(later, later_ids))
            see_rows(engine, NAMES, rows, name="before_names")
            list_meetings(engine)

            found = engine.answer(name_families(engine))

            old = {names[head]: members for head, members in families.items()}
            expected = name_plainly(old, ever, later, later_ids)
            live = {row["doc_id"]: row["name"] for row in found.to_pylist() if row["doc_id"] is not None}
            assert live == expected
            ever |= set(expected.values())
            assert {row["name"] for row in found.to_pylist()} == ever
            assert len(found) == len(ever)
            sizes = {(name, len(later[head]), len(old.get(name, ""))) for head, name in expected.items()}
            sizes |= {(name, 0, len(old.get(name, ""))) for name in ever - set(expected.values())}
            assert rows_of(found.select(["name", "documents", "before"])) == sizes
            families, ids, names, rows = later, later_ids, expected, found.to_pylist()


def test_nothing_before_and_nothing_after() -> None:
    """Families without an earlier one have their smallest id; without families nothing is named."""
    engine = DuckEngine("test")
    see_rows(engine, KEEP, [], name="before_keep")
    see_rows(engine, KEEP, keep_rows({"b": frozenset("ab")}, ["a", "b"]))
    see_rows(engine, NAMES, [], name="before_names")
    list_meetings(engine)

    found: pa.Table = engine.answer(name_families(engine))

    assert found.to_pylist() == [{"name": "a", "doc_id": "b", "documents": 2, "before": 0}]
