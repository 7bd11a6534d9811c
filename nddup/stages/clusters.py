"""Clusters: maximal sets of documents that are near-duplicates of each other and share enough features together.

Orientation, after Ignatov and Kuznetsov 2009: a feature is a transaction, the documents that hold it are its items; a
cluster is an intent (a set of documents) with a large extent (the features common to all). Support counts features.

    graph, sketches, matches  --problems-->   one mining problem a component             1 shuffle, of blocks
    problems                  --mine_by_pivot-->     sets                                none
    problems                  --list_transactions--> transactions --FPGrowth.fit-->
                                --keep_clusters-->   sets                                1 shuffle, of blocks
    sets, nodes               --name_clusters-->     clusters, members                   joins on node, one on the set
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.ml.fpm import FPGrowth
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.algorithms.maximality import keep_maximal
from nddup.algorithms.modes import Problem, find_sets
from nddup.algorithms.overlap import Ragged
from nddup.algorithms.thresholds import Threshold
from nddup.schemas import CLUSTERS, GRAPH, MATCHES, MEMBERS, SETS, SKETCHES, require, table
from nddup.stages.exchange import (
    Columns,
    Layout,
    block_schema,
    exchange,
    list_column,
    pack,
    take_rows,
    unpack,
    with_rows,
)

MEMBERS_PER_BATCH = 1_000_000
"""Member rows that are gathered before a batch is sent: 4 MB."""

Batches = Iterator[pa.RecordBatch]
NODE_LAYOUT: Layout = {
    "ordinal": np.int64,
    "position": np.int32,
    "fit": np.int32,
    "rank": np.int32,
    "leader": np.int32,
    "led": np.int32,
    "size": np.int32,
    "ids": np.uint64,
}
EDGE_LAYOUT: Layout = {"edge_ordinal": np.int64, "edge_a": np.int32, "edge_b": np.int32}
PROBLEM_LAYOUT: Layout = {**NODE_LAYOUT, **EDGE_LAYOUT}
LISTED_LAYOUT: Layout = {"set_ordinal": np.int64, "mask": np.int64, "support": np.int64}
PIVOT = -1
"""In the column `fit`: a component for the pivot miner."""

NAMED_MODES = ("partition", "components")
"""Modes whose sets are no maximal sets, and bear the mode's own name as their coverage."""

PLACE = ("ordinal", "position", "fit", "rank", "leader", "led")

ITEM_BITS = 5
"""An item of a transaction is `ordinal << ITEM_BITS | position`: FP-Growth's components have at most 23 nodes."""

TRANSACTIONS = table("fit int, items array<long>, least int")


def gather_problems(graph: DataFrame, sketches: DataFrame, matches: DataFrame, *, partitions: int) -> DataFrame:
    """Bring the sketches and edges of each component together.

    Schema in:   GRAPH, SKETCHES, MATCHES
    Schema out:  blocks of PROBLEM_LAYOUT in the partition of their component
    Shuffles:  joins of the sketches and of the edges with the graph (broadcast while it is small), one of blocks.
    Actions:   none.
    """
    require(graph, GRAPH, stage="clusters")
    require(sketches, SKETCHES, stage="clusters")
    require(matches, MATCHES, stage="clusters")
    fit, led = F.coalesce("batch", F.lit(PIVOT)).alias("fit"), F.col("led").cast("int").alias("led")
    place = graph.select("node", "ordinal", "position", fit, "rank", "leader", led)
    nodes = (
        sketches.join(place, "node")
        .select("ordinal", "position", "fit", "rank", "leader", "led", "sketch")
        .mapInArrow(partial(_post_nodes, partitions=partitions), block_schema(NODE_LAYOUT))
    )
    ends = place.select("node", "ordinal", "position")
    edges = (
        matches.join(ends.toDF("node_a", "ordinal", "edge_a"), "node_a")
        .join(ends.toDF("node_b", "same", "edge_b"), "node_b")
        .select("ordinal", "edge_a", "edge_b")
        .mapInArrow(partial(_post_edges, partitions=partitions), block_schema(EDGE_LAYOUT))
    )
    return exchange(nodes.unionByName(edges, allowMissingColumns=True), partitions=partitions)


def mine_by_pivot(
    problems: DataFrame, *, threshold: Threshold, mode: str, max_sets: int, max_members: int
) -> DataFrame:
    """The sets of each component that is the pivot miner's.

    Mode `all`: its maximal sets; where they pass the budget a cover; where that passes ten times the budget, or the
    family has a crowd, those of leaders. `cover`: a cover at once. `partition`: each kept sketch with those that are
    duplicates of it. `components`: the component itself.

    Schema in:   blocks of PROBLEM_LAYOUT, a component in one partition
    Schema out:  SETS
    Shuffles:  none.    Actions:  none.
    """
    return problems.mapInArrow(
        partial(_mine_block, threshold=threshold, mode=mode, max_sets=max_sets, max_members=max_members), SETS
    )


def list_transactions(problems: DataFrame, *, threshold: Threshold) -> DataFrame:
    """The features that two or more documents of an FP-Growth component share, with those documents.

    Schema out:  fit int, items array<long>, least int (the smallest alpha_d of the component's documents)
    Shuffles:  none.    Actions:  none.
    """
    return problems.mapInArrow(partial(_transactions_block, threshold=threshold), TRANSACTIONS)


def list_frequent(transactions: DataFrame, *, least: int, count: int) -> DataFrame:
    """Every set of at least two documents that share `least` features or more, by MLlib's FP-Growth.

    Args:
        transactions: of one fit, items distinct within each.
        least: the smallest support, a count of at least 1.
        count: the number of transactions.

    Schema out:  ordinal long, mask long (bits are positions), support long
    Actions:   the fit itself (MLlib counts items and builds its trees); the listing is lazy.
    """
    items = transactions.select("items")
    model = FPGrowth(minSupport=support_fraction(least, count)).fit(items)
    position_mask = (1 << ITEM_BITS) - 1
    mask = F.aggregate(
        "items",
        F.lit(0).cast("long"),
        lambda bits, item: bits.bitwiseOR(F.call_function("shiftleft", F.lit(1).cast("long"),
                                                         item.bitwiseAND(F.lit(position_mask)).cast("int"))),
    )  # fmt: skip
    return model.freqItemsets.where((F.size("items") >= 2) & (F.col("freq") >= least)).select(  # noqa: PLR2004
        F.shiftright(F.col("items")[0], ITEM_BITS).alias("ordinal"),
        mask.alias("mask"),
        F.col("freq").alias("support"),
    )


def support_fraction(support: int, count: int) -> float:
    """`support` of `count` transactions as MLlib's `minSupport`, which it multiplies and rounds up.

    k / n may round to a float that gives k + 1; half a transaction less never does, and the cap keeps it a fraction.

    Example:
        >>> import math
        >>> math.ceil(7 / 25 * 25), math.ceil(support_fraction(7, 25) * 25)
        (8, 7)
    """
    return min(1.0, (support - 0.5) / max(count, 1))


def keep_clusters(frequent: DataFrame, problems: DataFrame, *, threshold: Threshold, partitions: int) -> DataFrame:
    """The frequent sets that are clusters: the conditions first, then the maxima.

    Schema in:   as `list_frequent` gives; blocks of PROBLEM_LAYOUT
    Schema out:  SETS
    Shuffles:  one, of blocks.    Actions:  none.
    """
    listed = frequent.mapInArrow(partial(_post_sets, partitions=partitions), block_schema(LISTED_LAYOUT))
    whole = exchange(listed.unionByName(problems, allowMissingColumns=True), partitions=partitions)
    return whole.mapInArrow(partial(_maximal_block, threshold=threshold), SETS)


def name_clusters(
    sets: DataFrame, graph: DataFrame, nodes: DataFrame, *, least_size: int, mode: str = "all"
) -> DataFrame:
    """Clusters of documents: each set with all documents of its sketches, and each group that stands alone.

    Schema in:   SETS, GRAPH, NODES
    Schema out:  CLUSTERS
    Shuffles:  the members on node, and on their set.    Actions:  none.
    """
    require(sets, SETS, stage="clusters")
    place = graph.select("ordinal", "position", "node", "component")
    numbered = sets.withColumn("set_id", F.struct("ordinal", "positions"))
    mined = (
        numbered.select("set_id", "ordinal", "support", "coverage", F.explode("positions").alias("position"))
        .join(place, ["ordinal", "position"])
        .join(nodes.select("node", "doc_id"), "node")
        .groupBy("set_id")
        .agg(
            F.first("support").alias("support"),
            F.sort_array(F.collect_list("doc_id")).alias("members"),
            F.first("component").alias("component"),
            F.first("coverage").alias("coverage"),
        )
    )
    alone = (
        nodes.where(F.col("size") >= least_size)
        .join(graph.select("node"), "node", "left_anti")
        .groupBy("node")
        .agg(
            F.first("size").alias("support"),
            F.sort_array(F.collect_list("doc_id")).alias("members"),
            F.first("group").alias("component"),
            F.lit(mode if mode in NAMED_MODES else "all").alias("coverage"),
        )
    )
    ended = F.concat(F.array_join("members", "\0"), F.lit("\0"))
    return (
        mined.drop("set_id")
        .unionByName(alone.drop("node"))
        .withColumn("size", F.size("members"))
        .where(F.col("size") > 1)
        .withColumn("cluster_id", F.substring(F.sha2(ended.cast("binary"), 256), 1, 16))
        .select(*CLUSTERS.fieldNames())
    )


def list_members(clusters: DataFrame, nodes: DataFrame) -> DataFrame:
    """One row a member, marked where the keep policy prefers it to the other members.

    Schema in:   CLUSTERS, NODES
    Schema out:  MEMBERS
    Shuffles:  the members on doc_id, and on their cluster.    Actions:  none.
    """
    require(clusters, CLUSTERS, stage="clusters")
    rows = clusters.select("cluster_id", F.explode("members").alias("doc_id")).join(
        nodes.select("doc_id", "policy"), "doc_id"
    )
    first = rows.groupBy("cluster_id").agg(F.min(F.struct("policy", "doc_id"))["doc_id"].alias("first_id"))
    return (
        rows.join(first, "cluster_id")
        .withColumn("representative", F.col("doc_id") == F.col("first_id"))
        .select(*MEMBERS.fieldNames())
    )


def _post_nodes(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        columns: Columns = {name: np.asarray(batch.column(name)) for name in PLACE}
        columns["size"] = np.diff(rows.offsets)
        targets = (columns["ordinal"] % partitions).astype(np.int32)
        yield pack(NODE_LAYOUT, targets, columns, {"ids": rows}, partitions=partitions)


def _post_edges(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        ordinals, ends_a, ends_b = (np.asarray(batch.column(i)) for i in range(3))
        columns = {"edge_ordinal": ordinals, "edge_a": ends_a, "edge_b": ends_b}
        yield pack(EDGE_LAYOUT, (ordinals % partitions).astype(np.int32), columns, partitions=partitions)


def _post_sets(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        ordinals, masks, supports = (np.asarray(batch.column(i)) for i in range(3))
        columns = {"set_ordinal": ordinals, "mask": masks, "support": supports}
        yield pack(LISTED_LAYOUT, (ordinals % partitions).astype(np.int32), columns, partitions=partitions)


class _Problems(NamedTuple):
    """The components of one task: nodes by (component, position), edges by component."""

    ordinals: NDArray[np.int64]  # (c,)
    node_offsets: NDArray[np.int64]  # (c + 1,) nodes of each component
    edge_offsets: NDArray[np.int64]  # (c + 1,)
    fits: NDArray[np.int32]  # (c,)
    is_led: NDArray[np.bool_]  # (c,)
    sketches: Ragged  # by node
    bounds: NDArray[np.int32]  # by node
    ranks: NDArray[np.int32]  # by node
    leaders: NDArray[np.int32]  # by node, positions in the component
    edges: NDArray[np.int32]  # (e, 2), positions in the component

    def component(self, index: int) -> Problem:
        """One of them."""
        low, high = self.node_offsets[index : index + 2]
        offsets = self.sketches.offsets[low : high + 1]
        return Problem(
            Ragged(offsets - offsets[0], self.sketches.values[offsets[0] : offsets[-1]]),
            self.bounds[low:high],
            self.edges[self.edge_offsets[index] : self.edge_offsets[index + 1]],
            self.ranks[low:high],
            self.leaders[low:high],
            bool(self.is_led[index]),
        )


def _read_problems(held: list[pa.RecordBatch], threshold: Threshold) -> _Problems:
    nodes, edges = unpack(held, NODE_LAYOUT), unpack(held, EDGE_LAYOUT)
    order = np.lexsort((nodes["position"], nodes["ordinal"]))
    by_component = np.lexsort((edges["edge_b"], edges["edge_a"], edges["edge_ordinal"]))
    ordinals, first = np.unique(nodes["ordinal"][order], return_index=True)
    starts = np.concatenate([[0], np.cumsum(nodes["size"])]).astype(np.int64)
    ends = np.stack([edges["edge_a"], edges["edge_b"]], axis=1)[by_component]
    return _Problems(
        ordinals.astype(np.int64),
        np.append(first, len(order)),
        np.append(np.searchsorted(edges["edge_ordinal"][by_component], ordinals), len(ends)),
        nodes["fit"][order][first].astype(np.int32),
        nodes["led"][order][first] != 0,
        take_rows(Ragged(starts, nodes["ids"].view(np.uint64)), order),
        threshold.bounds(nodes["size"][order].astype(np.int32)),
        nodes["rank"][order].astype(np.int32),
        nodes["leader"][order].astype(np.int32),
        np.sort(ends, axis=1).astype(np.int32),
    )


def _mine_block(batches: Batches, *, threshold: Threshold, mode: str, max_sets: int, max_members: int) -> Batches:
    problems = _read_problems(with_rows(batches), threshold)
    sets = _Sets()
    for index in np.flatnonzero(problems.fits == PIVOT):
        problem = problems.component(int(index))
        found = find_sets(problem, threshold=threshold, mode=mode, max_sets=max_sets, max_members=max_members)
        sets.add(problems.ordinals[index], np.diff(found.offsets), found.members, found.supports, found.coverage)
        if sets.is_full:
            yield sets.release()
    yield sets.release()


def _transactions_block(batches: Batches, *, threshold: Threshold) -> Batches:
    problems = _read_problems(with_rows(batches), threshold)
    nodes = np.diff(problems.node_offsets)
    component = np.repeat(np.arange(len(nodes)), nodes)
    position = np.arange(len(component)) - problems.node_offsets[component]
    listed = np.flatnonzero(problems.fits[component] != PIVOT)
    if not len(listed):
        return
    chosen = take_rows(problems.sketches, listed)
    owner = np.repeat(listed, np.diff(chosen.offsets))
    order = np.lexsort((chosen.values, component[owner]))
    owner, features = owner[order], chosen.values[order]
    is_new = np.append(True, (features[1:] != features[:-1]) | (component[owner][1:] != component[owner][:-1]))
    starts = np.append(np.flatnonzero(is_new), len(owner))
    shared = np.flatnonzero(np.diff(starts) > 1)
    items = problems.ordinals[component[owner]] << ITEM_BITS | position[owner]
    rows = take_rows(Ragged(starts, items.view(np.uint64)), shared)
    least = np.minimum.reduceat(problems.bounds, problems.node_offsets[:-1])
    of_row = component[owner][starts[shared]]
    lists = pa.ListArray.from_arrays(rows.offsets.astype(np.int32), pa.array(rows.values.view(np.int64)))
    yield pa.RecordBatch.from_arrays(
        [pa.array(problems.fits[of_row]), lists, pa.array(least[of_row])], names=TRANSACTIONS.fieldNames()
    )


def _maximal_block(batches: Batches, *, threshold: Threshold) -> Batches:
    held = with_rows(batches)
    problems, listed = _read_problems(held, threshold), unpack(held, LISTED_LAYOUT)
    order = np.lexsort((listed["mask"], listed["set_ordinal"]))
    low = np.searchsorted(listed["set_ordinal"][order], problems.ordinals, "left")
    high = np.searchsorted(listed["set_ordinal"][order], problems.ordinals, "right")
    sets = _Sets()
    for index in np.flatnonzero(high > low):
        rows = order[low[index] : high[index]]
        masks, supports = listed["mask"][rows].astype(np.int64), listed["support"][rows].astype(np.int32)
        bounds = problems.bounds[problems.node_offsets[index] : problems.node_offsets[index + 1]]
        edges = problems.edges[problems.edge_offsets[index] : problems.edge_offsets[index + 1]].astype(np.int64)
        neighbours = np.zeros(len(bounds), np.int64)
        np.bitwise_or.at(neighbours, edges[:, 0], 1 << edges[:, 1])
        np.bitwise_or.at(neighbours, edges[:, 1], 1 << edges[:, 0])
        is_cluster = keep_maximal(masks, supports, bounds, neighbours)
        bits = (masks[is_cluster, None] >> np.arange(len(bounds))) & 1
        sets.add(problems.ordinals[index], bits.sum(axis=1), np.nonzero(bits)[1], supports[is_cluster], "all")
        if sets.is_full:
            yield sets.release()
    yield sets.release()


class _Sets:
    """Rows of SETS, gathered over components: a batch each would cost more than the mining of a small one."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._ordinals: list[NDArray[np.int64]] = []
        self._sizes: list[NDArray[np.int64]] = []
        self._members: list[NDArray[np.int32]] = []
        self._supports: list[NDArray[np.int32]] = []
        self._coverage: list[str] = []
        self._n_members = 0

    @property
    def is_full(self) -> bool:
        """Whether the rows should be sent before more are gathered."""
        return self._n_members >= MEMBERS_PER_BATCH

    def add(
        self,
        ordinal: np.int64,
        sizes: NDArray[np.int64],
        members: NDArray[np.integer],
        supports: NDArray[np.int32],
        coverage: str,
    ) -> None:
        """Add the sets of one component."""
        self._ordinals.append(np.repeat(ordinal, len(sizes)))
        self._sizes.append(sizes)
        self._members.append(members.astype(np.int32))
        self._supports.append(supports)
        self._coverage += [coverage] * len(sizes)
        self._n_members += len(members)

    def release(self) -> pa.RecordBatch:
        """The rows gathered, as one batch; they are forgotten here."""
        sizes = np.concatenate([np.zeros(1, np.int64), *self._sizes])
        members = np.concatenate([np.zeros(0, np.int32), *self._members])
        arrays = [
            pa.array(np.concatenate([np.zeros(0, np.int64), *self._ordinals])),
            pa.ListArray.from_arrays(np.cumsum(sizes).astype(np.int32), pa.array(members)),
            pa.array(np.concatenate([np.zeros(0, np.int32), *self._supports])),
            pa.array(self._coverage, pa.string()),
        ]
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, names=SETS.fieldNames())
