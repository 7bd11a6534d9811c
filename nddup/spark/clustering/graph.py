"""The pair graph of distinct sketches: its components, and which of its nodes are kept.

    matches, nodes  --describe_nodes-->  the nodes that have a neighbour, each with its first document   1 shuffle
    described       --_number_nodes-->   places in the order of the policy and of the names              1 shuffle
    edges, numbers  --graph_task-->      numbers only: components, positions, choices                    1 shuffle
    found           --names joined-->    GRAPH                                                           1 join

This module is for small graphs: one action, with all edges in the memory of one task (`COST`). Only numbers of fixed
width go there; names are joined afterwards. For larger graphs, `numbered_graph` numbers the nodes in many tasks and
streams the edges through the task that labels them; labels and choices are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup import tables
from nddup.mining.keep_verdicts import Loss, classes_of, direct_edges, only_later
from nddup.mining.maximality_filter import fits_budget
from nddup.mining.pair_graph import Components, Cost, Edges, Kept, keep_first, label_components, number_shares
from nddup.spark.schemas import require, schema_of, table
from nddup.tables import GRAPH, MATCHES, NODES

COST = Cost(edge=48, node=72)
"""Memory of one task over the graph, rounded up from the measured one (`tests/spark/test_graph_memory.py`)."""

GATHERED_EDGES = 1_000_000
"""Most edges of a small graph: at most about 200 MB in a task."""

LISTED_LIMIT = 10**7
"""Frequent sets that one FP-Growth fit may list; further components go to another fit."""

SETS_OF_ITEM = 10
"""How many sets an item counts as. MLlib brings the items of a fit to the driver, some 29 bytes each: so at most
`LISTED_LIMIT / SETS_OF_ITEM` of them, 29 MB, however many components there are."""

BATCH_ROWS = 100_000
"""Nodes per batch that a task returns to Spark."""

FOUND = table(
    "node long, first long, ordinal long, position int, component_size int, batch int, kept boolean,"
    " duplicate_of long, resemblance double, leader int, rank int, by_leaders boolean, share int"
)
"""GRAPH without its names; `first` is the first node of the component."""

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Assignment:
    """Which miner gets a component, and in how many tasks.

    Attributes:
        miner: `pivot`: no component goes to FP-Growth. `auto`: components of at most `fpgrowth_limit` nodes do.
            `fpgrowth`: all components do whose sets it can list (fewer than `LISTED_LIMIT`).
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

    def listed_sets(self, sizes: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return how much of a fit components of these sizes take, (n,); 0 for the pivot miner's.

        It is how many sets FP-Growth may list, 2**m - 1 for m nodes, or m times `SETS_OF_ITEM` if that is more.
        """
        budget = {"max_sets": self.max_sets, "max_members": self.max_members}
        allowed = [size for size in range(2, self.largest + 1) if fits_budget(size, **budget)]
        nodes = sizes.astype(np.int64)
        return np.where(np.isin(sizes, allowed), np.maximum((1 << np.minimum(nodes, 40)) - 1, SETS_OF_ITEM * nodes), 0)


def build_graph(  # noqa: PLR0913 - each is a setting of its own
    matches: DataFrame,
    nodes: DataFrame,
    assignment: Assignment,
    *,
    large: DataFrame | None = None,
    least_containment: float | None = None,
    by_weight: bool | None = None,
    is_ordered: bool = False,
) -> DataFrame:
    """Label components, choose the kept nodes, and assign each component to a miner.

    Schema in:   MATCHES, NODES; node long
    Schema out:  GRAPH, one row per node that has a neighbour

    Args:
        matches: near-duplicate distinct sketches.
        nodes: one row per document.
        assignment: which miner gets which component.
        large: the nodes of components represented by leaders, whose matches are those with a kept end; None: no such
            components.
        least_containment: share of a document that another must contain to replace it; then a heavier node (`weight`)
            comes before a lighter one, whatever the policy. None: near-duplicates replace each other.
        by_weight: whether heavier nodes come first; None: where there is a least containment.
        is_ordered: whether a node is the duplicate only of one that precedes it.

    Shuffles:  the nodes once on node, and once to one task that sorts them, on its disk if they are many; their
        numbers and the edges to one task (memory: `COST`); two joins of the names.
    Actions:   none.
    """
    described = describe_nodes(matches, nodes, large)
    numbered = _number_nodes(described, by_weight=least_containment is not None if by_weight is None else by_weight)

    # Edges and nodes come to the task in one stream, in any order; `is_node` says what a row is.
    edges = matches.select(F.lit(False).alias("is_node"), "node_a", "node_b", *_likeness(least_containment))
    stream = edges.unionByName(numbered.withColumn("is_node", F.lit(True)), allowMissingColumns=True)
    task = partial(graph_task, assignment=assignment, least_containment=least_containment, is_ordered=is_ordered)
    found = stream.repartition(1).mapInArrow(task, FOUND)

    component = described.select(F.col("node").alias("first"), F.col("group").alias("component"))
    return found.join(component, "first").select(*GRAPH.names)


def describe_nodes(matches: DataFrame, nodes: DataFrame, large: DataFrame | None) -> DataFrame:
    """Return the distinct sketches that have a neighbour.

    Schema in:   MATCHES, NODES; node long (of components represented by leaders), or None
    Schema out:  node long, group string, weight long, policy long and best string (its first document),
                 by_leaders boolean
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
    )

    if large is None:
        return described.withColumn("by_leaders", F.lit(False))
    marks = large.select("node", F.lit(True).alias("mark"))
    marked = described.join(marks, "node", "left").withColumn("by_leaders", F.coalesce("mark", F.lit(False)))
    return marked.drop("mark")


def count_components() -> dict[str, Column]:
    """Return the counts taken while GRAPH is written: components, those mined in each way, and the largest size."""
    is_first = F.col("position") == 0
    return {
        "components": F.count_if(is_first),
        "fpgrowth_components": F.count_if(is_first & F.col("batch").isNotNull()),
        "led_components": F.count_if(is_first & F.col("by_leaders")),
        "spread_components": F.count_if(is_first & F.col("share").isNotNull()),
        "shares": F.max("share") + 1,
        "largest_component": F.max("component_size"),
    }


def _number_nodes(described: DataFrame, *, by_weight: bool) -> DataFrame:
    """Number the nodes by policy (`rank`; with `by_weight`, the heaviest come first) and by name (`number`).

    Schema in:   as `describe_nodes` gives
    Schema out:  node long, rank int, number int, by_leaders boolean
    """
    heaviest = [F.desc("weight")] if by_weight else []
    row = F.monotonically_increasing_id().cast("int")  # in one partition: 0, 1, 2, …
    by_policy = described.repartition(1).sortWithinPartitions(*heaviest, "policy", "best").withColumn("rank", row)
    by_name = by_policy.sortWithinPartitions("group").withColumn("number", row)
    return by_name.select("node", "rank", "number", "by_leaders")


def _likeness(least_containment: float | None) -> tuple[str, ...]:
    """Return the columns of MATCHES that decide which node replaces which."""
    return ("resemblance",) if least_containment is None else ("containment_a", "containment_b")


class _Nodes(NamedTuple):
    """The n nodes of the graph, in the order of their names."""

    nodes: NDArray[np.int64]
    ranks: NDArray[np.int32]
    by_leaders: NDArray[np.bool_]


class _Solved(NamedTuple):
    """What the task has found for the n nodes."""

    nodes: _Nodes
    components: Components
    choice: Kept
    first: NDArray[np.int64]  # the first node of each component
    fits: NDArray[np.int32]  # the FP-Growth fit of each component, or -1


def graph_task(
    batches: Batches, *, assignment: Assignment, least_containment: float | None, is_ordered: bool = False
) -> Batches:
    """Label the components and choose the kept nodes, without their names. Memory: `COST`.

    Args:
        batches: rows of two kinds; the columns of the other kind are null. An edge (`is_node` is false) has node_a
            long, node_b long, and the columns of `_likeness`, double. A node has node long, rank int, number int and
            by_leaders boolean.
        assignment: as for `build_graph`.
        least_containment: as for `build_graph`.
        is_ordered: as for `build_graph`.

    Yields:
        FOUND.
    """
    likeness = _likeness(least_containment)
    edges = Edges(values=len(likeness))
    nodes = _gather(batches, edges, likeness)
    if not len(nodes.nodes):
        return

    # Names and ends are released as soon as they are used, for the edges take most of the memory.
    by_key = np.argsort(nodes.nodes).astype(np.int32)
    ends = edges.take_ends(nodes.nodes[by_key], by_key)
    components = label_components(ends, nodes=len(by_key))
    del by_key
    values = edges.take_values()
    if is_ordered:
        values = only_later(values, nodes.ranks[ends.T])
    choice = keep_first(ends, values, nodes.ranks, least_containment or 0.0)
    del ends, values

    first = np.flatnonzero(components.positions == 0)
    fits = _assign_fits(components.sizes[first], nodes.by_leaders[first], assignment)
    solved = _Solved(nodes, components, choice, first, fits)
    for low in range(0, len(nodes.nodes), BATCH_ROWS):
        yield _found_rows(solved, slice(low, min(low + BATCH_ROWS, len(nodes.nodes))), assignment.share_nodes)


def _gather(batches: Batches, edges: Edges, likeness: tuple[str, ...]) -> _Nodes:
    """Copy the edges and nodes of each batch, so that only the batch being read is held; return the nodes by name."""
    parts: list[_Nodes] = []
    places: list[NDArray[np.int32]] = []
    for batch in batches:
        is_node = batch.column("is_node")
        some = batch.filter(pc.invert(is_node))
        edges.add(*(np.asarray(some.column(name)) for name in ("node_a", "node_b", *likeness)))
        some = batch.filter(is_node)
        places.append(np.array(some.column("number"), np.int32))
        parts.append(_Nodes(*(np.array(some.column(name)) for name in ("node", "rank", "by_leaders"))))

    numbers = np.concatenate([np.empty(0, np.int32), *places])
    by_number = np.empty(len(numbers), np.int32)
    by_number[numbers] = np.arange(len(numbers), dtype=np.int32)
    if not parts:
        return _Nodes(np.empty(0, np.int64), by_number, np.empty(0, np.bool_))
    return _Nodes(*(np.concatenate(column)[by_number] for column in zip(*parts, strict=True)))


def _found_rows(solved: _Solved, rows: slice, share_nodes: int | None) -> pa.RecordBatch:
    """Return the rows of FOUND for a slice of the nodes."""
    nodes, components, choice, first, fits = solved
    ordinals, sizes, by_leaders = components.ordinals[rows], components.sizes[rows], nodes.by_leaders[rows]
    kept, duplicate_of = choice.kept[rows], choice.duplicate_of[rows]

    leaders = components.positions[np.where(kept, np.arange(rows.start, rows.stop), duplicate_of)]
    share = np.where(by_leaders, -1, number_shares(leaders, sizes, share_nodes)).astype(np.int32)
    return pa.RecordBatch.from_pydict(
        {
            "node": nodes.nodes[rows],
            "first": nodes.nodes[first[ordinals]],
            "ordinal": ordinals.astype(np.int64),
            "position": components.positions[rows],
            "component_size": sizes,
            "batch": pa.array(fits[ordinals], mask=fits[ordinals] < 0),
            "kept": kept,
            "duplicate_of": pa.array(nodes.nodes[duplicate_of], mask=kept),
            "resemblance": choice.resemblance[rows],
            "leader": leaders,
            "rank": nodes.ranks[rows],
            "by_leaders": by_leaders,
            "share": pa.array(share, mask=share < 0),
        }
    )


def _assign_fits(sizes: NDArray[np.int32], by_leaders: NDArray[np.bool_], assignment: Assignment) -> NDArray[np.int32]:
    """Return the FP-Growth fit of each component, or -1 for the pivot miner's.

    A fit takes components in order until it may list about `LISTED_LIMIT` sets.
    """
    listed = np.where(by_leaders, 0, assignment.listed_sets(sizes))
    return np.where(listed > 0, np.cumsum(listed) // LISTED_LIMIT, -1).astype(np.int32)


def direct_matches(matches: DataFrame, nodes: DataFrame, *, is_contained: bool, max_lost: Fraction | None) -> DataFrame:
    """Return the edges with the likeness of each end to the other, or `NEVER` where the other must not remove it.

    Schema in:   MATCHES, NODES; with `max_lost` also common, shingles_a and shingles_b, int
    Schema out:  MATCHES; `containment_a` and `containment_b` are the likeness of a and of b
    Shuffles:  the nodes on node; the matches on either end.    Actions:  none.
    """
    weights = nodes.groupBy("node").agg(F.max("weight"))
    placed = matches.join(weights.toDF("node_a", "weight_a"), "node_a").join(
        weights.toDF("node_b", "weight_b"), "node_b"
    )
    counted = ["common", "shingles_a", "shingles_b"] if max_lost is not None else []
    rows = placed.select(*MATCHES.names, "weight_a", "weight_b", *counted)
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
        directed = direct_edges(likeness, classes_of(both(batch, "weight")), loss)
        yield tables.MATCHES.batch([*batch.columns[:4], *map(pa.array, directed)])
