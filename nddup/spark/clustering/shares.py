"""Large components, spread over tasks: each task has some of the documents as pivots, and what lies around them.

A maximal set is found by its first member, among the neighbours of that member. So a component can be cut into shares
of its documents: a share gets its own documents and all their neighbours, with every near-duplicate pair among these.
A document goes along with its kept near-duplicate, so that most of its neighbours are in its share, and few sketches
travel twice.

    graph, sketches, matches --gather_shares--> blocks, a share in one partition     2 shuffles of edges, 1 of blocks
    blocks of a share        --mine_shares-->   its maximal sets, or the word that its budget is passed
    blocks of a share        --cover_shares-->  sets that hold every pair of its documents with later ones

The budget is that of a component of the share's size. The shares follow from the graph alone, never from the number
of partitions, so the same input gives the same sets.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.arrays import Ragged, take_rows
from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import Budget
from nddup.mining.itemsets import COVER_SHARE, Itemsets, cover_component, mine_share
from nddup.spark.blocks import Columns, Layout, block_schema, exchange, list_column, pack, unpack
from nddup.spark.clustering.problems import Batches, Sets
from nddup.spark.schemas import GRAPH, MATCHES, SETS, SKETCHES, require

OVER = "over"
"""In the column `coverage`: this share passed its budget; the row is no set."""

NODE_LAYOUT: Layout = {
    "ordinal": np.int64,
    "share": np.int32,
    "position": np.int32,
    "is_pivot": np.int32,
    "size": np.int32,
    "ids": np.uint64,
}
EDGE_LAYOUT: Layout = {"edge_ordinal": np.int64, "edge_share": np.int32, "edge_a": np.int32, "edge_b": np.int32}
PLACE = ("ordinal", "share", "position", "is_pivot")


def gather_shares(graph: DataFrame, sketches: DataFrame, matches: DataFrame, *, partitions: int) -> DataFrame:
    """Bring the documents of each share, their neighbours, and the edges among all of these together.

    Schema in:   GRAPH (rows without a share are left out), SKETCHES, MATCHES
    Schema out:  blocks of NODE_LAYOUT and EDGE_LAYOUT in the partition of their share
    Shuffles:  the edges twice with their ends, the sketches once, and one of blocks.    Actions:  none.
    """
    require(graph, GRAPH, stage="clusters")
    require(sketches, SKETCHES, stage="clusters")
    require(matches, MATCHES, stage="clusters")
    own = graph.where("share is not null").select("node", "ordinal", "position", "share")
    pairs = matches.select("node_a", "node_b")
    joined = pairs.join(own.select(F.col("node").alias("node_a"), F.col("share").alias("share_a")), "node_a").join(
        own.select(F.col("node").alias("node_b"), F.col("share").alias("share_b")), "node_b"
    )
    reached = (
        own.select("node", F.col("share").alias("seen"))
        .unionByName(joined.select(F.col("node_a").alias("node"), F.col("share_b").alias("seen")))
        .unionByName(joined.select(F.col("node_b").alias("node"), F.col("share_a").alias("seen")))
    )
    seen = reached.groupBy("node").agg(F.collect_set("seen").alias("shares"))
    placed = own.join(seen, "node")
    nodes = (
        sketches.join(placed, "node")
        .withColumn("is_in", F.explode("shares"))
        .withColumn("is_pivot", (F.col("is_in") == F.col("share")).cast("int"))
        .select("ordinal", F.col("is_in").alias("share"), "position", "is_pivot", "sketch")
        .mapInArrow(partial(_post_nodes, partitions=partitions), block_schema(NODE_LAYOUT))
    )
    ends = placed.select("node", "ordinal", "position", "shares")
    edges = (
        pairs.join(ends.toDF("node_a", "ordinal", "edge_a", "shares_a"), "node_a")
        .join(ends.toDF("node_b", "same", "edge_b", "shares_b"), "node_b")
        .withColumn("is_in", F.explode(F.array_intersect("shares_a", "shares_b")))
        .select("ordinal", F.col("is_in").alias("share"), "edge_a", "edge_b")
        .mapInArrow(partial(_post_edges, partitions=partitions), block_schema(EDGE_LAYOUT))
    )
    return exchange(nodes.unionByName(edges, allowMissingColumns=True), partitions=partitions)


def mine_shares(blocks: DataFrame, *, threshold: Threshold, budget: Budget) -> DataFrame:
    """The maximal sets whose first member is a pivot of the share, each set of a component once.

    Schema in:   blocks of NODE_LAYOUT and EDGE_LAYOUT
    Schema out:  SETS; one row with coverage OVER and no members for a share that passed its budget
    Shuffles:  none.    Actions:  none.
    """
    find = partial(_mine, budget=budget)
    return blocks.mapInArrow(partial(_share_block, threshold=threshold, find=find), SETS)


def cover_shares(blocks: DataFrame, *, threshold: Threshold, budget: Budget) -> DataFrame:
    """Maximal sets that hold every pair of a pivot with a later document; shares may find the same set.

    Schema in:   blocks of NODE_LAYOUT and EDGE_LAYOUT
    Schema out:  SETS, each set once; a row OVER for a share whose cover would pass ten times its budget
    Shuffles:  the sets, on their members.    Actions:  none.
    """
    find = partial(_cover, budget=budget, times=COVER_SHARE)
    found = blocks.mapInArrow(partial(_share_block, threshold=threshold, find=find), SETS)
    return found.dropDuplicates(["ordinal", "positions"])


class Share(NamedTuple):
    """A share of m documents, in canonical order."""

    ordinal: np.int64  # of the component
    number: int
    positions: NDArray[np.int32]  # (m,) in the component
    sketches: Ragged
    bounds: NDArray[np.int32]  # (m,)
    edges: NDArray[np.int32]  # (e, 2), indices in the share, the lower first
    pivots: NDArray[np.int64]  # indices of its own documents


def _post_nodes(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        columns: Columns = {name: np.asarray(batch.column(name)) for name in PLACE}
        columns["size"] = np.diff(rows.offsets).astype(np.int32)
        targets = _targets(columns["ordinal"], columns["share"], partitions)
        yield pack(NODE_LAYOUT, targets, columns, {"ids": rows}, partitions=partitions)


def _post_edges(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        columns = dict(zip(EDGE_LAYOUT, (np.asarray(column) for column in batch.columns), strict=True))
        targets = _targets(columns["edge_ordinal"], columns["edge_share"], partitions)
        yield pack(EDGE_LAYOUT, targets, columns, partitions=partitions)


def _targets(ordinals: NDArray[np.generic], shares: NDArray[np.generic], partitions: int) -> NDArray[np.int32]:
    """The partition of each share: those of a component lie in partitions one after another."""
    return ((ordinals.astype(np.int64) % partitions + shares.astype(np.int64)) % partitions).astype(np.int32)


def _share_block(batches: Batches, *, threshold: Threshold, find: Callable[[Share], Itemsets | None]) -> Batches:
    sets = Sets()
    for share in _read_shares([batch for batch in batches if batch.num_rows], threshold):
        found = find(share)
        if found is None:
            number = np.array([share.number], np.int32)
            sets.add(share.ordinal, np.ones(1, np.int64), number, np.zeros(1, np.int32), OVER)
        else:
            members = share.positions[found.members]
            sets.add(share.ordinal, np.diff(found.offsets), members, found.supports, found.coverage)
        if sets.is_full:
            yield from sets.release()
    yield from sets.release()


def _read_shares(held: list[pa.RecordBatch], threshold: Threshold) -> Iterator[Share]:
    nodes, edges = unpack(held, NODE_LAYOUT), unpack(held, EDGE_LAYOUT)
    of_node, of_edge = _number_shares(nodes, edges)
    order = np.lexsort((nodes["position"], of_node))
    by_share = np.argsort(of_edge, kind="stable")
    ids = Ragged(np.concatenate([[0], np.cumsum(nodes["size"])]).astype(np.int64), nodes["ids"].view(np.uint64))
    numbers, first = np.unique(of_node[order], return_index=True)
    cuts = np.append(np.searchsorted(of_edge[by_share], numbers), len(by_share))
    for index, (low, high) in enumerate(pairwise([*first, len(order)])):
        mine, between = order[low:high], by_share[cuts[index] : cuts[index + 1]]
        positions = nodes["position"][mine].astype(np.int32)
        ends = np.stack([edges["edge_a"][between], edges["edge_b"][between]], axis=1)
        places = np.sort(np.searchsorted(positions, ends), axis=1).astype(np.int32)
        yield Share(
            nodes["ordinal"][mine[0]].astype(np.int64),
            int(nodes["share"][mine[0]]),
            positions,
            take_rows(ids, mine),
            threshold.bounds(nodes["size"][mine].astype(np.int32)),
            places[np.lexsort((places[:, 1], places[:, 0]))],
            np.flatnonzero(nodes["is_pivot"][mine]),
        )


def _number_shares(nodes: Columns, edges: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The shares of a task, (ordinal, share), by their place among them: of each node, and of each edge."""
    ordinals = np.concatenate([nodes["ordinal"], edges["edge_ordinal"]])
    shares = np.concatenate([nodes["share"], edges["edge_share"]])
    order = np.lexsort((shares, ordinals))
    is_next = (np.diff(ordinals[order]) != 0) | (np.diff(shares[order]) != 0)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.concatenate([[0], np.cumsum(is_next)])[: len(order)]
    return numbers[: len(nodes["ordinal"])], numbers[len(nodes["ordinal"]) :]


def _arrays(share: Share) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    return share.sketches.offsets, share.sketches.values.view(np.int64), share.bounds, share.edges


def _mine(share: Share, *, budget: Budget) -> Itemsets | None:
    limits = budget.of(len(share.pivots))
    return mine_share(*_arrays(share), share.pivots, min_support=budget.min_support, **limits)


def _cover(share: Share, *, budget: Budget, times: int) -> Itemsets | None:
    limits = budget.of(len(share.pivots), times)
    return cover_component(*_arrays(share), pivots=share.pivots, min_support=budget.min_support, **limits)
