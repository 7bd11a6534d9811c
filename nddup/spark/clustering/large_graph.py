"""The pair graph with too many nodes for one task: components by star contraction, the keep-list in rounds.

Nodes are named by their numbers in the order of the keep policy. A round is one function, from edges to fewer edges;
`nddup.run.on_spark.rounds` runs rounds until nothing changes.

    edges                     --contract-->       edges of stars       5 shuffles per round, to one star per component
    edges                     --decide-->         removed              4 shuffles per round
    edges, removed            --leave_undecided-->  undecided          2 shuffles per round
    undecided                 --decide_rest-->    removed              the edges to one task, which holds a bit per node
    numbered, stars, removed  --gather_solved-->  SOLVED               2 shuffles of nodes

Source:
    Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, Connected components in MapReduce and beyond (large-star,
    small-star). Blelloch, Fineman, Shun 2012, Greedy sequential maximal independent set and matching are parallel on
    average (rounds that give the lexicographically first set).
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.mining.streamed_graph import StreamedChoice
from nddup.spark.clustering.numbered_graph import BATCH_ROWS
from nddup.spark.heavy_keys import join_found
from nddup.spark.schemas import PAIR_EDGES, REMOVED, SOLVED


def checksum() -> Column:
    """Return the checksum of a table of distinct edges, whatever their order; a repeated edge would cancel itself."""
    return F.bit_xor(F.xxhash64("first", "second"))


def contract(edges: DataFrame) -> DataFrame:
    """Run one round, a large star and a small star. Once nothing changes, each component is a star at its least node.

    Schema in, out:  STARS, first < second
    Shuffles:  five, of edges; a node with very many neighbours is split over many tasks (`heavy_keys`).
    Actions:   none.
    """
    # Large star: every node connects its larger neighbours to the least node among its neighbours and itself.
    both = _both_ways(edges)
    centres = both.groupBy("first").agg(F.min("second").alias("least"), F.count("*").alias("n"))
    large = (
        join_found(both.where("second > first"), centres, "first", by="second", is_large=True)
        .withColumn("least", F.least("first", "least"))
        .select(F.col("least").alias("first"), "second")
    )

    # Small star: every node connects its smaller neighbours, and itself, to the least of them.
    nearest = large.groupBy("second").agg(F.min("first").alias("least"), F.count("*").alias("n"))
    small = join_found(large, nearest, "second", by="first", is_large=True)
    own = small.select(F.col("least").alias("first"), "second")
    smaller = small.where("first > least").select(F.col("least").alias("first"), F.col("first").alias("second"))
    return own.unionByName(smaller).where("first < second").distinct()


def decide(edges: DataFrame) -> DataFrame:
    """Run one round of the keep-list: keep each node before all its undecided neighbours; remove the neighbours.

    Schema in:   PAIR_EDGES among undecided nodes
    Schema out:  REMOVED, of this round
    Shuffles:  three of ends, one of edges.    Actions:  none.
    """
    blocked = edges.select(F.col("second").alias("first")).distinct()
    kept = edges.select("first").distinct().join(blocked, "first", "left_anti")
    return edges.join(kept, "first", "left_semi").select(F.col("second").alias("order_key")).distinct()


def leave_undecided(edges: DataFrame, removed: DataFrame) -> DataFrame:
    """Return the edges between nodes that are still undecided after a round.

    The edges of nodes kept in the round are dropped too, because their other ends were removed.

    Schema in:   PAIR_EDGES, REMOVED
    Schema out:  PAIR_EDGES
    Shuffles:  two, of edges.    Actions:  none.
    """
    left = edges
    for end in ("first", "second"):
        left = left.join(removed.select(F.col("order_key").alias(end)), end, "left_anti")
    return left.select(*PAIR_EDGES.fieldNames())


def decide_rest(edges: DataFrame, nodes: int) -> DataFrame:
    """Decide, in one task, the nodes that the rounds have left undecided; `nodes` is the number of all nodes.

    Schema in:   PAIR_EDGES among undecided nodes
    Schema out:  REMOVED
    Shuffles:  the edges to one task, 16 bytes each, sorted on its disk.    Actions:  none.
    """
    in_order = edges.select("first", "second").repartition(1).sortWithinPartitions("second")
    return in_order.mapInArrow(partial(rest_task, nodes=nodes), REMOVED)


def rest_task(batches: Iterator[pa.RecordBatch], *, nodes: int) -> Iterator[pa.RecordBatch]:
    """Return REMOVED from all edges, first long and second long, ascending by second. Memory: one bit per node."""
    choice = StreamedChoice(nodes)
    for batch in batches:
        choice.feed(np.asarray(batch.column("first")), np.asarray(batch.column("second")))
    for low in range(0, nodes, BATCH_ROWS):
        removed = low + np.flatnonzero(~choice.kept(low, min(low + BATCH_ROWS, nodes)))
        yield pa.RecordBatch.from_pydict({"order_key": removed})


def gather_solved(numbered: DataFrame, stars: DataFrame, removed: DataFrame) -> DataFrame:
    """Gather the results of all rounds for each node.

    The centre of a star, the least node of its component, is never a second end, so it labels itself. All components go
    to the pivot miner.

    Schema in:   order_key long, …; STARS, one star per component; REMOVED, of all rounds
    Schema out:  SOLVED
    Shuffles:  the nodes, the stars and the removed nodes, on the number of the node.    Actions:  none.
    """
    labels = stars.select(F.col("second").alias("order_key"), F.col("first").alias("centre"))
    marks = removed.select("order_key").distinct().withColumn("is_removed", F.lit(True))
    found = numbered.select("order_key").join(labels, "order_key", "left").join(marks, "order_key", "left")
    return found.select(
        "order_key",
        F.coalesce("centre", "order_key").alias("ordinal"),
        F.lit(None).cast("int").alias("fit"),
        F.col("is_removed").isNull().alias("kept"),
    ).select(*SOLVED.fieldNames())


def _both_ways(edges: DataFrame) -> DataFrame:
    """Return each edge in both directions: first long, second long."""
    return edges.select("first", "second").union(edges.select("second", "first"))
