"""Families too large for all their pairs: only the pairs of their kept documents, the leaders, are found.

    connections                --find_families-->      the families of heavy sketches            1 task, of connections
    connections, stars         --take_families-->      the same, from components found in rounds
    families, sketches, nodes  --pair_with_leaders-->  matches with a kept end                   1 shuffle, of blocks
    matches, families, found   --replace_families-->   all matches                               1 join

A family is a connected component of the pairs found and of the links between heavy sketches. Links join more than
near-duplicates do. So no near-duplicate pair leaves a family, and who is kept in it does not depend on what is outside.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from nddup import working_tables
from nddup.arrays import Ragged, take_rows
from nddup.matching.threshold import Threshold
from nddup.mining.components import label_components
from nddup.mining.edges import Cost, Edges
from nddup.mining.leaders import Led, follow_leaders
from nddup.spark.blocks import Layout, block_schema, exchange, pack_sketches, ragged_column, unpack, with_rows
from nddup.spark.schemas import CONNECTIONS, FAMILIES, MATCHES, NODES, SKETCHES, STARS, require

Batches = Iterator[pa.RecordBatch]
FAMILIES_COST = Cost(edge=40, node=48)
"""Of one task over all connections, rounded up from what was measured (`tests/spark/test_graph_memory.py`)."""

BATCH_ROWS = 100_000
"""Nodes that are laid out for Spark at a time."""

LAYOUT: Layout = {"family": np.int64, "node": np.int64, "rank": np.int64, "size": np.int32, "ids": np.uint64}


def find_families(connections: DataFrame) -> DataFrame:
    """The families that hold a heavy sketch, in one task.

    Schema in:   CONNECTIONS
    Schema out:  FAMILIES; a family is a number from 0
    Shuffles:  the connections to one task, `FAMILIES_COST` of its memory each.    Actions:  none.
    """
    require(connections, CONNECTIONS, stage="pairs")
    return connections.select(*CONNECTIONS.fieldNames()).repartition(1).mapInArrow(families_task, FAMILIES)


def take_families(connections: DataFrame, stars: DataFrame) -> DataFrame:
    """The families that hold a heavy sketch, from the stars that `large_graph.contract` made of the connections.

    Schema in:   CONNECTIONS; STARS, one star a component
    Schema out:  FAMILIES; a family is its least node
    Shuffles:  the stars twice.    Actions:  none.
    """
    require(connections, CONNECTIONS, stage="pairs")
    require(stars, STARS, stage="pairs")
    centres = stars.select(F.col("first").alias("node"), F.col("first").alias("family")).distinct()
    others = stars.select(F.col("second").alias("node"), F.col("first").alias("family"))
    members = others.unionByName(centres)

    linked = connections.where("is_link").select(F.col("node_a").alias("node"))
    heavy = linked.join(members, "node").select("family").distinct()
    return members.join(heavy, "family", "left_semi").select(*FAMILIES.fieldNames())


def pair_with_leaders(
    families: DataFrame, sketches: DataFrame, nodes: DataFrame, *, threshold: Threshold, partitions: int
) -> DataFrame:
    """Every near-duplicate pair with a kept end in these families.

    Schema in:   FAMILIES, SKETCHES, NODES
    Schema out:  MATCHES; containments are null
    Shuffles:  the joins on node; a sort of each family by policy; one of blocks, a family in one task.
    Actions:   none.
    """
    require(families, FAMILIES, stage="pairs")
    require(sketches, SKETCHES, stage="pairs")
    require(nodes, NODES, stage="pairs")
    best = nodes.groupBy("node").agg(F.min(F.struct("policy", "doc_id")).alias("best")).join(families, "node")
    by_policy = Window.partitionBy("family").orderBy("best")
    ranked = best.withColumn("rank", F.row_number().over(by_policy).cast("long"))

    blocks = (
        sketches.join(ranked, "node")
        .select("family", "node", "rank", "sketch")
        .mapInArrow(partial(_post, partitions=partitions), block_schema(LAYOUT))
    )
    return exchange(blocks, partitions=partitions).mapInArrow(partial(_pair_block, threshold=threshold), MATCHES)


def replace_families(matches: DataFrame, families: DataFrame, found: DataFrame) -> DataFrame:
    """The matches outside the families, and those that were found within with leaders.

    Schema in:   MATCHES, FAMILIES, MATCHES
    Schema out:  MATCHES
    Shuffles:  the matches on node_a, unless the families are small enough to be broadcast.    Actions:  none.
    """
    require(matches, MATCHES, stage="pairs")
    require(found, MATCHES, stage="pairs")
    inside = families.select(F.col("node").alias("node_a"))  # a match lies inside a family with both ends
    outside = matches.join(inside, "node_a", "left_anti")
    return outside.select(*MATCHES.fieldNames()).unionByName(found)


def families_task(batches: Batches) -> Batches:
    """FAMILIES of all CONNECTIONS, in `FAMILIES_COST` bytes each."""
    edges, linked = Edges(values=0), []
    for batch in batches:
        first, second = (batch.column(name).to_numpy() for name in ("node_a", "node_b"))
        edges.add(first, second)
        linked.append(first[batch.column("is_link").to_numpy(zero_copy_only=False)])

    nodes = edges.names()
    families = label_components(edges.take_ends(nodes), nodes=len(nodes)).ordinals

    # A link has two heavy ends, so its family is one of those asked for.
    is_heavy = np.zeros(int(families.max(initial=-1)) + 1, np.bool_)
    while linked:
        is_heavy[families[np.searchsorted(nodes, linked.pop())]] = True

    chosen = np.flatnonzero(is_heavy[families])
    for low in range(0, len(chosen), BATCH_ROWS):
        rows = chosen[low : low + BATCH_ROWS]
        yield pa.RecordBatch.from_pydict({"node": nodes[rows], "family": families[rows].astype(np.int64)})


def _post(batches: Batches, *, partitions: int) -> Batches:
    """Blocks of LAYOUT, each family to one partition."""
    for batch in batches:
        targets = (np.asarray(batch.column("family")) % partitions).astype(np.int32)
        yield pack_sketches(LAYOUT, targets, batch, partitions=partitions)


def _pair_block(batches: Batches, *, threshold: Threshold) -> Batches:
    """MATCHES of the families of one partition, a batch a family."""
    columns = unpack(with_rows(batches), LAYOUT)
    order = np.lexsort((columns["node"], columns["family"]))
    whole = take_rows(ragged_column(columns["size"], columns["ids"]), order)

    first = np.unique(columns["family"][order], return_index=True)[1]
    for low, high in zip(first, np.append(first, len(order))[1:], strict=True):
        members = order[low:high]
        start, end = whole.offsets[low], whole.offsets[high]
        sketches = Ragged(whole.offsets[low : high + 1] - start, whole.values[start:end])

        bounds = threshold.bounds(columns["size"][members].astype(np.int32))
        by_policy = np.argsort(columns["rank"][members])
        led = follow_leaders(sketches, bounds, by_policy, threshold)
        yield _match_rows(led, columns["node"][members].astype(np.int64))


def _match_rows(led: Led, nodes: NDArray[np.int64]) -> pa.RecordBatch:
    """MATCHES of the pairs that leaders have found in one family."""
    ends = nodes[led.pairs]
    columns = (ends.min(axis=1), ends.max(axis=1), led.overlap.astype(np.int32), led.resemblance)
    no_containment = pa.nulls(len(ends), pa.float64())
    return working_tables.MATCHES.batch([*map(pa.array, columns), no_containment, no_containment])
