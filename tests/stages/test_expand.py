"""Expand: the pairs of documents that pairs of sketches and equal sketches stand for, on both engines."""

from collections import Counter

from nddup.engines.engine import Engine
from nddup.matching.threshold import Threshold
from nddup.stages.expand import expand
from nddup.tables import CONFIRMED, NODES
from tests.engine_rows import rows_of, see_rows

SIZE = 20
COUNT = Threshold("overlap", 14, 1, is_count=True, size=SIZE)
RESEMBLANCE = Threshold("resemblance", 7, 10, is_count=False, size=SIZE)


def expand_all(
    engine: Engine,
    groups: list[tuple[str, ...]],
    matches: list[tuple[int, int, int, float]],
    *,
    limit: int = 1_000_000,
    threshold: Threshold = RESEMBLANCE,
) -> list[tuple[str, str, int, float, bool]]:
    """Expand groups of equal sketches and the matches between them; a sketch has ten features, one of `empty…` none."""
    see_rows(engine, NODES, [
        {"doc_key": 10 * node + at, "doc_id": doc_id, "first_id": min(members), "node": 10 * node, "n_features": 10,
         "size": 0 if doc_id.startswith("empty") else 10, "n": len(members)}
        for node, members in enumerate(groups)
        for at, doc_id in enumerate(members)
    ])  # fmt: skip
    told = [
        {"node_a": 10 * a, "node_b": 10 * b, "overlap": overlap, "resemblance": near} for a, b, overlap, near in matches
    ]
    see_rows(engine, CONFIRMED, told, name="matches")
    pairs = rows_of(expand(engine, threshold=threshold, expand_limit=limit))
    assert {row[4:6] for row in pairs} <= {(None, None)}
    return sorted((*row[:4], row[6]) for row in pairs)


def test_groups_expand_to_all_pairs(engine: Engine) -> None:
    """
    Each document of one group is paired with each of the other, and within its group; ids are ordered as bytes.

    {b, é}  --  {a}      {Z} alone, {m, n} without a neighbour
    """
    pairs = expand_all(engine, [("b", "é"), ("a",), ("Z",), ("m", "n")], [(0, 1, 9, 0.9)])

    assert pairs == [
        ("a", "b", 9, 0.9, False),
        ("a", "é", 9, 0.9, False),
        ("b", "é", 10, 1.0, False),
        ("m", "n", 10, 1.0, False),
    ]


def test_large_products_become_stars(engine: Engine) -> None:
    """
    Three times two rows exceed a limit of five: each member pairs with the first of its group, and the two firsts pair.

        a1 ---- b1          (a2, a3) is no ray of the star; the group is small enough to be written in full
       /  |     |
      a2  a3    b2
    """
    pairs = expand_all(engine, [("a1", "a2", "a3"), ("b1", "b2")], [(0, 1, 9, 0.9)], limit=5)

    assert pairs == [
        ("a1", "a2", 10, 1.0, True),
        ("a1", "a3", 10, 1.0, True),
        ("a1", "b1", 9, 0.9, True),
        ("a2", "a3", 10, 1.0, False),
        ("b1", "b2", 10, 1.0, True),
    ]


def test_a_large_group_is_a_star_itself(engine: Engine) -> None:
    """A group of three pairs exceeds a limit of two and becomes a star; so does its product with a single document."""
    pairs = expand_all(engine, [("a1", "a2", "a3"), ("b",)], [(0, 1, 9, 0.9)], limit=2)

    assert pairs == [("a1", "a2", 10, 1.0, True), ("a1", "a3", 10, 1.0, True), ("a1", "b", 9, 0.9, True)]


def test_what_fits_the_limit_is_written_in_full(engine: Engine) -> None:
    """A product of exactly `expand_limit` rows is written in full."""
    pairs = expand_all(engine, [("a1", "a2", "a3"), ("b1", "b2")], [(0, 1, 9, 0.9)], limit=6)

    assert Counter(star for *_, star in pairs) == {False: 6 + 3 + 1}


def test_equal_sketches_below_the_count_are_not_near(engine: Engine) -> None:
    """Two equal sketches of ten features are a pair if the threshold is ten features, not if it is fourteen."""
    ten = Threshold("overlap", 10, 1, is_count=True, size=SIZE)

    assert expand_all(engine, [("a", "b")], [], threshold=COUNT) == []
    assert expand_all(engine, [("a", "b")], [], threshold=ten) == [("a", "b", 10, 1.0, False)]


def test_empty_sketches_are_near_nothing(engine: Engine) -> None:
    """Documents without features are in no pair, even if they are in one group."""
    assert expand_all(engine, [("empty1", "empty2")], []) == []
