"""Components as mining problems: the sketches and edges of each, gathered in one partition; large ones cut into shares.

    graph, sketches, matches  --gather_problems-->  blocks, each component in one partition   1 shuffle, of blocks
    blocks of a task          --read_problems-->    Problems, arrays by component
    graph, sketches, matches  --gather_shares-->    blocks, each share in one partition       2 of edges, 1 of blocks
    blocks of a share         --mine_shares-->      its sets by a step of `share_steps`, or a row OVER past its budget

Sketches are wide, and most are in no component, so they are not shuffled to find it: the task of a component is its
number modulo the partitions (`list_targets`, `send`). Shares depend on the graph alone, never on the number of
partitions, so the same input gives the same sets.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.ground.arrays import take_rows
from nddup.matching.task_sizes import BLOCK_BYTES
from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import Find, PlacedShare, Problems, list_sets
from nddup.mining.itemsets import Itemsets
from nddup.spark.blocks import (
    Columns,
    Layout,
    block_schema,
    exchange,
    merged,
    pack,
    pack_sketches,
    ragged_column,
    unpack,
    with_rows,
)
from nddup.spark.schemas import require, schema_of
from nddup.tables import GRAPH, MATCHES, SETS, SKETCHES

CHUNKED_NODES = 1 << 18
"""Minimum number of nodes whose targets are sent in chunks. Fewer are broadcast as rows of about 60 bytes, without the
work of making chunks."""

CHUNKED_DOCUMENTS = 200_000_000
"""Maximum number of documents of the collection for targets in chunks: the chunks of more, over 400 MB, would not fit
an executor of 1 GB beside its work. Then the sketches are shuffled on their nodes, once."""

CHUNK_BITS = 12
CHUNKS = "chunk long, targets array<smallint>"
NO_TARGET = -1
"""The target, in a chunk, of a document that is not a node of the graph."""


class Scale(NamedTuple):
    """The numbers that decide how targets are found: joined as rows, or looked up in chunks."""

    nodes: int
    """Nodes of the graph."""
    documents: int
    """Documents of the collection: nodes are named by their keys, so there is at most one chunk per 4,096 documents."""

    def is_chunked(self, partitions: int) -> bool:
        """Whether the targets, below `partitions`, are sent in chunks."""
        fits = self.documents <= CHUNKED_DOCUMENTS and partitions <= np.iinfo(np.int16).max
        return fits and self.nodes >= CHUNKED_NODES


Batches = Iterator[pa.RecordBatch]

SKETCH_LAYOUT: Layout = {"sketch_node": np.int64, "size": np.int32, "ids": np.uint64}

NODE_LAYOUT: Layout = {
    "node": np.int64,
    "ordinal": np.int64,
    "position": np.int32,
    "fit": np.int32,
    "rank": np.int32,
    "leads": np.int32,
    "by_leaders": np.int32,
}

EDGE_LAYOUT: Layout = {"node_a": np.int64, "node_b": np.int64}

PROBLEM_LAYOUT: Layout = {**SKETCH_LAYOUT, **NODE_LAYOUT, **EDGE_LAYOUT}

PIVOT = -1
"""The value of the column `fit` for a component of the pivot miner."""

_POSTED = {"node": NODE_LAYOUT, "sketch": SKETCH_LAYOUT, "edge": EDGE_LAYOUT}

OVER = "over"
"""The `coverage` of a row that is not a set and has no members: a share of its component exceeded its budget."""

PAST = Itemsets(np.zeros(2, np.int64), np.empty(0, np.int32), np.zeros(1, np.int32), OVER)
"""Such a row."""

SHARE_NODES: Layout = {
    "ordinal": np.int64,
    "share": np.int32,
    "position": np.int32,
    "is_pivot": np.int32,
    "size": np.int32,
    "ids": np.uint64,
}

SHARE_EDGES: Layout = {"edge_ordinal": np.int64, "edge_share": np.int32, "edge_a": np.int32, "edge_b": np.int32}


def target_of_component(partitions: int) -> Column:
    """Return the partition of a component, int, from the column `ordinal`."""
    return (F.col("ordinal") % partitions).cast("int")


def list_targets(graph: DataFrame, scale: Scale, *, partitions: int) -> DataFrame:
    """Return the target of each node, in the form that `send` looks up.

    Of a graph of many nodes only the targets are broadcast, 2 bytes per document of the collection: rows of 4,096
    nodes, made by a shuffle of 12 bytes per node of the graph.

    Schema in:   node long, ordinal long, …
    Schema out:  node long, target int; or CHUNKS, to be broadcast
    Shuffles:  none; for chunks one, of narrow rows.    Actions:  none.
    """
    targets = graph.select("node", target_of_component(partitions).alias("target"))
    if not scale.is_chunked(partitions):
        return targets
    chunk = F.shiftright("node", CHUNK_BITS).alias("chunk")
    return F.broadcast(targets.groupBy(chunk).applyInArrow(_fill_chunk, CHUNKS))


def send(rows: DataFrame, targets: DataFrame, by: str) -> DataFrame:
    """Return the rows whose node has a target, with that target.

    Schema in:   the column `by`, a node, and any others; as `list_targets` gives
    Schema out:  the columns of the rows, target int
    Shuffles:  none if the targets are broadcast; else the rows once on their node.    Actions:  none.
    """
    if "chunk" not in targets.columns:
        return rows.join(targets.withColumnRenamed("node", by), by)

    place = F.col(by).bitwiseAND((1 << CHUNK_BITS) - 1).cast("int")
    return (
        rows.join(targets, F.shiftright(by, CHUNK_BITS) == F.col("chunk"))
        .withColumn("target", F.get("targets", place).cast("int"))
        .where(F.col("target") != NO_TARGET)
        .drop("chunk", "targets")
    )


def _fill_chunk(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
    targets = np.full(1 << CHUNK_BITS, NO_TARGET, np.int16)
    places = rows["node"].to_numpy() & ((1 << CHUNK_BITS) - 1)
    targets[places] = rows["target"].to_numpy()
    lists = pa.ListArray.from_arrays(pa.array([0, len(targets)], pa.int32()), pa.array(targets))
    return pa.table({"chunk": pa.array([key[0].as_py()], pa.int64()), "targets": lists})


def gather_problems(
    graph: DataFrame, sketches: DataFrame, matches: DataFrame, *, scale: Scale, partitions: int
) -> DataFrame:
    """Bring the nodes, sketches and edges of each component into one partition, where node numbers link them.

    Schema in:   GRAPH, SKETCHES, MATCHES
    Schema out:  blocks of PROBLEM_LAYOUT in the partition of their component
    Shuffles:  one of blocks; those of `component_tasks`.    Actions:  none.
    """
    require(graph, GRAPH, stage="clusters")
    require(sketches, SKETCHES, stage="clusters")
    require(matches, MATCHES, stage="clusters")
    targets = list_targets(graph, scale, partitions=partitions)

    nodes = graph.withColumns(
        {
            "target": target_of_component(partitions),
            "fit": F.coalesce("batch", F.lit(PIVOT)),
            "leads": F.col("leads").cast("int"),
            "by_leaders": F.col("by_leaders").cast("int"),
        }
    )
    with_target = {
        "node": nodes,
        "sketch": send(sketches.select(F.col("node").alias("sketch_node"), "sketch"), targets, "sketch_node"),
        "edge": send(matches.select("node_a", "node_b"), targets, "node_a"),
    }
    blocks = [_post(rows, _POSTED[kind], partitions) for kind, rows in with_target.items()]
    together = blocks[0]
    for more in blocks[1:]:
        together = together.unionByName(more, allowMissingColumns=True)
    return exchange(together, partitions=partitions)


def _post(rows: DataFrame, layout: Layout, partitions: int) -> DataFrame:
    columns = ["sketch_node", "sketch"] if "ids" in layout else list(layout)
    task = partial(_post_batches, layout=layout, partitions=partitions)
    return rows.select("target", *columns).mapInArrow(task, block_schema(layout))


def _post_batches(batches: Batches, *, layout: Layout, partitions: int) -> Batches:
    for batch in merged(batches, BLOCK_BYTES * partitions):
        targets = np.asarray(batch.column("target"))
        if "ids" in layout:
            yield pack_sketches(layout, targets, batch, partitions=partitions)
        else:
            columns: Columns = {name: np.asarray(batch.column(name)) for name in layout}
            yield pack(layout, targets, columns, partitions=partitions)


class Groups(NamedTuple):
    """The nodes and edges of a task by group, g groups in ascending order.

    A group is a component, or a share of one. Nodes and edges are places among the rows that the task received.
    """

    nodes: NDArray[np.int64]  # (n,), by (group, position)
    node_offsets: NDArray[np.int64]  # (g + 1,), the nodes of each group
    edges: NDArray[np.int64]  # (e,), by group
    edge_offsets: NDArray[np.int64]  # (g + 1,), the edges of each group


def group_rows(of_node: NDArray[np.generic], positions: NDArray[np.generic], of_edge: NDArray[np.generic]) -> Groups:
    """Order the rows of a task by group.

    Args:
        of_node: (n,), the group of each node; every group has a node.
        positions: (n,), the place of each node in its component.
        of_edge: (e,), the group of each edge.
    """
    nodes = np.lexsort((positions, of_node))
    groups, first = np.unique(of_node[nodes], return_index=True)
    edges = np.argsort(of_edge, kind="stable")
    edge_offsets = np.append(np.searchsorted(of_edge[edges], groups), len(edges))
    return Groups(nodes, np.append(first, len(nodes)), edges, edge_offsets)


def read_problems(blocks: list[pa.RecordBatch], threshold: Threshold) -> tuple[Problems, NDArray[np.int32]]:
    """Read the components of a task, and the `fit` of each; without blocks all arrays are empty.

    Raises:
        ValueError: if there is not exactly one sketch for each node.
    """
    nodes, posted, edges = (unpack(blocks, layout) for layout in (NODE_LAYOUT, SKETCH_LAYOUT, EDGE_LAYOUT))

    # Sketches and edges have node numbers. Turn these into places among the nodes that the task received.
    by_number, by_node = np.argsort(nodes["node"]), np.argsort(posted["sketch_node"])
    numbers = nodes["node"][by_number]
    if not np.array_equal(numbers, posted["sketch_node"][by_node]):
        sketches = f"{len(by_node)} sketches, which are not one per node"
        raise ValueError(f"clusters: a task has {len(numbers)} nodes and {sketches}")
    ends = np.stack([by_number[np.searchsorted(numbers, edges[end])] for end in EDGE_LAYOUT], axis=1)
    groups = group_rows(nodes["ordinal"], nodes["position"], nodes["ordinal"][ends[:, 0]])

    order, first = groups.nodes, groups.nodes[groups.node_offsets[:-1]]
    sketch_at = np.empty(len(by_number), np.int64)
    sketch_at[by_number] = by_node
    rows = sketch_at[order]
    problems = Problems(
        nodes["ordinal"][first].astype(np.int64),
        groups.node_offsets,
        groups.edge_offsets,
        nodes["by_leaders"][first] != 0,
        ragged_column(posted["size"], posted["ids"]),
        rows,
        threshold.bounds(posted["size"][rows].astype(np.int32)),
        nodes["rank"][order].astype(np.int32),
        nodes["leads"][order] != 0,
        np.sort(nodes["position"][ends[groups.edges]], axis=1).astype(np.int32),
    )
    return problems, nodes["fit"][first].astype(np.int32)


def gather_shares(graph: DataFrame, sketches: DataFrame, matches: DataFrame, *, partitions: int) -> DataFrame:
    """Bring together the documents of each share, their neighbours, and the edges among all of these.

    A maximal set is found from its first member, its pivot, among the neighbours of the pivot. So a share gets its own
    documents, which are its pivots, all their neighbours, and every near-duplicate pair among these. A document is in
    the share of its kept near-duplicate. So most of its neighbours are in its share too, and few sketches are sent
    twice.

    Schema in:   GRAPH (rows without a share are left out), SKETCHES, MATCHES
    Schema out:  blocks of SHARE_NODES and SHARE_EDGES in the partition of their share
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
        .mapInArrow(partial(_post_nodes, partitions=partitions), block_schema(SHARE_NODES))
    )

    # An edge is in the shares that have both of its ends.
    ends = placed.select("node", "ordinal", "position", "shares")
    edges = (
        pairs.join(ends.toDF("node_a", "edge_ordinal", "edge_a", "shares_a"), "node_a")
        .join(ends.toDF("node_b", "same_ordinal", "edge_b", "shares_b"), "node_b")
        .withColumn("edge_share", F.explode(F.array_intersect("shares_a", "shares_b")))
        .select(*SHARE_EDGES)
        .mapInArrow(partial(_post_edges, partitions=partitions), block_schema(SHARE_EDGES))
    )
    return exchange(nodes.unionByName(edges, allowMissingColumns=True), partitions=partitions)


def mine_shares(blocks: DataFrame, *, threshold: Threshold, find: Find, is_distinct: bool) -> DataFrame:
    """Find the sets of each share by one step of `cluster_modes.share_steps`.

    The budget is that of a component of the share's size.

    Schema in:   blocks of SHARE_NODES and SHARE_EDGES
    Schema out:  SETS, each set once; a row OVER for a component with a share that exceeded its budget
    Shuffles:  none where no two shares find a set; else the sets, on their members.    Actions:  none.
    """
    sets = blocks.mapInArrow(partial(_share_block, threshold=threshold, find=find), schema_of(SETS))
    return sets if is_distinct else sets.dropDuplicates(["ordinal", "positions"])


def _list_shares(graph: DataFrame, pairs: DataFrame) -> DataFrame:
    """List the nodes with a share, and all shares that need each: its own and those of its neighbours.

    Schema in:   GRAPH; node_a long, node_b long
    Schema out:  node long, ordinal long, position int, own_share int, shares array<int>
    """
    placed = graph.where("share is not null").select("node", "ordinal", "position", F.col("share").alias("own_share"))
    share_of = placed.select("node", "own_share")
    joined = pairs.join(share_of.toDF("node_a", "share_a"), "node_a").join(share_of.toDF("node_b", "share_b"), "node_b")

    needed = (
        share_of.toDF("node", "share")
        .unionByName(joined.select(F.col("node_a").alias("node"), F.col("share_b").alias("share")))
        .unionByName(joined.select(F.col("node_b").alias("node"), F.col("share_a").alias("share")))
    )
    shares = needed.groupBy("node").agg(F.collect_set("share").alias("shares"))
    return placed.join(shares, "node")


def _post_nodes(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        ordinals, shares = (np.asarray(batch.column(name)) for name in ("ordinal", "share"))
        yield pack_sketches(SHARE_NODES, _targets(ordinals, shares, partitions), batch, partitions=partitions)


def _post_edges(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        columns: Columns = {name: np.asarray(batch.column(name)) for name in SHARE_EDGES}
        targets = _targets(columns["edge_ordinal"], columns["edge_share"], partitions)
        yield pack(SHARE_EDGES, targets, columns, partitions=partitions)


def _targets(ordinals: NDArray[np.generic], shares: NDArray[np.generic], partitions: int) -> NDArray[np.int32]:
    return ((ordinals.astype(np.int64) % partitions + shares.astype(np.int64)) % partitions).astype(np.int32)


def _share_block(batches: Batches, *, threshold: Threshold, find: Find) -> Batches:
    shares = _read_shares(with_rows(batches), threshold)
    return list_sets((ordinal, share.find(find) or PAST) for ordinal, share in shares)


def _read_shares(blocks: list[pa.RecordBatch], threshold: Threshold) -> Iterator[tuple[int, PlacedShare]]:
    """Read the shares of a task from its blocks, each with the number of its component."""
    nodes, edges = unpack(blocks, SHARE_NODES), unpack(blocks, SHARE_EDGES)
    of_node, of_edge = _number_shares(nodes, edges)
    groups = group_rows(of_node, nodes["position"], of_edge)

    sketches = ragged_column(nodes["size"], nodes["ids"])
    ends = np.stack([edges["edge_a"], edges["edge_b"]], axis=1)
    cuts = zip(pairwise(groups.node_offsets), pairwise(groups.edge_offsets), strict=True)
    for (low, high), (start, end) in cuts:
        members = groups.nodes[low:high]
        share = PlacedShare.of(
            nodes["position"][members].astype(np.int32),
            take_rows(sketches, members),
            threshold.bounds(nodes["size"][members].astype(np.int32)),
            ends[groups.edges[start:end]],
            nodes["is_pivot"][members] != 0,
        )
        yield int(nodes["ordinal"][members[0]]), share


def _number_shares(nodes: Columns, edges: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ordinals = np.concatenate([nodes["ordinal"], edges["edge_ordinal"]])
    shares = np.concatenate([nodes["share"], edges["edge_share"]])

    order = np.lexsort((shares, ordinals))
    is_next = (np.diff(ordinals[order]) != 0) | (np.diff(shares[order]) != 0)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.concatenate([[0], np.cumsum(is_next)])[: len(order)]
    return numbers[: len(nodes["ordinal"])], numbers[len(nodes["ordinal"]) :]
