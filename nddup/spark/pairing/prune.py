"""Divide and prune: from distinct sketches to the features that can be in an overlap, grouped by sketch.

    sketches  --divide-->   postings, features with one holder dropped, grouped by sketch     2 shuffles
    postings  --prune-->    the same after one more round                                     2 shuffles

`nddup.run.on_spark.pairing` repeats `prune` while it drops enough, and persists between the rounds; stopping after any
round is exact. All shuffles move blocks (`nddup.spark.blocks`). The arithmetic is in `nddup.matching.prefix_filter`.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.arrays import take_rows
from nddup.matching.prefix_filter import count_holders, keep_possible, partition_of
from nddup.matching.threshold import Threshold
from nddup.spark.blocks import (
    Columns,
    Layout,
    block_schema,
    exchange,
    list_column,
    one_block,
    pack,
    pack_pieces,
    target_of,
    unpack,
    with_rows,
)
from nddup.spark.schemas import POSTINGS, SKETCHES, require

Batches = Iterator[pa.RecordBatch]
POSTING_LAYOUT: Layout = {"node": np.int64, "feature": np.uint64, "bound": np.int32}
PRUNED_LAYOUT: Layout = {**POSTING_LAYOUT, "holders": np.int32}


def divide(sketches: DataFrame, *, threshold: Threshold, partitions: int) -> DataFrame:
    """Drop features that one sketch holds alone, and sketches that are then left with too few.

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
    """One more round: count the holders of the features left again, and drop as `divide` does.

    Schema in/out:  POSTINGS
    Shuffles:  two, of blocks.    Actions:  none.
    """
    require(postings, POSTINGS, stage="pairs")
    by_feature = postings.mapInArrow(partial(_post_again, partitions=partitions), block_schema(POSTING_LAYOUT))
    return _recount(by_feature, partitions=partitions)


def count_postings(postings: DataFrame) -> DataFrame:
    """How many (feature, sketch) rows a POSTINGS table holds, as one row `postings long`."""
    return postings.select(F.coalesce(F.sum(F.length("node")) / 8, F.lit(0)).cast("long").alias("postings"))


def _recount(by_feature: DataFrame, *, partitions: int) -> DataFrame:
    """POSTINGS from blocks of POSTING_LAYOUT that are addressed by feature: counted there, then grouped by sketch."""
    counted = exchange(by_feature, partitions=partitions).mapInArrow(
        partial(_count_block, partitions=partitions), block_schema(PRUNED_LAYOUT)
    )
    kept = exchange(counted, partitions=partitions).mapInArrow(_keep_block, block_schema(PRUNED_LAYOUT))
    return kept.select(*POSTINGS.fieldNames())


def _post_sketches(batches: Batches, *, threshold: Threshold, partitions: int) -> Batches:
    """Blocks of POSTING_LAYOUT, each feature to its owner; sketches that can be in no pair are left out."""
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        sizes = np.diff(rows.offsets).astype(np.int32)
        bounds = threshold.prune_bounds(sizes)
        possible = np.flatnonzero((sizes > 0) & (bounds <= sizes))

        rows, lengths = take_rows(rows, possible), sizes[possible]
        columns = {
            "node": np.repeat(np.asarray(batch.column("node"))[possible], lengths),
            "feature": rows.values,
            "bound": np.repeat(bounds[possible], lengths),
        }
        yield pack(POSTING_LAYOUT, partition_of(rows.values, partitions), columns, partitions=partitions)


def _post_again(batches: Batches, *, partitions: int) -> Batches:
    """Postings grouped by sketch, sent to the owners of their features again."""
    for batch in batches:
        columns = unpack([batch], POSTING_LAYOUT)
        targets = partition_of(columns["feature"].view(np.uint64), partitions)
        yield pack(POSTING_LAYOUT, targets, columns, partitions=partitions)


def _count_block(batches: Batches, *, partitions: int) -> Batches:
    """The postings of features with two or more holders, with their number, each to the partition of its sketch."""
    columns = unpack(batches, POSTING_LAYOUT)
    holders = count_holders(columns["feature"].view(np.uint64))
    shared = np.flatnonzero(holders > 1)
    kept: Columns = {name: values[shared] for name, values in columns.items()}
    kept["holders"] = holders[shared]

    targets = partition_of(kept["node"].view(np.uint64), partitions)
    yield from pack_pieces(PRUNED_LAYOUT, targets, kept, partitions=partitions)


def _keep_block(batches: Batches) -> Batches:
    """The postings of sketches that have as many features left as they need, ordered by sketch."""
    held = with_rows(batches)
    columns = unpack(held, PRUNED_LAYOUT)
    order, _ = keep_possible(columns["node"].view(np.uint64), columns["bound"].astype(np.int32))
    yield from one_block(PRUNED_LAYOUT, target_of(held), {name: values[order] for name, values in columns.items()})
