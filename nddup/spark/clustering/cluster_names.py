"""From sets of nodes to clusters of documents, named by their members.

sets, graph, nodes --name_sets-->     named         joins on node; the members of each set sorted, and read in order
named              --list_clusters--> clusters      none
named              --list_members-->  members       one join, on the set

A cluster may have as many members as there are documents. They are never one row: a task reads them in order, and
holds of them the digest, the first ids and the one that the policy prefers.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from nddup.spark.heavy_keys import join_parted, mark_heavy
from nddup.spark.schemas import CLUSTERS, GRAPH, MEMBERS, NAMED, NODES, SETS, require

Batches = Iterator[pa.RecordBatch]

NAMED_MODES = ("partition", "components")
"""Modes whose sets are no maximal sets, and bear the mode's own name as their coverage."""

HEADER = ("set_id", "support", "component", "coverage")
COMING = ("is_member", *HEADER, "doc_id", "before", "policy")
"""What a task reads: of each set first its header (`is_member` is false), which has the columns `HEADER`; then its
members in the order of their ids, each with the set's id and the last three columns."""


def name_sets(  # noqa: PLR0913 - each is a setting of its own
    sets: DataFrame,
    graph: DataFrame,
    nodes: DataFrame,
    *,
    least_size: int,
    max_listed: int,
    mode: str = "all",
    by_weight: bool = False,
    is_large: bool = True,
) -> DataFrame:
    """Clusters of documents: each set with all documents of its sketches, and each group that stands alone.

    Schema in:   SETS, GRAPH, NODES
    Schema out:  NAMED

    Args:
        sets: as positions in components.
        graph: one row a node that has a neighbour.
        nodes: one row a document.
        least_size: features from which two equal sketches are near-duplicates.
        max_listed: ids in the row of a cluster.
        mode: what the sets are.
        by_weight: the heaviest member is preferred, then the policy decides.
        is_large: whether there are enough equal sketches for one to be that of most documents.

    Shuffles:  the sets on component, their places and the nodes on node; the members on their set.    Actions:  none.
    """
    for table, schema in ((sets, SETS), (graph, GRAPH), (nodes, NODES)):
        require(table, schema, stage="clusters")
    place = graph.select("ordinal", "position", "node")
    mined = list_places(sets).join(place, ["ordinal", "position"]).select("set_id", "node")
    component = graph.where("position = 0").select("ordinal", "component")
    said = sets.withColumn("set_id", _set_id()).join(component, "ordinal")

    # A group of equal sketches without a neighbour is a set of one node.
    groups = nodes.where((F.col("doc_id") == F.col("group")) & (F.col("n") > 1))
    alone = (
        groups.where(F.col("size") >= least_size)
        .join(graph.select("node"), "node", "left_anti")
        .select(
            F.unhex(F.md5(F.concat(F.lit("="), F.col("node")).cast("binary"))).alias("set_id"),
            "node",
            F.col("size").alias("support"),
            F.col("group").alias("component"),
            F.lit(mode if mode in NAMED_MODES else "all").alias("coverage"),
        )
    )
    headers = said.select(*HEADER).unionByName(alone.select(*HEADER))

    held = mined.unionByName(alone.select("set_id", "node"))
    before = (-F.col("weight") if by_weight else F.lit(0)).cast("long").alias("before")
    documents = nodes.select("node", "doc_id", "n", "policy", before)
    if is_large:
        members = join_parted(documents, mark_heavy(held, groups, "node"), "node", by="doc_id")
    else:
        members = documents.join(held, "node")
    listed = members.select(F.lit(True).alias("is_member"), "set_id", "doc_id", "before", "policy")
    headers = headers.withColumn("is_member", F.lit(False))
    coming = listed.unionByName(headers, allowMissingColumns=True)
    in_order = coming.repartition("set_id").sortWithinPartitions("set_id", "is_member", "doc_id")
    return in_order.select(*COMING).mapInArrow(partial(_name_task, max_listed=max_listed), NAMED)


def list_places(sets: DataFrame) -> DataFrame:
    """One row a node of a set: set_id, ordinal, position. The set is named by a digest.

    Its positions would make rows as long as the set, and a large set the square of its size.

    Schema in:   SETS
    Shuffles:  none.    Actions:  none.
    """
    return sets.select(_set_id().alias("set_id"), "ordinal", F.explode("positions").alias("position"))


def list_clusters(named: DataFrame) -> DataFrame:
    """The rows of the clusters. Schema in: NAMED. Schema out: CLUSTERS. No shuffle, no action."""
    require(named, NAMED, stage="clusters")
    return named.where("what = 'cluster'").select(*CLUSTERS.fieldNames())


def list_members(named: DataFrame) -> DataFrame:
    """One row a member, marked where the keep policy prefers it to the other members; by weight, the heaviest first.

    Schema in:   NAMED
    Schema out:  MEMBERS
    Shuffles:  the members on their set, or none: the clusters may be broadcast.    Actions:  none.
    """
    require(named, NAMED, stage="clusters")
    names = named.where("what = 'cluster'").select("set_id", "cluster_id", "first_id")
    rows = named.where("what = 'member'").select("set_id", "doc_id").join(names, "set_id")
    return rows.withColumn("representative", F.col("doc_id") == F.col("first_id")).select(*MEMBERS.fieldNames())


def _set_id() -> Column:
    """Of SETS: a digest, 16 bytes."""
    positions = F.array_join(F.col("positions").cast("array<string>"), ",")
    return F.unhex(F.md5(F.concat_ws(":", F.col("ordinal").cast("string"), positions).cast("binary")))


@dataclass
class _Cluster:
    """A set whose members are coming: what it is, and what was seen of them."""

    set_id: bytes
    support: int
    component: str
    coverage: str
    first: tuple[int, int, str] | None = None
    size: int = 0
    n_listed: int = 0
    listed: list[pa.Array] = field(default_factory=list)
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def add(self, ids: pa.Array, ended: memoryview, first: tuple[int, int, str], max_listed: int) -> None:
        """Add its next members: their ids, the same as bytes with a zero after each, the preferred of them."""
        self.digest.update(ended)
        self.size += len(ids)
        self.first = first if self.first is None else min(self.first, first)
        if self.n_listed < max_listed:
            self.listed.append(ids[: max_listed - self.n_listed])
            self.n_listed += len(self.listed[-1])


def _name_task(batches: Batches, *, max_listed: int) -> Batches:
    """NAMED of the rows of `COMING`: each batch's members as they come, and a row for each set that has ended."""
    cluster: _Cluster | None = None
    for batch in batches:
        ids = batch.column("doc_id").cast(pa.string())
        is_header = ~batch.column("is_member").to_numpy(zero_copy_only=False)
        data, offsets = _with_zeros(ids)
        preferred = _list_preferred(batch, is_header)

        bounds = [0, *np.flatnonzero(is_header).tolist(), len(ids)]
        complete = []
        for number, (start, end) in enumerate(pairwise(bounds)):
            if number:  # what stands before the first header goes on with the last set
                complete += _ended(cluster)
                cluster = _Cluster(*(batch.column(name)[start].as_py() for name in HEADER))
            at = start + (number > 0)
            if cluster is not None and end > at:
                cluster.add(ids[at:end], data[offsets[at] : offsets[end]], preferred[number], max_listed)

        members = batch.filter(pa.array(~is_header))
        yield _as_named("member", {name: members.column(name) for name in ("set_id", "doc_id")}, members.num_rows)
        yield _cluster_rows(complete)
    yield _cluster_rows(_ended(cluster))


def _ended(cluster: _Cluster | None) -> list[_Cluster]:
    """The set, if it is a cluster: one document is none."""
    return [cluster] if cluster is not None and cluster.size > 1 else []


def _with_zeros(ids: pa.Array) -> tuple[memoryview, NDArray[np.int32]]:
    """The ids as bytes with a zero after each, on end, and where each begins, (n + 1,); nulls are nothing."""
    ended = pc.binary_join_element_wise(ids.cast(pa.binary()), b"", b"\0")
    _, offsets, data = ended.buffers()
    return memoryview(data or b""), np.frombuffer(offsets, np.int32, len(ids) + 1)


def _list_preferred(batch: pa.RecordBatch, is_header: NDArray[np.bool_]) -> dict[int, tuple[int, int, str]]:
    """(before, policy, doc_id) of the first by policy between two headers, by the number of headers before it."""
    rows = np.flatnonzero(~is_header)
    members = batch.take(pa.array(rows))
    before, policy = (members.column(name).to_numpy() for name in ("before", "policy"))
    numbers = np.cumsum(is_header)[rows]
    order = np.lexsort((policy, before, numbers))  # stable: of equals the smallest id stays first
    firsts = order[np.unique(numbers[order], return_index=True)[1]]
    found = zip(
        before[firsts], policy[firsts], members.column("doc_id").take(pa.array(firsts)).to_pylist(), strict=True
    )
    return {int(numbers[at]): (int(b), int(p), name) for at, (b, p, name) in zip(firsts, found, strict=True)}


def _cluster_rows(clusters: list[_Cluster]) -> pa.RecordBatch:
    """NAMED of sets that have ended."""
    pieces = [piece for cluster in clusters for piece in cluster.listed]
    offsets = np.cumsum([0, *(cluster.n_listed for cluster in clusters)]).astype(np.int32)
    ids = pa.concat_arrays(pieces) if pieces else pa.array([], pa.string())
    columns = {
        "set_id": [cluster.set_id for cluster in clusters],
        "cluster_id": [cluster.digest.hexdigest()[:16] for cluster in clusters],
        "first_id": [cluster.first and cluster.first[2] for cluster in clusters],
        "support": [cluster.support for cluster in clusters],
        "size": [cluster.size for cluster in clusters],
        "members": pa.ListArray.from_arrays(pa.array(offsets), ids),
        "component": [cluster.component for cluster in clusters],
        "coverage": [cluster.coverage for cluster in clusters],
    }
    return _as_named("cluster", columns, len(clusters))


def _as_named(what: str, columns: Mapping[str, Any], rows: int) -> pa.RecordBatch:
    """Rows of NAMED of one kind, `member` or `cluster`; the columns that the kind does not have are null."""
    schema = to_arrow_schema(NAMED)
    arrays = [pa.repeat(what, rows)]
    for name in schema.names[1:]:
        kind, column = schema.field(name).type, columns.get(name)
        if column is None:
            arrays.append(pa.nulls(rows, kind))
        else:
            arrays.append(column.cast(kind) if isinstance(column, pa.Array) else pa.array(column, kind))
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)
