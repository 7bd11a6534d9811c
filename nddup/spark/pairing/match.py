"""Match: from pruned postings to every pair of near-duplicates, without loss, each made in one place.

    postings  --find_crowd-->   sketches too many of which share a prefix feature             2 shuffles, mostly empty
    postings  --match-->        candidates at the first common prefix feature, verified       2 shuffles, of blocks

The arithmetic, and why it is exact, is in `nddup.matching`.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.arrays import Ragged, take_rows
from nddup.matching.overlap_join import Found, Probes, join_prefixes
from nddup.matching.prefix_filter import keep_possible, order_by_rarity, partition_of
from nddup.matching.threshold import Threshold
from nddup.spark.blocks import Columns, Layout, block_schema, exchange, list_column, pack, target_of, unpack, with_rows
from nddup.spark.pairing.compared import COUNTERS, lay_out
from nddup.spark.pairing.probes import PROBE_LAYOUT, post_probes
from nddup.spark.pairing.prune import PRUNED_LAYOUT
from nddup.spark.schemas import COMPARED, POSTINGS, SKETCHES, require

Batches = Iterator[pa.RecordBatch]
ORIGINAL_LAYOUT: Layout = {
    "original": np.int64,
    "original_size": np.int32,
    "original_crowd": np.int32,
    "original_ids": np.uint64,
}


def find_crowd(postings: DataFrame, *, max_postings: int) -> DataFrame:
    """The sketches with a prefix feature that more than `max_postings` sketches have in their prefix.

    Schema in:   POSTINGS
    Schema out:  CROWD
    Shuffles:  two, of the postings of such features and of others held by as many; mostly none.    Actions:  none.
    """
    require(postings, POSTINGS, stage="pairs")
    rows = postings.mapInArrow(partial(_post_common, max_postings=max_postings), "feature long, node long")
    long = rows.groupBy("feature").count().where(F.col("count") > max_postings).select("feature")
    return rows.join(long, "feature").select("node").distinct()


def match(  # noqa: PLR0913 - three tables and three numbers
    postings: DataFrame,
    sketches: DataFrame,
    *,
    threshold: Threshold,
    max_postings: int,
    partitions: int,
    crowd: DataFrame | None = None,
) -> DataFrame:
    """Find and verify the pairs of near-duplicate sketches; those within the crowd only link.

    Schema in:   POSTINGS, the SKETCHES it came from, and CROWD, or None where there is none
    Schema out:  COMPARED
    Shuffles:  two, of blocks: the original sketches meet their prefixes, then each goes to the partitions that own
        a feature of its prefix (at most as many copies as the prefix is long, or as there are partitions).
    Actions:   none.
    """
    require(postings, POSTINGS, stage="pairs")
    require(sketches, SKETCHES, stage="pairs")
    originals = mark_crowd(sketches, crowd).mapInArrow(
        partial(_post_originals, partitions=partitions), block_schema(ORIGINAL_LAYOUT)
    )
    met = exchange(postings.unionByName(originals, allowMissingColumns=True), partitions=partitions)
    probes = met.mapInArrow(
        partial(_post_prefixes, threshold=threshold, partitions=partitions), block_schema(PROBE_LAYOUT)
    )
    return match_probes(probes, threshold=threshold, max_postings=max_postings, partitions=partitions)


def mark_crowd(sketches: DataFrame, crowd: DataFrame | None) -> DataFrame:
    """The sketches, each with `crowd int`: 1 where it is of the crowd.

    Schema in:   SKETCHES; CROWD, or None
    Schema out:  node, sketch, crowd
    """
    is_crowd = F.lit(0)
    if crowd is not None:
        sketches = sketches.join(crowd.select("node", F.lit(1).alias("is_crowd")), "node", "left")
        is_crowd = F.coalesce("is_crowd", F.lit(0))
    return sketches.select("node", "sketch", is_crowd.alias("crowd"))


def match_probes(probes: DataFrame, *, threshold: Threshold, max_postings: int, partitions: int) -> DataFrame:
    """Bring together the sketches that own a key of each partition, and compare those with one in common.

    Schema in:   blocks of PROBE_LAYOUT
    Schema out:  COMPARED
    Shuffles:  one, of blocks.    Actions:  none.
    """
    return exchange(probes, partitions=partitions).mapInArrow(
        partial(_match_block, threshold=threshold, max_postings=max_postings, partitions=partitions), COMPARED
    )


def _post_originals(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        nodes = np.asarray(batch.column("node"))
        columns = {
            "original": nodes,
            "original_size": np.diff(rows.offsets).astype(np.int32),
            "original_crowd": np.asarray(batch.column("crowd")),
        }
        targets = partition_of(nodes.view(np.uint64), partitions)
        yield pack(ORIGINAL_LAYOUT, targets, columns, {"original_ids": rows}, partitions=partitions)


class _Prefixes(NamedTuple):
    """The sketches with features left: their prefixes in the total order, rarest first."""

    nodes: NDArray[np.int64]
    bounds: NDArray[np.int32]
    features: Ragged
    holders: Ragged


def _cut_prefixes(columns: Columns) -> _Prefixes:
    order, offsets = keep_possible(columns["node"].view(np.uint64), columns["bound"].astype(np.int32))
    features, holders = columns["feature"][order].view(np.uint64), columns["holders"][order].astype(np.int32)
    bounds = columns["bound"][order][offsets[:-1]].astype(np.int32)
    by_rarity = order_by_rarity(offsets, features, holders)
    lengths = np.diff(offsets) - bounds + 1
    inside = np.arange(len(features)) - np.repeat(offsets[:-1], np.diff(offsets)) < np.repeat(lengths, np.diff(offsets))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return _Prefixes(
        columns["node"][order][offsets[:-1]].astype(np.int64),
        bounds,
        Ragged(starts, features[by_rarity][inside]),
        Ragged(starts, holders[by_rarity][inside].astype(np.uint64)),
    )


def _post_common(batches: Batches, *, max_postings: int) -> Batches:
    """The prefix postings of features that more than `max_postings` sketches hold anywhere."""
    columns = unpack(list(batches), PRUNED_LAYOUT)
    if columns["holders"].max(initial=0) <= max_postings:
        return
    prefixes = _cut_prefixes(columns)
    common = np.flatnonzero(prefixes.holders.values > max_postings)
    nodes = np.repeat(prefixes.nodes, np.diff(prefixes.features.offsets))[common]
    yield pa.RecordBatch.from_pydict({"feature": prefixes.features.values[common].view(np.int64), "node": nodes})


def _post_prefixes(batches: Batches, *, threshold: Threshold, partitions: int) -> Batches:
    """Each sketch with features left, to every partition that owns one of its prefix.

    Of containment all features are sent, for any sketch may contain another; it is its prefix that the others look for.
    """
    held = list(batches)
    originals = unpack(held, ORIGINAL_LAYOUT)
    prefixes = _cut_prefixes(unpack(held, PRUNED_LAYOUT))
    sketches, crowd = _find_originals(originals, prefixes.nodes)
    bounds, lengths = prefixes.bounds, np.diff(prefixes.features.offsets).astype(np.int32)
    posted = lengths
    if threshold.is_containment:
        bounds = threshold.bounds(np.diff(sketches.offsets).astype(np.int32))
        posted = np.maximum(lengths - bounds + 1, 0)
    columns = {"node": prefixes.nodes, "crowd": crowd, "bound": bounds, "posted": posted}
    yield from post_probes(columns, sketches, prefixes.features, prefixes.holders, partitions=partitions)


def _find_originals(originals: Columns, nodes: NDArray[np.int64]) -> tuple[Ragged, NDArray[np.generic]]:
    """The original sketches of `nodes`, in their order, and which of them are of the crowd."""
    offsets = np.concatenate([[0], np.cumsum(originals["original_size"])]).astype(np.int64)
    order = np.argsort(originals["original"])
    places = order[np.searchsorted(originals["original"][order], nodes)]
    whole = Ragged(offsets, originals["original_ids"].view(np.uint64))
    return take_rows(whole, places), originals["original_crowd"][places]


def _match_block(batches: Batches, *, threshold: Threshold, max_postings: int, partitions: int) -> Batches:
    held = with_rows(batches)
    target = target_of(held)
    columns = unpack(held, PROBE_LAYOUT)
    order = np.lexsort((columns["node"], columns["size"]))
    nodes = columns["node"][order].astype(np.int64)
    holders = take_rows(_ragged(columns["prefix_size"], columns["prefix_holders"]), order)
    probes = Probes(
        sketches=take_rows(_ragged(columns["size"], columns["ids"]), order),
        prefixes=take_rows(_ragged(columns["prefix_size"], columns["prefix"]), order),
        holders=holders.values.astype(np.int32),
        bounds=columns["bound"][order].astype(np.int32),
        posted=columns["posted"][order].astype(np.int32),
        heavy=columns["crowd"][order] != 0,
    )

    is_owned = partition_of(probes.prefixes.values, partitions) == target
    found = join_prefixes(probes, is_owned, threshold=threshold, max_postings=max_postings)
    sizes = np.diff(probes.sketches.offsets) if threshold.shows_containment else None
    yield lay_out("pair", _pair_columns(found, nodes, sizes))
    if len(found.links):
        ends = nodes[found.links]
        yield lay_out("link", {"node_a": ends.min(axis=1), "node_b": ends.max(axis=1)})
    yield lay_out("count", {name: np.array([getattr(found, name)]) for name in COUNTERS})


def _pair_columns(
    found: Found, nodes: NDArray[np.int64], sizes: NDArray[np.int64] | None
) -> dict[str, NDArray[np.generic]]:
    """The columns of MATCHES; the containments where the sizes of the sketches are given."""
    first, second = nodes[found.first], nodes[found.second]
    columns: dict[str, NDArray[np.generic]] = {
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


def _ragged(lengths: NDArray[np.generic], values: NDArray[np.generic]) -> Ragged:
    return Ragged(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), values.view(np.uint64))
