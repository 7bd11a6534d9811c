"""The pair graph of distinct sketches: its components, and which of its nodes are kept.

    matches, nodes    --describe_nodes, order_nodes, number_nodes-->  NUMBERED, in the order of the keep policy
    matches, numbered --number_edges-->                               PAIR_EDGES
    edges             --solve-->                                      SOLVED, in one task, sorted on its disk
    edges             --contract, decide, decide_rest, gather_solved-->   SOLVED, in rounds, for more nodes
    numbered, edges, solved  --list_kept_bits, find_nearest, assemble-->  GRAPH

Only numbers are sorted and sent. The task of `solve` holds 34 bits per node and no edge (`nddup.mining.pair_graph`); if
it lacks the memory, `nddup.spark.steps.clustering` runs rounds, each a function from edges to fewer edges, until
nothing changes. The shuffles of each function are in its docstring.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nddup.mining.itemsets import fits_budget
from nddup.mining.keep_verdicts import FORCED_WEIGHT, Loss, classes_of, direct_edges
from nddup.mining.pair_graph import StreamedChoice, StreamedComponents
from nddup.spark.heavy_keys import HEAVY, join_found
from nddup.spark.schemas import require, schema_of, table
from nddup.tables import GRAPH, MATCHES, NODES, ORDERED, PAIR_EDGES, REMOVED, SOLVED, working

LISTED_LIMIT = 10**7
"""Frequent sets that a component of FP-Growth may have."""

FIT_SETS = 400_000
"""Frequent sets that one FP-Growth fit may list; further components go to another fit. MLlib holds the transactions of
a fit in trees: those of 10,000 small components fit a heap of 512 MB, those of 30,000 did not."""

MOST_FITS = 4
"""Fits that `auto` takes. A component costs MLlib some millisecond, and each fit reads the transactions of all: so the
pivot miner, which finds the same sets, takes the components beyond them, and the whole cost grows with their number."""

SETS_OF_ITEM = 10
"""Weight of an item in the budget of a fit, in sets. MLlib brings the items of a fit to the driver, some 29 bytes each:
so at most `FIT_SETS / SETS_OF_ITEM` of them, a megabyte, however many components there are."""

FIRST_KEYS = table("part int, first_key long")
"""The number of the first node of each part of ORDERED."""

NUMBERED = working(
    "numbered",
    "order_key long, node long, group string, is_bound boolean, by_leaders boolean",
    "The nodes, numbered from 0 without gaps in the order of the policy.",
)

ROW_BITS = 33
"""Low bits of `monotonically_increasing_id` that hold the row within its partition; the partition is above them."""

BATCH_ROWS = 1 << 17
"""Nodes per batch that a task returns to Spark."""

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Assignment:
    """Which miner gets a component, and in how many tasks.

    Attributes:
        miner: `pivot`: no component goes to FP-Growth. `auto`: components of at most `fpgrowth_limit` nodes do, as many
            as `MOST_FITS` fits take. `fpgrowth`: all components do whose sets it can list (fewer than `LISTED_LIMIT`).
        fpgrowth_limit: see `miner`.
        max_sets: budget of sets per component; only a component that cannot exceed it goes to FP-Growth.
        max_members: budget of member rows per component, likewise.
        share_nodes: a component of more nodes is cut into shares of about this many; None: no component is cut.
    """

    miner: str
    fpgrowth_limit: int
    max_sets: int
    max_members: int
    share_nodes: int | None = None

    @property
    def largest(self) -> int:
        """Nodes of the largest component that may go to FP-Growth."""
        limits = {"pivot": 0, "auto": self.fpgrowth_limit, "fpgrowth": LISTED_LIMIT.bit_length() - 1}
        return limits[self.miner]

    def chosen(self, fits: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return whether FP-Growth takes the components of these fits, (n,)."""
        return (fits < MOST_FITS) | (self.miner == "fpgrowth")

    def listed_sets(self, sizes: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return how much of a fit components of these sizes take, (n,); 0 for the pivot miner's.

        It is how many sets FP-Growth may list, 2**m - 1 for m nodes, or m times `SETS_OF_ITEM` if that is more.
        """
        budget = {"max_sets": self.max_sets, "max_members": self.max_members}
        allowed = [size for size in range(2, self.largest + 1) if fits_budget(size, **budget)]
        nodes = sizes.astype(np.int64)
        return np.where(np.isin(sizes, allowed), np.maximum((1 << np.minimum(nodes, 40)) - 1, SETS_OF_ITEM * nodes), 0)


COMPONENT_COUNTS = {
    "components": "count_if(position = 0)",
    "fpgrowth_components": "count_if(position = 0 AND batch IS NOT NULL)",
    "led_components": "count_if(position = 0 AND by_leaders)",
    "spread_components": "count_if(position = 0 AND share IS NOT NULL)",
    "shares": "max(share) + 1",
    "largest_component": "max(component_size)",
}
"""Counts of GRAPH, as aggregates: components, those mined in each way, and the largest size."""

CHECKSUM = "bit_xor(xxhash64(first, second))"
"""Order-free checksum of a table of distinct edges; a repeated edge would cancel itself."""

WORD_SHIFT, CHUNK_SHIFT = 6, 12
"""64 bits to a word, 64 words to a chunk: a row of 512 bytes and about 80 more for 4,096 nodes."""


def describe_nodes(matches: DataFrame, nodes: DataFrame, large: DataFrame | None) -> DataFrame:
    """Return the distinct sketches that have a neighbour.

    Schema in:   MATCHES, NODES; node long (of components represented by leaders), or None
    Schema out:  node long, group string, weight long, policy long and best string (its first document),
                 is_bound boolean (whether that is forced to be kept), by_leaders boolean
    Shuffles:  the nodes once on node.    Actions:  none.
    """
    require(matches, MATCHES, stage="clusters")
    require(nodes, NODES, stage="clusters")
    ends = matches.select(F.explode(F.array("node_a", "node_b")).alias("node")).distinct()

    best = F.min(F.struct("policy", "doc_id"))
    described = (
        nodes.groupBy("node")  # before the join: most documents may have the same sketch
        .agg(F.min("first_id").alias("group"), F.max("weight").alias("weight"), best.alias("best"))
        .join(ends, "node")
        .select("node", "group", "weight", F.col("best.policy").alias("policy"), F.col("best.doc_id").alias("best"))
        .withColumn("is_bound", F.col("weight") >= FORCED_WEIGHT // 2)
    )

    if large is None:
        return described.withColumn("by_leaders", F.lit(False))
    marks = large.select("node", F.lit(True).alias("mark"))
    marked = described.join(marks, "node", "left").withColumn("by_leaders", F.coalesce("mark", F.lit(False)))
    return marked.drop("mark")


def direct_matches(
    matches: DataFrame, nodes: DataFrame, large: DataFrame | None, *, is_contained: bool, max_lost: Fraction | None
) -> DataFrame:
    """Return the edges with the likeness of each end to the other, or `NEVER` where the other must not replace it.

    Schema in:   MATCHES, NODES; with `max_lost` also common, shingles_a and shingles_b, int; node long and stands long,
                 where it is known what replaces a node, or None
    Schema out:  MATCHES; `containment_a` and `containment_b` are the likeness of a and of b
    Shuffles:  the nodes on node; the matches on either end, twice if it is known what replaces nodes.
    Actions:   none.
    """
    weights = nodes.groupBy("node").agg(F.max("weight"))
    placed = matches.join(weights.toDF("node_a", "weight_a"), "node_a").join(
        weights.toDF("node_b", "weight_b"), "node_b"
    )
    for end, other in ("ab", "ba"):
        is_named = F.lit(True)
        if large is not None:
            placed = placed.join(large.toDF(f"node_{end}", f"stands_{end}"), f"node_{end}", "left")
            is_named = F.coalesce(F.col(f"stands_{end}") == F.col(f"node_{other}"), is_named)
        placed = placed.withColumn(f"is_named_{end}", is_named)
    counted = ["common", "shingles_a", "shingles_b"] if max_lost is not None else []
    rows = placed.select(*MATCHES.names, "weight_a", "weight_b", "is_named_a", "is_named_b", *counted)
    return rows.mapInArrow(partial(direct_task, is_contained=is_contained, max_lost=max_lost), schema_of(MATCHES))


def direct_task(
    batches: Iterator[pa.RecordBatch], *, is_contained: bool, max_lost: Fraction | None
) -> Iterator[pa.RecordBatch]:
    """Yield MATCHES with directed likeness: `keep_verdicts.direct_edges`."""

    def both(batch: pa.RecordBatch, name: str) -> NDArray[Any]:
        return np.stack([np.asarray(batch.column(f"{name}_{end}")) for end in "ab"])

    for batch in batches:
        likeness = both(batch, "containment") if is_contained else np.asarray(batch.column("resemblance"))
        loss = None
        if max_lost is not None:
            loss = Loss(np.asarray(batch.column("common")), both(batch, "shingles").astype(np.int64), max_lost)
        directed = direct_edges(likeness, classes_of(both(batch, "weight")), loss, both(batch, "is_named"))
        yield MATCHES.batch([*batch.columns[:4], *map(pa.array, directed)])


def _in_order(*, by_weight: bool) -> list[Column]:
    return [*([F.desc("weight")] if by_weight else []), F.asc("policy"), F.asc("best")]


def number_few(described: DataFrame, *, by_weight: bool) -> DataFrame:
    """Number nodes in one task, without an action.

    Schema in:   as `describe_nodes` gives
    Schema out:  NUMBERED
    Shuffles:  the nodes to one task, which sorts them on its disk.    Actions:  none.
    """
    in_order = described.repartition(1).sortWithinPartitions(*_in_order(by_weight=by_weight))
    return in_order.select(F.monotonically_increasing_id().alias("order_key"), *NUMBERED.names[1:])


def order_nodes(described: DataFrame, *, by_weight: bool, partitions: int) -> DataFrame:
    """Return the nodes in the order of the policy, in parts.

    Schema in:   as `describe_nodes` gives
    Schema out:  ORDERED
    Shuffles:  the nodes once, by range.    Actions:  Spark samples the range.
    """
    order = _in_order(by_weight=by_weight)
    in_order = described.repartitionByRange(partitions, *order).sortWithinPartitions(*order)
    number = F.monotonically_increasing_id()
    part, row = F.shiftright(number, ROW_BITS).cast("int"), number.bitwiseAND((1 << ROW_BITS) - 1)
    return in_order.select(part.alias("part"), row.alias("row"), *ORDERED.names[2:])


def count_parts(ordered: DataFrame) -> DataFrame:
    """Count the nodes of each part. Schema in: ORDERED. Schema out: part int, n long. One small shuffle."""
    return ordered.groupBy("part").agg(F.count(F.lit(1)).alias("n"))


def number_nodes(ordered: DataFrame, first_keys: DataFrame) -> DataFrame:
    """Number the nodes.

    Schema in:   ORDERED, FIRST_KEYS
    Schema out:  NUMBERED
    Shuffles:  none; the parts are broadcast, one row each.    Actions:  none.
    """
    require(ordered, ORDERED, stage="clusters")
    key = (F.col("first_key") + F.col("row")).alias("order_key")
    return ordered.join(F.broadcast(first_keys), "part").select(key, *NUMBERED.names[1:])


def number_edges(matches: DataFrame, numbered: DataFrame, *, is_contained: bool) -> DataFrame:
    """Return the edges between node numbers, the earlier end first; with `is_contained`, likeness has a direction.

    Schema in:   MATCHES, NUMBERED
    Schema out:  PAIR_EDGES
    Shuffles:  the edges once for each end.    Actions:  none.
    """
    require(matches, MATCHES, stage="clusters")
    keys = numbered.select("node", "order_key", "is_bound")
    named = matches.join(keys.toDF("node_a", "key_a", "bound_a"), "node_a").join(
        keys.toDF("node_b", "key_b", "bound_b"), "node_b"
    )
    is_a_first = F.col("key_a") < F.col("key_b")
    likeness = F.col("resemblance")
    if is_contained:
        likeness = F.when(is_a_first, F.col("containment_b")).otherwise(F.col("containment_a"))
    return named.select(
        F.least("key_a", "key_b").alias("first"),
        F.greatest("key_a", "key_b").alias("second"),
        likeness.alias("resemblance"),
        F.when(is_a_first, ~F.col("bound_b")).otherwise(~F.col("bound_a")).alias("bars"),
    )


class Solving(NamedTuple):
    """What the task that decides the nodes needs to know: the miners, and the least containment."""

    nodes: int
    """Their number, or more: each number that no node has becomes a row that no step reads."""

    assignment: Assignment
    least: float | None
    """Minimum likeness at which the first end of an edge may replace the second; None: every edge may."""


def solve(edges: DataFrame, solving: Solving) -> DataFrame:
    """Find the components and the kept nodes, in one task that reads the edges in the order of their later ends.

    Schema in:   PAIR_EDGES
    Schema out:  SOLVED
    Shuffles:  the edges to one task, 16 bytes each, sorted on its disk.    Actions:  none.
    """
    replaces: list[Column | str] = []
    if solving.least is not None:
        replaces = [(F.col("resemblance") >= solving.least).alias("replaces"), "bars"]
    return (
        edges.select("first", "second", *replaces)
        .repartition(1)
        .sortWithinPartitions("second")
        .mapInArrow(partial(solve_task, solving=solving), schema_of(SOLVED))
    )


def solve_task(batches: Batches, *, solving: Solving) -> Batches:
    """Return SOLVED from all edges. Memory: 34 bits per node.

    Args:
        batches: first long, second long, ascending by second; where not every edge may remove its second end also
            replaces boolean, whether it may, and bars boolean, of PAIR_EDGES.
    """
    components, choice = StreamedComponents(solving.nodes), StreamedChoice(solving.nodes)
    leading = choice if solving.least is None else StreamedChoice(solving.nodes)
    for batch in batches:
        components.feed(*_ends(batch))
        if solving.least is None:
            choice.feed(*_ends(batch))
        else:
            choice.feed(*_ends(batch.filter(batch.column("replaces"))))
            leading.feed(*_ends(batch.filter(batch.column("bars"))))
    components.finish()

    n_listed = 0
    for low in range(0, solving.nodes, BATCH_ROWS):
        high = min(low + BATCH_ROWS, solving.nodes)
        keys = np.arange(low, high)
        ordinals, sizes = components.label(low, high)

        # A fit takes components in order until it may list about `FIT_SETS` sets.
        listed = np.where(ordinals == keys, solving.assignment.listed_sets(sizes), 0)
        fits = ((n_listed + np.cumsum(listed)) // FIT_SETS).astype(np.int32)
        is_fitted = (listed > 0) & solving.assignment.chosen(fits)
        n_listed += int(listed.sum())
        yield pa.RecordBatch.from_pydict(
            {
                "order_key": keys,
                "ordinal": ordinals.astype(np.int64),
                "fit": pa.array(fits, mask=~is_fitted),
                "kept": choice.kept(low, high),
                "leads": leading.kept(low, high),
            }
        )


def _ends(batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(batch.column("first")), np.asarray(batch.column("second"))


def contract(edges: DataFrame) -> DataFrame:
    """Run one round, a large star and a small star. Once nothing changes, each component is a star at its least node.

    Source: Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, Connected components in MapReduce and beyond.

    Schema in, out:  STARS, first < second
    Shuffles:  five, of edges; a node with very many neighbours is split over many tasks (`heavy_keys`).
    Actions:   none.
    """
    # Large star: every node connects its larger neighbours to the least node among its neighbours and itself.
    both = _both_ways(edges)
    centres = both.groupBy("first").agg(F.min("second").alias("least"), F.count("*").alias("n"))
    large = (
        join_found(both.where("second > first"), centres, "first", by="second", many=HEAVY)
        .withColumn("least", F.least("first", "least"))
        .select(F.col("least").alias("first"), "second")
    )

    # Small star: every node connects its smaller neighbours, and itself, to the least of them.
    nearest = large.groupBy("second").agg(F.min("first").alias("least"), F.count("*").alias("n"))
    small = join_found(large, nearest, "second", by="first", many=HEAVY)
    links = small.select(F.col("least").alias("first"), "second")
    smaller = small.where("first > least").select(F.col("least").alias("first"), F.col("first").alias("second"))
    return links.unionByName(smaller).where("first < second").distinct()


def decide(edges: DataFrame) -> DataFrame:
    """Run one round of the keep-list: keep each node before all its undecided neighbours; remove the neighbours.

    Source: Blelloch, Fineman, Shun 2012, Greedy sequential maximal independent set and matching are parallel on average
    (rounds that give the lexicographically first set).

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
    return left.select(*PAIR_EDGES.names)


def decide_rest(edges: DataFrame, nodes: int) -> DataFrame:
    """Decide, in one task, the nodes that the rounds have left undecided; `nodes` is the number of all nodes.

    Schema in:   PAIR_EDGES among undecided nodes
    Schema out:  REMOVED
    Shuffles:  the edges to one task, 16 bytes each, sorted on its disk.    Actions:  none.
    """
    in_order = edges.select("first", "second").repartition(1).sortWithinPartitions("second")
    return in_order.mapInArrow(partial(rest_task, nodes=nodes), schema_of(REMOVED))


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
    rows = numbered.select("order_key").join(labels, "order_key", "left").join(marks, "order_key", "left")
    return rows.select(
        "order_key",
        F.coalesce("centre", "order_key").alias("ordinal"),
        F.lit(None).cast("int").alias("fit"),
        F.col("is_removed").isNull().alias("kept"),
        F.col("is_removed").isNull().alias("leads"),
    ).select(*SOLVED.names)


def _both_ways(edges: DataFrame) -> DataFrame:
    return edges.select("first", "second").union(edges.select("second", "first"))


def assemble(
    numbered: DataFrame, edges: DataFrame, solved: DataFrame, solving: Solving, *, is_large: bool = True
) -> DataFrame:
    """Assemble the graph: components, positions, the kept nodes, and the kept near-duplicate of each other node.

    Args:
        solved: the components of the nodes, and which of them are kept.
        is_large: whether the bits are broadcast, which takes a job; else the edges are shuffled to them.

    Schema in:   NUMBERED, PAIR_EDGES, SOLVED
    Schema out:  GRAPH
    Shuffles:  the edges once, the nodes four times; a component's nodes are sorted in one task, on its disk. One bit
        per node is broadcast, 0.15 bytes with its overhead.
    Actions:   none.
    """
    require(numbered, NUMBERED, stage="clusters")
    require(edges, PAIR_EDGES, stage="clusters")
    require(solved, SOLVED, stage="clusters")
    bits = list_kept_bits(solved)
    nearest = find_nearest(edges, F.broadcast(bits) if is_large else bits, least=solving.least)
    placed = _place_nodes(numbered, solved.join(nearest, "order_key", "left"))
    kept = placed.where("kept").select(
        F.col("order_key").alias("leader_key"), F.col("node").alias("duplicate_of"), F.col("position").alias("head")
    )
    whole = placed.join(kept, "leader_key", "left")

    head = F.coalesce("head", "position")
    return whole.withColumns(
        {
            "batch": F.when(~F.col("by_leaders"), F.col("fit")),
            "rank": F.col("order_key").cast("int"),
            "resemblance": F.coalesce("resemblance", F.lit(1.0)),
            "share": _number_share(head, solving.assignment.share_nodes),
        }
    ).select(*GRAPH.names)


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
    """Find the most alike kept one of the neighbours before each removed node; of equals, the first by policy.

    Args:
        bits: which nodes are kept.
        least: least likeness at which the first end of an edge may replace the second. None: any edge will do.

    Schema in:   PAIR_EDGES; as `list_kept_bits` gives
    Schema out:  order_key long, leader_key long, resemblance double
    Shuffles:  the edges with one kept and one removed end, once, on the removed one; all edges twice, on
        the chunks of their ends, unless the bits are to be broadcast.
    Actions:   none.
    """
    marked = edges
    for end in ("first", "second"):
        chunk = bits.toDF(f"{end}_chunk", f"{end}_words")
        marked = marked.join(chunk, F.shiftright(end, CHUNK_SHIFT) == F.col(f"{end}_chunk"))
    is_first_kept, is_second_kept = (_is_kept(end) for end in ("first", "second"))
    offers = marked.where(is_first_kept & ~is_second_kept).select(
        F.col("second").alias("order_key"), F.col("first").alias("key"), F.col("resemblance").alias("likeness")
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


def _number_share(head: Column, share_nodes: int | None) -> Column:
    """Return the share of a node, int, as `pair_graph.number_shares` gives it; null if its component is not cut."""
    if share_nodes is None:
        return F.lit(None).cast("int")

    shares = F.ceil(F.col("component_size") / F.lit(share_nodes))
    is_cut = (shares > 1) & ~F.col("by_leaders")
    return F.when(is_cut, F.floor(head.cast("long") * shares / F.col("component_size"))).cast("int")
