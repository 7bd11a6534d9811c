"""From pairs of distinct sketches to pairs of documents: every document with an equal sketch gets its pairs.

Two groups of equal sketches that match give the product of their documents. A product of more rows than
`pairs.expand_limit` becomes a star around the groups' `group` documents: each member is paired with its own `group`
document, and the two `group` documents with each other. So no group makes the table quadratic.
"""

from nddup.engines.engine import Engine, EngineTable
from nddup.matching.threshold import Threshold
from nddup.tables import DIRECTED, LIKENESS, OF_TEXTS, PAIRS

TOLD = tuple(column.name for column in (*LIKENESS, *OF_TEXTS))
"""The facts about two documents: the columns of PAIRS besides their ids and `star`."""

LISTED = """
    WITH firsts AS (SELECT node, n, doc_id AS first_id FROM nodes WHERE doc_key = node),
    ended AS (
        SELECT m.node_a, m.node_b, {of_match}, a.n * b.n AS product, a.first_id AS first_a, b.first_id AS first_b
        FROM matches AS m JOIN firsts AS a ON m.node_a = a.node JOIN firsts AS b ON m.node_b = b.node
    ),
    centres AS (
        SELECT node_a AS node FROM ended WHERE product > {limit} UNION
        SELECT node_b AS node FROM ended WHERE product > {limit}
    ),
    whole AS (
        SELECT node, doc_id, doc_key = node AS is_first, {of_equal}
        FROM nodes WHERE n > 1 AND size >= {least} AND shiftright(n * (n - 1), 1) <= {limit}
    ),
    members AS (SELECT node, doc_id FROM nodes WHERE n <= {limit}),
    listed AS (
        SELECT a.doc_id AS one, b.doc_id AS other, false AS star, {told}
        FROM ended AS e JOIN members AS a ON e.node_a = a.node JOIN members AS b ON e.node_b = b.node
        WHERE product <= {limit}
        UNION ALL
        SELECT first_a, first_b, true, {told} FROM ended WHERE product > {limit}
        UNION ALL
        SELECT a.doc_id, b.doc_id, a.is_first AND c.node IS NOT NULL, {of_first}
        FROM whole AS a JOIN whole AS b ON a.node = b.node LEFT JOIN centres AS c ON a.node = c.node
        WHERE a.doc_id < b.doc_id
        UNION ALL
        SELECT first_id, doc_id, true, {of_equal}
        FROM nodes WHERE n > 1 AND size >= {least} AND shiftright(n * (n - 1), 1) > {limit} AND doc_key <> node
    )
"""
"""A group may have all its pairs and be a centre, in a star with another group; then the rows of its `group` document,
which is the smaller of each, are rows of that star. A star needs no join: one group may have most documents."""


def expand(engine: Engine, *, threshold: Threshold, expand_limit: int, confirm: str = "none") -> EngineTable:
    """Return PAIRS: those of the matches, and those of equal sketches, which have enough features.

    Args:
        engine: with the tables `nodes` (NODES) and `matches`: the pairs of distinct sketches with all of `TOLD`, null
            where it is not known.

    Cost: linear in the rows that result. On Spark shuffles of the nodes once, and of the matches for each side of the
        joins on node.
    """
    turned = {one: other for pair in DIRECTED.items() for one, other in (pair, pair[::-1])}
    ordered = {name: f"CASE WHEN one > other THEN {other} ELSE {name} END" for name, other in turned.items()}
    ordered |= {"doc_a": "least(one, other)", "doc_b": "greatest(one, other)"}
    columns = ", ".join(f"{ordered.get(name, name)} AS {name}" for name in PAIRS.names)
    return engine.answer(f"{_listed(threshold, expand_limit, confirm)} SELECT {columns} FROM listed")  # noqa: S608


def _listed(threshold: Threshold, expand_limit: int, confirm: str) -> str:
    """Return the query for the pairs with their ends in any order; equal sketches contain each other entirely."""
    share = "CAST(1.0 AS DOUBLE)" if threshold.shows_containment else "CAST(NULL AS DOUBLE)"
    common = "n_features" if confirm == "resemblance" else "CAST(NULL AS INT)"
    equal = {
        "overlap": "size",
        "resemblance": "CAST(1.0 AS DOUBLE)",
        "edit": "CAST(1.0 AS DOUBLE)" if confirm == "edit" else "CAST(NULL AS DOUBLE)",
        **{name: share for name in TOLD if name.startswith("containment")},
        **{name: common for name in TOLD if name == "common" or name.startswith("shingles")},
    }
    return LISTED.format(
        limit=expand_limit,
        least=threshold.least_size,
        told=", ".join(TOLD),
        of_match=", ".join(f"m.{name}" for name in TOLD),
        of_equal=", ".join(f"{equal[name]} AS {name}" for name in TOLD),
        of_first=", ".join(f"a.{name}" for name in TOLD),
    )
