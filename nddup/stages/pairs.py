"""Divide–compute–merge: from distinct sketches to every pair of near-duplicates, without loss.

    sketches  --divide-->   postings, features with one holder dropped, grouped by sketch     2 shuffles
    postings  --prune-->    the same, one more round of the fixed point                       2 shuffles
    postings  --match-->    candidates at the first common prefix feature, verified           2 shuffles

`pipeline` repeats `prune` while it pays and persists between the rounds; stopping after any round is exact. All
shuffles move blocks (`nddup.stages.exchange`). The arithmetic, and why it is exact, is in
`nddup.algorithms.overlap`.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.algorithms.overlap import (
    Ragged,
    count_holders,
    keep_possible,
    match_prefixes,
    order_by_rarity,
    partition_of,
)
from nddup.algorithms.thresholds import Threshold
from nddup.schemas import MATCHES, POSTINGS, SKETCHES, require
from nddup.stages.exchange import (
    Columns,
    Layout,
    block_schema,
    exchange,
    list_column,
    one_block,
    pack,
    take_rows,
    target_of,
    unpack,
    with_rows,
)

Batches = Iterator[pa.RecordBatch]
POSTING_LAYOUT: Layout = {"node": np.int64, "feature": np.uint64, "bound": np.int32}
PRUNED_LAYOUT: Layout = {**POSTING_LAYOUT, "holders": np.int32}
ORIGINAL_LAYOUT: Layout = {"original": np.int64, "original_size": np.int32, "original_ids": np.uint64}
PROBE_LAYOUT: Layout = {
    "node": np.int64,
    "size": np.int32,
    "ids": np.uint64,
    "bound": np.int32,
    "prefix_size": np.int32,
    "prefix": np.uint64,
    "prefix_holders": np.uint64,
}

COUNTERS = ("candidates", "cut_features", "cut_postings")
"""What each task of `match` counts: pairs compared, prefix features and postings cut by `max_postings`."""


def divide(sketches: DataFrame, *, threshold: Threshold, partitions: int) -> DataFrame:
    """Invert the sketches, drop features of one holder and sketches left with too few.

    Schema in:   SKETCHES, node unique
    Schema out:  POSTINGS
    Shuffles:  two, of blocks.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    postings = sketches.select("node", "sketch").mapInArrow(
        partial(_post_sketches, threshold=threshold, partitions=partitions), block_schema(POSTING_LAYOUT)
    )
    return _recount(postings, partitions=partitions)


def prune(postings: DataFrame, *, partitions: int) -> DataFrame:
    """One more round: recount the holders of the features left, drop as `divide` does.

    Schema in/out:  POSTINGS
    Shuffles:  two, of blocks.    Actions:  none.
    """
    require(postings, POSTINGS, stage="pairs")
    by_feature = postings.mapInArrow(partial(_post_again, partitions=partitions), block_schema(POSTING_LAYOUT))
    return _recount(by_feature, partitions=partitions)


def count_postings(postings: DataFrame) -> DataFrame:
    """How many (feature, sketch) rows a POSTINGS table holds, as one row `postings long`."""
    return postings.select(F.coalesce(F.sum(F.length("node")) / 8, F.lit(0)).cast("long").alias("postings"))


def match(
    postings: DataFrame, sketches: DataFrame, *, threshold: Threshold, max_postings: int, partitions: int
) -> DataFrame:
    """Find and verify the pairs of near-duplicate sketches.

    Schema in:   POSTINGS, and the SKETCHES it came from
    Schema out:  MATCHES
    Shuffles:  two, of blocks: the original sketches meet their prefixes, then each goes to the partitions that own
        a feature of its prefix (at most as many copies as the prefix is long, or as there are partitions).
    Actions:   none.
    """
    require(postings, POSTINGS, stage="pairs")
    require(sketches, SKETCHES, stage="pairs")
    originals = sketches.select("node", "sketch").mapInArrow(
        partial(_post_originals, partitions=partitions), block_schema(ORIGINAL_LAYOUT)
    )
    met = exchange(postings.unionByName(originals, allowMissingColumns=True), partitions=partitions)
    probes = met.mapInArrow(partial(_post_prefixes, partitions=partitions), block_schema(PROBE_LAYOUT))
    return exchange(probes, partitions=partitions).mapInArrow(
        partial(_match_block, threshold=threshold, max_postings=max_postings, partitions=partitions), MATCHES
    )


def _recount(by_feature: DataFrame, *, partitions: int) -> DataFrame:
    """POSTING_LAYOUT blocks addressed by feature -> POSTINGS, in two exchanges."""
    counted = exchange(by_feature, partitions=partitions).mapInArrow(
        partial(_count_block, partitions=partitions), block_schema(PRUNED_LAYOUT)
    )
    return (
        exchange(counted, partitions=partitions)
        .mapInArrow(_keep_block, block_schema(PRUNED_LAYOUT))
        .select(*POSTINGS.fieldNames())
    )


def _post_sketches(batches: Batches, *, threshold: Threshold, partitions: int) -> Batches:
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        sizes = np.diff(rows.offsets).astype(np.int32)
        bounds = threshold.bounds(sizes)
        possible = np.flatnonzero((sizes > 0) & (bounds <= sizes))
        rows = take_rows(rows, possible)
        lengths = sizes[possible]
        columns = {
            "node": np.repeat(np.asarray(batch.column("node"))[possible], lengths),
            "feature": rows.values,
            "bound": np.repeat(bounds[possible], lengths),
        }
        yield pack(POSTING_LAYOUT, partition_of(rows.values, partitions), columns, partitions=partitions)


def _post_again(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        columns = unpack([batch], POSTING_LAYOUT)
        targets = partition_of(columns["feature"].view(np.uint64), partitions)
        yield pack(POSTING_LAYOUT, targets, columns, partitions=partitions)


def _count_block(batches: Batches, *, partitions: int) -> Batches:
    columns = unpack(batches, POSTING_LAYOUT)
    holders = count_holders(columns["feature"].view(np.uint64))
    shared = np.flatnonzero(holders > 1)
    kept: Columns = {name: values[shared] for name, values in columns.items()}
    kept["holders"] = holders[shared]
    yield pack(PRUNED_LAYOUT, partition_of(kept["node"].view(np.uint64), partitions), kept, partitions=partitions)


def _keep_block(batches: Batches) -> Batches:
    held = with_rows(batches)
    columns = unpack(held, PRUNED_LAYOUT)
    order, _ = keep_possible(columns["node"].view(np.uint64), columns["bound"].astype(np.int32))
    yield one_block(PRUNED_LAYOUT, target_of(held), {name: values[order] for name, values in columns.items()})


def _post_originals(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        nodes = np.asarray(batch.column("node"))
        columns = {"original": nodes, "original_size": np.diff(rows.offsets).astype(np.int32)}
        targets = partition_of(nodes.view(np.uint64), partitions)
        yield pack(ORIGINAL_LAYOUT, targets, columns, {"original_ids": rows}, partitions=partitions)


def _post_prefixes(batches: Batches, *, partitions: int) -> Batches:
    """Each sketch with features left, to every partition that owns one of its prefix."""
    held = list(batches)
    columns = unpack(held, PRUNED_LAYOUT)
    originals = unpack(held, ORIGINAL_LAYOUT)
    order, offsets = keep_possible(columns["node"].view(np.uint64), columns["bound"].astype(np.int32))
    nodes = columns["node"][order][offsets[:-1]]
    features, holders = columns["feature"][order].view(np.uint64), columns["holders"][order].astype(np.int32)
    bounds = columns["bound"][order][offsets[:-1]]
    by_rarity = order_by_rarity(offsets, features, holders)
    whole = Ragged(offsets, features[by_rarity])
    lengths = np.diff(offsets) - bounds + 1
    inside = np.arange(len(features)) - np.repeat(offsets[:-1], np.diff(offsets)) < np.repeat(lengths, np.diff(offsets))
    prefix = Ragged(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), whole.values[inside])
    prefix_holders = Ragged(prefix.offsets, holders[by_rarity][inside].astype(np.uint64))
    sketches = _find_originals(originals, nodes)
    copies, targets = _copies(prefix, partitions)
    yield pack(
        PROBE_LAYOUT,
        targets,
        {
            "node": nodes[copies],
            "size": np.diff(sketches.offsets)[copies].astype(np.int32),
            "bound": bounds[copies],
            "prefix_size": lengths[copies].astype(np.int32),
        },
        {
            "ids": take_rows(sketches, copies),
            "prefix": take_rows(prefix, copies),
            "prefix_holders": take_rows(prefix_holders, copies),
        },
        partitions=partitions,
    )


def _find_originals(originals: Columns, nodes: NDArray[np.generic]) -> Ragged:
    """The original sketches of `nodes`, in their order."""
    offsets = np.concatenate([[0], np.cumsum(originals["original_size"])]).astype(np.int64)
    order = np.argsort(originals["original"])
    places = order[np.searchsorted(originals["original"][order], nodes)]
    return take_rows(Ragged(offsets, originals["original_ids"].view(np.uint64)), places)


def _copies(prefix: Ragged, partitions: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Which sketch goes where: the distinct (sketch, owner of one of its prefix features)."""
    sketch = np.repeat(np.arange(len(prefix.offsets) - 1), np.diff(prefix.offsets))
    routes = np.unique(sketch * partitions + partition_of(prefix.values, partitions))
    return routes // partitions, (routes % partitions).astype(np.int32)


def _match_block(batches: Batches, *, threshold: Threshold, max_postings: int, partitions: int) -> Batches:
    held = with_rows(batches)
    target = target_of(held)
    columns = unpack(held, PROBE_LAYOUT)
    order = np.lexsort((columns["node"], columns["size"]))
    nodes = columns["node"][order]
    sketches = take_rows(_ragged(columns["size"], columns["ids"]), order)
    prefix = take_rows(_ragged(columns["prefix_size"], columns["prefix"]), order)
    holders = take_rows(_ragged(columns["prefix_size"], columns["prefix_holders"]), order).values.astype(np.int32)
    found = match_prefixes(
        sketches,
        prefix,
        holders,
        partition_of(prefix.values, partitions) == target,
        columns["bound"][order].astype(np.int32),
        size=threshold.size,
        share=threshold.share,
        max_postings=max_postings,
    )
    first, second = nodes[found.first], nodes[found.second]
    yield pa.RecordBatch.from_arrays(
        [
            pa.array(np.append(np.minimum(first, second), 0), mask=_last_masked(len(first))),
            pa.array(np.append(np.maximum(first, second), 0), mask=_last_masked(len(first))),
            pa.array(np.append(found.overlap, 0).astype(np.int32)),
            pa.array(np.append(found.resemblance, 0.0)),
            _counter(len(first), found.candidates),
            _counter(len(first), found.cut_features),
            _counter(len(first), found.cut_postings),
        ],
        names=MATCHES.fieldNames(),
    )


def _ragged(lengths: NDArray[np.generic], values: NDArray[np.generic]) -> Ragged:
    return Ragged(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), values.view(np.uint64))


def _last_masked(rows: int) -> NDArray[np.bool_]:
    masked = np.zeros(rows + 1, np.bool_)
    masked[rows] = True
    return masked


def _counter(rows: int, value: int) -> pa.Array:
    """Null for each pair, the value in the task's row of counters."""
    return pa.array(np.append(np.zeros(rows, np.int64), value), mask=~_last_masked(rows))
