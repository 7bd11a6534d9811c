"""The numbered pair graph: nodes in the order of the policy, edges between their numbers, one task over the edges.

    matches, nodes    --order_nodes-->   ORDERED       2 shuffles, one by range
    ordered           --number_nodes-->  NUMBERED      no shuffle
    matches, numbered --number_edges-->  PAIR_EDGES    2 shuffles
    edges             --solve-->         SOLVED        the edges to one task; Spark sorts them on the task's disk

Only numbers are sorted and sent. The task holds 33 bits per node and no edge (`nddup.mining.streamed_graph`). If there
are more nodes than it has memory for, `large_graph` makes SOLVED in rounds. `assembled_graph` makes GRAPH from either.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.mining.streamed_graph import StreamedChoice, StreamedComponents
from nddup.spark.clustering.graph import LISTED_LIMIT, Assignment, describe_nodes
from nddup.spark.schemas import MATCHES, ORDERED, SOLVED, require, table

FIRST_KEYS = table("part int, first_key long")
"""The number of the first node of each part of ORDERED."""

NUMBERED = table("order_key long, node long, group string, by_leaders boolean")
"""The nodes, numbered from 0 without gaps in the order of the policy."""

ROW_BITS = 33
"""Low bits of `monotonically_increasing_id` that hold the row within its partition; the partition is above them."""

BATCH_ROWS = 1 << 17
"""Nodes per batch that a task returns to Spark."""

Batches = Iterator[pa.RecordBatch]


def order_nodes(
    matches: DataFrame, nodes: DataFrame, *, large: DataFrame | None, by_weight: bool, partitions: int
) -> DataFrame:
    """Return one row per node with a neighbour, in the order of the policy; with `by_weight`, the heaviest come first.

    Schema in:   MATCHES, NODES; node long (of components represented by leaders), or None
    Schema out:  ORDERED
    Shuffles:  the nodes once on node, once by range.    Actions:  Spark samples the range.
    """
    order = [*([F.desc("weight")] if by_weight else []), F.asc("policy"), F.asc("best")]
    described = describe_nodes(matches, nodes, large)
    in_order = described.repartitionByRange(partitions, *order).sortWithinPartitions(*order)
    number = F.monotonically_increasing_id()
    part, row = F.shiftright(number, ROW_BITS).cast("int"), number.bitwiseAND((1 << ROW_BITS) - 1)
    return in_order.select(part.alias("part"), row.alias("row"), "node", "group", "by_leaders").select(
        *ORDERED.fieldNames()
    )


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
    return ordered.join(F.broadcast(first_keys), "part").select(key, "node", "group", "by_leaders")


def number_edges(matches: DataFrame, numbered: DataFrame, *, is_contained: bool) -> DataFrame:
    """Return the edges between node numbers, the earlier end first; with `is_contained`, likeness has a direction.

    Schema in:   MATCHES, NUMBERED
    Schema out:  PAIR_EDGES
    Shuffles:  the edges once for each end.    Actions:  none.
    """
    require(matches, MATCHES, stage="clusters")
    keys = numbered.select("node", "order_key")
    named = matches.join(keys.toDF("node_a", "key_a"), "node_a").join(keys.toDF("node_b", "key_b"), "node_b")
    if is_contained:
        is_a_first = F.col("key_a") < F.col("key_b")
        of_second = F.when(is_a_first, F.col("containment_b")).otherwise(F.col("containment_a"))
        of_first = F.when(is_a_first, F.col("containment_a")).otherwise(F.col("containment_b"))
    else:
        of_second, of_first = F.col("resemblance"), F.lit(None).cast("double")
    return named.select(
        F.least("key_a", "key_b").alias("first"),
        F.greatest("key_a", "key_b").alias("second"),
        of_second.alias("resemblance"),
        of_first.alias("of_first"),
    )


class Solving(NamedTuple):
    """What the task that decides the nodes needs to know: their number, the miners, the least containment."""

    nodes: int
    assignment: Assignment
    least_containment: float | None


def solve(edges: DataFrame, solving: Solving) -> DataFrame:
    """Find the components and the kept nodes, in one task that reads the edges in the order of their later ends.

    Schema in:   PAIR_EDGES
    Schema out:  SOLVED
    Shuffles:  the edges to one task, 16 bytes each, sorted on its disk.    Actions:  none.
    """
    least = solving.least_containment or 0.0
    replaces = [] if solving.least_containment is None else [(F.col("resemblance") >= least).alias("replaces")]
    return (
        edges.select("first", "second", *replaces)
        .repartition(1)
        .sortWithinPartitions("second")
        .mapInArrow(partial(solve_task, solving=solving), SOLVED)
    )


def solve_task(batches: Batches, *, solving: Solving) -> Batches:
    """Return SOLVED from all edges. Memory: 33 bits per node.

    Args:
        batches: first long, second long, ascending by second; for containment also replaces boolean: whether the first
            end contains enough of the second to replace it.
        solving: how the nodes are decided.
    """
    components, choice = StreamedComponents(solving.nodes), StreamedChoice(solving.nodes)
    for batch in batches:
        components.feed(*_ends(batch))
        if solving.least_containment is not None:
            batch = batch.filter(batch.column("replaces"))  # noqa: PLW2901 - the other rows only connect
        choice.feed(*_ends(batch))
    components.finish()

    n_listed = 0
    for low in range(0, solving.nodes, BATCH_ROWS):
        high = min(low + BATCH_ROWS, solving.nodes)
        keys = np.arange(low, high)
        ordinals, sizes = components.label(low, high)

        # A fit takes components in order until it may list about `LISTED_LIMIT` sets.
        listed = np.where(ordinals == keys, solving.assignment.listed_sets(sizes), 0)
        fits = ((n_listed + np.cumsum(listed)) // LISTED_LIMIT).astype(np.int32)
        n_listed += int(listed.sum())
        yield pa.RecordBatch.from_pydict(
            {
                "order_key": keys,
                "ordinal": ordinals.astype(np.int64),
                "fit": pa.array(fits, mask=listed == 0),
                "kept": choice.kept(low, high),
            }
        )


def _ends(batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(batch.column("first")), np.asarray(batch.column("second"))
