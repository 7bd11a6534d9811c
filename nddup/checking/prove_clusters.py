"""Proof of `clusters`: conditions, maximality and coverage.

    clusters, members  --PLACED-->      placed      the nodes (distinct sketches) of each cluster
    placed             --PARTIAL-->     violations  clusters that hold only some documents of a sketch
    beside, sets       --extend-->      added       the sketches that could be added to a chosen cluster
    truth, placed      --uncovered-->   violations  near-duplicates that no cluster holds together

`describe_wrong` proves the conditions of the chosen clusters, from `cluster_proofs.prove_clusters`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nddup.checking.prove_pairs import Violations
from nddup.tables import working
from nddup.verifying.cluster_proofs import Proved, Sets, find_extensions
from nddup.verifying.definitions import Definition, sketch_rows

Batches = Iterator[pa.RecordBatch]
MAXIMAL = ("all", "pairs")
"""Values of `coverage` that promise maximal sets, and every pair in one of them."""

NEAR_FIRSTS = """
    SELECT r.probe, r.other FROM {table} AS r SEMI JOIN firsts AS f ON r.probe = f.node WHERE r.likeness >= {least!r}
"""
"""The near-duplicates of the first nodes of the chosen clusters: probe, other."""

PAIRED = """
    SELECT r.* FROM ({near}) AS r
    SEMI JOIN folded AS f ON f.node_a = least(r.probe, r.other) AND f.node_b = greatest(r.probe, r.other)
"""
"""Those of NEAR_FIRSTS that are in `pairs`."""

SKETCHES_BESIDE = """
    SELECT b.probe AS first, s.node, s.sketch FROM beside AS b JOIN sketches AS s ON b.other = s.node
"""
"""The rows that `extend` reads."""

ADDED = working("added", "node string, cluster_id string", "A sketch that could be added to a cluster.")

PLACED = """
    SELECT c.cluster_id, c.component, c.coverage, d.node, d.n, count(*) AS held
    FROM clusters AS c JOIN members AS m ON c.cluster_id = m.cluster_id LEFT JOIN docs AS d ON m.doc_id = d.doc_id
    GROUP BY c.cluster_id, c.component, c.coverage, d.node, d.n
"""
"""The nodes of each cluster: node (null for members that are not documents), its documents, how many are members."""


UNASKED = Violations("SELECT cluster_id FROM clusters", "{cluster_id}: a cluster where none were asked for")
"""Clusters of a run whose mode is `none`."""


class Claim(NamedTuple):
    """The claims of a chosen cluster, which are proved."""

    cluster_id: str
    support: int
    coverage: str


PARTIAL = Violations(
    f"""
    SELECT cluster_id, held, n, node FROM placed WHERE node IS NULL OR (coverage IN {MAXIMAL} AND held <> n)
    """,  # noqa: S608 - the text above
    "{cluster_id}: {held} of {n} documents with the sketch of {node}",
)
"""Clusters that hold some documents of a sketch but not the others, which could be added; and members that are not
documents."""

NESTED = Violations(
    """
    SELECT s.cluster_id, s.outer_id FROM (
        SELECT r.cluster_id, r.nodes, o.cluster_id AS outer_id
        FROM (
            SELECT p.cluster_id, min_by(p.node, (f.clusters, p.node)) AS node, count(*) AS nodes
            FROM placed AS p SEMI JOIN chosen AS c ON p.cluster_id = c.cluster_id
            JOIN (SELECT node, count(*) AS clusters FROM placed GROUP BY node) AS f ON p.node = f.node
            GROUP BY p.cluster_id
        ) AS r JOIN placed AS o ON r.node = o.node WHERE r.cluster_id <> o.cluster_id
    ) AS s
    JOIN placed AS i ON s.cluster_id = i.cluster_id
    JOIN placed AS o ON s.outer_id = o.cluster_id AND i.node = o.node AND o.held = o.n
    GROUP BY s.cluster_id, s.outer_id, s.nodes HAVING count(*) = s.nodes
    """,
    "{cluster_id}: lies inside {outer_id}",
)
"""Chosen clusters that lie inside another one. The outer cluster holds all nodes of the inner one, also the one that is
in the fewest clusters: only the clusters of that node are compared. Of copies of other values each has its own."""

BY_LEADERS = "SELECT DISTINCT node FROM placed WHERE coverage = 'documents' AND node IS NOT NULL"
"""The nodes of components given by leaders, where the clusters show it."""

UNPLACED = "SELECT DISTINCT node FROM docs ANTI JOIN placed USING (node)"
"""The nodes in no cluster, which may belong to components given by leaders where clusters must have a support."""


def unpaired(joint: Sequence[str]) -> Violations:
    """Return the chosen clusters with two sketches that are not in `pairs`, whose rows were confirmed by texts.

    Args:
        joint: values of `coverage` that promise that all pairs are near-duplicates.
    """
    text = f"""
        SELECT a.cluster_id, a.node AS node_a, b.node AS node_b
        FROM placed AS a SEMI JOIN chosen AS c ON a.cluster_id = c.cluster_id
        JOIN placed AS b ON a.cluster_id = b.cluster_id AND a.node < b.node
        ANTI JOIN folded AS f ON f.node_a = a.node AND f.node_b = b.node
        WHERE a.coverage IN {tuple(joint)}
    """  # noqa: S608 - names
    return Violations(text, "{cluster_id}: {node_a} / {node_b} are not a pair")


def hold(number: int) -> str:
    """Return the SELECT of the nodes of the first `number` clusters by id: cluster_id, support, coverage, node."""
    return f"""
        SELECT low.cluster_id, low.support, low.coverage, p.node
        FROM (SELECT DISTINCT cluster_id, support, coverage FROM clusters ORDER BY cluster_id LIMIT {number:d}) AS low
        JOIN placed AS p ON low.cluster_id = p.cluster_id WHERE p.node IS NOT NULL
    """  # noqa: S608 - a number


def choose(most: int) -> str:
    """Return the SELECT of the first clusters in `held` that together have at most `most` nodes, but at least one.

    Returns:
        A SELECT of cluster_id, support, coverage, node, in order.
    """
    return f"""
        SELECT h.cluster_id, h.support, h.coverage, h.node
        FROM (
            SELECT cluster_id, support, coverage, n,
                   sum(n) OVER (ORDER BY cluster_id, support, coverage) AS so_far
            FROM (SELECT cluster_id, support, coverage, count(*) AS n FROM held
                  GROUP BY cluster_id, support, coverage) AS counted
        ) AS f
        JOIN held AS h ON f.cluster_id = h.cluster_id AND f.support = h.support AND f.coverage = h.coverage
        WHERE f.so_far <= {most:d} OR f.so_far = f.n
        ORDER BY h.cluster_id, h.support, h.coverage, h.node
    """  # noqa: S608 - a number


def describe_wrong(claims: list[Claim], proved: Proved, bounds: np.ndarray, joint: Sequence[str]) -> list[str]:
    """Describe the faults of chosen clusters; where not all pairs are near-duplicates, only the support is checked.

    Args:
        proved: the recounted facts of each.
        bounds: the number of features that the members of each must share.
        joint: as of `unpaired`.
    """
    problems: list[str] = []
    shared = np.diff(proved.joints.offsets).tolist()
    for claim, size, bound, is_bad in zip(claims, shared, bounds.tolist(), proved.has_bad_pair.tolist(), strict=True):
        if size != claim.support:
            problems.append(f"{claim.cluster_id}: support {claim.support}, its members share {size}")
        if claim.coverage not in joint:
            continue
        if size < bound:
            problems.append(f"{claim.cluster_id}: its members share {size}, fewer than {bound}")
        if is_bad:
            problems.append(f"{claim.cluster_id}: holds two documents that are not near-duplicates")
    return problems


def extend(batches: Batches, *, names: list[str], cluster_ids: list[str], sets: Sets, rule: Definition) -> Batches:
    """Make ADDED: the nodes that could be added to one of the sets, among the near-duplicates of its first member.

    Args:
        batches: first (the first member of a set), node (a near-duplicate of it), sketch (of the node).
        names: of `sets.nodes`.
        sets: the chosen clusters, none of which has an extension if they are maximal.
    """
    known = {name: i for i, name in enumerate(names)}
    for batch in batches:
        nodes = batch.column("node").to_pylist()
        places = np.array([known.get(node, -1) for node in nodes], np.int64)
        firsts = np.array([known[first] for first in batch.column("first").to_pylist()], np.int64)
        extensions = find_extensions(sketch_rows(batch.column("sketch")), places, firsts, sets, rule).tolist()
        columns = [[nodes[row] for row, _ in extensions], [cluster_ids[of] for _, of in extensions]]
        yield ADDED.batch([pa.array(column, pa.string()) for column in columns])


def extensible(*, is_cut: bool) -> Violations:
    """Return the clusters that promise to be maximal but to which a document can be added.

    Where candidates were cut or texts confirm pairs (`is_cut`), a cluster is maximal by the table `pairs`: only an
    extension all of whose pairs are in it breaks the promise.
    """
    promised = f"""
        SELECT cluster_id, node FROM added SEMI JOIN (SELECT cluster_id FROM placed WHERE coverage IN {MAXIMAL}) AS p
        USING (cluster_id)
    """  # noqa: S608 - the text above
    paired = f"""
        SELECT cluster_id, node FROM (
            SELECT e.cluster_id, e.node, f.found
            FROM ({promised}) AS e JOIN placed AS p ON e.cluster_id = p.cluster_id
            LEFT JOIN folded AS f ON f.node_a = least(e.node, p.node) AND f.node_b = greatest(e.node, p.node)
        ) AS ends GROUP BY cluster_id, node HAVING count(found) = count(*)
    """  # noqa: S608 - the text above
    return Violations(paired if is_cut else promised, "{cluster_id}: {node} can be added")


def left_out(*, twin: int, large: int) -> Violations:
    """Return the sketches that are in no cluster, although they have a near-duplicate or stand for equal documents.

    In a component given by leaders, the near-duplicate is one that leads, or the sketch does.

    Args:
        twin: least size at which equal sketches are near-duplicates.
        large: least number of features that all members of a cluster must share.
    """
    text = f"""
        SELECT node FROM (
            SELECT m.probe AS node FROM met AS m ANTI JOIN by_leaders AS l ON m.probe = l.node
            UNION
            SELECT m.probe AS node FROM met AS m SEMI JOIN leader_nodes AS k ON m.other = k.node
            UNION
            SELECT m.probe AS node FROM met AS m SEMI JOIN leader_nodes AS k ON m.probe = k.node
            UNION
            SELECT k.node FROM sketches AS k SEMI JOIN probes AS p ON k.node = p.node
            WHERE k.n > 1 AND k.size >= {max(twin, large):d}
        ) AS due ANTI JOIN placed USING (node)
    """  # noqa: S608 - numbers
    return Violations(text, "{node}: has a near-duplicate, and is in no cluster")


def leaderless(*, is_free: bool) -> Violations:
    """Return the clusters of several sketches, made around leaders, that hold none.

    `keep` does not name the leaders of a component past the budget of its sets, all of whose pairs are listed. Where
    any part may be lost, they are what is kept, and documents forced out that no leader before them is near.

    Args:
        is_free: whether any part may be lost; else components without a named leader are left out.
    """
    text = f"""
        WITH around AS (
            SELECT p.cluster_id, p.component FROM placed AS p SEMI JOIN leader_nodes AS l ON p.node = l.node
        )
        SELECT f.cluster_id FROM (
            SELECT cluster_id, component FROM placed WHERE coverage = 'documents'
            GROUP BY cluster_id, component HAVING count(*) > 1
        ) AS f
        LEFT JOIN (SELECT DISTINCT component FROM around) AS t ON f.component = t.component
        WHERE f.cluster_id NOT IN (SELECT cluster_id FROM around)
          AND (t.component IS NOT NULL OR {is_free} AND f.cluster_id NOT IN (
              SELECT p.cluster_id FROM placed AS p
              JOIN (SELECT node FROM keeping WHERE kept OR class > 0) AS k ON p.node = k.node))
    """  # noqa: S608 - a word
    return Violations(text, "{cluster_id}: holds no leader")


def uncovered(*, twin: int, large: int) -> Violations:
    """Return the near-duplicates that no cluster holds together; a node with itself is a group of equal documents.

    Documents of a component given by leaders are left out: they are only promised to be in some cluster.

    Args:
        twin: least size at which equal sketches are near-duplicates.
        large: least number of features that all members of a cluster must share.
    """
    text = f"""
        SELECT DISTINCT least(probe, other) AS node_a, greatest(probe, other) AS node_b FROM (
            SELECT m.probe, m.other FROM met AS m ANTI JOIN by_leaders AS l ON m.probe = l.node
            UNION ALL
            SELECT k.node AS probe, k.node AS other
            FROM sketches AS k SEMI JOIN probes AS p ON k.node = p.node ANTI JOIN by_leaders AS l ON k.node = l.node
            WHERE k.n > 1 AND k.size >= {max(twin, large):d}
        ) AS due
        ANTI JOIN (
            SELECT a.node AS probe, b.node AS other
            FROM placed AS a SEMI JOIN probes AS p ON a.node = p.node JOIN placed AS b ON a.cluster_id = b.cluster_id
        ) AS together USING (probe, other)
    """  # noqa: S608 - a number
    return Violations(text, "{node_a} / {node_b}: in no cluster together")


def wrong_coverages(allowed: Sequence[str]) -> Violations:
    """Return the components whose clusters differ in `coverage`, or have another than these."""
    names = ", ".join(f"'{name}'" for name in allowed)
    text = f"""
        SELECT component, min(coverage) AS least, max(coverage) AS most FROM clusters GROUP BY component
        HAVING min(coverage) IS DISTINCT FROM max(coverage) OR min(coverage) NOT IN ({names})
        OR count(*) <> count(coverage)
    """  # noqa: S608 - names
    return Violations(text, "{component}: coverage is {least} and {most}")


def miscounted(coverage: str, count: int) -> Violations:
    """Return a row if not so many clusters have this coverage."""
    text = f"""
        SELECT '{coverage}' AS coverage, n, CAST({count:d} AS BIGINT) AS said
        FROM (SELECT count(*) AS n FROM clusters WHERE coverage = '{coverage}') AS counted WHERE n <> {count:d}
    """  # noqa: S608 - a word and a number
    return Violations(text, "coverage {coverage}: {n} clusters, {said} in metrics.json")
