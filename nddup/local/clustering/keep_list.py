"""The keep-list: every document once, kept or a duplicate of a kept one."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.local.clustering.graph import Graph
from nddup.local.columns import take
from nddup.local.pairing.collapse import Nodes
from nddup.matching.preference import NUMBERS, Order
from nddup.tables import KEEP

REASONS = ("exact", "equal", "near")


def count_unplaced(documents: pa.Table, order: Order) -> dict[str, dict[str, int]]:
    """Count, for `KeepMetrics`, the documents that lack a value or have no number in a column of the keep policy."""
    found: dict[str, dict[str, int]] = {"without_value": {}, "unparsable": {}}
    for at, column in enumerate(order.read):
        values = pc.list_element(documents["policy"], at)
        is_there = pc.fill_null(pc.match_substring_regex(values, r"\S"), False)  # noqa: FBT003 - the value that fills
        found["without_value"][column.path] = len(documents) - (pc.sum(is_there).as_py() or 0)
        if column.type == "number":
            is_other = pc.and_(is_there, pc.invert(pc.fill_null(pc.match_substring_regex(values, NUMBERS), True)))  # noqa: FBT003
            found["unparsable"][column.path] = pc.sum(is_other).as_py() or 0
    return {name: {path: count for path, count in counts.items() if count} for name, counts in found.items()}


def list_kept(nodes: Nodes, graph: Graph, *, least_size: int) -> pa.Table:
    """Return KEEP: whether each document is kept, and if not, which kept document it duplicates and why.

    Args:
        nodes: the documents.
        graph: the nodes that have a neighbour.
        least_size: least features with which two equal sketches are near-duplicates (a count k, else 1); of equal
            sketches with fewer, every document is kept.
    """
    places = np.arange(len(nodes.node))
    near = np.full(len(places), -1, np.int64)
    removed = np.flatnonzero(~graph.kept)
    near[graph.nodes[removed]] = nodes.best[graph.nodes[graph.duplicate_of[removed]]]

    of_node, own = near[nodes.node], nodes.best[nodes.node]
    is_equal = (nodes.sizes >= least_size) & (places != own)
    duplicate_of = np.where(of_node >= 0, of_node, np.where(is_equal, own, -1))
    kept = duplicate_of < 0
    is_exact = (nodes.contents == nodes.contents[np.where(kept, places, duplicate_of)]).all(axis=1)
    reason = np.where(is_exact, 0, np.where(of_node < 0, 1, 2))
    columns = [
        nodes.ids,
        pa.array(kept),
        take(nodes.ids, duplicate_of),
        pa.array(REASONS, pa.string()).take(pa.array(reason, mask=kept)),
    ]
    return pa.Table.from_arrays(columns, schema=KEEP.arrow)
