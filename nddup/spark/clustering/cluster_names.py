"""From sets of nodes to clusters of documents, named by their members.

                                                    shuffles
sets, graph, nodes --name_sets-->     named         joins on node; the members of each set sorted, and read in order
named              --list_clusters--> clusters      none
named              --list_members-->  members       one join, on the set

A cluster may have as many members as there are documents, so no row has all of them. A task reads the members in order,
and holds only their digest, the first ids and the member that the policy prefers.
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

from nddup.mining.modes import MEANINGS, MODES
from nddup.spark.heavy_keys import count_heavy, join_parted
from nddup.spark.schemas import CLUSTERS, GRAPH, MEMBERS, NAMED, NODES, SETS, require

Batches = Iterator[pa.RecordBatch]

"""Modes whose sets are not maximal; the name of the mode is their coverage."""

HEADER = ("set_id", "component", "support", "coverage")
MEMBER = ("set_id", "doc_id", "before", "policy")
COMING = ("set_id", "is_member", "name", "first", "second")
"""The columns that a task reads: for each set a header row (`is_member` is false), then its members in the order of
their ids. Headers and members fill the same number of columns: after the set's id, a header has the rest of `HEADER`,
with its coverage as a place in `COVERAGES`, and a member the rest of `MEMBER`."""

COVERAGES = tuple(MEANINGS)
"""The values of `coverage`: what the sets of a component cover."""


@dataclass(frozen=True)
class Naming:
    """How sets become clusters.

    Attributes:
        least_size: fewest features for which equal sketches are near-duplicates.
        max_listed: most ids in the row of a cluster.
        mode: what the sets are, one of `modes.MODES`.
        by_weight: whether the heaviest member is preferred, before the policy decides; in `partition` the kept one
            always is.
        is_large: whether there are enough equal sketches for one group to be heavy (`heavy_keys`).
    """

    least_size: int
    max_listed: int
    mode: str = "all"
    by_weight: bool = False
    is_large: bool = True


def name_sets(sets: DataFrame, graph: DataFrame, nodes: DataFrame, naming: Naming) -> DataFrame:
    """Make clusters of documents: each set with all documents of its sketches, and each group without a neighbour.

    Schema in:   SETS, GRAPH, NODES
    Schema out:  NAMED

    Args:
        sets: sets as positions in components.
        graph: one row per node that has a neighbour.
        nodes: one row per document.
        naming: how sets become clusters.

    Shuffles:  the sets on component, their places and the nodes on node; the members on their set.    Actions:  none.
    """
    for table, schema in ((sets, SETS), (graph, GRAPH), (nodes, NODES)):
        require(table, schema, stage="clusters")
    groups = nodes.where((F.col("doc_id") == F.col("group")) & (F.col("n") > 1))
    alone = _list_alone(groups.where(F.col("size") >= naming.least_size), graph, naming.mode)

    # The header of each set.
    component = graph.where("position = 0").select("ordinal", "component")
    mined = sets.withColumn("set_id", _set_id()).join(component, "ordinal")
    headers = mined.select(*HEADER).unionByName(alone.select(*HEADER))
    place_of = F.array_position(F.array(*map(F.lit, COVERAGES)), F.col("coverage")) - 1
    headers = headers.withColumn("support", F.col("support").cast("long")).withColumn("coverage", place_of)

    # The members of each set: its nodes, and their documents.
    place = graph.select("ordinal", "position", "node", "kept")
    held = list_places(sets).join(place, ["ordinal", "position"]).select("set_id", "node", "kept")
    held = held.unionByName(alone.select("set_id", "node", F.lit(True).alias("kept")))
    documents = nodes.select("node", "doc_id", "n", "policy", "weight")
    if naming.is_large:
        joined = join_parted(documents, count_heavy(held, groups, "node"), "node", by="doc_id")
    else:
        joined = documents.join(held, "node")
    joined = joined.withColumn("before", _precedence(naming))
    coming = _as_coming(headers.select(*HEADER), is_member=False).union(
        _as_coming(joined.select(*MEMBER), is_member=True)
    )
    in_order = coming.repartition("set_id").sortWithinPartitions("set_id", "is_member", "name")
    return in_order.mapInArrow(partial(_name_task, max_listed=naming.max_listed), NAMED)


def _precedence(naming: Naming) -> Column:
    """Return what decides before the policy which member represents a cluster, least first.

    Where clusters follow the keep-list, it is the kept document: the first of the kept sketch, even where the policy
    prefers a duplicate.
    """
    if MODES[naming.mode].follows_keep:
        return (~F.col("kept")).cast("long")
    return (-F.col("weight") if naming.by_weight else F.lit(0)).cast("long")


def _as_coming(rows: DataFrame, *, is_member: bool) -> DataFrame:
    """Return rows of four columns with the columns of `COMING`."""
    set_id, *others = rows.columns
    named = (F.col(own).alias(name) for own, name in zip(others, COMING[2:], strict=True))
    return rows.select(set_id, F.lit(is_member).alias("is_member"), *named)


def list_places(sets: DataFrame) -> DataFrame:
    """Return one row per node of a set: set_id, ordinal, position.

    A set is named by a digest: if its positions were its name, each row would be as long as the set.

    Schema in:   SETS
    Shuffles:  none.    Actions:  none.
    """
    return sets.select(_set_id().alias("set_id"), "ordinal", F.explode("positions").alias("position"))


def list_clusters(named: DataFrame) -> DataFrame:
    """Return the rows of the clusters. Schema in: NAMED. Schema out: CLUSTERS. No shuffle, no action."""
    require(named, NAMED, stage="clusters")
    return named.where("what = 'cluster'").select(*CLUSTERS.fieldNames())


def list_members(named: DataFrame) -> DataFrame:
    """Return one row per member; `representative` marks the one that `Naming` prefers.

    Schema in:   NAMED
    Schema out:  MEMBERS
    Shuffles:  the members on their set, unless the clusters are few enough to be broadcast.    Actions:  none.
    """
    require(named, NAMED, stage="clusters")
    names = named.where("what = 'cluster'").select("set_id", "cluster_id", "first_id")
    rows = named.where("what = 'member'").select("set_id", "doc_id").join(names, "set_id")
    return rows.withColumn("representative", F.col("doc_id") == F.col("first_id")).select(*MEMBERS.fieldNames())


def _list_alone(groups: DataFrame, graph: DataFrame, mode: str) -> DataFrame:
    """Return the groups of equal sketches without a neighbour, each as a set of one node.

    Schema in:   NODES, one row per group; GRAPH
    Schema out:  node long, and the columns `HEADER`
    """
    set_id = F.unhex(F.md5(F.concat(F.lit("="), F.col("node")).cast("binary")))
    return groups.join(graph.select("node"), "node", "left_anti").select(
        "node",
        set_id.alias("set_id"),
        F.col("size").alias("support"),
        F.col("group").alias("component"),
        F.lit(MODES[mode].coverage).alias("coverage"),
    )


def _set_id() -> Column:
    """Return a digest of a row of SETS, 16 bytes."""
    positions = F.array_join(F.col("positions").cast("array<string>"), ",")
    return F.unhex(F.md5(F.concat_ws(":", F.col("ordinal").cast("string"), positions).cast("binary")))


@dataclass
class _Cluster:
    """A set whose members are being read: its header, and a summary of the members read so far."""

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
        """Add the next members of the set.

        Args:
            ids: the ids of the members, in order.
            ended: the ids as bytes with a zero after each, end to end.
            first: (before, policy, doc_id) of the preferred one of these members.
            max_listed: most ids to list.
        """
        self.digest.update(ended)
        self.size += len(ids)
        self.first = first if self.first is None else min(self.first, first)
        if self.n_listed < max_listed:
            self.listed.append(ids[: max_listed - self.n_listed])
            self.n_listed += len(self.listed[-1])


def _name_task(batches: Batches, *, max_listed: int) -> Batches:
    """Return NAMED from rows of `COMING`: the members of each batch, and a row for each cluster that ends in it."""
    cluster: _Cluster | None = None
    for batch in batches:
        ids = batch.column("name").cast(pa.string())
        is_header = ~batch.column("is_member").to_numpy(zero_copy_only=False)
        data, offsets = _with_zeros(ids)
        preferred = _list_preferred(batch, is_header)

        # Headers cut the batch into runs of members, each run of one set.
        bounds = [0, *np.flatnonzero(is_header).tolist(), len(ids)]
        complete = []
        for number, (start, end) in enumerate(pairwise(bounds)):
            if number:  # rows before the first header belong to the last set of the previous batch
                complete += _ended(cluster)
                cluster = _begin_cluster(batch, start)
            at = start + (number > 0)
            if cluster is not None and end > at:
                cluster.add(ids[at:end], data[offsets[at] : offsets[end]], preferred[number], max_listed)

        members = batch.filter(pa.array(~is_header))
        columns = {"set_id": members.column("set_id"), "doc_id": members.column("name")}
        yield _as_named("member", columns, members.num_rows)
        yield _cluster_rows(complete)
    yield _cluster_rows(_ended(cluster))


def _begin_cluster(batch: pa.RecordBatch, row: int) -> _Cluster:
    """Return the set of a header row, without members."""
    set_id, component, support, coverage = (batch.column(name)[row].as_py() for name in ("set_id", *COMING[2:]))
    return _Cluster(set_id, support, component, COVERAGES[coverage])


def _ended(cluster: _Cluster | None) -> list[_Cluster]:
    """Return the set in a list if it is a cluster, with at least two documents; else an empty list."""
    return [cluster] if cluster is not None and cluster.size > 1 else []


def _with_zeros(ids: pa.Array) -> tuple[memoryview, NDArray[np.int32]]:
    """Return the ids as bytes with a zero after each, end to end, and their offsets, (n + 1,); a null has no bytes."""
    ended = pc.binary_join_element_wise(ids.cast(pa.binary()), b"", b"\0")
    _, offsets, data = ended.buffers()
    return memoryview(data or b""), np.frombuffer(offsets, np.int32, len(ids) + 1)


def _list_preferred(batch: pa.RecordBatch, is_header: NDArray[np.bool_]) -> dict[int, tuple[int, int, str]]:
    """Return the preferred member of each run, (before, policy, doc_id), by the number of headers before the run."""
    rows = np.flatnonzero(~is_header)
    members = batch.take(pa.array(rows))
    before, policy = (members.column(name).to_numpy() for name in COMING[3:])
    numbers = np.cumsum(is_header)[rows]
    order = np.lexsort((policy, before, numbers))  # stable: of equals, the smallest id stays first
    firsts = order[np.unique(numbers[order], return_index=True)[1]]
    found = zip(before[firsts], policy[firsts], members.column("name").take(pa.array(firsts)).to_pylist(), strict=True)
    return {int(numbers[at]): (int(b), int(p), name) for at, (b, p, name) in zip(firsts, found, strict=True)}


def _cluster_rows(clusters: list[_Cluster]) -> pa.RecordBatch:
    """Return the rows of NAMED for clusters that have ended."""
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
    """Return rows of NAMED of one kind, `member` or `cluster`; columns that the kind does not have are null."""
    schema = to_arrow_schema(NAMED)
    arrays = [pa.repeat(what, rows)]
    for name in schema.names[1:]:
        kind, column = schema.field(name).type, columns.get(name)
        if column is None:
            arrays.append(pa.nulls(rows, kind))
        else:
            arrays.append(column.cast(kind) if isinstance(column, pa.Array) else pa.array(column, kind))
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)
