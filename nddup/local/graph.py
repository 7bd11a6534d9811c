"""The pair graph of distinct sketches: its components, and which of its nodes are kept."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.columns import one_chunk, take
from nddup.local.collapse import Nodes
from nddup.local.match import Matches
from nddup.mining.keep_verdicts import Loss, direct_edges, only_later
from nddup.mining.modes import SHARE_NODES
from nddup.mining.pair_graph import keep_first, label_components, number_shares


@dataclass(frozen=True)
class Graph:
    """The n nodes that have a neighbour, sorted by component, then by the id of their `group` document.

    Attributes:
        nodes: (n,), the place of each in DOCUMENTS.
        starts: (c + 1,), where each of the c components begins.
        ordinals: (n,), the component of each.
        kept: (n,), whether the node is kept.
        duplicate_of: (n,), the index here of its kept near-duplicate, its own where it is kept. A node whose documents
            are all forced out counts as kept if it has no kept near-duplicate; it removes no other.
        ranks: (n,), the place in the order of the keep policy.
        by_leaders: (n,), whether its component had more than `pairs.max_edges` pairs, so that not all are edges.
        edges: (e, 2), indices here, the lower first, sorted by component.
        edge_starts: (c + 1,), where the edges of each component begin.
        overlaps: (e,), ids that the ends of each edge have in common.
        shares: (n,), the share that has the node as a pivot; -1 where the component is not cut into shares.
    """

    nodes: NDArray[np.int32]
    starts: NDArray[np.int64]
    ordinals: NDArray[np.int32]
    kept: NDArray[np.bool_]
    duplicate_of: NDArray[np.int32]
    ranks: NDArray[np.int32]
    by_leaders: NDArray[np.bool_]
    edges: NDArray[np.int32]
    edge_starts: NDArray[np.int64]
    overlaps: NDArray[np.int32]
    shares: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Nodes of each component, (c,)."""
        return np.diff(self.starts)

    def table(self, nodes: Nodes) -> pa.Table:
        """Return the columns of GRAPH that other stages read; a node is the place of its `group` document."""
        places = self.nodes.astype(np.int64)
        firsts = one_chunk(take(nodes.ids, self.nodes[self.starts[:-1]]))
        columns = {
            "node": pa.array(places),
            "component": firsts.take(pa.array(self.ordinals)),
            "ordinal": pa.array(self.ordinals.astype(np.int64)),
            "position": pa.array((np.arange(len(places)) - self.starts[self.ordinals]).astype(np.int32)),
            "kept": pa.array(self.kept),
            "duplicate_of": pa.array(places[self.duplicate_of], mask=self.kept),
            "by_leaders": pa.array(self.by_leaders),
        }
        return pa.table(columns)

    def counts(self) -> dict[str, int]:
        """Return the counts of components for `metrics.json`."""
        first = self.starts[:-1]
        return {
            "components": len(first),
            "largest_component": int(self.sizes.max(initial=0)),
            "fpgrowth_components": 0,
            "led_components": int(np.count_nonzero(self.by_leaders[first])),
            "spread_components": int(np.count_nonzero(self.shares[first] >= 0)),
            "shares": int(self.shares.max(initial=-1)) + 1,
        }


def build_graph(  # noqa: PLR0913 - each is a setting of its own
    matches: Matches,
    nodes: Nodes,
    *,
    large: NDArray[np.int32],
    share_nodes: int | None = SHARE_NODES,
    least_containment: float | None = None,
    max_lost: Fraction | None = None,
) -> Graph:
    """Label the components and choose the kept nodes.

    Args:
        matches: the near-duplicate pairs of distinct sketches.
        nodes: the documents.
        large: nodes of components that are given by leaders, ascending.
        share_nodes: a component of more nodes is cut into shares of about this many; None: none is cut.
        least_containment: share of a document that another must contain to replace it; the heavier node is then
            preferred, ties by the policy. None: near-duplicates replace each other.
        max_lost: share of a document that another may lack to replace it; needs `matches.common`.

    Cost: sorts of the nodes and edges.
    """
    found = np.unique(matches.ends)
    found = found[np.argsort(nodes.id_rank[found])]
    places = np.full(len(nodes.node), -1, np.int32)
    places[found] = np.arange(len(found), dtype=np.int32)
    ends = places[matches.ends]
    components = label_components(ends, nodes=len(found))

    turns = nodes.policy_rank[nodes.first_by_policy[found]]
    heaviest = -nodes.weights[found] if least_containment is not None else np.zeros(len(found), np.int64)
    classes = nodes.forced[nodes.first_by_policy[found]]
    ranks = np.empty(len(found), np.int32)
    ranks[np.lexsort((turns, heaviest, classes))] = np.arange(len(found), dtype=np.int32)
    likeness = matches.likeness if least_containment is None else matches.containments
    if max_lost is not None or classes.any():
        loss = None if max_lost is None else _loss(matches, nodes.n_features[found][ends.T], max_lost)
        likeness = direct_edges(likeness, classes[ends.T], loss)
        likeness = likeness if loss is None else only_later(likeness, ranks[ends.T])
    choice = keep_first(ends, likeness, ranks, least_containment or 0.0)

    # Reorder the nodes: so far they are sorted by id, from here on by component.
    order = np.argsort(components.ordinals, kind="stable")
    moved = np.empty(len(found), np.int32)
    moved[order] = np.arange(len(found), dtype=np.int32)
    leaders = np.where(choice.kept, np.arange(len(found)), choice.duplicate_of)
    ordinals = components.ordinals[order]
    edges = np.sort(moved[ends], axis=1)
    by_place = np.lexsort((edges[:, 1], edges[:, 0]))
    by_leaders = np.isin(found, large)[order]
    shares = number_shares(components.positions[leaders], components.sizes, share_nodes)[order]
    n_components = int(ordinals.max(initial=-1)) + 1
    starts = np.searchsorted(ordinals, np.arange(n_components + 1))
    return Graph(
        nodes=found[order].astype(np.int32),
        starts=starts,
        ordinals=ordinals,
        kept=choice.kept[order],
        duplicate_of=moved[leaders[order]],
        ranks=ranks[order],
        by_leaders=by_leaders,
        edges=edges[by_place],
        edge_starts=np.searchsorted(edges[by_place, 0], starts),
        overlaps=matches.overlap[by_place],
        shares=np.where(by_leaders, -1, shares),
    )


def _loss(matches: Matches, sizes: NDArray[np.int32], most: Fraction) -> Loss:
    """Return what both ends of each pair, (2, e), would lose."""
    if matches.common is None:
        raise ValueError("keep.max_lost: the shingles of the pairs were not counted")
    return Loss(matches.common, sizes.astype(np.int64), most)
