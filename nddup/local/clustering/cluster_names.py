"""From sets of nodes to clusters of documents, named by their members."""

import hashlib
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.local.clustering.graph import Graph
from nddup.local.clustering.mine_components import Sets
from nddup.local.columns import lists_of, one_chunk, take
from nddup.local.pairing.collapse import Nodes
from nddup.mining.modes import MODES
from nddup.tables import CLUSTERS, MEMBERS

DIGITS = 16


class Clusters(NamedTuple):
    """CLUSTERS, and MEMBERS with one row a member."""

    clusters: pa.Table
    members: pa.Table

    @property
    def is_cut(self) -> bool:
        """Whether a row of CLUSTERS holds fewer members than its cluster has."""
        listed = pc.list_value_length(self.clusters["members"])
        return bool(pc.any(pc.less(listed, self.clusters["size"])).as_py())

    def counts(self) -> dict[str, int]:
        """Return the counts of covers and of clusters around leaders, for `metrics.json`."""
        coverage, components = self.clusters["coverage"], self.clusters["component"]
        is_cover = pc.equal(coverage, "pairs")
        return {
            "fpgrowth_fits": 0,
            "covered_clusters": pc.sum(is_cover).as_py() or 0,
            "covered_components": pc.count_distinct(components.filter(is_cover)).as_py(),
            "led_clusters": pc.sum(pc.equal(coverage, "documents")).as_py() or 0,
        }


def no_clusters() -> Clusters:
    """Return the empty tables of mode `none`; made on demand: Arrow's first table reserves a gigabyte of addresses."""
    return Clusters(CLUSTERS.arrow.empty_table(), MEMBERS.arrow.empty_table())


class _Named(NamedTuple):
    """Sets of documents, each with its support, the first node of its component, and its coverage."""

    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]  # sorted by id in each set
    supports: NDArray[np.int32]
    components: NDArray[np.int32]
    coverages: NDArray[np.str_]


def name_sets(  # noqa: PLR0913 - each is a setting of its own
    sets: Sets,
    graph: Graph,
    nodes: Nodes,
    *,
    least_size: int,
    max_listed: int,
    mode: str = "all",
    by_weight: bool = False,
) -> Clusters:
    """Make CLUSTERS and MEMBERS: each set with all documents of its sketches, and each group without a neighbour.

    Args:
        sets: of nodes of the graph.
        graph: the nodes that have a neighbour.
        nodes: the documents.
        least_size: least features with which two equal sketches are near-duplicates.
        max_listed: most ids in the row of a cluster.
        mode: `clusters.mode`, by which the sets were found.
        by_weight: whether the heaviest member represents a cluster, ties by the policy; else the policy decides. Where
            clusters follow the keep-list, the kept document always represents it.

    Cost: a sort of the members, and a digest of each cluster's ids.
    """
    named = _expand(sets, graph, nodes, least_size=least_size, coverage=MODES[mode].coverage)
    sizes = np.diff(named.offsets)
    ids = take(nodes.ids, named.documents)
    cluster_ids = _digest(named.offsets, ids)
    is_listed = _places(sizes) < max_listed
    listed = ids if is_listed.all() else pa.chunked_array([one_chunk(ids).filter(pa.array(is_listed))])
    clusters = pa.Table.from_arrays(
        [
            cluster_ids,
            pa.array(named.supports),
            pa.array(sizes.astype(np.int32)),
            lists_of(np.concatenate([[0], np.cumsum(np.minimum(sizes, max_listed))]), one_chunk(listed)),
            take(nodes.ids, named.components),
            pa.array(named.coverages, pa.string()),
        ],
        schema=CLUSTERS.arrow,
    )
    of_member = np.repeat(np.arange(len(sizes)), sizes)
    before = _precedence(graph, nodes, mode=mode, by_weight=by_weight)[named.documents]
    order = np.lexsort((nodes.turns[named.documents], before, of_member))
    is_first = np.zeros(len(order), np.bool_)
    is_first[order[named.offsets[:-1]]] = True
    columns = [take(pa.chunked_array([cluster_ids]), of_member), ids, pa.array(is_first)]
    return Clusters(clusters, pa.Table.from_arrays(columns, schema=MEMBERS.arrow))


def _precedence(graph: Graph, nodes: Nodes, *, mode: str, by_weight: bool) -> NDArray[np.int64]:
    """Return what decides before the policy which member represents a cluster, least first, (n,).

    Where clusters follow the keep-list, it is the kept document: the first of the kept sketch, even where the policy
    prefers a duplicate.
    """
    if MODES[mode].follows_keep:
        is_removed = np.zeros(len(nodes.node), np.int64)
        is_removed[graph.nodes[~graph.kept]] = 1
        return is_removed[nodes.node]
    return -nodes.weights if by_weight else np.zeros(len(nodes.node), np.int64)


def _expand(sets: Sets, graph: Graph, nodes: Nodes, *, least_size: int, coverage: str) -> _Named:
    """Return the sets of two documents or more: the mined sets, then groups of equal sketches without a neighbour."""
    has_neighbour = np.zeros(len(nodes.node), np.bool_)
    has_neighbour[graph.nodes] = True
    is_alone = nodes.is_first & (nodes.equals > 1) & (nodes.sizes >= least_size) & ~has_neighbour
    alone = np.flatnonzero(is_alone).astype(np.int32)

    held = np.concatenate([graph.nodes[sets.members], alone])
    of_set = np.repeat(
        np.arange(len(sets.supports) + len(alone)), np.append(np.diff(sets.offsets), np.ones_like(alone))
    )
    equals = nodes.equals[held].astype(np.int64)
    documents = nodes.members[np.repeat(nodes.starts[held], equals) + _places(equals)]
    of_document = np.repeat(of_set, equals)
    documents = documents[np.lexsort((nodes.names[documents], of_document))]

    sizes = np.bincount(of_document, minlength=len(sets.supports) + len(alone))
    is_cluster = sizes > 1
    documents = documents[np.repeat(is_cluster, sizes)]
    first = graph.nodes[graph.starts[sets.components]]
    return _Named(
        np.concatenate([[0], np.cumsum(sizes[is_cluster])]).astype(np.int64),
        documents,
        np.concatenate([sets.supports, nodes.sizes[alone]])[is_cluster].astype(np.int32),
        np.concatenate([first, alone])[is_cluster],
        np.concatenate([sets.coverages, np.full(len(alone), coverage)])[is_cluster],
    )


def _digest(offsets: NDArray[np.int64], ids: pa.ChunkedArray) -> pa.Array:
    """Return each cluster's id: `DIGITS` digits of SHA-256 over the ids of its members, each ended by a zero byte."""
    ended = pc.binary_join_element_wise(one_chunk(ids).cast(pa.large_binary()), pa.scalar(b"", pa.large_binary()),
                                        pa.scalar(b"\0", pa.large_binary()))  # fmt: skip
    _, ends, data = ended.buffers()
    cuts = np.frombuffer(ends, np.int64, len(ended) + 1)[offsets].tolist()
    whole = memoryview(data or b"")
    names = [hashlib.sha256(whole[low:high]).hexdigest()[:DIGITS] for low, high in pairwise(cuts)]
    return pa.array(names, pa.string())


def _places(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return 0, 1, … for each of several runs, end to end."""
    return np.asarray(np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts))


def count_false_components(found: pa.Table) -> dict[str, int]:
    """Count, for `metrics.json`, the invented pairs, the most in one component, and components with a bound only."""
    invented = found["invented"].to_numpy()
    return {
        "invented_pairs": int(invented.sum()),
        "most_invented": int(invented.max(initial=0)),
        "bounded_components": len(found) - int(np.count_nonzero(found["exact"])),
    }
