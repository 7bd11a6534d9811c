"""Large components, cut into shares that are mined in many tasks.

A maximal set is found from its first member, its pivot, among the neighbours of the pivot. So a component can be cut
into shares of its documents: a share gets its own documents, which are its pivots, all their neighbours, and every
near-duplicate pair among these. A document is in the share of its kept near-duplicate. So most of its neighbours are in
its share too, and few sketches are sent twice.

    graph, sketches, matches --gather_shares--> blocks, each share in one partition  2 shuffles of edges, 1 of blocks
    blocks of a share        --mine_shares-->   its sets by a step of `share_steps`, or a row OVER past its budget

The budget is that of a component of the share's size. Shares depend on the graph alone, never on the number of
partitions, so the same input gives the same sets.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.arrays import take_rows
from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import Find, PlacedShare, Share, list_sets
from nddup.mining.itemsets import Itemsets
from nddup.spark.blocks import (
    Columns,
    Layout,
    block_schema,
    exchange,
    pack,
    pack_sketches,
    ragged_column,
    unpack,
    with_rows,
)
from nddup.spark.clustering.problems import Batches, group_rows
from nddup.spark.schemas import require, schema_of
from nddup.tables import GRAPH, MATCHES, SETS, SKETCHES

OVER = "over"
"""The `coverage` of a row that is not a set and has no members: a share of its component exceeded its budget."""

PAST = Itemsets(np.zeros(2, np.int64), np.empty(0, np.int32), np.zeros(1, np.int32), OVER)
"""Such a row."""

NODE_LAYOUT: Layout = {
    "ordinal": np.int64,
    "share": np.int32,
    "position": np.int32,
    "is_pivot": np.int32,
    "size": np.int32,
    "ids": np.uint64,
}
EDGE_LAYOUT: Layout = {"edge_ordinal": np.int64, "edge_share": np.int32, "edge_a": np.int32, "edge_b": np.int32}


def gather_shares(graph: DataFrame, sketches: DataFrame, matches: DataFrame, *, partitions: int) -> DataFrame:
    """Bring together the documents of each share, their neighbours, and the edges among all of these.

    Schema in:   GRAPH (rows without a share are left out), SKETCHES, MATCHES
    Schema out:  blocks of NODE_LAYOUT and EDGE_LAYOUT in the partition of their share
    Shuffles:  the edges twice with their ends, the sketches once, and one of blocks.    Actions:  none.
    """
    require(graph, GRAPH, stage="clusters")
    require(sketches, SKETCHES, stage="clusters")
    require(matches, MATCHES, stage="clusters")
    pairs = matches.select("node_a", "node_b")
    placed = _list_shares(graph, pairs)

    nodes = (
        sketches.join(placed, "node")
        .withColumn("share", F.explode("shares"))
        .withColumn("is_pivot", (F.col("share") == F.col("own_share")).cast("int"))
        .select("ordinal", "share", "position", "is_pivot", "sketch")
        .mapInArrow(partial(_post_nodes, partitions=partitions), block_schema(NODE_LAYOUT))
    )

    # An edge is in the shares that have both of its ends.
    ends = placed.select("node", "ordinal", "position", "shares")
    edges = (
        pairs.join(ends.toDF("node_a", "edge_ordinal", "edge_a", "shares_a"), "node_a")
        .join(ends.toDF("node_b", "same_ordinal", "edge_b", "shares_b"), "node_b")
        .withColumn("edge_share", F.explode(F.array_intersect("shares_a", "shares_b")))
        .select(*EDGE_LAYOUT)
        .mapInArrow(partial(_post_edges, partitions=partitions), block_schema(EDGE_LAYOUT))
    )
    return exchange(nodes.unionByName(edges, allowMissingColumns=True), partitions=partitions)


def mine_shares(blocks: DataFrame, *, threshold: Threshold, find: Find, is_distinct: bool) -> DataFrame:
    """Find the sets of each share by one step of `cluster_modes.share_steps`.

    Schema in:   blocks of NODE_LAYOUT and EDGE_LAYOUT
    Schema out:  SETS, each set once; a row OVER for a component with a share that exceeded its budget
    Shuffles:  none where no two shares find a set; else the sets, on their members.    Actions:  none.
    """
    found = blocks.mapInArrow(partial(_share_block, threshold=threshold, find=find), schema_of(SETS))
    return found if is_distinct else found.dropDuplicates(["ordinal", "positions"])


def _list_shares(graph: DataFrame, pairs: DataFrame) -> DataFrame:
    """List the nodes with a share, and all shares that need each: its own and those of its neighbours.

    Schema in:   GRAPH; node_a long, node_b long
    Schema out:  node long, ordinal long, position int, own_share int, shares array<int>
    """
    own = graph.where("share is not null").select("node", "ordinal", "position", F.col("share").alias("own_share"))
    share_of = own.select("node", "own_share")
    joined = pairs.join(share_of.toDF("node_a", "share_a"), "node_a").join(share_of.toDF("node_b", "share_b"), "node_b")

    needed = (
        share_of.toDF("node", "share")
        .unionByName(joined.select(F.col("node_a").alias("node"), F.col("share_b").alias("share")))
        .unionByName(joined.select(F.col("node_b").alias("node"), F.col("share_a").alias("share")))
    )
    shares = needed.groupBy("node").agg(F.collect_set("share").alias("shares"))
    return own.join(shares, "node")


def _post_nodes(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        ordinals, shares = (np.asarray(batch.column(name)) for name in ("ordinal", "share"))
        yield pack_sketches(NODE_LAYOUT, _targets(ordinals, shares, partitions), batch, partitions=partitions)


def _post_edges(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        columns: Columns = {name: np.asarray(batch.column(name)) for name in EDGE_LAYOUT}
        targets = _targets(columns["edge_ordinal"], columns["edge_share"], partitions)
        yield pack(EDGE_LAYOUT, targets, columns, partitions=partitions)


def _targets(ordinals: NDArray[np.generic], shares: NDArray[np.generic], partitions: int) -> NDArray[np.int32]:
    """Return the partition of each share; the shares of a component are in consecutive partitions."""
    return ((ordinals.astype(np.int64) % partitions + shares.astype(np.int64)) % partitions).astype(np.int32)


def _share_block(batches: Batches, *, threshold: Threshold, find: Find) -> Batches:
    """Return SETS for the shares of one partition."""
    shares = _read_shares(with_rows(batches), threshold)
    return list_sets((ordinal, share.find(find) or PAST) for ordinal, share in shares)


def _read_shares(held: list[pa.RecordBatch], threshold: Threshold) -> Iterator[tuple[int, PlacedShare]]:
    """Read the shares of a task from its blocks, each with the number of its component."""
    nodes, edges = unpack(held, NODE_LAYOUT), unpack(held, EDGE_LAYOUT)
    of_node, of_edge = _number_shares(nodes, edges)
    groups = group_rows(of_node, nodes["position"], of_edge)

    sketches = ragged_column(nodes["size"], nodes["ids"])
    ends = np.stack([edges["edge_a"], edges["edge_b"]], axis=1)
    cuts = zip(pairwise(groups.node_offsets), pairwise(groups.edge_offsets), strict=True)
    for (low, high), (start, end) in cuts:
        members = groups.nodes[low:high]
        positions = nodes["position"][members].astype(np.int32)
        share = Share(
            take_rows(sketches, members),
            threshold.bounds(nodes["size"][members].astype(np.int32)),
            _index_edges(ends[groups.edges[start:end]], positions),
            np.flatnonzero(nodes["is_pivot"][members]),
        )
        yield int(nodes["ordinal"][members[0]]), PlacedShare(positions, share)


def _index_edges(ends: NDArray[np.generic], positions: NDArray[np.int32]) -> NDArray[np.int32]:
    """Turn edges between positions in a component into edges between indices in a share, (e, 2), ascending."""
    indices = np.sort(np.searchsorted(positions, ends), axis=1).astype(np.int32)
    return indices[np.lexsort((indices[:, 1], indices[:, 0]))]


def _number_shares(nodes: Columns, edges: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the shares of a task in the order (ordinal, share); return the number for each node and for each edge."""
    ordinals = np.concatenate([nodes["ordinal"], edges["edge_ordinal"]])
    shares = np.concatenate([nodes["share"], edges["edge_share"]])

    order = np.lexsort((shares, ordinals))
    is_next = (np.diff(ordinals[order]) != 0) | (np.diff(shares[order]) != 0)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.concatenate([[0], np.cumsum(is_next)])[: len(order)]
    return numbers[: len(nodes["ordinal"])], numbers[len(nodes["ordinal"]) :]
