"""Families too large for their pairs: the pairs of their kept documents, by leaders.

    connections       --find_families-->  families, closed under near-duplicates     1 task, of edges and links
    families, sketches, nodes --lead-->   matches with a kept end                    1 shuffle, of blocks

A family is a connected component of the pairs found and the links of the crowd. Links join more than near-duplicates
do, so no near-duplicate pair leaves a family, and who is kept in it does not depend on what is outside.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from nddup import tables
from nddup.arrays import Ragged, take_rows
from nddup.matching.threshold import Threshold
from nddup.mining.components import label_components
from nddup.mining.edges import Cost, Edges
from nddup.mining.leaders import follow_leaders
from nddup.spark.blocks import Layout, block_schema, exchange, list_column, pack, unpack, with_rows
from nddup.spark.schemas import CONNECTIONS, FAMILIES, MATCHES, NODES, SKETCHES, require

Batches = Iterator[pa.RecordBatch]
FAMILIES_COST = Cost(edge=40, node=48)
"""Of one task over the edges and links, rounded up from what was measured (`tests/spark/test_graph_memory.py`)."""

BATCH_ROWS = 100_000
"""Nodes that are laid out for Spark at a time."""

LAYOUT: Layout = {"family": np.int64, "node": np.int64, "rank": np.int64, "size": np.int32, "ids": np.uint64}


def find_families(connections: DataFrame) -> DataFrame:
    """The families that hold a sketch of the crowd.

    Schema in:   CONNECTIONS
    Schema out:  FAMILIES
    Shuffles:  the connections to one task, `FAMILIES_COST` of its memory each.    Actions:  none.
    """
    require(connections, CONNECTIONS, stage="lead")
    return connections.select(*CONNECTIONS.fieldNames()).repartition(1).mapInArrow(families_task, FAMILIES)


def lead(
    families: DataFrame, sketches: DataFrame, nodes: DataFrame, *, threshold: Threshold, partitions: int
) -> DataFrame:
    """Every near-duplicate pair with a kept end in these families.

    Schema in:   FAMILIES, SKETCHES, NODES
    Schema out:  MATCHES
    Shuffles:  the joins on node; a sort of each family by policy; one of blocks, a family in one task.
    Actions:   none.
    """
    require(families, FAMILIES, stage="lead")
    require(sketches, SKETCHES, stage="lead")
    require(nodes, NODES, stage="lead")
    best = nodes.groupBy("node").agg(F.min(F.struct("policy", "doc_id")).alias("best")).join(families, "node")
    ranked = best.withColumn("rank", F.row_number().over(Window.partitionBy("family").orderBy("best")).cast("long"))
    blocks = (
        sketches.join(ranked, "node")
        .select("family", "node", "rank", "sketch")
        .mapInArrow(partial(_post, partitions=partitions), block_schema(LAYOUT))
    )
    return exchange(blocks, partitions=partitions).mapInArrow(partial(_lead_block, threshold=threshold), MATCHES)


def replace_led(matches: DataFrame, families: DataFrame, led: DataFrame) -> DataFrame:
    """The matches outside the families, and those that leaders found within.

    Schema in:   MATCHES, FAMILIES, MATCHES
    Schema out:  MATCHES
    """
    outside = matches.join(families.select(F.col("node").alias("node_a")), "node_a", "left_anti")
    return outside.select(*MATCHES.fieldNames()).unionByName(led)


def families_task(batches: Batches) -> Batches:
    """FAMILIES of all CONNECTIONS, in `FAMILIES_COST` bytes each."""
    edges, linked = Edges(values=0), []
    for batch in batches:
        first, second = (batch.column(name).to_numpy() for name in ("node_a", "node_b"))
        edges.add(first, second)
        linked.append(first[batch.column("is_link").to_numpy(zero_copy_only=False)])
    nodes = edges.names()
    families = label_components(edges.take_ends(nodes), nodes=len(nodes)).ordinals
    is_led = np.zeros(int(families.max(initial=-1)) + 1, np.bool_)
    while linked:
        is_led[families[np.searchsorted(nodes, linked.pop())]] = True
    chosen = np.flatnonzero(is_led[families])
    for low in range(0, len(chosen), BATCH_ROWS):
        rows = chosen[low : low + BATCH_ROWS]
        yield pa.RecordBatch.from_pydict({"node": nodes[rows], "family": families[rows].astype(np.int64)})


def _post(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        columns = {name: np.asarray(batch.column(name)) for name in ("family", "node", "rank")}
        columns["size"] = np.diff(rows.offsets).astype(np.int32)
        targets = (columns["family"] % partitions).astype(np.int32)
        yield pack(LAYOUT, targets, columns, {"ids": rows}, partitions=partitions)


def _lead_block(batches: Batches, *, threshold: Threshold) -> Batches:
    columns = unpack(with_rows(batches), LAYOUT)
    starts = np.concatenate([[0], np.cumsum(columns["size"])]).astype(np.int64)
    order = np.lexsort((columns["node"], columns["family"]))
    whole = take_rows(Ragged(starts, columns["ids"].view(np.uint64)), order)
    first = np.unique(columns["family"][order], return_index=True)[1]
    for low, high in zip(first, np.append(first, len(order))[1:], strict=True):
        mine = order[low:high]
        sketches = Ragged(
            whole.offsets[low : high + 1] - whole.offsets[low], whole.values[whole.offsets[low] : whole.offsets[high]]
        )
        bounds = threshold.bounds(columns["size"][mine].astype(np.int32))
        by_policy = np.argsort(columns["rank"][mine])
        led = follow_leaders(sketches, bounds, by_policy, threshold)
        ends = columns["node"][mine][led.pairs]
        nothing = pa.nulls(len(ends), pa.float64())
        ends_and_likeness = (ends.min(axis=1), ends.max(axis=1), led.overlap.astype(np.int32), led.resemblance)
        yield tables.MATCHES.batch([*map(pa.array, ends_and_likeness), nothing, nothing])
