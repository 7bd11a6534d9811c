"""GRAPH from a numbered graph: the solved nodes with their names, positions and kept near-duplicates.

    solved                   --list_kept_bits-->  a bit per node                                 2 small shuffles
    edges, bits (broadcast)  --find_nearest-->    the kept near-duplicate of each removed node   1 shuffle
    all of these, numbered   --assemble-->        GRAPH                                          4 shuffles of nodes

Only the bits are broadcast: about 0.15 bytes per node.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nddup.spark.clustering.numbered_graph import NUMBERED
from nddup.spark.schemas import GRAPH, PAIR_EDGES, SOLVED, require

WORD_SHIFT, CHUNK_SHIFT = 6, 12
"""64 bits to a word, 64 words to a chunk: a row of 512 bytes and about 80 more for 4,096 nodes."""


def assemble(
    numbered: DataFrame,
    edges: DataFrame,
    solved: DataFrame,
    *,
    share_nodes: int | None,
    least_containment: float | None = None,
) -> DataFrame:
    """Assemble the graph: components, positions, the kept nodes, and the kept near-duplicate of each other node.

    Args:
        numbered: the nodes.
        edges: the edges between the numbers of the nodes.
        solved: the components of the nodes, and which of them are kept.
        share_nodes: as for `graph.Assignment`.
        least_containment: as for `graph.build_graph`.

    Schema in:   NUMBERED, PAIR_EDGES, SOLVED
    Schema out:  GRAPH
    Shuffles:  the edges once, the nodes four times; a component's nodes are sorted in one task, on its disk. One bit
        per node is broadcast, 0.15 bytes with its overhead.
    Actions:   none.
    """
    require(numbered, NUMBERED, stage="clusters")
    require(edges, PAIR_EDGES, stage="clusters")
    require(solved, SOLVED, stage="clusters")
    nearest = find_nearest(edges, list_kept_bits(solved), least=least_containment)
    placed = _place_nodes(numbered, solved.join(nearest, "order_key", "left"))
    kept = placed.where("kept").select(
        F.col("order_key").alias("leader_key"), F.col("node").alias("duplicate_of"), F.col("position").alias("leader")
    )
    whole = placed.join(kept, "leader_key", "left")

    leader = F.coalesce("leader", "position")
    return whole.withColumns(
        {
            "batch": F.when(~F.col("by_leaders"), F.col("fit")),
            "rank": F.col("order_key").cast("int"),
            "resemblance": F.coalesce("resemblance", F.lit(1.0)),
            "leader": leader,
            "share": _number_share(leader, share_nodes),
        }
    ).select(*GRAPH.fieldNames())


def list_kept_bits(solved: DataFrame) -> DataFrame:
    """Return one row per 4,096 nodes: a bit for each that is kept.

    Schema in:   SOLVED, its nodes numbered without a gap
    Schema out:  chunk long, words array<long>
    Shuffles:  two, of one row per 64 nodes.    Actions:  none.
    """
    key, word = F.col("order_key"), F.col("word")
    bit = F.when(F.col("kept"), F.expr("shiftleft(1L, cast(order_key & 63 as int))")).otherwise(F.lit(0).cast("long"))
    words = solved.groupBy(F.shiftright(key, WORD_SHIFT).alias("word")).agg(F.bit_or(bit).alias("bits"))

    # No number is left out, so once in order, the words of a chunk are at their places.
    in_order = F.array_sort(F.collect_list(F.struct("word", "bits"))).getField("bits")
    return words.groupBy(F.shiftright(word, CHUNK_SHIFT - WORD_SHIFT).alias("chunk")).agg(in_order.alias("words"))


def find_nearest(edges: DataFrame, bits: DataFrame, *, least: float | None) -> DataFrame:
    """Find the kept neighbour of highest likeness for each removed node; of equals, the first by policy.

    Args:
        edges: the edges between node numbers.
        bits: which nodes are kept.
        least: for containment, the least share of a removed node that the kept one contains. None: any edge will do.

    Schema in:   PAIR_EDGES; as `list_kept_bits` gives
    Schema out:  order_key long, leader_key long, resemblance double
    Shuffles:  the edges with one kept and one removed end, once, on the removed one; the bits are broadcast.
    Actions:   none.
    """
    marked = edges
    for end in ("first", "second"):
        chunk = F.broadcast(bits.toDF(f"{end}_chunk", f"{end}_words"))
        marked = marked.join(chunk, F.shiftright(end, CHUNK_SHIFT) == F.col(f"{end}_chunk"))
    is_first_kept, is_second_kept = (_is_kept(end) for end in ("first", "second"))
    offers = marked.where(is_first_kept != is_second_kept).select(
        F.when(is_first_kept, F.col("second")).otherwise(F.col("first")).alias("order_key"),
        F.when(is_first_kept, F.col("first")).otherwise(F.col("second")).alias("key"),
        F.when(is_first_kept, F.col("resemblance")).otherwise(F.coalesce("of_first", "resemblance")).alias("likeness"),
    )
    if least is not None:
        offers = offers.where(F.col("likeness") >= least)

    best = F.min(F.struct((-F.col("likeness")).alias("distance"), "key")).alias("best")
    return (
        offers.groupBy("order_key")
        .agg(best)
        .select("order_key", F.col("best.key").alias("leader_key"), (-F.col("best.distance")).alias("resemblance"))
    )


def _is_kept(end: str) -> Column:
    """Whether a node is kept: its bit in the words of its chunk."""
    key = F.col(end)
    word = F.shiftright(key, WORD_SHIFT).bitwiseAND(63).cast("int")
    return F.getbit(F.get(f"{end}_words", word), key.bitwiseAND(63).cast("int")) == 1


def _place_nodes(numbered: DataFrame, solved: DataFrame) -> DataFrame:
    """Add to each node its component, the component's size and fit, and the node's position in it.

    Schema in:   NUMBERED; SOLVED and leader_key, resemblance
    Schema out:  all their columns, component string, component_size int, position int; `fit` of every node
    """
    in_order = Window.partitionBy("ordinal").orderBy("group")
    whole = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return numbered.join(solved, "order_key").withColumns(
        {
            "component": F.first("group").over(whole),
            "component_size": F.count(F.lit(1)).over(whole).cast("int"),
            "fit": F.max("fit").over(whole),
            "position": F.row_number().over(in_order) - 1,
        }
    )


def _number_share(leader: Column, share_nodes: int | None) -> Column:
    """Return the share of a node, int, as `components.number_shares` gives it; null if its component is not cut."""
    if share_nodes is None:
        return F.lit(None).cast("int")

    shares = F.ceil(F.col("component_size") / F.lit(share_nodes))
    is_cut = (shares > 1) & ~F.col("by_leaders")
    return F.when(is_cut, F.floor(leader.cast("long") * shares / F.col("component_size"))).cast("int")
