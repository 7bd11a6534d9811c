"""Match: from pruned postings to every pair of near-duplicates, without loss, each made in one place.

    postings            --find_heavy-->  sketches that share a prefix feature with too many    2 shuffles, mostly empty
    postings, sketches  --match-->       candidates at their first common prefix feature,
                                         compared on the original sketches                     2 shuffles, of blocks

The arithmetic, and why it is exact, is in `nddup.matching`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.arrays import Ragged, take_rows
from nddup.matching.connected_pairs import NO_LIMIT
from nddup.matching.long_lists import LongLists
from nddup.matching.overlap_join import Found, Probes, join_prefixes
from nddup.matching.prefix_filter import keep_possible, order_by_rarity, partition_of
from nddup.matching.threshold import Threshold
from nddup.spark.blocks import (
    Columns,
    Layout,
    block_schema,
    exchange,
    list_column,
    pack,
    ragged_column,
    target_of,
    unpack,
    with_rows,
)
from nddup.spark.pairing.compared import COUNTERS, lay_out
from nddup.spark.pairing.probes import PROBE_LAYOUT, post_probes
from nddup.spark.pairing.prune import PRUNED_LAYOUT
from nddup.spark.schemas import COMPARED, HEAVY, POSTINGS, SKETCHES, require

Batches = Iterator[pa.RecordBatch]
ORIGINAL_LAYOUT: Layout = {
    "original": np.int64,
    "original_size": np.int32,
    "original_heavy": np.int32,
    "original_ids": np.uint64,
}
"""The original sketches: node, length, 1 for a heavy sketch, ids. Pruned postings come in the same stream, so that the
names differ from theirs."""


@dataclass(frozen=True)
class Pairing:
    """How sketches are compared.

    Attributes:
        threshold: when two sketches are near-duplicates.
        long_lists: what a long list of sketches with one prefix feature, or one key, may cost.
        partitions: tasks of the shuffles of blocks. The pairs do not depend on it, but in components that have more
            than `max_edges`.
        max_edges: pairs after which a task makes no more within a component.
    """

    threshold: Threshold
    long_lists: LongLists
    partitions: int
    max_edges: int = NO_LIMIT


def find_heavy(postings: DataFrame, *, max_postings: int) -> DataFrame:
    """The sketches with a prefix feature that more than `max_postings` sketches have in their prefix.

    Schema in:   POSTINGS
    Schema out:  HEAVY
    Shuffles:  two, of the postings of such features and of others held by as many; mostly none.    Actions:  none.
    """
    require(postings, POSTINGS, stage="pairs")
    rows = postings.mapInArrow(partial(_post_common, max_postings=max_postings), "feature long, node long")
    common = rows.groupBy("feature").count().where(F.col("count") > max_postings).select("feature")
    return rows.join(common, "feature").select("node").distinct()


def match(postings: DataFrame, sketches: DataFrame, pairing: Pairing, heavy: DataFrame | None = None) -> DataFrame:
    """Find and compare the candidates. Heavy sketches are not compared with each other, only linked.

    Args:
        postings: what pruning left.
        sketches: the sketches it came from.
        pairing: how they are compared.
        heavy: the heavy sketches; None where there are none.

    Schema in:   POSTINGS; SKETCHES; HEAVY
    Schema out:  COMPARED
    Shuffles:  two, of blocks: the original sketches meet their prefixes, then each goes to the partitions that own
        a feature of its prefix (at most as many copies as the prefix is long, or as there are partitions).
    Actions:   none.
    """
    require(postings, POSTINGS, stage="pairs")
    require(sketches, SKETCHES, stage="pairs")
    originals = mark_heavy(sketches, heavy).mapInArrow(
        partial(_post_originals, partitions=pairing.partitions), block_schema(ORIGINAL_LAYOUT)
    )
    together = postings.unionByName(originals, allowMissingColumns=True)

    probes = exchange(together, partitions=pairing.partitions).mapInArrow(
        partial(_post_prefixes, pairing=pairing), block_schema(PROBE_LAYOUT)
    )
    return match_probes(probes, pairing)


def mark_heavy(sketches: DataFrame, heavy: DataFrame | None) -> DataFrame:
    """The sketches, each with `heavy int`: 1 for a heavy one, else 0.

    Schema in:   SKETCHES; HEAVY, or None where there are none
    Schema out:  node long, sketch array<long>, heavy int
    Shuffles:  the join on node, where there are heavy sketches.    Actions:  none.
    """
    if heavy is None:
        return sketches.select("node", "sketch", F.lit(0).alias("heavy"))

    require(heavy, HEAVY, stage="pairs")
    marks = heavy.select("node", F.lit(1).alias("mark"))
    return sketches.join(marks, "node", "left").select("node", "sketch", F.coalesce("mark", F.lit(0)).alias("heavy"))


def match_probes(probes: DataFrame, pairing: Pairing) -> DataFrame:
    """Bring together the sketches that own a key of each partition, and compare those with one in common.

    Schema in:   blocks of PROBE_LAYOUT
    Schema out:  COMPARED
    Shuffles:  one, of blocks.    Actions:  none.
    """
    met = exchange(probes, partitions=pairing.partitions)
    return met.mapInArrow(partial(_match_block, pairing=pairing), COMPARED)


def _post_originals(batches: Batches, *, partitions: int) -> Batches:
    """Blocks of ORIGINAL_LAYOUT, each sketch to the partition that has its pruned postings."""
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        nodes = np.asarray(batch.column("node"))
        columns = {
            "original": nodes,
            "original_size": np.diff(rows.offsets).astype(np.int32),
            "original_heavy": np.asarray(batch.column("heavy")),
        }
        targets = partition_of(nodes.view(np.uint64), partitions)
        yield pack(ORIGINAL_LAYOUT, targets, columns, {"original_ids": rows}, partitions=partitions)


class _Prefixes(NamedTuple):
    """The m sketches with features left: their prefixes in the total order, rarest first."""

    nodes: NDArray[np.int64]  # (m,)
    bounds: NDArray[np.int32]  # (m,)
    features: Ragged  # m rows
    holders: Ragged  # m rows, of each feature


def _cut_prefixes(columns: Columns) -> _Prefixes:
    """The prefixes of a task's pruned postings, columns of PRUNED_LAYOUT."""
    order, offsets = keep_possible(columns["node"].view(np.uint64), columns["bound"].astype(np.int32))
    features, holders = columns["feature"][order].view(np.uint64), columns["holders"][order].astype(np.int32)
    bounds = columns["bound"][order][offsets[:-1]].astype(np.int32)
    by_rarity = order_by_rarity(offsets, features, holders)

    # Of a sketch with f features left, the rarest f - bound + 1 are its prefix.
    sizes = np.diff(offsets)
    lengths = sizes - bounds + 1
    is_in_prefix = np.arange(len(features)) - np.repeat(offsets[:-1], sizes) < np.repeat(lengths, sizes)
    chosen = by_rarity[is_in_prefix]

    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return _Prefixes(
        columns["node"][order][offsets[:-1]].astype(np.int64),
        bounds,
        Ragged(starts, features[chosen]),
        Ragged(starts, holders[chosen].astype(np.uint64)),
    )


def _post_common(batches: Batches, *, max_postings: int) -> Batches:
    """The prefix postings of features that more than `max_postings` sketches hold anywhere: feature, node."""
    columns = unpack(list(batches), PRUNED_LAYOUT)
    if columns["holders"].max(initial=0) <= max_postings:
        return

    prefixes = _cut_prefixes(columns)
    common = np.flatnonzero(prefixes.holders.values > max_postings)
    nodes = np.repeat(prefixes.nodes, np.diff(prefixes.features.offsets))[common]
    yield pa.RecordBatch.from_pydict({"feature": prefixes.features.values[common].view(np.int64), "node": nodes})


def _post_prefixes(batches: Batches, *, pairing: Pairing) -> Batches:
    """Blocks of PROBE_LAYOUT: each sketch with features left, to every partition that owns one of its prefix."""
    held = list(batches)
    prefixes = _cut_prefixes(unpack(held, PRUNED_LAYOUT))
    sketches, heavy = _find_originals(unpack(held, ORIGINAL_LAYOUT), prefixes.nodes)

    bounds, lengths = prefixes.bounds, np.diff(prefixes.features.offsets).astype(np.int32)
    posted = lengths
    if pairing.threshold.is_containment:
        # All features are sent, for any sketch may contain another. The others look for its prefix only.
        bounds = pairing.threshold.bounds(np.diff(sketches.offsets).astype(np.int32))
        posted = np.maximum(lengths - bounds + 1, 0)

    columns = {"node": prefixes.nodes, "heavy": heavy, "bound": bounds, "posted": posted}
    yield from post_probes(columns, sketches, prefixes.features, prefixes.holders, partitions=pairing.partitions)


def _find_originals(originals: Columns, nodes: NDArray[np.int64]) -> tuple[Ragged, NDArray[np.generic]]:
    """The original sketches of `nodes`, in their order, and 1 for each heavy one."""
    order = np.argsort(originals["original"])
    places = order[np.searchsorted(originals["original"][order], nodes)]
    whole = ragged_column(originals["original_size"], originals["original_ids"])
    return take_rows(whole, places), originals["original_heavy"][places]


def _match_block(batches: Batches, *, pairing: Pairing) -> Batches:
    """COMPARED of the sketches that met in one partition."""
    held = with_rows(batches)
    target = target_of(held)
    columns = unpack(held, PROBE_LAYOUT)

    # The order by size, then by name, whatever the order of the blocks.
    order = np.lexsort((columns["node"], columns["size"]))
    nodes = columns["node"][order].astype(np.int64)
    holders = take_rows(ragged_column(columns["prefix_size"], columns["prefix_holders"]), order)
    probes = Probes(
        sketches=take_rows(ragged_column(columns["size"], columns["ids"]), order),
        prefixes=take_rows(ragged_column(columns["prefix_size"], columns["prefix"]), order),
        holders=holders.values.astype(np.int32),
        bounds=columns["bound"][order].astype(np.int32),
        posted=columns["posted"][order].astype(np.int32),
        heavy=columns["heavy"][order] != 0,
    )

    is_owned = partition_of(probes.prefixes.values, pairing.partitions) == target
    found = join_prefixes(
        probes,
        is_owned,
        threshold=pairing.threshold,
        long_lists=pairing.long_lists,
        max_edges=pairing.max_edges,
    )

    sizes = np.diff(probes.sketches.offsets) if pairing.threshold.shows_containment else None
    yield lay_out("pair", _pair_columns(found, nodes, sizes))
    if len(found.links):
        ends = nodes[found.links]
        yield lay_out("link", {"node_a": ends.min(axis=1), "node_b": ends.max(axis=1)})
    yield lay_out("count", {name: np.array([getattr(found, name)]) for name in COUNTERS})


def _pair_columns(found: Found, nodes: NDArray[np.int64], sizes: NDArray[np.int64] | None) -> Columns:
    """The columns of MATCHES; the containments only where the sizes of the sketches are given."""
    first, second = nodes[found.first], nodes[found.second]
    columns: Columns = {
        "node_a": np.minimum(first, second),
        "node_b": np.maximum(first, second),
        "overlap": found.overlap,
        "resemblance": found.resemblance,
    }
    if sizes is not None:
        of_first, of_second = found.overlap / sizes[found.first], found.overlap / sizes[found.second]
        columns["containment_a"] = np.where(first < second, of_first, of_second)
        columns["containment_b"] = np.where(first < second, of_second, of_first)
    return columns
