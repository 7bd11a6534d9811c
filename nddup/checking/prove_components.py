"""Proof of components and of `false_components`: their nodes, their names, and the pairs they would invent.

    placed                 --STRAYING-->          violations   nodes of two components, wrong names of components
    placed (driver)        --split_components-->  problems     components that clusters do not connect
    pairs (driver)         --misnamed_parts-->    problems     nodes whose component is not what pairs connect
    placed, folded, docs   --WRONG_FALSE-->       violations   wrong counts of invented pairs

Each cluster is a set of near-duplicates, and each pair of near-duplicates is in a cluster, so documents are connected
through clusters exactly when they are connected through pairs.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.checking.violations import Violations
from nddup.verifying.connected import label_parts

WRONG_FALSE = Violations(
    """
    SELECT component, f.size, d.due_size, f.pairs, d.due_pairs, f.invented, d.due
    FROM false_components AS f
    FULL JOIN (
        SELECT component, due_size, due_pairs, shiftright(due_size * (due_size - 1), 1) - due_pairs AS due
        FROM (SELECT component, CAST(sum(n) AS BIGINT) AS due_size
              FROM (SELECT DISTINCT component, node, n FROM placed WHERE node IS NOT NULL) AS k
              GROUP BY component) AS sizes
        JOIN (
            SELECT a.component, CAST(sum(CASE WHEN e.node_a = e.node_b THEN shiftright(a.n * (a.n - 1), 1)
                                              ELSE a.n * b.n END) AS BIGINT) AS due_pairs
            FROM folded AS e
            JOIN (SELECT DISTINCT component, node, n FROM placed WHERE node IS NOT NULL) AS a ON e.node_a = a.node
            JOIN (SELECT DISTINCT node, n FROM placed WHERE node IS NOT NULL) AS b ON e.node_b = b.node
            GROUP BY a.component
        ) AS edges USING (component)
        WHERE shiftright(due_size * (due_size - 1), 1) > due_pairs
    ) AS d USING (component)
    WHERE f.size IS DISTINCT FROM d.due_size OR f.pairs IS DISTINCT FROM d.due_pairs
          OR f.invented IS DISTINCT FROM d.due
    """,
    "{component}: size {size} due {due_size} pairs {pairs} due {due_pairs} invented {invented} due {due}",
)
"""Rows of `false_components` that differ from the documents and pairs of their component, and missing rows.

The invented pairs of a component are all pairs of its documents except near-duplicates; only components that have some
are in the table. A pair of nodes stands for all pairs between their documents, a node with itself for the pairs among
its documents."""

STRAYING = (
    Violations(
        """
        SELECT node, count(DISTINCT component) AS n FROM placed WHERE node IS NOT NULL
        GROUP BY node HAVING count(DISTINCT component) <> 1
        """,
        "{node}: in {n} components",
    ),
    Violations(
        """
        SELECT component, min(node) AS low FROM placed WHERE node IS NOT NULL
        GROUP BY component HAVING component IS DISTINCT FROM min(node)
        """,
        "{component}: smallest id of the component is {low}",
    ),
)
"""Nodes that are in clusters of two components, and components not named by the smallest of their nodes. A node is
named by the smallest id of its documents."""

COUNT_PLACED = "SELECT count(*) AS n FROM placed WHERE node IS NOT NULL"

COUNT_ENDS = "SELECT count(*) AS n FROM folded WHERE node_a <> node_b"

ENDS_OF_PAIRS = "SELECT node_a, node_b FROM folded WHERE node_a <> node_b"

SAID = "SELECT DISTINCT node, component FROM placed WHERE node IS NOT NULL"


def some_components(parts: int) -> str:
    """Return the SELECT of all rows of about one component in `parts`, chosen by the hash of its name.

    Columns: cluster_id, node, component.
    """
    bound = f"{min((1 << 32) // parts, (1 << 32) - 1):08x}"
    chosen = "" if parts == 1 else f"AND substr(sha2(component, 256), 1, 8) < '{bound}'"
    return f"SELECT cluster_id, node, component FROM placed WHERE node IS NOT NULL {chosen}"  # noqa: S608 - digits


def split_components(rows: pa.Table) -> list[str]:
    """Find components whose nodes are not connected through clusters.

    Args:
        rows: cluster_id, node, component.

    Returns:
        A problem for each component with more than one connected part.
    """
    clusters, nodes, components = (_number(rows[name]) for name in ("cluster_id", "node", "component"))
    if not len(rows):
        return []

    # A graph between clusters and their nodes; the nodes are numbered after the clusters.
    first = int(clusters.max()) + 1
    parts = label_parts(clusters, nodes + first, first + int(nodes.max()) + 1)[clusters]

    both = np.unique(np.stack([components, parts]), axis=1)[0]
    torn, counts = np.unique(both, return_counts=True)
    names = pc.unique(rows["component"]).to_pylist()
    found = zip(torn.tolist(), counts.tolist(), strict=True)
    return sorted(f"{names[place]}: falls into {count} parts" for place, count in found if count > 1)


def misnamed_parts(pairs: pa.Table, said: pa.Table) -> list[str]:
    """Find nodes whose component is not the smallest node of their connected part.

    Args:
        pairs: node_a, node_b of each pair of nodes.
        said: node, component of nodes in clusters; a node without a pair is a part by itself.

    Returns:
        A problem for each such node.
    """
    columns = [pairs["node_a"], pairs["node_b"], said["node"]]
    names = pc.unique(pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())).sort()
    first, second, nodes = (pc.index_in(column, names).to_numpy().astype(np.int64) for column in columns)

    # Names ascend, so the smallest node of a part is its smallest name.
    due = names.take(pa.array(label_parts(first, second, len(names))[nodes]))
    told = zip(said["node"].to_pylist(), said["component"].to_pylist(), due.to_pylist(), strict=True)
    return [f"{node}: component {has}, smallest connected id {low}" for node, has, low in told if has != low]


def _number(column: pa.ChunkedArray) -> np.ndarray:
    """Number the distinct values in order of first appearance; return the number of each value, (n,) int64."""
    whole = column.combine_chunks() if column.num_chunks else pa.array([], column.type)
    encoded = whole.dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
