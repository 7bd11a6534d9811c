"""The split of a run on both engines: units, given parts, strata, and components given by leaders."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.engines.duck import DuckEngine
from nddup.engines.engine import Engine
from nddup.matching.threshold import Threshold
from nddup.splitting.assign_units import FREE, read_parts
from nddup.stages.split_units import SplitRule, split_units
from nddup.tables import DOCUMENTS, KEEP, PAIRS
from tests.engine_rows import rows_of, see_rows, see_table
from tests.splitting.test_assign_units import assign_plainly

PARTS = read_parts("train=.6,valid=.2,test=.2")
RULE = SplitRule(PARTS, 1, Threshold("overlap", 2, 1, is_count=True, size=9))


class Drawn(NamedTuple):
    """A collection: documents, its pairs, groups of equal texts, given parts and the values of two columns."""

    ids: Sequence[str]
    pairs: Sequence[tuple[str, str]]
    groups: Mapping[str, str]
    fixed: Mapping[str, str]
    earlier: Mapping[str, str]
    values: Mapping[str, tuple[str | None, str | None]]


def draw(drawn: np.random.Generator, n: int) -> Drawn:
    """Draw n documents, of which most have one neighbour at most."""
    ids = [f"d{number:03}" for number in range(n)]

    def some(share: float) -> dict[str, str]:
        return {one: PARTS.names[drawn.integers(3)] for one in ids if drawn.random() < share}

    pairs = [(a, b) for a, b in combinations(ids, 2) if drawn.random() < 0.8 / len(ids)]
    groups = {one: ids[drawn.integers(at + 1)] if drawn.random() < 0.15 else one for at, one in enumerate(ids)}
    kinds: list[str | None] = ["", "en", "pl", None]
    values = {one: (kinds[drawn.integers(4)], kinds[drawn.integers(3)]) for one in ids}
    return Drawn(ids, pairs, groups, some(0.15), some(0.5), values)


def see(engine: Engine, made: Drawn) -> None:
    """Give an engine the collection."""
    places = {one: at for at, one in enumerate(made.ids)}
    see_rows(engine, DOCUMENTS, [{"doc_id": one, "doc_key": places[one], "source": "a", "record": places[one] + 1,
                                  "group": made.groups[one], "sketch": []} for one in made.ids])  # fmt: skip
    see_rows(engine, PAIRS, [{"doc_a": a, "doc_b": b} for a, b in made.pairs])
    see_rows(engine, KEEP, [{"doc_id": one, "kept": True, "leader": False} for one in made.ids])
    see_given(engine, made.fixed, made.earlier)
    rows = [(one, at, value) for one, values in made.values.items() for at, value in enumerate(values)]
    strata = {
        name: pa.array(column) for name, column in zip(("doc_id", "place"), zip(*rows, strict=True), strict=False)
    }
    strata["value"] = pa.array([value for *_, value in rows], pa.string())
    see_table(engine, "strata", pa.table(strata))
    see_table(engine, "by_columns", pa.table({"place": [0, 1], "name": ["lang", "kind"]}))


def see_given(engine: Engine, fixed: Mapping[str, str], earlier: Mapping[str, str]) -> None:
    """Give an engine the fixed and the earlier parts of some documents."""
    for name, rows in (("fixed", fixed), ("earlier", earlier)):
        columns = {"doc_id": pa.array(list(rows), pa.string()), "part": pa.array(list(rows.values()), pa.string())}
        see_table(engine, name, pa.table(columns))


def split_plainly(made: Drawn, seed: int) -> set[tuple[Any, ...]]:
    """Return the rows of SPLIT by its definition, from units that are merged one edge at a time."""
    unit_of = {one: {one} for one in made.ids}
    for a, b in [*made.pairs, *made.groups.items()]:
        whole = unit_of[a] | unit_of[b]
        unit_of |= dict.fromkeys(whole, whole)
    units = sorted({min(unit) for unit in unit_of.values()})
    placed, given, why = {}, [], []
    for name in units:
        members = sorted(unit_of[name])
        fixed = sorted(PARTS.place(made.fixed[one]) for one in members if one in made.fixed)
        votes = Counter(PARTS.place(made.earlier[one]) for one in members if one in made.earlier)
        voted = min(votes, key=lambda part: (-votes[part], part)) if votes else FREE
        given.append(fixed[0] if fixed else voted)
        why.append("fixed" if fixed else "earlier" if votes else "size")
        stays = PARTS.names[fixed[0]] if fixed else ""
        placed[name] = [one for one in members if made.fixed.get(one, stays) == stays]
    sizes = [len(placed[name]) for name in units]
    keys = {key for values in made.values.values() for key in enumerate(values)}
    numbers = {key: at for at, key in enumerate(sorted(keys, key=repr))}
    strata = [
        dict(Counter(numbers[key] for one in placed[name] for key in enumerate(made.values[one]))) for name in units
    ]
    parts = assign_plainly(sizes, given, strata, list(PARTS.shares), seed, units)
    total = sum(sizes)
    rows = set()
    for name, part, size, decided in zip(units, parts, sizes, why, strict=True):
        is_beyond = decided == "size" and size > max(PARTS.shares) * total
        for one in unit_of[name]:
            told = made.fixed.get(one, made.earlier.get(one))
            at = PARTS.names[part] if one in placed[name] else None
            rows.add((one, at, name, len(unit_of[name]), "largest" if is_beyond else decided, told))
    return rows


def test_a_split_follows_its_definition() -> None:
    """Random graphs with groups, fixed and earlier parts and two columns are split as the definition says."""
    drawn = np.random.default_rng(14)
    for seed, n in enumerate((1, 12, 150)):
        made, engine = draw(drawn, n), DuckEngine("test")
        see(engine, made)

        split_units(engine, RULE._replace(seed=seed))

        assert rows_of(engine.sql("SELECT * FROM split")) == split_plainly(made, seed)


def test_both_engines_split_alike(engine: Engine) -> None:
    """One collection has the rows of its definition on either engine, and the shares count them."""
    made = draw(np.random.default_rng(3), 40)
    see(engine, made)

    counts = split_units(engine, RULE)

    expected = split_plainly(made, 1)
    assert rows_of(engine.sql("SELECT * FROM split")) == expected
    assert counts["left_out"] == sum(part is None for _, part, *_ in expected)
    assert counts["moved"] == sum(part is not None and told not in (None, part) for _, part, *_, told in expected)
    shares = rows_of(engine.sql("SELECT name, value, part, documents FROM shares"))
    part_of = {one: part for one, part, *_ in expected if part is not None}
    assert {row for row in shares if row[0] == "lang" and row[3]} == {
        ("lang", value, part, n)
        for (value, part), n in Counter((made.values[one][0], part) for one, part in part_of.items()).items()
    }
    assert {row[3] for row in shares if row[0] is None} == {Counter(part_of.values())[name] for name in PARTS.names}


def test_pieces_of_a_led_component_stay_together() -> None:
    """
    Of the chain a - b - c - d only the pairs of the leaders a and d are stored: sketches join b and c.

    a: 1 2 3   b: 2 3 4 5   c: 4 5 6 7   d: 6 7 8      e: 20 21   f: 20 21, in a component of their own
    """
    engine = DuckEngine("test")
    sketches: dict[str, NDArray[np.int64]] = {
        "a": np.array([1, 2, 3]), "b": np.array([2, 3, 4, 5]), "c": np.array([4, 5, 6, 7]), "d": np.array([6, 7, 8]),
        "e": np.array([20, 21, 22]), "f": np.array([20, 21, 23]), "g": np.array([40, 41]),
    }  # fmt: skip
    numbered = enumerate(sketches.items())
    rows = [
        {"doc_id": one, "doc_key": at, "group": one, "sketch": ids.tolist(), "n_features": len(ids)}
        for at, (one, ids) in numbered
    ]
    see_rows(engine, DOCUMENTS, rows)
    see_rows(engine, PAIRS, [{"doc_a": a, "doc_b": b} for a, b in ("ab", "cd", "ef")])
    see_rows(engine, KEEP, [{"doc_id": one, "kept": True, "leader": one in "ade"} for one in sketches])
    see_given(engine, {}, {})
    see_table(engine, "strata", pa.table({"doc_id": pa.array([], pa.string()), "place": pa.array([], pa.int64()),
                                          "value": pa.array([], pa.string())}))  # fmt: skip
    see_table(engine, "by_columns", pa.table({"place": pa.array([], pa.int64()), "name": pa.array([], pa.string())}))

    split_units(engine, RULE)

    units = dict(rows_of(engine.sql("SELECT doc_id, unit FROM split")))
    assert units == {"a": "a", "b": "a", "c": "a", "d": "a", "e": "e", "f": "e", "g": "g"}
