"""The pair graph where its edges are too many for one task: components by star contraction, the keep-list in rounds.

Nodes are named by their `turn`: their place in the order of the keep policy. A round of each is one function, from
edges to fewer edges; `nddup.run.rounds` runs them until nothing changes.

    matches, nodes  --take_turns-->  turns                  2 shuffles, one by range
    edges           --contract-->    edges of stars         5 shuffles a round; at the end one star a component
    edges           --decide-->      removed, undecided     4 shuffles a round
    all of them     --assemble-->    GRAPH                  what `graph.build_graph` makes in one task

Source:
    Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, Connected components in MapReduce and beyond (large-star,
    small-star). Blelloch, Fineman, Shun 2012, Greedy sequential maximal independent set and matching are parallel on
    average (rounds that give the lexicographically first set).
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nddup.mining.edges import Cost, Edges
from nddup.mining.independent_set import keep_first
from nddup.spark.clustering.graph import describe_nodes
from nddup.spark.heavy_keys import join_found
from nddup.spark.schemas import GRAPH, PAIR_EDGES, REMOVED

REST_COST = Cost(edge=44, node=48)
"""Of one task that ends the keep-list, rounded up from what was measured (`tests/spark/test_graph_memory.py`)."""

PASSING = ("turns", "edges", "stars", "removed", "undecided")
"""Tables that nothing reads once the graph is there."""


def checksum() -> Column:
    """Of a table of edges, whatever their order and number: the edges are distinct, so that none cancels another."""
    return F.bit_xor(F.xxhash64("first", "second"))


def take_turns(matches: DataFrame, nodes: DataFrame, *, families: DataFrame | None, partitions: int) -> DataFrame:
    """One row a node that has a neighbour, numbered in the order of the policy.

    A turn is what Spark names a row by, partition and row in 64 bits: it is compared, never taken apart.

    Schema in:   MATCHES, NODES, FAMILIES
    Schema out:  TURNS
    Shuffles:  the nodes once on node, once by range.    Actions:  Spark samples the range.
    """
    ordered = (
        describe_nodes(matches, nodes, families)
        .repartitionByRange(partitions, "policy", "best")
        .sortWithinPartitions("policy", "best")
    )
    return ordered.select(F.monotonically_increasing_id().alias("turn"), "node", "group", "best", "led")


def name_edges(matches: DataFrame, turns: DataFrame) -> DataFrame:
    """The edges between turns, the earlier first.

    Schema in:   MATCHES, TURNS
    Schema out:  PAIR_EDGES
    Shuffles:  the edges once for each end.    Actions:  none.
    """
    place = turns.select("node", "turn")
    return (
        matches.join(place.toDF("node_a", "turn_a"), "node_a")
        .join(place.toDF("node_b", "turn_b"), "node_b")
        .select(
            F.least("turn_a", "turn_b").alias("first"), F.greatest("turn_a", "turn_b").alias("second"), "resemblance"
        )
    )


def contract(edges: DataFrame) -> DataFrame:
    """One round, a large star and a small one. Once it changes nothing, each component is a star at its least node.

    Schema in, out:  first long, second long, first < second
    Shuffles:  five, of edges; a node with very many neighbours is many tasks' (`heavy_keys`).    Actions:  none.
    """
    both = edges.select("first", "second").unionByName(
        edges.select(F.col("second").alias("first"), F.col("first").alias("second"))
    )
    centres = both.groupBy("first").agg(F.min("second").alias("least"), F.count("*").alias("n"))
    large = (
        join_found(both.where("second > first"), centres, "first", by="second", is_large=True)
        .withColumn("least", F.least("first", "least"))
        .select(F.col("least").alias("first"), "second")
    )
    # Each node tells its smaller neighbours, and itself, the least of them.
    nearest = large.groupBy("second").agg(F.min("first").alias("least"), F.count("*").alias("n"))
    small = join_found(large, nearest, "second", by="first", is_large=True)
    told = small.select(F.col("least").alias("first"), "second").unionByName(
        small.where("first > least").select(F.col("least").alias("first"), F.col("first").alias("second"))
    )
    return told.where("first < second").distinct()


def decide(edges: DataFrame) -> DataFrame:
    """One round of the keep-list: who precedes all undecided neighbours is kept, its neighbours are removed.

    Schema in:   PAIR_EDGES among undecided nodes
    Schema out:  REMOVED, of this round
    Shuffles:  three, of ends.    Actions:  none.
    """
    blocked = edges.select(F.col("second").alias("first")).distinct()
    kept = edges.select("first").distinct().join(blocked, "first", "left_anti")
    return edges.join(kept, "first", "left_semi").select(F.col("second").alias("turn")).distinct()


def leave_undecided(edges: DataFrame, removed: DataFrame) -> DataFrame:
    """The edges between nodes that are still undecided, after a round removed some.

    An edge of a node kept in the round goes too: its other end was removed.

    Schema in:   PAIR_EDGES, REMOVED
    Schema out:  PAIR_EDGES
    Shuffles:  two, of edges.    Actions:  none.
    """
    left = edges
    for end in ("first", "second"):
        left = left.join(removed.select(F.col("turn").alias(end)), end, "left_anti")
    return left.select(*PAIR_EDGES.fieldNames())


def decide_rest(edges: DataFrame) -> DataFrame:
    """The keep-list of the edges that the rounds have left, in one task.

    Schema in:   PAIR_EDGES among undecided nodes
    Schema out:  REMOVED
    Shuffles:  the edges to one task.    Actions:  none.
    """
    return edges.repartition(1).mapInArrow(rest_task, REMOVED)


def assemble(
    turns: DataFrame, edges: DataFrame, stars: DataFrame, removed: DataFrame, *, share_nodes: int | None
) -> DataFrame:
    """The graph: components, positions, who is kept, and for whom the others are removed.

    All components are the pivot miner's. Their numbers are the turns of their first nodes.

    Schema in:   TURNS, PAIR_EDGES, first long, second long (stars), REMOVED
    Schema out:  GRAPH
    Shuffles:  the edges once, the nodes six times; a component's nodes are sorted in one task.    Actions:  none.
    """
    gone = removed.select("turn").distinct().withColumn("is_removed", F.lit(True))
    label = stars.select(F.col("second").alias("turn"), F.col("first").alias("label"))
    by_label = Window.partitionBy("label")
    placed = (
        turns.join(label, "turn", "left")
        .withColumn("label", F.coalesce("label", "turn"))
        .join(gone, "turn", "left")
        .withColumn("component", F.min("group").over(by_label))
        .withColumn("component_size", F.count(F.lit(1)).over(by_label).cast("int"))
        .withColumn("position", F.row_number().over(by_label.orderBy("group")) - 1)
        .withColumn("rank", F.row_number().over(by_label.orderBy("turn")) - 1)
    )
    both = edges.select("first", "second", "resemblance").unionByName(
        edges.select(F.col("second").alias("first"), F.col("first").alias("second"), "resemblance")
    )
    nearest = (
        both.join(gone.select(F.col("turn").alias("second")), "second", "left_anti")
        .join(gone.select(F.col("turn").alias("first")), "first", "left_semi")
        .groupBy(F.col("first").alias("turn"))
        .agg(F.min(F.struct((-F.col("resemblance")).alias("distance"), F.col("second").alias("kept"))).alias("near"))
        .select("turn", F.col("near.kept").alias("leader_turn"), (-F.col("near.distance")).alias("resemblance"))
    )
    kept = placed.where("is_removed is null").select(
        F.col("turn").alias("leader_turn"), F.col("node").alias("duplicate_of"), F.col("position").alias("leader_at")
    )
    leader = F.coalesce("leader_at", "position")
    shares = F.ceil(F.col("component_size") / F.lit(share_nodes)) if share_nodes else F.lit(1)
    is_cut = (shares > 1) & ~F.col("led")
    share = F.when(is_cut, F.floor(leader.cast("long") * shares / F.col("component_size")))
    whole = placed.join(nearest, "turn", "left").join(kept, "leader_turn", "left")
    return whole.select(
        "node", "component", F.col("label").alias("ordinal"), "position", "component_size",
        F.lit(None).cast("int").alias("batch"), F.col("is_removed").isNull().alias("kept"), "duplicate_of",
        F.coalesce("resemblance", F.lit(1.0)).alias("resemblance"), "best", leader.alias("leader"), "rank", "led",
        share.cast("int").alias("share"),
    ).select(*GRAPH.fieldNames())  # fmt: skip


def find_families(connections: DataFrame, stars: DataFrame) -> DataFrame:
    """The families that hold a link of the crowd, from the stars of pairs and links.

    Schema in:   CONNECTIONS; first long, second long
    Schema out:  FAMILIES
    Shuffles:  the stars twice.    Actions:  none.
    """
    members = stars.select(F.col("second").alias("node"), F.col("first").alias("family")).unionByName(
        stars.select(F.col("first").alias("node"), F.col("first").alias("family")).distinct()
    )
    linked = (
        connections.where("is_link")
        .select(F.col("node_a").alias("node"))
        .join(members, "node")
        .select("family")
        .distinct()
    )
    return members.join(linked, "family", "left_semi").select("node", "family")


def rest_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """REMOVED of all edges, PAIR_EDGES, in `REST_COST` bytes each."""
    edges = Edges(values=1)
    for batch in batches:
        edges.add(*(np.asarray(batch.column(name)) for name in PAIR_EDGES.fieldNames()))
    turns = edges.names()
    choice = keep_first(edges.take_ends(turns), edges.take_values(), np.arange(len(turns), dtype=np.int32))
    yield pa.RecordBatch.from_pydict({"turn": turns[~choice.kept]})
