"""False components: connected components whose documents are not all near-duplicates of each other."""

import numpy as np
import pyarrow as pa

from nddup.local.clustering.graph import Graph
from nddup.local.columns import take
from nddup.local.pairing.collapse import Nodes
from nddup.tables import FALSE_COMPONENTS


def list_false_components(graph: Graph, nodes: Nodes, *, is_exact: bool) -> pa.Table:
    """Return FALSE_COMPONENTS: components that hold documents which are not near-duplicates of each other.

    Pairs are counted by nodes: an edge stands for all pairs between the documents of its ends, a node for all pairs of
    its own documents.

    Args:
        graph: the nodes that have a neighbour.
        nodes: the documents.
        is_exact: whether every near-duplicate pair outside components given by leaders was found; else `invented` is an
            upper bound.
    """
    counts = nodes.equals[graph.nodes].astype(np.int64)
    sizes = np.add.reduceat(counts, graph.starts[:-1]) if len(counts) else counts
    own = np.add.reduceat(counts * (counts - 1) // 2, graph.starts[:-1]) if len(counts) else counts
    between = counts[graph.edges].prod(axis=1)
    pairs = own + (np.add.reduceat(between, graph.edge_starts[:-1]) if len(counts) else counts)
    invented = sizes * (sizes - 1) // 2 - pairs
    rows = np.flatnonzero(invented > 0)
    first = graph.starts[:-1][rows]
    columns = [
        take(nodes.ids, graph.nodes[first]),
        pa.array(sizes[rows]),
        pa.array(pairs[rows]),
        pa.array(invented[rows]),
        pa.array(is_exact & ~graph.by_leaders[first]),
    ]
    return pa.Table.from_arrays(columns, schema=FALSE_COMPONENTS.arrow)


def count_false_components(found: pa.Table) -> dict[str, int]:
    """Count, for `metrics.json`, the invented pairs, the most in one component, and components with a bound only."""
    invented = found["invented"].to_numpy()
    return {
        "invented_pairs": int(invented.sum()),
        "most_invented": int(invented.max(initial=0)),
        "bounded_components": len(found) - int(np.count_nonzero(found["exact"])),
    }
