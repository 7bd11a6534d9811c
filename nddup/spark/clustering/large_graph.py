"""The pair graph where its edges are too many for one task: components by star contraction, the keep-list in rounds.

Nodes are named by their `order_key`, which ascends in the order of the keep policy. A round is one function, from edges
to fewer edges; `nddup.run.on_spark.rounds` runs rounds until nothing changes.

    matches, nodes  --order_nodes-->  ordered nodes          2 shuffles, one by range
    matches         --name_edges-->   edges of order keys    2 shuffles
    edges           --contract-->     edges of stars         5 shuffles a round; at the end one star a component
    edges           --decide-->       removed, undecided     4 shuffles a round
    all of them     --assemble-->     GRAPH                  what `graph.build_graph` makes in one task

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
from nddup.spark.schemas import GRAPH, ORDERED, PAIR_EDGES, REMOVED, STARS, require

REST_COST = Cost(edge=44, node=48)
"""Of one task that ends the keep-list, rounded up from what was measured (`tests/spark/test_graph_memory.py`)."""


def checksum() -> Column:
    """Of a table of edges, whatever their order and number: the edges are distinct, so that none cancels another."""
    return F.bit_xor(F.xxhash64("first", "second"))


def order_nodes(matches: DataFrame, nodes: DataFrame, *, large: DataFrame | None, partitions: int) -> DataFrame:
    """One row a node that has a neighbour, with a key that ascends in the order of the policy.

    The key is what Spark numbers a row by, partition and row in 64 bits. It has gaps, and is only ever compared.

    Schema in:   MATCHES, NODES; node long (of components given by leaders), or None
    Schema out:  ORDERED
    Shuffles:  the nodes once on node, once by range.    Actions:  Spark samples the range.
    """
    in_order = (
        describe_nodes(matches, nodes, large)
        .repartitionByRange(partitions, "policy", "best")
        .sortWithinPartitions("policy", "best")
    )
    return in_order.withColumn("order_key", F.monotonically_increasing_id()).select(*ORDERED.fieldNames())


def name_edges(matches: DataFrame, ordered: DataFrame) -> DataFrame:
    """The edges between order keys, the earlier end first.

    Schema in:   MATCHES, ORDERED
    Schema out:  PAIR_EDGES
    Shuffles:  the edges once for each end.    Actions:  none.
    """
    keys = ordered.select("node", "order_key")
    named = matches.join(keys.toDF("node_a", "key_a"), "node_a").join(keys.toDF("node_b", "key_b"), "node_b")
    return named.select(
        F.least("key_a", "key_b").alias("first"), F.greatest("key_a", "key_b").alias("second"), "resemblance"
    )


def contract(edges: DataFrame) -> DataFrame:
    """One round, a large star and a small one. Once it changes nothing, each component is a star at its least node.

    Schema in, out:  STARS, first < second
    Shuffles:  five, of edges; a node with very many neighbours is many tasks' (`heavy_keys`).    Actions:  none.
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
    """One round of the keep-list: a node before all its undecided neighbours is kept, and these are removed.

    Schema in:   PAIR_EDGES among undecided nodes
    Schema out:  REMOVED, of this round
    Shuffles:  three, of ends.    Actions:  none.
    """
    blocked = edges.select(F.col("second").alias("first")).distinct()
    kept = edges.select("first").distinct().join(blocked, "first", "left_anti")
    return edges.join(kept, "first", "left_semi").select(F.col("second").alias("order_key")).distinct()


def leave_undecided(edges: DataFrame, removed: DataFrame) -> DataFrame:
    """The edges between nodes that are still undecided, after a round removed some.

    An edge of a node kept in the round goes too: its other end was removed.

    Schema in:   PAIR_EDGES, REMOVED
    Schema out:  PAIR_EDGES
    Shuffles:  two, of edges.    Actions:  none.
    """
    left = edges
    for end in ("first", "second"):
        left = left.join(removed.select(F.col("order_key").alias(end)), end, "left_anti")
    return left.select(*PAIR_EDGES.fieldNames())


def decide_rest(edges: DataFrame) -> DataFrame:
    """The keep-list of the edges that the rounds have left, in one task.

    Schema in:   PAIR_EDGES among undecided nodes
    Schema out:  REMOVED
    Shuffles:  the edges to one task, `REST_COST` of its memory each.    Actions:  none.
    """
    return edges.repartition(1).mapInArrow(rest_task, REMOVED)


def rest_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """REMOVED of all edges, PAIR_EDGES, in `REST_COST` bytes each."""
    edges = Edges(values=1)
    for batch in batches:
        edges.add(*(np.asarray(batch.column(name)) for name in PAIR_EDGES.fieldNames()))

    keys = edges.names()
    ranks = np.arange(len(keys), dtype=np.int32)  # the keys ascend in the order of the policy
    choice = keep_first(edges.take_ends(keys), edges.take_values(), ranks)
    yield pa.RecordBatch.from_pydict({"order_key": keys[~choice.kept]})


def assemble(
    ordered: DataFrame, edges: DataFrame, stars: DataFrame, removed: DataFrame, *, share_nodes: int | None
) -> DataFrame:
    """The graph: components, positions, who is kept, and for whom the others are removed.

    All components are the pivot miner's. Their numbers are the order keys of their first nodes.

    Args:
        ordered: the nodes.
        edges: between their keys.
        stars: one star a component.
        removed: the nodes removed in all rounds.
        share_nodes: as of `graph.Assignment`.

    Schema in:   ORDERED, PAIR_EDGES, STARS, REMOVED
    Schema out:  GRAPH
    Shuffles:  the edges once, the nodes six times; a component's nodes are sorted in one task.    Actions:  none.
    """
    require(ordered, ORDERED, stage="clusters")
    require(edges, PAIR_EDGES, stage="clusters")
    require(stars, STARS, stage="clusters")
    require(removed, REMOVED, stage="clusters")
    gone = removed.select("order_key").distinct()
    placed = _place_nodes(ordered, stars, gone)
    kept = placed.where("is_removed is null").select(
        F.col("order_key").alias("leader_key"), F.col("node").alias("duplicate_of"), F.col("position").alias("leader")
    )
    nearest = _find_nearest(edges, gone)
    whole = placed.join(nearest, "order_key", "left").join(kept, "leader_key", "left")

    leader = F.coalesce("leader", "position")
    return whole.withColumns(
        {
            "batch": F.lit(None).cast("int"),
            "kept": F.col("is_removed").isNull(),
            "resemblance": F.coalesce("resemblance", F.lit(1.0)),
            "leader": leader,
            "share": _number_share(leader, share_nodes),
        }
    ).select(*GRAPH.fieldNames())


def _place_nodes(ordered: DataFrame, stars: DataFrame, gone: DataFrame) -> DataFrame:
    """The nodes with what GRAPH says of their component and of their place in it, and which of them are removed.

    A node that is the centre of its star, the least of its component, is no second end: it labels itself.

    Schema out:  ORDERED, ordinal long, component string, component_size int, position int, rank int,
                 is_removed boolean (true or null)
    """
    labels = stars.select(F.col("second").alias("order_key"), F.col("first").alias("ordinal"))
    marks = gone.withColumn("is_removed", F.lit(True))
    component = Window.partitionBy("ordinal")
    return (
        ordered.join(labels, "order_key", "left")
        .join(marks, "order_key", "left")
        .withColumn("ordinal", F.coalesce("ordinal", "order_key"))
        .withColumn("component", F.min("group").over(component))
        .withColumn("component_size", F.count(F.lit(1)).over(component).cast("int"))
        .withColumn("position", F.row_number().over(component.orderBy("group")) - 1)
        .withColumn("rank", F.row_number().over(component.orderBy("order_key")) - 1)
    )


def _find_nearest(edges: DataFrame, gone: DataFrame) -> DataFrame:
    """The kept neighbour of highest resemblance of each removed node; of equals the first by policy.

    Schema out:  order_key long, leader_key long, resemblance double
    """
    offers = (
        _both_ways(edges, "resemblance")
        .join(gone.select(F.col("order_key").alias("second")), "second", "left_anti")
        .join(gone.select(F.col("order_key").alias("first")), "first", "left_semi")
    )
    distance = (-F.col("resemblance")).alias("distance")
    best = F.min(F.struct(distance, F.col("second").alias("key"))).alias("best")
    return (
        offers.groupBy(F.col("first").alias("order_key"))
        .agg(best)
        .select("order_key", F.col("best.key").alias("leader_key"), (-F.col("best.distance")).alias("resemblance"))
    )


def _number_share(leader: Column, share_nodes: int | None) -> Column:
    """The share of a node, int, as `components.number_shares` gives it; null where its component is not cut."""
    if share_nodes is None:
        return F.lit(None).cast("int")

    shares = F.ceil(F.col("component_size") / F.lit(share_nodes))
    is_cut = (shares > 1) & ~F.col("by_leaders")
    return F.when(is_cut, F.floor(leader.cast("long") * shares / F.col("component_size"))).cast("int")


def _both_ways(edges: DataFrame, *values: str) -> DataFrame:
    """Each edge from either end: first long, second long, and its values."""
    turned = edges.select(F.col("second").alias("first"), F.col("first").alias("second"), *values)
    return edges.select("first", "second", *values).unionByName(turned)
