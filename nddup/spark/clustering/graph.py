"""The pair graph of distinct sketches: its components, and which of its nodes are kept.

Both need all edges in one place; they are held in the memory of ONE task, some 100 bytes an edge, up to `EDGE_LIMIT`
edges. Above it a run takes `large_graph` instead, in rounds over many tasks: the same labels and choices.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.mining.components import label_components
from nddup.mining.independent_set import keep_first
from nddup.mining.maximality_filter import fits_budget
from nddup.spark.schemas import GRAPH, MATCHES, NODES, require

EDGE_LIMIT = 50_000_000
"""Edges between distinct sketches that one task takes: about 5 GB of its memory."""

LISTED_LIMIT = 10**7
"""Frequent sets that one FP-Growth fit may list; components beyond it go to another fit."""


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

    Shuffles:  the nodes once on node; edges and their nodes to one task.    Actions:  none.
    """
    require(matches, MATCHES, stage="clusters")
    require(nodes, NODES, stage="clusters")
    columns = ("node_a", "node_b", "resemblance", "containment_a", "containment_b")
    edges = matches.where(F.col("node_a").isNotNull()).select(*columns)
    ends = edges.select(F.explode(F.array("node_a", "node_b")).alias("node")).distinct()
    best = F.min(F.struct("policy", "doc_id"))
    described = (
        nodes.join(ends, "node")
        .groupBy("node")
        .agg(F.min("group").alias("group"), F.max("weight").alias("weight"), best.alias("best"))
        .select("node", "group", "weight", F.col("best.policy").alias("policy"), F.col("best.doc_id").alias("best"))
    )
    if families is None:
        described = described.withColumn("led", F.lit(False))
    else:
        led = families.select("node", F.lit(True).alias("led"))
        described = described.join(led, "node", "left").withColumn("led", F.coalesce("led", F.lit(False)))
    whole = edges.unionByName(described, allowMissingColumns=True).repartition(1)
    largest = {"pivot": 0, "auto": fpgrowth_limit, "fpgrowth": LISTED_LIMIT.bit_length() - 1}[miner]
    task = partial(
        _graph_task,
        largest=largest,
        max_sets=max_sets,
        max_members=max_members,
        share_nodes=share_nodes,
        least_containment=least_containment,
    )
    return whole.mapInArrow(task, GRAPH)


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


def _graph_task(  # noqa: PLR0913 - those of `build_graph`
    batches: Iterator[pa.RecordBatch],
    *,
    largest: int,
    max_sets: int,
    max_members: int,
    share_nodes: int | None,
    least_containment: float | None,
) -> Iterator[pa.RecordBatch]:
    held = list(batches)
    if not held:
        return
    table = pa.Table.from_batches(held)
    described = table.filter(pc.is_valid(table["node"])).sort_by("group")
    if described.num_rows == 0:
        return
    pairs = table.filter(pc.is_valid(table["node_a"]))
    nodes = described["node"].to_numpy()
    edges = _positions(nodes, pairs["node_a"].to_numpy(), pairs["node_b"].to_numpy())
    components = label_components(edges, nodes=len(nodes))
    ranks, likeness = _rank(described, by_weight=least_containment is not None), pairs["resemblance"].to_numpy()
    if least_containment is not None:
        likeness = np.stack([pairs[end].to_numpy() for end in ("containment_a", "containment_b")])
    choice = keep_first(edges, likeness, ranks, least_containment or 0.0)
    first = np.flatnonzero(components.positions == 0)
    is_led = described["led"].to_numpy()
    batch = _fits(components.sizes[first], is_led[first], largest, max_sets, max_members)[components.ordinals]
    leader = np.where(choice.kept, np.arange(len(nodes)), choice.duplicate_of)
    places = components.positions[leader]
    share = np.where(is_led, -1, number_shares(places, components.sizes, share_nodes)).astype(np.int32)
    graph = pa.table(
        {
            "node": nodes,
            "component": described["group"].take(pa.array(first[components.ordinals])),
            "ordinal": components.ordinals,
            "position": components.positions,
            "component_size": components.sizes,
            "batch": pa.array(batch, mask=batch < 0),
            "kept": choice.kept,
            "duplicate_of": pa.array(nodes[choice.duplicate_of], mask=choice.kept),
            "resemblance": choice.resemblance,
            "best": described["best"],
            "leader": places,
            "rank": ranks,
            "led": is_led,
            "share": pa.array(share, mask=share < 0),
        }
    )
    yield from graph.to_batches(max_chunksize=100_000)


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


def _rank(described: pa.Table, *, by_weight: bool) -> NDArray[np.int32]:
    """The place of each node in the order of the policy, (n,); by weight, the heaviest come before it."""
    first = [("weight", "descending")] if by_weight else []
    by_policy = pc.sort_indices(described, [*first, ("policy", "ascending"), ("best", "ascending")]).to_numpy()
    ranks = np.empty(described.num_rows, np.int32)
    ranks[by_policy] = np.arange(described.num_rows, dtype=np.int32)
    return ranks


def _positions(nodes: NDArray[np.int64], node_a: NDArray[np.int64], node_b: NDArray[np.int64]) -> NDArray[np.int32]:
    """Edges as places in `nodes`, (e, 2)."""
    order = np.argsort(nodes)
    ordered = nodes[order]
    ends = [order[np.searchsorted(ordered, end)] for end in (node_a, node_b)]
    return np.stack(ends, axis=1).astype(np.int32)


def _fits(
    sizes: NDArray[np.int32], is_led: NDArray[np.bool_], largest: int, max_sets: int, max_members: int
) -> NDArray[np.int32]:
    """The FP-Growth fit of each component, in order, or -1 for the pivot miner's."""
    allowed = [m for m in range(2, largest + 1) if fits_budget(m, max_sets=max_sets, max_members=max_members)]
    is_listed = np.isin(sizes, allowed) & ~is_led
    listed = np.where(is_listed, (1 << np.minimum(sizes.astype(np.int64), 40)) - 1, 0)
    return np.where(is_listed, np.cumsum(listed) // LISTED_LIMIT, -1).astype(np.int32)
