"""The task of each component: its number modulo the partitions. All rows of its nodes go to the same task.

    graph          --list_targets-->  node, target                        no shuffle
                                      or the targets of 4,096 nodes per row    1 shuffle, 12 bytes per node of the graph
    rows, targets  --send-->          the rows with the target of their component

Sketches are wide, and most are in no component. So they are not shuffled to find their component: of a graph of many
nodes only the targets are broadcast, 2 bytes per document of the collection.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

CHUNKED_NODES = 1 << 18
"""Fewest nodes of the graph whose targets are sent in chunks. Fewer are broadcast as rows, about 60 bytes each, without
the work of making chunks."""

CHUNKED_DOCUMENTS = 200_000_000
"""Most documents of the collection for targets in chunks: the chunks of more, over 400 MB, would not fit an executor of
1 GB beside its work. Then the sketches are shuffled on their nodes, once."""

CHUNK_BITS = 12
CHUNKS = "chunk long, targets array<smallint>"
NO_TARGET = -1
"""The target, in a chunk, of a document that is not a node of the graph."""


class Scale(NamedTuple):
    """The numbers that decide how targets are found: joined as rows, or looked up in chunks."""

    nodes: int
    """Nodes of the graph."""
    documents: int
    """Documents of the collection: nodes are named by their keys, so there is at most one chunk per 4,096 documents."""

    def is_chunked(self, partitions: int) -> bool:
        """Whether the targets, below `partitions`, are sent in chunks."""
        fits = self.documents <= CHUNKED_DOCUMENTS and partitions <= np.iinfo(np.int16).max
        return fits and self.nodes >= CHUNKED_NODES


def target_of_component(partitions: int) -> Column:
    """Return the partition of a component, int, from the column `ordinal`."""
    return (F.col("ordinal") % partitions).cast("int")


def list_targets(graph: DataFrame, scale: Scale, *, partitions: int) -> DataFrame:
    """Return the target of each node, in the form that `send` looks up.

    Schema in:   node long, ordinal long, …
    Schema out:  node long, target int; or CHUNKS, to be broadcast
    Shuffles:  none; for chunks one, of narrow rows.    Actions:  none.
    """
    targets = graph.select("node", target_of_component(partitions).alias("target"))
    if not scale.is_chunked(partitions):
        return targets
    chunk = F.shiftright("node", CHUNK_BITS).alias("chunk")
    return F.broadcast(targets.groupBy(chunk).applyInArrow(_fill_chunk, CHUNKS))


def send(rows: DataFrame, targets: DataFrame, by: str) -> DataFrame:
    """Return the rows whose node has a target, with that target.

    Schema in:   the column `by`, a node, and any others; as `list_targets` gives
    Schema out:  the columns of the rows, target int
    Shuffles:  none if the targets are broadcast; else the rows once on their node.    Actions:  none.
    """
    if "chunk" not in targets.columns:
        return rows.join(targets.withColumnRenamed("node", by), by)

    place = F.col(by).bitwiseAND((1 << CHUNK_BITS) - 1).cast("int")
    return (
        rows.join(targets, F.shiftright(by, CHUNK_BITS) == F.col("chunk"))
        .withColumn("target", F.get("targets", place).cast("int"))
        .where(F.col("target") != NO_TARGET)
        .drop("chunk", "targets")
    )


def _fill_chunk(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
    """Return the targets of one chunk, each at the place of its node."""
    targets = np.full(1 << CHUNK_BITS, NO_TARGET, np.int16)
    places = rows["node"].to_numpy() & ((1 << CHUNK_BITS) - 1)
    targets[places] = rows["target"].to_numpy()
    lists = pa.ListArray.from_arrays(pa.array([0, len(targets)], pa.int32()), pa.array(targets))
    return pa.table({"chunk": pa.array([key[0].as_py()], pa.int64()), "targets": lists})
