"""Components with too many pairs, represented by leaders; families of heavy sketches, whose pairs are not yet found.

    connections                --find_families-->     families to be searched again               1 task, of connections
    connections, stars         --take_families-->     the same, from components found in rounds
    families, sketches, nodes  --pair_families-->     their pairs, and large components           1 shuffle, of blocks
    matches, families, found   --replace_families-->  all matches                                 1 join

A family is a connected component of the pairs found and of the links between heavy sketches. Links connect more than
near-duplicates do, so no near-duplicate pair leaves a family. A family without links is a component with all its pairs,
or with more than `max_edges` of them. Families with links, with more than `max_edges` pairs, or with pairs that were
counted but not listed, are searched again.

Sketches whose modulus follows the document's length (`mod-pow2`), compared at the coarser of their two moduli.

    sketches  --coarsen-->            each at its own level i and reduced to every coarser one     no shuffle
    ... compared as any sketches; sketches of different levels share no ids ...
    compared  --keep_common_level-->  the pairs at the higher of the two own levels                no shuffle

V_{i+1} consists of the ids of V_i that 2**(i+1) divides. All reduced sketches of a document together have at most twice
the ids of its own sketch. At each level, every rule of `nddup.matching.overlap_join` holds, with the bound of the size
at that level.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nddup import tables
from nddup.arrays import Ragged, take_rows
from nddup.matching.confirm_rules import ConfirmRule
from nddup.matching.confirm_texts import confirms_any
from nddup.matching.overlap_join import ComparisonLimits
from nddup.matching.threshold import Threshold
from nddup.mining.family_pairs import Confirm, FamilyPairs, lead, pair_family
from nddup.mining.pair_graph import Cost, Edges, label_components
from nddup.sketching.minhash import Finder
from nddup.sketching.moduli import LEVEL_BITS, spread_levels
from nddup.spark.blocks import (
    Columns,
    Layout,
    block_schema,
    exchange,
    list_column,
    pack,
    ragged_column,
    unpack,
    with_rows,
)
from nddup.spark.schemas import require, schema_of
from nddup.tables import COMPARED, CONNECTIONS, FAMILIES, MATCHES, NODES, SETTLED, SKETCHES, STARS

Batches = Iterator[pa.RecordBatch]
FAMILIES_COST = Cost(edge=40, node=48)
"""Memory of one task over all connections, rounded up from the measured one (`tests/spark/test_graph_memory.py`)."""

BATCH_ROWS = 100_000
"""Nodes per batch that a task returns to Spark."""

EDGE_ROWS = 1 << 20
"""Connections that are counted at a time."""

LAYOUT: Layout = {
    "family": np.int64,
    "node": np.int64,
    "rank": np.int64,
    "large": np.int32,
    "size": np.int32,
    "ids": np.uint64,
}
TEXTS_LAYOUT: Layout = {"n_tokens": np.int32, "hashes": np.uint64}
RAGGED, SIZES = {"ids": "sketch", "hashes": "tokens"}, {"ids": "size", "hashes": "n_tokens"}
"""For each ragged column of the layout: the column it is made from, and the column of its lengths."""


@dataclass(frozen=True)
class FamilyRule:
    """How the pairs of a family are found.

    Attributes:
        threshold: when two sketches are near-duplicates.
        finder: the keys by which sketches meet; None if they meet by shared features.
        limits: `pairs.max_edges` and `pairs.max_comparisons`.
        partitions: tasks of the shuffle of blocks.
        confirm: when texts confirm a pair; None if the sketches decide.
    """

    threshold: Threshold
    finder: Finder | None
    limits: ComparisonLimits
    partitions: int
    confirm: ConfirmRule | None = None

    @property
    def layout(self) -> Layout:
        """Layout of the blocks; with the tokens of the texts if texts confirm pairs."""
        return LAYOUT if self.confirm is None else {**LAYOUT, **TEXTS_LAYOUT}


def find_families(connections: DataFrame, *, max_edges: int) -> DataFrame:
    """Find, in one task, the families with a heavy sketch and those with more than `max_edges` pairs.

    Schema in:   CONNECTIONS
    Schema out:  FAMILIES; a family is a number from 0
    Shuffles:  the connections to one task (memory: `FAMILIES_COST`).    Actions:  none.
    """
    require(connections, CONNECTIONS, stage="pairs")
    one = connections.select(*CONNECTIONS.names).repartition(1)
    return one.mapInArrow(partial(families_task, max_edges=max_edges), schema_of(FAMILIES))


def take_families(connections: DataFrame, stars: DataFrame, *, max_edges: int) -> DataFrame:
    """Find the same families, from the stars that `graph.contract` made of the connections.

    Schema in:   CONNECTIONS; STARS, one star per component
    Schema out:  FAMILIES; a family is named by its least node
    Shuffles:  the connections once, the stars twice.    Actions:  none.
    """
    require(connections, CONNECTIONS, stage="pairs")
    require(stars, STARS, stage="pairs")
    centres = stars.select(F.col("first").alias("node"), F.col("first").alias("family")).distinct()
    others = stars.select(F.col("second").alias("node"), F.col("first").alias("family"))
    members = others.unionByName(centres)

    ends = connections.select(F.col("node_a").alias("node"), "is_link", "pairs")
    counted = (
        ends.join(members, "node")
        .groupBy("family")
        .agg(
            F.bool_or("is_link").alias("is_linked"),
            F.bool_or(F.col("pairs") != 1).alias("is_unlisted"),
            F.sum("pairs").alias("n"),
        )
    )
    is_large = ~F.col("is_linked") & (F.col("n") > max_edges)
    wanted = F.col("is_linked") | F.col("is_unlisted") | is_large
    chosen = counted.where(wanted).select("family", is_large.alias("is_large"))
    return members.join(chosen, "family").select(*FAMILIES.names)


def pair_families(
    families: DataFrame, sketches: DataFrame, nodes: DataFrame, rule: FamilyRule, texts: DataFrame | None = None
) -> DataFrame:
    """Find the pairs of these families, and the sketches of components with more than `max_edges` pairs.

    If texts confirm pairs, the task of a family compares them too, and holds the family's tokens or shingle ids, 8
    bytes each.

    Schema in:   FAMILIES, SKETCHES, NODES; node long, tokens array<long>, if texts confirm pairs
    Schema out:  SETTLED
    Shuffles:  the joins on node; a sort of each family by policy; one of blocks, each family to one task.
    Actions:   none.
    """
    require(families, FAMILIES, stage="pairs")
    require(sketches, SKETCHES, stage="pairs")
    require(nodes, NODES, stage="pairs")
    best = nodes.groupBy("node").agg(F.min(F.struct("policy", "doc_id")).alias("best")).join(families, "node")
    by_policy = Window.partitionBy("family").orderBy("best")
    ranked = best.withColumn("rank", F.row_number().over(by_policy).cast("long"))

    placed = sketches.join(ranked, "node")
    is_large = F.col("is_large").cast("int").alias("large")
    columns: list[Column | str] = ["family", "node", "rank", is_large, "sketch"]
    if texts is not None:
        placed, columns = placed.join(texts, "node", "left"), [*columns, "tokens"]
    post = partial(post_families, partitions=rule.partitions, layout=rule.layout)
    blocks = placed.select(*columns).mapInArrow(post, block_schema(rule.layout))
    return exchange(blocks, partitions=rule.partitions).mapInArrow(
        partial(families_pairs_task, rule=rule), schema_of(SETTLED)
    )


def count_settled() -> dict[str, Column]:
    """Return the counts taken while SETTLED is written: the sketches represented by leaders, and the size of the
    largest family that took too many comparisons.
    """
    of_leaders, stopped = F.col("what") == "leaders", F.col("what") == "stopped"
    return {"by_leaders": F.count_if(of_leaders), "stopped": F.max(F.when(stopped, F.col("node_b")))}


def replace_families(matches: DataFrame, families: DataFrame, settled: DataFrame) -> DataFrame:
    """Return the matches outside the families, and those found within them.

    Schema in:   MATCHES, FAMILIES, SETTLED
    Schema out:  MATCHES
    Shuffles:  the matches on node_a, unless the families are small enough to be broadcast.    Actions:  none.
    """
    require(matches, MATCHES, stage="pairs")
    require(settled, SETTLED, stage="pairs")
    inside = families.select(F.col("node").alias("node_a"))  # both ends of a match are in the same family
    outside = matches.join(inside, "node_a", "left_anti")
    within = settled.where("what = 'pair'").select(*MATCHES.names)
    return outside.select(*MATCHES.names).unionByName(within)


def list_large(settled: DataFrame) -> DataFrame:
    """Return the sketches of components represented by leaders.

    Schema in:   SETTLED
    Schema out:  node long
    Shuffles:  none.    Actions:  none.
    """
    require(settled, SETTLED, stage="pairs")
    return settled.where("what = 'leaders'").select(F.col("node_a").alias("node"))


def families_task(batches: Batches, *, max_edges: int) -> Batches:
    """Return FAMILIES from all CONNECTIONS. Memory: `FAMILIES_COST`."""
    edges, linked, unlisted = Edges(), [], []
    for batch in batches:
        first, second, counts = (batch.column(name).to_numpy() for name in ("node_a", "node_b", "pairs"))
        edges.add(first, second)
        linked.append(first[batch.column("is_link").to_numpy(zero_copy_only=False)])
        unlisted.append(np.stack([first, counts])[:, counts != 1])

    nodes = edges.names()
    ends = edges.take_ends(nodes)
    families = label_components(ends, nodes=len(nodes)).ordinals
    pairs = np.zeros(int(families.max(initial=-1)) + 1, np.int64)
    for low in range(0, len(ends), EDGE_ROWS):
        pairs += np.bincount(families[ends[low : low + EDGE_ROWS, 0]], minlength=len(pairs))
    del ends

    # Both ends of a link are heavy, so its family is wanted. Without links, a connection is one pair or many.
    is_linked, is_unlisted = (np.zeros(len(pairs), np.bool_) for _ in range(2))
    while linked:
        is_linked[families[np.searchsorted(nodes, linked.pop())]] = True
    while unlisted:
        first, counts = unlisted.pop()
        places = families[np.searchsorted(nodes, first)]
        np.add.at(pairs, places, counts - 1)
        is_unlisted[places] = True
    is_large = ~is_linked & (pairs > max_edges)

    chosen = np.flatnonzero((is_linked | is_unlisted | is_large)[families])
    for low in range(0, len(chosen), BATCH_ROWS):
        rows = chosen[low : low + BATCH_ROWS]
        columns = {
            "node": nodes[rows],
            "family": families[rows].astype(np.int64),
            "is_large": is_large[families[rows]],
        }
        yield pa.RecordBatch.from_pydict(columns)


def post_families(batches: Batches, *, partitions: int, layout: Layout) -> Batches:
    """Pack rows as blocks of the layout, each family for one partition."""
    for batch in batches:
        targets = (np.asarray(batch.column("family")) % partitions).astype(np.int32)
        ragged = {name: list_column(batch.column(of)) for name, of in RAGGED.items() if name in layout}
        plain: Columns = {name: np.asarray(batch.column(name)) for name in ("family", "node", "rank", "large")}
        sizes = {size: np.diff(ragged[name].offsets) for name, size in SIZES.items() if name in layout}
        yield pack(layout, targets, plain | sizes, ragged, partitions=partitions)


def families_pairs_task(batches: Batches, *, rule: FamilyRule) -> Batches:
    """Return SETTLED for the families of one partition, one family at a time."""
    columns = unpack(with_rows(batches), rule.layout)
    order = np.lexsort((columns["node"], columns["family"]))
    whole = take_rows(ragged_column(columns["size"], columns.pop("ids")), order)
    texts = None
    if rule.confirm is not None:
        texts = take_rows(ragged_column(columns.pop("n_tokens"), columns.pop("hashes")), order)

    first = np.unique(columns["family"][order], return_index=True)[1]
    for low, high in zip(first, np.append(first, len(order))[1:], strict=True):
        of_family = {name: column[order[low:high]] for name, column in columns.items()}
        confirm = None
        if texts is not None and rule.confirm is not None:
            confirm = partial(confirms_any, _cut(texts, low, high), rule.confirm)
        found = _search(of_family, _cut(whole, low, high), rule, confirm)
        yield from _settled_rows(found, of_family, rule.threshold)


def _cut(rows: Ragged, low: int, high: int) -> Ragged:
    """Return the rows from `low` to `high`."""
    start, end = rows.offsets[low], rows.offsets[high]
    return Ragged(rows.offsets[low : high + 1] - start, rows.values[start:end])


def _search(columns: Columns, sketches: Ragged, rule: FamilyRule, confirm: Confirm | None) -> FamilyPairs:
    """Find the pairs of one family."""
    bounds = rule.threshold.bounds(columns["size"].astype(np.int32))
    by_policy = np.argsort(columns["rank"])
    if columns["large"].any():
        return lead(sketches, bounds, by_policy, rule.threshold, confirm)
    keys = rule.finder.keys(sketches) if rule.finder is not None else None
    return pair_family(sketches, bounds, by_policy, rule.threshold, rule.limits, keys, confirm)


def _settled_rows(found: FamilyPairs, columns: Columns, threshold: Threshold) -> Batches:
    """Return what was found in one family as rows of SETTLED."""
    nodes = columns["node"].astype(np.int64)
    if not found.is_whole:
        yield _lay_out("stopped", nodes[:1], np.array([len(nodes)]))
        return

    ends = np.sort(found.ends, axis=1)  # nodes ascend
    shares: list[pa.Array] = [pa.nulls(len(ends), pa.float64())] * 2
    if threshold.shows_containment:
        shares = [pa.array(column) for column in (found.overlap[:, None] / columns["size"].astype(np.int32)[ends]).T]
    about = [pa.array(found.overlap.astype(np.int32)), pa.array(found.resemblance), *shares]
    yield _lay_out("pair", nodes[ends[:, 0]], nodes[ends[:, 1]], about)

    large = nodes[found.by_leaders]
    yield _lay_out("leaders", large, large)


def _lay_out(
    what: str, node_a: NDArray[np.int64], node_b: NDArray[np.int64], about: list[pa.Array] | None = None
) -> pa.RecordBatch:
    """Return rows of SETTLED of one kind; only pairs have values besides their nodes."""
    kinds = tables.SETTLED.arrow.types[3:]
    rest = about or [pa.nulls(len(node_a), kind) for kind in kinds]
    return tables.SETTLED.batch([pa.repeat(what, len(node_a)), pa.array(node_a), pa.array(node_b), *rest])


LEVEL_MASK: Final = (1 << LEVEL_BITS) - 1


def coarsen(sketches: DataFrame, *, most: int) -> DataFrame:
    """Return each sketch at its own level and at each coarser level up to `most`, without the empty ones.

    The steps between this one and `keep_common_level` identify a sketch by one number. So `node` packs three numbers
    here: the node, its own level, and the level of this row, the last two in `LEVEL_BITS` bits each.

    Schema in:   SKETCHES, level long
    Schema out:  SKETCHES
    Shuffles:  none.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    return sketches.select("node", "sketch", "level").mapInArrow(partial(_coarsen_task, most=most), schema_of(SKETCHES))


def keep_common_level(compared: DataFrame) -> DataFrame:
    """Return what was found among coarsened sketches, under their nodes: each pair only at the coarser own level.

    Schema in/out:  COMPARED
    Shuffles:  none.    Actions:  none.
    """
    own_a, own_b = (F.shiftright(end, LEVEL_BITS).bitwiseAND(LEVEL_MASK) for end in ("node_a", "node_b"))
    is_here = F.col("node_a").bitwiseAND(LEVEL_MASK) == F.greatest(own_a, own_b)
    nodes = {end: F.shiftright(end, 2 * LEVEL_BITS) for end in ("node_a", "node_b")}

    chosen = compared.where((F.col("what") != "pair") | is_here)
    return chosen.withColumns(nodes).select(*COMPARED.names)


def _coarsen_task(batches: Batches, *, most: int) -> Batches:
    for batch in batches:
        own, levels = (np.asarray(batch.column(name)) for name in ("node", "level"))
        nodes, rows = spread_levels(own, levels, list_column(batch.column("sketch")), most)

        lists = pa.ListArray.from_arrays(rows.offsets.astype(np.int32), pa.array(rows.values.view(np.int64)))
        yield pa.RecordBatch.from_arrays([pa.array(nodes), lists], names=SKETCHES.names)
