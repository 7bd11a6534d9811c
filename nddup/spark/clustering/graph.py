"""The pair graph of distinct sketches: its components, and which of its nodes are kept.

    matches, nodes  --describe_nodes-->  the nodes that have a neighbour, each with its first document   1 shuffle
    described       --number-->          places in the order of the policy and of the names              1 shuffle
    edges, numbers  --graph_task-->     numbers only: components, positions, choices                    1 shuffle
    found           --names joined-->    GRAPH                                                           2 joins

Components and choices need all edges in one place, the memory of ONE task: `COST` says how much of it, so that it is
known before whether they fit. Only numbers of fixed width go there; names are joined afterwards. What does not fit goes
to `large_graph`, in rounds over many tasks: the same labels and choices.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.mining.components import label_components
from nddup.mining.edges import Cost, Edges
from nddup.mining.independent_set import keep_first
from nddup.mining.maximality_filter import fits_budget
from nddup.spark.schemas import GRAPH, MATCHES, NODES, require, table

COST = Cost(edge=48, node=72)
"""Of one task over the graph, rounded up from what was measured (`tests/spark/test_graph_memory.py`)."""

LISTED_LIMIT = 10**7
"""Frequent sets that one FP-Growth fit may list; components beyond it go to another fit."""

BATCH_ROWS = 100_000
"""Nodes that are laid out for Spark at a time."""

LIKENESS = ("resemblance",)
CONTAINMENTS = ("containment_a", "containment_b")

FOUND = table(
    "node long, first long, ordinal long, position int, component_size int, batch int, kept boolean,"
    " duplicate_of long, resemblance double, leader int, rank int, led boolean, share int"
)
"""GRAPH without its names; `first` is the first node of the component."""

Batches = Iterator[pa.RecordBatch]


def build_graph(  # noqa: PLR0913 - each is a setting of its own
    matches: DataFrame,
    nodes: DataFrame,
    *,
    miner: str,
    fpgrowth_limit: int,
    max_sets: int,
    max_members: int,
    share_nodes: int | None = None,
    families: DataFrame | None = None,
    least_containment: float | None = None,
) -> DataFrame:
    """Label components, choose the kept nodes, and say who mines which component.

    Schema in:   MATCHES, NODES
    Schema out:  GRAPH, one row a node that has a neighbour

    Args:
        matches: near-duplicate distinct sketches.
        nodes: one row a document.
        miner: `pivot`: none goes to FP-Growth. `auto`: components of at most `fpgrowth_limit` nodes do.
            `fpgrowth`: all do for which it can list its sets (below `LISTED_LIMIT`).
        fpgrowth_limit: see `miner`.
        max_sets: budget of sets of a component; only a component that cannot pass it goes to FP-Growth.
        max_members: budget of member rows of a component.
        share_nodes: a component of more nodes is cut into shares of about so many; None: none is.
        families: the FAMILIES whose matches are those of leaders; None where there are none.
        least_containment: share of a document that another must contain to replace it; then who contains more comes
            before the policy. None: near-duplicates replace each other.

    Shuffles:  the nodes once on node, and once to one task that sorts them, on its disk where they are many; their
        numbers and the edges to one task, `COST` of its memory each; two joins of the names.
    Actions:   none.
    """
    likeness = LIKENESS if least_containment is None else CONTAINMENTS
    edges = matches.select("node_a", "node_b", *likeness)
    described = describe_nodes(matches, nodes, families)
    numbered = _number(described, by_weight=least_containment is not None)
    largest = {"pivot": 0, "auto": fpgrowth_limit, "fpgrowth": LISTED_LIMIT.bit_length() - 1}[miner]
    task = partial(
        graph_task,
        likeness=likeness,
        largest=largest,
        max_sets=max_sets,
        max_members=max_members,
        share_nodes=share_nodes,
        least_containment=least_containment,
    )
    found = edges.unionByName(numbered, allowMissingColumns=True).repartition(1).mapInArrow(task, FOUND)
    own = described.select("node", "best")
    component = described.select(F.col("node").alias("first"), F.col("group").alias("component"))
    return found.join(own, "node").join(component, "first").select(*GRAPH.fieldNames())


def describe_nodes(matches: DataFrame, nodes: DataFrame, families: DataFrame | None) -> DataFrame:
    """The distinct sketches that have a neighbour.

    Schema in:   MATCHES, NODES, FAMILIES or None
    Schema out:  node long, group string, weight long, policy long and best string (its first document), led boolean
    Shuffles:  the nodes once on node.    Actions:  none.
    """
    require(matches, MATCHES, stage="clusters")
    require(nodes, NODES, stage="clusters")
    ends = matches.select(F.explode(F.array("node_a", "node_b")).alias("node")).distinct()
    best = F.min(F.struct("policy", "doc_id"))
    described = (
        nodes.groupBy("node")  # before the join: one sketch may be that of most documents
        .agg(F.min("group").alias("group"), F.max("weight").alias("weight"), best.alias("best"))
        .join(ends, "node")
        .select("node", "group", "weight", F.col("best.policy").alias("policy"), F.col("best.doc_id").alias("best"))
    )
    if families is None:
        return described.withColumn("led", F.lit(False))
    led = families.select("node", F.lit(True).alias("led"))
    return described.join(led, "node", "left").withColumn("led", F.coalesce("led", F.lit(False)))


def _number(described: DataFrame, *, by_weight: bool) -> DataFrame:
    """The place of each node in the order of the policy, and in that of the names; by weight, the heaviest come first.

    Schema in:   as `describe_nodes` gives
    Schema out:  node long, rank int, number int, led boolean
    """
    heaviest = [F.desc("weight")] if by_weight else []
    row = F.monotonically_increasing_id().cast("int")  # of one partition: 0, 1, 2, …
    by_policy = described.repartition(1).sortWithinPartitions(*heaviest, "policy", "best").withColumn("rank", row)
    by_name = by_policy.sortWithinPartitions("group").withColumn("number", row)
    return by_name.select("node", "rank", "number", "led")


def count_components() -> dict[str, Column]:
    """What is counted of GRAPH in passing: components, those of FP-Growth, and the size of the largest."""
    is_first = F.col("position") == 0
    return {
        "components": F.count_if(is_first),
        "fpgrowth_components": F.count_if(is_first & F.col("batch").isNotNull()),
        "led_components": F.count_if(is_first & F.col("led")),
        "spread_components": F.count_if(is_first & F.col("share").isNotNull()),
        "shares": F.max("share") + 1,
        "largest_component": F.max("component_size"),
    }


class _Nodes(NamedTuple):
    """The nodes of the graph in the order of their names, n of them."""

    nodes: NDArray[np.int64]
    ranks: NDArray[np.int32]
    is_led: NDArray[np.bool_]


def graph_task(  # noqa: PLR0913 - each is a setting of its own
    batches: Batches,
    *,
    likeness: tuple[str, ...],
    largest: int,
    max_sets: int,
    max_members: int,
    share_nodes: int | None,
    least_containment: float | None,
) -> Batches:
    """The graph without its names, in `COST` bytes an edge and a node; the settings are those of `build_graph`.

    Columns in:  node_a, node_b long, `likeness` double: an edge; node long, rank int, number int, led boolean: a node.
                 Each row is one of the two, the other columns are null.
    Schema out:  FOUND
    """
    edges = Edges(values=len(likeness))
    nodes = _gather(batches, edges, likeness)
    if not len(nodes.nodes):
        return
    by_key = np.argsort(nodes.nodes).astype(np.int32)
    ends = edges.take_ends(nodes.nodes[by_key], by_key)
    components = label_components(ends, nodes=len(by_key))
    del by_key
    choice = keep_first(ends, edges.take_values(), nodes.ranks, least_containment or 0.0)
    del ends

    first = np.flatnonzero(components.positions == 0)
    fits = _fits(components.sizes[first], nodes.is_led[first], largest, max_sets, max_members)
    for low in range(0, len(nodes.nodes), BATCH_ROWS):
        rows = slice(low, low + BATCH_ROWS)
        ordinals, sizes, is_led = components.ordinals[rows], components.sizes[rows], nodes.is_led[rows]
        kept, duplicate_of = choice.kept[rows], choice.duplicate_of[rows]
        leaders = components.positions[np.where(kept, np.arange(low, low + len(kept)), duplicate_of)]
        share = np.where(is_led, -1, number_shares(leaders, sizes, share_nodes)).astype(np.int32)
        yield pa.RecordBatch.from_pydict(
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
                "led": is_led,
                "share": pa.array(share, mask=share < 0),
            }
        )


def _gather(batches: Batches, edges: Edges, likeness: tuple[str, ...]) -> _Nodes:
    """Copy the rows of each batch, an edge or a node each, so that no batch is held but the one that is read."""
    parts: list[_Nodes] = []
    places: list[NDArray[np.int32]] = []
    for batch in batches:
        is_node = batch.column("node").is_valid()
        some = batch.filter(pc.invert(is_node))
        edges.add(*(np.asarray(some.column(name)) for name in ("node_a", "node_b", *likeness)))
        some = batch.filter(is_node)
        places.append(np.array(some.column("number"), np.int32))
        parts.append(_Nodes(*(np.array(some.column(name)) for name in ("node", "rank", "led"))))
    numbers = np.concatenate([np.empty(0, np.int32), *places])
    by_number = np.empty(len(numbers), np.int32)
    by_number[numbers] = np.arange(len(numbers), dtype=np.int32)
    columns = (np.concatenate(column)[by_number] for column in zip(*parts, strict=True))
    return _Nodes(*columns) if parts else _Nodes(np.empty(0, np.int64), by_number, np.empty(0, np.bool_))


def number_shares(leaders: NDArray[np.int32], sizes: NDArray[np.int32], share_nodes: int | None) -> NDArray[np.int64]:
    """The share of each node, or -1 where its component is not cut.

    A node goes along with its leader: a near-duplicate of both is most likely there too.

    Args:
        leaders: (n,), positions of the leaders in their components.
        sizes: (n,), of the components.
        share_nodes: about as many nodes as a share has; None: no component is cut.
    """
    if share_nodes is None:
        return np.full(len(leaders), -1)
    shares = -(-sizes.astype(np.int64) // share_nodes)
    return np.where(shares > 1, leaders * shares // np.maximum(sizes, 1), -1)


def _fits(
    sizes: NDArray[np.int32], is_led: NDArray[np.bool_], largest: int, max_sets: int, max_members: int
) -> NDArray[np.int32]:
    """The FP-Growth fit of each component, in order, or -1 for the pivot miner's."""
    allowed = [m for m in range(2, largest + 1) if fits_budget(m, max_sets=max_sets, max_members=max_members)]
    is_listed = np.isin(sizes, allowed) & ~is_led
    listed = np.where(is_listed, (1 << np.minimum(sizes.astype(np.int64), 40)) - 1, 0)
    return np.where(is_listed, np.cumsum(listed) // LISTED_LIMIT, -1).astype(np.int32)
