"""The errors of transitive closure: connected components whose documents are not all near-duplicates of each other.

To take a component for a cluster is to claim that all its documents are near-duplicates. `invented` counts the pairs
of its documents that are not: all pairs of documents minus the pairs found.
"""

from typing import Any

from nddup.engines.engine import Engine

FALSE_COMPONENTS = """
    WITH placed AS (
        SELECT g.node, g.component, g.by_leaders, d.n FROM graph AS g JOIN nodes AS d ON g.node = d.doc_key
    ),
    counted AS (
        SELECT component, by_leaders, n AS size, shiftright(n * (n - 1), 1) AS pairs FROM placed
        UNION ALL
        SELECT a.component, false AS by_leaders, CAST(0 AS BIGINT) AS size, a.n * b.n AS pairs
        FROM matches AS m JOIN placed AS a ON m.node_a = a.node JOIN placed AS b ON m.node_b = b.node
    ),
    whole AS (
        SELECT component, CAST(sum(size) AS BIGINT) AS size, CAST(sum(pairs) AS BIGINT) AS pairs,
               bool_or(by_leaders) AS by_leaders
        FROM counted GROUP BY component
    )
    SELECT component, size, pairs, shiftright(size * (size - 1), 1) - pairs AS invented,
           {exact} AND NOT by_leaders AS exact
    FROM whole WHERE shiftright(size * (size - 1), 1) > pairs
"""
"""A node adds its documents and the pairs among them, an edge the product of the documents of its ends."""


COUNTS = {
    "invented_pairs": "sum(invented)",
    "most_invented": "max(invented)",
    "bounded_components": "count_if(NOT exact)",
}
"""Counts of FALSE_COMPONENTS for `metrics.json`, as aggregates: the invented pairs, the most in one component, and the
components with a bound only."""


def list_false_components(engine: Engine, *, is_exact: bool) -> Any:  # noqa: ANN401 - a table of either engine
    """Return FALSE_COMPONENTS: the components with documents that are not near-duplicates, and these pairs counted.

    Args:
        engine: with the tables `graph` (node, component, by_leaders), `matches` (node_a, node_b), and `nodes`
            (doc_key, n), which has a row at least for each first document of its sketch.
        is_exact: whether every near-duplicate pair outside components given by leaders was found; else `invented` is an
            upper bound. In components given by leaders it always is.

    Cost: joins of narrow rows, on Spark with a shuffle each: the graph with the nodes, the edges with either end.
    """
    return engine.answer(FALSE_COMPONENTS.format(exact=str(is_exact).lower()))
